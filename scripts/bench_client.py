#!/usr/bin/python3
"""What it costs a program to take the frames of a camera of 25 frames/s as 640x640 f32 tensors (4.9 MB each), by libframed
and by framedio, as a share of one core; and what importing framedio costs.

usage: bench_client.py [--build FOLDER] [--seconds 8] [--readers 20]
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
LOOP = """
import itertools, sys, framedio
for frame in itertools.islice(framedio.open(sys.argv[1]), int(sys.argv[2])):
    frame.numpy()
"""
ASYNC = """
import asyncio, sys, framedio
async def take(address, count):
    async with framedio.aopen(address) as reader:
        async for frame in reader:
            frame.numpy()
            if not (count := count - 1):
                return
async def main():
    await asyncio.gather(*(take(sys.argv[1], int(sys.argv[2])) for _ in range(int(sys.argv[3]))))
asyncio.run(main())
"""


def cpu_seconds(command, environment):
    """(of user and system, of the clock) that a program takes."""
    begun = time.monotonic()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bench_client: {command[0]}: exit {child.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begun


def print_share(name, command, environment, empty):
    """The share of a core, without what the program needs to begin and end."""
    used, took = cpu_seconds(command, environment)
    print(f"{name:34} {100 * max(used - empty, 0) / took:6.2f} % of a core", flush=True)


def print_import(environment):
    def median(text):
        return statistics.median(cpu_seconds([sys.executable, "-c", text], environment)[0] for _ in range(15))

    print(f"{'import framedio':34} {1000 * (median('import framedio') - median('pass')):6.1f} ms of a core")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--readers", type=int, default=20, help="at once, by asyncio")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "client"), "LD_LIBRARY_PATH": build}
    count = str(int(options.seconds * RATE))
    with tempfile.TemporaryDirectory(prefix="framed-bench-") as where:
        with open(f"{where}/clip.yuv", "wb") as file:
            for number in range(2 * RATE):
                file.write(bytes([number]) * (SIZE[0] * SIZE[1] * 3 // 2))
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(CONFIG.format(where=where, size=SIZE, rate=RATE))
        print_import(environment)
        framed = subprocess.Popen([f"{build}/framed", "run", "-c", f"{where}/framed.yaml"])
        try:
            python = cpu_seconds([sys.executable, "-c", "import framedio, numpy"], environment)[0]
            addresses = {"ring": f"ring:{where}/ring", "unix": f"unix:{where}/unix", "tcp": "tcp:127.0.0.1:5799"}
            for kind, address in addresses.items():
                frames = [f"{build}/tests/e2e/client_frames", address, "newest", count, "-1"]
                print_share(f"libframed, {kind}", frames, environment, 0)
                print_share(f"framedio, {kind}", [sys.executable, "-c", LOOP, address, count], environment, python)
            readers = [sys.executable, "-c", ASYNC, addresses["ring"], count, str(options.readers)]
            print_share(f"framedio, {options.readers} rings by asyncio", readers, environment, python)
        finally:
            framed.terminate()
            framed.wait()


main()
