#!/usr/bin/python3
"""What it costs to record cameras with `kernel: copy` beside their tensors: CPU time of framed with and without, the same
cameras in turns, as a share of one core for each camera.

usage: tests/bench/record.py [--cameras 20] [--seconds 20] [--turns 3] [--clip FILE]
environment: FRAMED, the program (build/framed)

A camera is a file that is read at the pace of its timestamps: by default one of 25 pictures/s and 4 Mbit/s, whose pictures
are small, so that a box decodes many of them beside the recording, whose cost goes by packets and bytes alone.
"""
import argparse
import os
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRAMED = os.environ.get("FRAMED", os.path.join(ROOT, "build", "framed"))
WARM_UP = 3  # seconds until all cameras run


def make_clip(path):
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "nullsrc=size=320x184:rate=25,geq=random(1)*255:128:128",
         "-t", "10", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "25", "-b:v", "4M",
         "-minrate", "4M", "-maxrate", "4M", "-bufsize", "4M", path], check=True)


def configuration(where, clip, cameras, records):
    lines = [f"backend: cpu\ncontrol: {where}/control.sock\ncameras:\n"]
    for i in range(cameras):
        lines.append(f"  c{i}:\n    url: {clip}\n    pace: realtime\n    loop: true\n    outputs:\n"
                     f"      t: {{size: 64x64, sink: \"unix:{where}/c{i}.sock\"}}\n")
        if records:
            lines.append(f"      r: {{kernel: copy, segment: 10s, sink: \"file:{where}/c{i}-%Y%m%d-%H%M%S.mp4\"}}\n")
    return "".join(lines)


def busy_seconds(pid):
    """CPU time of all threads, by the scheduler's own account."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def measure(clip, cameras, seconds, records):
    """CPU seconds a second, and bytes written a second."""
    with tempfile.TemporaryDirectory(prefix="framed-record-") as where:
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(configuration(where, clip, cameras, records))
        with open(f"{where}/log", "w") as log:
            framed = subprocess.Popen([FRAMED, "run", "-c", f"{where}/framed.yaml"], stderr=log)
        try:
            time.sleep(WARM_UP)
            start, before = time.monotonic(), busy_seconds(framed.pid)
            time.sleep(seconds)
            took, busy = time.monotonic() - start, busy_seconds(framed.pid) - before
        finally:
            framed.send_signal(signal.SIGTERM)
            framed.wait(10)
        size = sum(os.path.getsize(f"{where}/{name}") for name in os.listdir(where) if name.endswith(".mp4"))
        return busy / took, size / (seconds + WARM_UP)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cameras", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--clip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="framed-record-") as where:
        clip = options.clip or f"{where}/clip.mp4"
        if not options.clip:
            make_clip(clip)
        differences = []
        for turn in range(options.turns):
            plain, _ = measure(clip, options.cameras, options.seconds, False)
            recorded, rate = measure(clip, options.cameras, options.seconds, True)
            differences.append(100 * (recorded - plain) / options.cameras)
            print(f"turn {turn + 1}: {100 * plain / options.cameras:.3f} % of a core for each of {options.cameras} cameras,"
                  f" {100 * recorded / options.cameras:.3f} % with a recording of {8e-6 * rate / options.cameras:.2f} Mbit/s:"
                  f" {differences[-1]:+.3f} %", flush=True)
        print(f"a recording costs {statistics.median(differences):.3f} % of a core (median; {min(differences):.3f} to"
              f" {max(differences):.3f})")


main()
