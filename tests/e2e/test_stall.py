#!/usr/bin/python3
"""A client that stalls under max_age reads one old frame (over tcp with a small receive buffer at most two), then
new ones. With overflow: wait no frame is lost."""
import os
import socket
import threading
import time

from framed_client import PATIENCE, Checks, Framed, consume, folder, free_port, make_clip

MAX_AGE_S = 0.5
STALL_S = 3
OLD_S = 1.5  # well above max_age, well below the stall
SIZES = ["64x64", "224x224", "640x640", "1920x1080"]

LIVE = """
cameras:
  clip:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    fps: 10
    outputs:
{outputs}
"""

WHOLE = """
defaults: {{overflow: wait, max_age: 1h}}
cameras:
  clip:
    url: {where}/clip.mp4
    outputs:
      unix: {{size: 64x64, sink: "unix:{where}/unix.sock"}}
      tcp: {{size: 64x64, sink: "tcp:{port}"}}
"""


def take(peer, size):
    data = bytearray(size)
    left = memoryview(data)
    while left:
        n = peer.recv_into(left)
        if n == 0:
            raise EOFError("the stream ended")
        left = left[n:]
    return data


def read_frame(peer):
    """Returns a frame's header, without reading a byte of the next frame."""
    header = consume.header_of(take(peer, consume.WIRE.size))
    take(peer, header.payload_bytes)
    return header


def connect_small(address):
    """Returns a connection; a tcp one has a small receive buffer from its first byte on."""
    peer = consume.connect(address, 10 * PATIENCE)
    if not address.startswith("tcp:"):
        return peer
    place = peer.getpeername()
    peer.close()
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(place)
    return peer


class Sleeper(threading.Thread):
    """Reads some frames, stalls, reads on."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.ages, self.error = address, [], None
        self.start()

    def run(self):
        try:
            with connect_small(self.address) as peer:
                for _ in range(5):
                    read_frame(peer)
                time.sleep(STALL_S)
                for _ in range(6):
                    header = read_frame(peer)
                    self.ages.append(time.monotonic() - header.received_ns / 1e9)
        except (OSError, EOFError) as error:
            self.error = error


def check_ages(checks, where):
    addresses = {}
    for size in SIZES:
        addresses[f"unix {size}"] = f"unix:{where}/{size}.sock"
        addresses[f"tcp {size}"] = f"tcp:127.0.0.1:{free_port()}"
    outputs = "\n".join(f'      o{i}: {{size: {name.split()[1]}, max_age: {MAX_AGE_S}s, sink: "{address}"}}'
                        for i, (name, address) in enumerate(addresses.items()))
    with Framed(where, LIVE.format(where=where, outputs=outputs)) as framed:
        sleepers = {name: Sleeper(address) for name, address in addresses.items()}
        for name, sleeper in sleepers.items():
            sleeper.join(30 * PATIENCE)
            old = [f"{age:.2f}" for age in sleeper.ages if age > OLD_S]
            checks.check(len(sleeper.ages) == 6, f"{name}: {len(sleeper.ages)} frames, {sleeper.error}")
            most = 2 if name.startswith("tcp") else 1
            checks.check(len(old) <= most, f"{name}: after {STALL_S} s frames of {' '.join(old)} s")
        code = framed.stop()
        checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
        offered, emitted, lost = framed.metrics().account()
        checks.check(offered == emitted + lost, f"{offered} offered, {emitted} emitted, {lost} lost")


def slow_count(address, found):
    with consume.connect(address, 10 * PATIENCE) as peer:
        try:
            while True:
                read_frame(peer)
                found.append(1)
                time.sleep(0.01)
        except EOFError:
            pass


def check_wait(checks, where):
    """A file at full speed with slow clients and a max_age that is never reached."""
    port = free_port()
    with Framed(where, WHOLE.format(where=where, port=port)) as framed:
        counts = {address: [] for address in (f"unix:{where}/unix.sock", f"tcp:127.0.0.1:{port}")}
        readers = [threading.Thread(target=slow_count, args=item, daemon=True) for item in counts.items()]
        for reader in readers:
            reader.start()
        code = framed.wait(30)
        checks.check(code == 0, f"a file to its end: exit {code}:\n{framed.errors()}")
        for reader in readers:
            reader.join(10 * PATIENCE)
        for address, found in counts.items():
            checks.check(len(found) == 50, f"{address}: {len(found)} of 50 frames")


def main():
    checks = Checks("stall")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        check_ages(checks, where)
        check_wait(checks, where)
    checks.end()


main()
