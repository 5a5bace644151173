#!/usr/bin/python3
"""What it costs to record cameras with `kernel: copy` beside their tensors: CPU time of framed with and without, the same
cameras in turns, as a share of one core for each camera.

usage: tests/bench/record.py [--cameras 20] [--seconds 20] [--turns 3] [--clip FILE]
environment: FRAMED, the program (build/framed)

A camera is a file that is read at the pace of its timestamps: by default one of 25 pictures/s and 4 Mbit/s, whose pictures
are small, so that a box decodes many of them beside the recording, whose cost goes by packets and bytes alone. The
figure is CPU time a picture, times the clip's 25 pictures a second: it holds too where the box cannot keep the pace.
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRAMED = os.environ.get("FRAMED", os.path.join(ROOT, "build", "framed"))
WARM_UP = 3  # seconds until all cameras run
RATE = 25  # pictures a second of a camera


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


def pictures(framed, path):
    """How many were decoded by now."""
    if os.path.exists(path):
        os.unlink(path)
    framed.send_signal(signal.SIGUSR1)
    while not os.path.exists(path):
        time.sleep(0.01)
    time.sleep(0.05)  # until all is written
    with open(path) as file:
        return sum(int(n) for n in re.findall(r'^framed_pictures_total{.*} (\d+)$', file.read(), re.M))


def measure(clip, cameras, seconds, records):
    """The share of a core that a camera takes at its rate, in %, and the bytes that were written of one."""
    with tempfile.TemporaryDirectory(prefix="framed-record-") as where:
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(configuration(where, clip, cameras, records))
        with open(f"{where}/log", "w") as log:
            arguments = [FRAMED, "run", "-c", f"{where}/framed.yaml", "--metrics", f"{where}/metrics"]
            framed = subprocess.Popen(arguments, stderr=log)
        try:
            time.sleep(WARM_UP)
            seen, before = pictures(framed, f"{where}/metrics"), busy_seconds(framed.pid)
            time.sleep(seconds)
            busy, seen = busy_seconds(framed.pid) - before, pictures(framed, f"{where}/metrics") - seen
        finally:
            framed.send_signal(signal.SIGTERM)
            framed.wait(10)
        size = sum(os.path.getsize(f"{where}/{name}") for name in os.listdir(where) if name.endswith(".mp4"))
        return 100 * RATE * busy / seen, size / cameras


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
            recorded, size = measure(clip, options.cameras, options.seconds, True)
            differences.append(recorded - plain)
            print(f"turn {turn + 1}: {plain:.3f} % of a core for each of {options.cameras} cameras, {recorded:.3f} % with a"
                  f" recording, of {size / 2**20:.1f} MiB: {differences[-1]:+.3f} %", flush=True)
        print(f"a recording costs {statistics.median(differences):.3f} % of a core (median; {min(differences):.3f} to"
              f" {max(differences):.3f})")


main()
