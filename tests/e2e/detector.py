"""Clients of a ring that send back detections, forged ones too, and readers of the resulting lines."""
import json
import os
import socket
import struct
import threading

import consume
from framed_client import PATIENCE

RESULT = struct.Struct("<4sHHIIQII")
OBJECT = struct.Struct("<4ff2Hq")
RETURN, IN_SOURCE = 1, 2


def result(slot, ticket, objects, flags=RETURN, model=0, element=0, count=None, version=1):
    """Returns a message; objects are (x1, y1, x2, y2, score, class, flags, track)."""
    head = RESULT.pack(b"FRRS", version, flags, slot, element, ticket, len(objects) if count is None else count, model)
    return head + b"".join(OBJECT.pack(*one) for one in objects)


def rows(n, score=0.5):
    """Returns n boxes of 10 x 10 in a tensor of 320 x 320 whose picture is 320 x 240, 40 rows down."""
    return [(20 + i, 60, 30 + i, 70, score, i % 3, 0, i) for i in range(n)]


class Client(consume.Ring):
    """Reads frames of a ring one by one, without their pixels."""

    def __init__(self, path):
        super().__init__(consume.connect(f"ring:{path}", 10 * PATIENCE))
        self.peer.settimeout(10 * PATIENCE)

    def next(self):
        """Returns (header or number of elements, slot, ticket); None at the end."""
        while True:
            message, files, _, _ = socket.recv_fds(self.peer, 272, 2)
            for file in files:
                os.close(file)
            if not message:
                return None
            if message.startswith(b"FRBT"):
                *_, slot, _, ticket = consume.BATCH.unpack(message)
                return struct.unpack_from("<I", message, 8)[0], slot, ticket
            if not message.startswith(b"FRNG"):
                return consume.header_of(message[:256]), *consume.SLOT.unpack(message[256:])[::2]

    def give_back(self, slot, ticket):
        self.peer.send(consume.SLOT.pack(slot, 0, ticket))


class Detector(threading.Thread):
    """Reports the same objects for every frame, until stopped."""

    def __init__(self, path, objects):
        super().__init__(daemon=True)
        self.client, self.objects, self.sequences, self.stopped = Client(path), objects, [], False
        self.lost = None
        self.start()

    def run(self):
        while not self.stopped and (frame := self.client.next()):
            header, slot, ticket = frame
            self.client.peer.send(result(slot, ticket, self.objects))
            self.sequences.append((header.epoch, header.sequence))
            self.lost = header.lost

    def stop(self):
        self.stopped = True
        self.join(10 * PATIENCE)
        self.client.peer.close()


class Lines(threading.Thread):
    """Reads lines from an address, or a connection, until it closes."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.peer, self.text = address, b""
        if isinstance(address, str):
            self.peer = consume.connect(address, 10 * PATIENCE)
        self.start()

    def run(self):
        try:
            while data := self.peer.recv(1 << 16):
                self.text += data
        except OSError:
            pass

    def objects(self):
        return [json.loads(line) for line in self.text.splitlines()]
