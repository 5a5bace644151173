#!/usr/bin/python3
"""The time from a client's detections in a picture to its crops: eight of 256x128 for every picture of many cameras,
which are files at the pace of their timestamps, with the client in another process.

usage: bench_crops.py CLIP [--build FOLDER] [--cameras 4] [--fps 15] [--seconds 20] [--keep 200ms] [--backend cpu]
"""
import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAMERA = """
  c{i}:
    url: {clip}
    loop: true
    pace: realtime
    fps: {fps}
    outputs:
      detector: {{size: 640x640, slots: 8, overflow: {overflow}, sink: "ring:{where}/d{i}"}}
      plates: {{size: 256x128, slots: 16, crops: {{of: detector, most: 8, keep: {keep}}}, sink: "ring:{where}/p{i}"}}"""


def memory_mib(pid, name):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"{name}:\s+(\d+)", file.read()).group(1)) / 1024


def losses(path):
    """Returns (output, reason) -> frames lost, from the counters."""
    with open(path) as file:
        rows = [line for line in file if line.startswith("framed_frames_lost_total") and not line.endswith(" 0\n")]
    lost = {}
    for row in rows:
        output, reason = (re.search(f'{name}="(.*?)"', row).group(1) for name in ("output", "reason"))
        lost[output, reason] = lost.get((output, reason), 0) + int(float(row.split()[-1]))
    return lost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clip")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--cameras", type=int, default=4)
    parser.add_argument("--fps", type=float, default=15)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", default="200ms")
    parser.add_argument("--backend", default="cpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-crops-") as where:
        config, counters = f"{where}/framed.yaml", f"{where}/metrics"
        with open(config, "w") as file:
            file.write(f"backend: {options.backend}\ncontrol: {where}/control\nlog: {{level: warning}}\ncameras:")
            for i in range(options.cameras):  # the first waits for the client, so that its first pictures are seen
                file.write(CAMERA.format(i=i, clip=os.path.abspath(options.clip), fps=options.fps, where=where,
                                         keep=options.keep, overflow="drop_oldest" if i else "wait"))
            file.write("\n")
        daemon = subprocess.Popen([f"{options.build}/framed", "run", "-c", config, "--metrics", counters])
        try:
            while not os.path.exists(f"{where}/p{options.cameras - 1}") and daemon.poll() is None:
                time.sleep(0.02)
            subprocess.run([f"{options.build}/bench-crops", where, str(options.cameras), str(options.seconds)], check=True)
            resident = memory_mib(daemon.pid, "VmHWM")
        finally:
            daemon.send_signal(signal.SIGTERM)
            code = daemon.wait(60)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"exit {code}; resident at most {resident:.0f} MiB; {(used.ru_utime + used.ru_stime) / options.seconds:.2f} "
              f"cores with the client; lost {losses(counters)}")


main()
