"""A ring without a daemon, for misbehaviour that a daemon cannot be made to show."""
import fcntl
import os
import socket

import consume
from framed_client import PATIENCE


class RingSender:
    """A ring of 16 x 4 RGB bytes with one client and three slots, which takes slots away at any time."""

    SLOTS, BYTES = 3, 3 * 16 * 4
    STATE = SLOTS * BYTES
    LENGTH = STATE + 8 * SLOTS

    def __init__(self, where, name="own"):
        self.path = f"{where}/{name}.ring"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(10 * PATIENCE)

    def words(self):
        """Creates a new daemon's memory on the host: slots, followed by their state words."""
        self.file = os.memfd_create("ring", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.file, self.LENGTH)
        fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return self.file

    def accept(self):
        """Acts as a new daemon for the next client."""
        memfd, self.peer = self.words(), self.listener.accept()[0]
        fields = (b"FRNG", 1, 256, self.SLOTS, 0, 0, self.BYTES, self.BYTES, self.STATE, self.LENGTH, 0, bytes(16), 0, 0)
        socket.send_fds(self.peer, [consume.HELLO.pack(*fields).ljust(256, b"\0")], [memfd])

    def send(self, slot, level, ticket, tell=True):
        """Sends a frame of one level; level None leaves the slot's bytes."""
        os.pwrite(self.file, ticket.to_bytes(8, "little"), self.STATE + 8 * slot)
        if level is not None:
            os.pwrite(self.file, bytes([level]) * self.BYTES, slot * self.BYTES)
        if tell:
            header = consume.WIRE.pack(
                b"FRMD", 1, 256, self.BYTES, ticket, 0, 0, 0, 0, 0, 0, 0, 0, 16, 4, 16, 4, b"rgb", b"u8", b"nchw", 3, 0,
                0, 64, 128, 0, 16, 16, 16, 0, *[1.0, 0, 0, 0, 1, 0] * 2, b"camera", b"output")
            self.peer.send(header + consume.SLOT.pack(slot, 0, ticket))

    def hang_up(self):
        self.peer.close()
        os.close(self.file)
