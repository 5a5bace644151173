"""A camera that misbehaves on request: each connection can be given a fault to run before a picture."""
import random
import socket
import struct

import rtp_payloads
import rtsp_camera
from camera_guard import Basic, Digest, Guard


class Connection(rtsp_camera.Connection):
    """Faults are methods, called by the connection's own thread before a picture."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.mangle = None  # changes the next picture's packets: takes a list, returns one
        self.spoil = list  # the same, for every picture

    def changed(self, _number, packets):
        wanted, self.mangle = (self.mangle or self.spoil)(packets), None
        return wanted

    def half(self):
        """Sends half of the next picture, then closes."""
        self.mangle = lambda packets: packets[: len(packets) // 2]
        self.camera.next(Connection.fin)

    def fin(self):
        self.peer.shutdown(socket.SHUT_RDWR)
        raise rtsp_camera.Hangup

    def reset(self):
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise rtsp_camera.Hangup

    def bye(self):
        self.transport.send_rtcp(self.sender_report(0) + rtp_payloads.goodbye(self.ssrc))
        self.go_mute()

    def lone_bye(self):
        """Sends it without the report that must precede it, and too short for libavformat to look at."""
        self.transport.send_rtcp(rtp_payloads.goodbye(self.ssrc))
        self.go_mute()

    def go_mute(self):
        """Keeps the connection, but sends nothing more."""
        while not self.camera.over.wait(0.1):
            self.receive(0.01)  # notices when the client leaves
        raise rtsp_camera.Hangup

    def freeze(self, seconds):
        """Pauses; what is due meanwhile is sent all at once."""
        self.camera.over.wait(seconds)

    def jump(self, seconds):
        """Sets the RTP clock; the camera goes on."""
        self.rtp_base += int(seconds * rtsp_camera.CLOCK)

    def wall_step(self, seconds):
        self.wall_offset += seconds

    def restart(self, packets=20000):
        """Restarts the camera's encoder unannounced: its sequence numbers go on `packets` further."""
        self.sequence, self.rtp_base = self.sequence + packets, self.rtp_base + 123456789

    def garble(self):
        """Replaces the rest of every further packet by noise, behind the head of its NAL unit."""
        chance = random.Random(1)
        self.spoil = lambda packets: [
            p._replace(payload=p.payload[:2] + chance.randbytes(len(p.payload) - 2)) for p in packets]

    def babble(self, size):
        """Sends noise that ends like an answer, and packets of channels and types that were not set up."""
        self.noise(size)
        self.write(b"\r\n\r\n")
        for channel, length in ((7, 100), (0, 8), (1, 9), (255, 1000)):
            self.write(struct.pack(">cBH", b"$", channel, length) + bytes(length))

    def noise(self, size):
        """Sends noise where a `$` is expected."""
        self.write(bytes(random.randrange(256) for _ in range(size)).replace(b"$", b"%"))


class Camera(rtsp_camera.Camera):
    """`user`: the required "NAME:PASSWORD"."""

    connection = Connection

    def __init__(self, clip, user=None, basic=False, **options):
        guard = Guard(user, [Basic() if basic else Digest()]) if user else None
        super().__init__(clip, guard, **options)
