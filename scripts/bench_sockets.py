#!/usr/bin/python3
"""The age of the frames that a client reads after a stall, and the 1080p frames per second that a client reads.

usage: bench_sockets.py [--framed BINARY]... [--stall 3] [--max-age 0.2] [--rounds 5] [--seconds 4] [--only ages|rates]

The camera is a raw file: 25 frames per second for the ages, full speed for the rates. A second --framed is measured
alternately with the first.
"""
import argparse
import contextlib
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
import consume

FRAMES, WIDTH, HEIGHT = 50, 1920, 1080
OUTPUTS = {
    "64x64 u8": "size: 64x64",
    "224x224 u8": "size: 224x224",
    "640x640 u8": "size: 640x640",
    "1920x1080 yuv420p": "kernel: yuv",
}
CONFIG = """
log: {{level: warning}}
control: off
cameras:
  raw:
    url: {where}/clip.yuv
    demuxer: rawvideo
    options: {{pixel_format: yuv420p, video_size: {width}x{height}, framerate: 25}}
    loop: true
    pace: {pace}
    outputs: {{o: {{{output}, sink: "{sink}"}}}}
"""


def make_clip(path):
    with open(path, "wb") as file:
        for number in range(FRAMES):
            file.write(bytes([number]) * (WIDTH * HEIGHT * 3 // 2))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def stream(framed, where, kind, pace, output):
    """Yields a socket of that kind with the output of a framed."""
    sink = f"unix:{where}/s.sock" if kind == "unix" else f"tcp:127.0.0.1:{free_port()}"
    with open(f"{where}/framed.yaml", "w") as file:
        file.write(CONFIG.format(where=where, width=WIDTH, height=HEIGHT, pace=pace, output=output, sink=sink))
    child = subprocess.Popen([framed, "run", "-c", f"{where}/framed.yaml"])
    try:
        with consume.connect(sink) as peer:
            yield peer
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(10)


def read_frame(peer, memory):
    """Returns (received_ns, bytes) of one frame, without reading a byte of the next."""
    header = memory[:256]
    take(peer, header)
    size, received = struct.unpack_from("<Q", header, 8)[0], struct.unpack_from("<q", header, 56)[0]
    take(peer, memory[:size])
    return received, size


def take(peer, memory):
    while memory:
        n = peer.recv_into(memory)
        if n == 0:
            raise EOFError("the stream ended")
        memory = memory[n:]


def ages(framed, where, kind, output, options):
    """Returns the ages, in s, of the frames read in the first second after a stall."""
    memory, found = memoryview(bytearray(32 << 20)), []
    more = f"{output}, max_age: {int(options.max_age * 1000)}ms"
    with stream(framed, where, kind, "realtime", more) as peer:
        for _ in range(25):
            read_frame(peer, memory)
        time.sleep(options.stall)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            received, _ = read_frame(peer, memory)
            found.append(time.monotonic() - received / 1e9)
    return found


def rate(framed, where, kind, more, options):
    """Returns 1080p frames per second."""
    memory = memoryview(bytearray(32 << 20))
    with stream(framed, where, kind, "full", f"kernel: yuv, overflow: wait{more}") as peer:
        for _ in range(30):
            read_frame(peer, memory)
        start, frames = time.monotonic(), 0
        while time.monotonic() < start + options.seconds:
            read_frame(peer, memory)
            frames += 1
        return frames / (time.monotonic() - start)


def print_ages(where, options):
    for framed in options.framed:
        for kind in ("tcp", "unix"):
            for name, output in OUTPUTS.items():
                found = ages(framed, where, kind, output, options)
                late = [f"{age:.2f}" for age in found if age > options.max_age]
                rest = [age for age in found if age <= options.max_age]
                print(f"{framed}: {kind} {name}: after {options.stall:g} s {len(late)} frames older than {options.max_age:g} s "
                      f"({' '.join(late) or 'none'}), then {len(rest)} of at most {max(rest, default=0):.3f} s", flush=True)


def print_rates(where, options):
    keys = {"": "", f", max_age: {int(options.max_age * 1000)}ms": f", max_age {options.max_age:g} s"}
    for kind in ("tcp", "unix"):
        for more, name in keys.items():
            rates = {framed: [] for framed in options.framed}
            for _ in range(options.rounds):
                for framed in options.framed:
                    rates[framed].append(rate(framed, where, kind, more, options))
            for framed, found in rates.items():
                ratio = statistics.median(mine / first for mine, first in zip(found, rates[options.framed[0]]))
                print(f"{framed}: {kind} 1080p{name}: {statistics.median(found):.0f} frames/s, {ratio:.3f} of the first "
                      f"({min(found):.0f} to {max(found):.0f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framed", action="append")
    parser.add_argument("--stall", type=float, default=3)
    parser.add_argument("--max-age", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", choices=["ages", "rates"])
    options = parser.parse_args()
    options.framed = options.framed or ["build/framed"]
    with tempfile.TemporaryDirectory(prefix="framed-sockets-") as where:
        make_clip(f"{where}/clip.yuv")
        if options.only != "rates":
            print_ages(where, options)
        if options.only != "ages":
            print_rates(where, options)


main()
