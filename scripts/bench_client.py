#!/usr/bin/python3
"""Costs for a program that reads 640x640 f32 tensors (4.9 MB each) of a camera of 25 frames/s by libframed and framedio,
and those of many rings on one thread, as a share of one core; and the cost of importing framedio.

usage: bench_client.py [--build FOLDER] [--seconds 8] [--readers 165]
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZE, RATE = (320, 240), 25
CONFIG = """
log: {{level: warning}}
control: off
cameras:
  raw:
    url: {where}/clip.yuv
    demuxer: rawvideo
    options: {{pixel_format: yuv420p, video_size: {size[0]}x{size[1]}, framerate: {rate}}}
    loop: true
    pace: realtime
    outputs:
      ring: {{size: 640x640, tensor: {{dtype: f32}}, sink: "ring:{where}/ring"}}
      unix: {{size: 640x640, tensor: {{dtype: f32}}, sink: "unix:{where}/unix"}}
      tcp: {{size: 640x640, tensor: {{dtype: f32}}, sink: "tcp:127.0.0.1:5799"}}
"""
# Cameras of small pictures, each with outputs for several readers.
SMALL, OUTPUTS = (64, 64), 15
CAMERA = """
  raw{number}:
    url: {where}/small.yuv
    demuxer: rawvideo
    options: {{pixel_format: yuv420p, video_size: {size[0]}x{size[1]}, framerate: {rate}}}
    loop: true
    pace: realtime
    outputs:
"""
OUTPUT = """      ring{number}: {{size: 64x64, sink: "ring:{where}/ring{number}"}}
"""
LOOP = """
import itertools, sys, framedio
for frame in itertools.islice(framedio.open(sys.argv[1]), int(sys.argv[2])):
    frame.numpy()
"""
ASYNC = """
import asyncio, sys, framedio
async def take(address, count):
    async with framedio.aopen(address, timeout=20) as reader:
        async for frame in reader:
            frame.numpy()
            if not (count := count - 1):
                return reader.skipped + reader.torn
async def main():
    where, readers, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    missed = await asyncio.gather(*(take(f"ring:{where}/ring{number}", count) for number in range(readers)))
    print(f"{sum(missed)} of {readers * count} frames skipped or torn", file=sys.stderr)
asyncio.run(main())
"""


def cpu_seconds(command, environment):
    """Returns (user and system seconds, wall-clock seconds) of a program."""
    begun = time.monotonic()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bench_client: {command[0]}: exit {child.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begun


def print_share(name, command, environment, empty):
    """Prints the share of a core, without the program's start and end."""
    used, took = cpu_seconds(command, environment)
    print(f"{name:34} {100 * max(used - empty, 0) / took:6.2f} % of a core", flush=True)


def print_import(environment):
    def median(text):
        return statistics.median(cpu_seconds([sys.executable, "-c", text], environment)[0] for _ in range(15))

    print(f"{'import framedio':34} {1000 * (median('import framedio') - median('pass')):6.1f} ms of a core")


class Framed:
    """A daemon that runs during a with-block."""

    def __init__(self, build, where, config):
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(config)
        self.command = [f"{build}/framed", "run", "-c", f"{where}/framed.yaml"]

    def __enter__(self):
        self.process = subprocess.Popen(self.command)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def write_clip(path, size):
    with open(path, "wb") as file:
        for number in range(2 * RATE):
            file.write(bytes([number]) * (size[0] * size[1] * 3 // 2))


def time_one(where, build, environment, count, python):
    write_clip(f"{where}/clip.yuv", SIZE)
    with Framed(build, where, CONFIG.format(where=where, size=SIZE, rate=RATE)):
        addresses = {"ring": f"ring:{where}/ring", "unix": f"unix:{where}/unix", "tcp": "tcp:127.0.0.1:5799"}
        for kind, address in addresses.items():
            frames = [f"{build}/tests/e2e/client_frames", address, "newest", count, "-1"]
            print_share(f"libframed, {kind}", frames, environment, 0)
            print_share(f"framedio, {kind}", [sys.executable, "-c", LOOP, address, count], environment, python)


def time_many(where, environment, build, readers, count, python):
    """Rings of small frames, one reader each: the reader's work per frame is the same for large ones."""
    write_clip(f"{where}/small.yuv", SMALL)
    config = "log: {level: warning}\ncontrol: off\ncameras:"
    for number in range(readers):
        if number % OUTPUTS == 0:
            config += CAMERA.format(number=number, where=where, size=SMALL, rate=RATE)
        config += OUTPUT.format(number=number, where=where)
    with Framed(build, where, config):
        command = [sys.executable, "-c", ASYNC, where, str(readers), count]
        print_share(f"framedio, {readers} rings by asyncio", command, environment, python)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--readers", type=int, default=165, help="rings at once, by asyncio")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "client"), "LD_LIBRARY_PATH": build}
    count = str(int(options.seconds * RATE))
    with tempfile.TemporaryDirectory(prefix="framed-bench-") as where:
        print_import(environment)
        python = cpu_seconds([sys.executable, "-c", "import framedio, numpy"], environment)[0]
        time_one(where, build, environment, count, python)
        time_many(where, environment, build, options.readers, count, python)


main()
