"""A subscriber to an MQTT broker, with the part of MQTT 3.1.1 that the tests need, and a broker with one user where mosquitto is installed."""
import os
import shutil
import socket
import struct
import subprocess
import threading

from framed_client import Process, free_port, until

BROKER = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Broker(Process):
    """mosquitto on a free port of loopback, for one user with a password."""

    def __init__(self, where, user, password):
        self.port = free_port()
        secrets, settings = f"{where}/broker.passwords", f"{where}/broker.conf"
        open(secrets, "w").close()
        subprocess.run(["mosquitto_passwd", "-b", secrets, user, password], check=True, capture_output=True)
        os.chmod(secrets, 0o644)
        with open(settings, "w") as file:
            file.write(f"listener {self.port} 127.0.0.1\nallow_anonymous false\npassword_file {secrets}\nuser root\n")
        super().__init__([BROKER, "-c", settings], f"{where}/broker.log")

    def __enter__(self):
        super().__enter__()
        until(self.answers, 5)
        return self

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def field(text):
    return struct.pack(">H", len(text)) + text.encode()


def packet(kind, body):
    assert len(body) < 128
    return bytes([kind, len(body)]) + body


class Subscriber(threading.Thread):
    """Receives every message of the broker: self.messages is a list of (topic, payload), including retained ones."""

    def __init__(self, port, user, password):
        super().__init__(daemon=True)
        self.messages = []
        self.peer = socket.create_connection(("127.0.0.1", port))
        flags = 0xC2  # user, password, clean session
        self.peer.sendall(packet(0x10, field("MQTT") + bytes([4, flags, 0, 0]) + field("test") + field(user)
                                 + field(password)))
        self.peer.sendall(packet(0x82, struct.pack(">H", 1) + field("#") + b"\0"))
        self.start()

    def run(self):
        with self.peer, self.peer.makefile("rb") as stream:
            while head := stream.read(1):
                length = shift = 0
                while True:
                    byte = stream.read(1)[0]
                    length |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
                body = stream.read(length)
                if head[0] >> 4 == 3:
                    end = 2 + struct.unpack(">H", body[:2])[0]
                    self.messages.append((body[2:end].decode(), body[end:].decode()))

    def last(self, topic):
        return next((payload for name, payload in reversed(self.messages) if name == topic), None)

    def all(self, topic):
        return [payload for name, payload in self.messages if name == topic]
