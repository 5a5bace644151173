#!/usr/bin/python3
"""consume.py with this test's own ring, which takes slots away at any time."""
import mmap
import os
import socket
import struct

from framed_client import PATIENCE, Checks, consume, folder

SIDE, SLOTS = 8, 3
BYTES = 3 * SIDE * SIDE
STATE = SLOTS * BYTES  # the state words follow the slots
LENGTH = STATE + 8 * SLOTS


class Sender:
    """A ring with room for one client."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen()
        self.listener.settimeout(10 * PATIENCE)
        self.file = os.memfd_create("ring")
        os.ftruncate(self.file, LENGTH)
        self.memory = mmap.mmap(self.file, LENGTH)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        os.close(self.file)

    def accept(self):
        peer, _ = self.listener.accept()
        peer.settimeout(10 * PATIENCE)
        fields = (b"FRNG", 1, 256, SLOTS, 0, 0, BYTES, BYTES, STATE, LENGTH, 0, bytes(16), 0, 0)
        socket.send_fds(peer, [consume.HELLO.pack(*fields).ljust(256, b"\0")], [self.file])
        return peer

    def fill(self, slot, level, ticket):
        """Puts another frame into the slot, all of one level."""
        struct.pack_into("<Q", self.memory, STATE + 8 * slot, ticket)
        self.memory[slot * BYTES : (slot + 1) * BYTES] = bytes([level]) * BYTES

    def send(self, peer, slot, level, ticket):
        self.fill(slot, level, ticket)
        header = consume.WIRE.pack(
            b"FRMD", 1, 256, BYTES, ticket, 0, 0, 0, 0, 0, 0, 0, 0, SIDE, SIDE, SIDE, SIDE, b"rgb", b"u8", b"nchw", 1,
            0, *[0] * 8, *[0.0] * 12, b"camera", b"output")
        peer.send(header + consume.SLOT.pack(slot, 0, ticket))


def check_torn(checks, where):
    """A slot taken away before the next frame is requested is counted and logged."""
    with Sender(f"{where}/ring") as sender, consume.connect(f"ring:{where}/ring") as client, sender.accept() as peer:
        ring = consume.Ring(client)
        frames = ring.frames()
        sender.send(peer, 0, 10, 1)
        _, payload = next(frames)
        checks.check(payload[0] == 10 and ring.is_whole(), "a new frame is not whole")
        sender.fill(0, 15, 2)
        checks.check(not ring.is_whole(), "a slot of another frame is whole")
        sender.send(peer, 1, 20, 3)
        next(frames)
        checks.check(ring.torn == 1 and ring.is_whole(), f"{ring.torn} torn frames, not one")
        sender.send(peer, 2, 30, 4)
        sender.fill(2, 35, 5)  # gone before the client looked: not handed out, and not counted as torn
        sender.send(peer, 0, 40, 6)
        header, payload = next(frames)
        checks.check((header.sequence, payload[0]) == (6, 40), f"frame {header.sequence} of level {payload[0]}")
        checks.check(ring.torn == 1, f"{ring.torn} torn frames, not one")


def main():
    checks = Checks("consume")
    with folder() as where:
        check_torn(checks, where)
    checks.end()


main()
