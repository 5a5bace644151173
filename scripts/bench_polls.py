#!/usr/bin/python3
"""The cost of polling many cameras: processor time of the daemon's loop per answer, for programs' requests and for the
page's smaller ones, with the limit. Cameras are a small file with few pictures per second; the loop's own work without
polls, measured in turns, is subtracted.

usage: bench_polls.py [--framed BINARY] [--cameras 165] [--settle 310] [--rounds 5] [--polls 40] [PAGE...]
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from http_client import Client

LIMIT_MS = 2
CAMERA = """
  camera-{i}:
    url: {clip}
    loop: true
    pace: realtime
    outputs: {{detector: {{size: 32x32, sink: "ring:{where}/{i}.ring"}}}}"""


class Daemon:
    def __init__(self, framed, where, cameras):
        clip = f"{where}/clip.mp4"
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=2", "-t", "20", "-c:v", "libx264", clip], check=True)
        with open(f"{where}/framed.yaml", "w") as file:
            file.write("backend: cpu\nhttp: 127.0.0.1:0\ncontrol: off\ncameras:")
            file.writelines(CAMERA.format(i=i, clip=clip, where=where) for i in range(cameras))
        with open(f"{where}/log", "w") as log:
            self.child = subprocess.Popen([framed, "run", "-c", f"{where}/framed.yaml"], stderr=log)
        found = None
        while not found:
            time.sleep(0.1)
            with open(f"{where}/log") as file:
                found = re.search(r"http on \S+ port (\d+)", file.read())
        self.client = Client(int(found[1]))

    def loop_ms(self):
        """Returns the processor time of the loop so far."""
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e6

    def poll(self, page):
        status, _, body = self.client.get_bytes(page)
        if status != 200:
            raise SystemExit(f"{page}: {status} {body[:200]}")
        return body

    def cost(self, page, polls):
        """Returns ms of the loop per poll, and bytes of its answer."""
        began, before = time.monotonic(), self.loop_ms()
        time.sleep(1)
        idle = (self.loop_ms() - before) / (time.monotonic() - began)
        began, before = time.monotonic(), self.loop_ms()
        for _ in range(polls):
            body = self.poll(page)
            time.sleep(0.01)
        return (self.loop_ms() - before - idle * (time.monotonic() - began)) / polls, len(body)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framed", default=os.path.join(ROOT, "build", "framed"))
    parser.add_argument("--cameras", type=int, default=165)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--polls", type=int, default=40)
    parser.add_argument("--settle", type=float, default=310, help="seconds: the history fills in five minutes")
    parser.add_argument("pages", nargs="*", help="in place of those of the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-polls-") as where:
        daemon = Daemon(options.framed, where, options.cameras)
        try:
            time.sleep(options.settle)
            newest = json.loads(daemon.poll("/api/v1/history?samples=1")).get("newest", 0)
            whole = ["/api/v1/status", "/api/v1/history?samples=150"]
            asked = ["/api/v1/summary", "/api/v1/history?samples=150&only=lost", f"/api/v1/history?since={newest}&only=lost",
                     "/api/v1/status?camera=camera-7", "/api/v1/history?camera=camera-7"]
            for page in options.pages or whole + asked:
                found = [daemon.cost(page, options.polls) for _ in range(options.rounds)]
                ms = statistics.median(cost for cost, _ in found)
                over = f"   limit {LIMIT_MS}{'   MISSED' if ms > LIMIT_MS else ''}" if page not in whole else ""
                print(f"{page:45} {ms:6.2f} ms of the loop  {found[0][1]:8} bytes{over}", flush=True)
        finally:
            daemon.child.terminate()
            daemon.child.wait(20)


main()
