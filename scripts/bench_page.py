#!/usr/bin/python3
"""The page's size, the cost of looking at cameras, and the delay of pictures: each figure with its limit. Costs are those
of an HTTP client outside the daemon; delays are also measured for the page in Debian's Chromium, if it is installed.
Cameras are files of 1080p at the pace of their timestamps. Costs are differences of processor time between alternating
seconds with and without a viewer, of the threads that serve viewers: the loop, the backend's and libuv's. The difference
of all threads is lost in the noise of the decoders.

usage: bench_page.py FOOTAGE [--build FOLDER] [--cameras 20] [--rounds 5] [--seconds 4]
"""
import argparse
import gzip
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from browser import PACKAGE, PROGRAM, Browser
from http_client import Client
from view_client import View

PAGE = os.path.join(ROOT, "daemon", "service", "page")
FPS, MADE_LEAST = 5, 0.95  # of the wall
SCREEN = {"width": 680, "height": 560, "deviceScaleFactor": 1.9, "mobile": False}  # with this screen the page requests 1280 pixels

# Records when each picture is on its canvas, ms after its capture; and the first one, ms after opening the page.
WATCH = """
const captured = new Map(), read = DataView.prototype.getBigUint64;
let last;
window.late = [];
DataView.prototype.getBigUint64 = function(at, little) {
  const value = read.call(this, at, little);
  if (at === 16) last = Number(value) / 1e6;
  if (at === 24) captured.set(String(value), last);
  return value;
};
new MutationObserver((changes) => {
  const now = performance.now();
  window.first ??= now;
  for (const {target} of changes)
    window.late.push([performance.timeOrigin + now - captured.get(target.dataset.sequence), target.width]);
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["data-sequence"]});
"""

CAMERA = """
  {name}:
    url: {clip}
    loop: true
    pace: realtime
    outputs:
      read: {{size: 64x64, sink: "unix:{where}/{name}"}}"""


def quantile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def row(what, value, unit, limit):
    print(f"{what:62} {value:8.2f} {unit:4} limit {limit:g}{'' if value <= limit else '   MISSED'}", flush=True)


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


class Daemon:
    def __init__(self, framed, where, clips):
        config = f"{where}/framed.yaml"
        with open(config, "w") as file:
            file.write("backend: cpu\nhttp: 127.0.0.1:0\ncontrol: off\ncameras:")
            for name, clip in clips.items():
                file.write(CAMERA.format(name=name, clip=clip, where=where))
            file.write("\n")
        self.log = f"{where}/log"
        with open(self.log, "w") as log:
            self.child = subprocess.Popen([framed, "run", "-c", config], stderr=log)
        self.port = None
        while not self.port:
            time.sleep(0.05)
            with open(self.log) as file:
                found = re.search(r"http on \S+ port (\d+)", file.read())
            self.port = found and int(found[1])

    def get(self, page):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", page)
        body = connection.getresponse().read()
        connection.close()
        return body

    def counters(self):
        return {name: float(value) for name, value in re.findall(r"^(framed_\w+) (\S+)$", self.get("/metrics").decode(), re.M)}

    def cpu(self):
        """Returns processor time so far, seconds: (of the threads that serve viewers, of all)."""
        own = total = 0
        for task in os.listdir(f"/proc/{self.child.pid}/task"):
            try:
                with open(f"/proc/{self.child.pid}/task/{task}/schedstat") as file:
                    ns = int(file.read().split()[0])
                with open(f"/proc/{self.child.pid}/task/{task}/comm") as file:
                    is_own = file.read() == "framed\n"
            except OSError:
                continue
            total += ns
            own += ns if is_own else 0
        return own / 1e9, total / 1e9

    def shares(self, seconds):
        """Returns the same over `seconds`, in percent of a core."""
        before, began = self.cpu(), time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - began
        return [(b - a) / passed * 100 for a, b in zip(before, self.cpu())]



class Viewer(threading.Thread):
    """Reads and discards pictures; `late`: seconds from each picture's capture to its last byte."""

    def __init__(self, daemon, tiles, fps):
        super().__init__(daemon=True)
        self.view, self.late, self.ends, self.bytes = View(daemon.port, tiles, fps), [], False, 0
        if self.view.error:
            raise RuntimeError(self.view.error)
        self.start()

    def run(self):
        while not self.ends:
            found, _ = self.view.pictures(1)
            self.late.append(found[0].at - found[0].capture_ns / 1e9)
            self.bytes += len(found[0].body)
        self.view.__exit__()

    def end(self):
        self.ends = True
        self.join()


def encode(footage, to, rate):
    """The rate is low enough for 2 cores to decode 20 cameras: the cost of previews does not depend on it."""
    if not os.path.exists(to):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-i", footage, "-t", "20", "-vf", "scale=1920:1080", "-r", str(rate),
                        "-c:v", "libx264", "-preset", "veryfast", "-g", str(rate * 2), "-bf", "0", "-pix_fmt", "yuv420p", "-an", to], check=True)
    return to


def middle(rows, before, which):
    """Returns the median difference of two columns of shares."""
    return statistics.median(b[which] - a[which] for a, b in zip(before, rows))


def measure_wall(daemon, cameras, rounds, seconds):
    tiles = ",".join(f"c{i}:320" for i in range(cameras))
    alone, one, two, made = [], [], [], []
    for _ in range(rounds):
        time.sleep(0.5)
        alone.append(daemon.shares(seconds))
        viewer = Viewer(daemon, tiles, FPS)
        time.sleep(0.5)
        before = daemon.counters()["framed_previews_total"]
        one.append(daemon.shares(seconds))
        made.append((daemon.counters()["framed_previews_total"] - before) / seconds)
        other = Viewer(daemon, tiles, FPS)
        time.sleep(0.5)
        two.append(daemon.shares(seconds))
        viewer.end()
        other.end()
    busy, share = [all_of for _, all_of in alone], statistics.median(made) / (cameras * FPS)
    print(f"{cameras} cameras of 1080p: {statistics.median(busy):.1f} % of a core without a viewer, {min(busy):.1f} to {max(busy):.1f};"
          f" with one {share * 100:.0f} % of the JPEGs are made, and all threads take {middle(one, alone, 1):+.1f} %")
    if share < MADE_LEAST:
        print("this box has too much else to do: what follows is scaled to all JPEGs")
    share = min(share, 1)
    row(f"wall of {cameras}, 320x180 at {FPS}/s, one viewer", middle(one, alone, 0) / share, "%", 4)
    row("each further viewer", middle(two, one, 0) / share, "%", 1)


def measure_first(daemon):
    first = []
    for _ in range(20):
        began = time.monotonic()
        with View(daemon.port, "live:1280", 15) as view:
            view.pictures(1)
            first.append((time.monotonic() - began) * 1e3)
        time.sleep(0.05)
    row("first picture after opening, p50", statistics.median(first), "ms", 300)
    row("first picture after opening, the longest of 20", max(first), "ms", 300)


def measure_late(daemon):
    viewer = Viewer(daemon, "live:1280", 15)
    time.sleep(10)
    viewer.end()
    late = [seconds * 1e3 for seconds in viewer.late[5:]]
    row("1280x720 at 15/s: arrival of the packet to the client, p50", statistics.median(late), "ms", 30)
    row("the same, p99", quantile(late, 0.99), "ms", 80)


def measure_idle_memory(framed, where, cameras):
    """Measures the idle memory of HTTP, page and previews; cameras are down because their decoders would hide it."""
    resident = []
    for http_key in ("off", "127.0.0.1:0"):
        with open(f"{where}/idle.yaml", "w") as file:
            file.write(f"backend: cpu\nhttp: {http_key}\ncontrol: off\ncameras:")
            for i in range(cameras):
                file.write(CAMERA.format(name=f"c{i}", clip=f"unix:{where}/nobody", where=where).replace("pace: realtime", "").replace("loop: true", ""))
            file.write("\n")
        with subprocess.Popen([framed, "run", "-c", f"{where}/idle.yaml"], stderr=subprocess.DEVNULL) as child:
            time.sleep(3)
            resident.append(resident_mib(child.pid))
            child.terminate()
    row(f"nobody looks: resident memory, over that with `http: off`, {cameras} cameras", resident[1] - resident[0], "MiB", 1)


def measure_page(port):
    """Measures the page's files as served by the binary."""
    client, sent, plain = Client(port), 0, 0
    for name in ["/", *(f"/page/{name}" for name in os.listdir(PAGE) if name != "index.html")]:
        _, _, body = client.get_bytes(name)
        sent, plain = sent + len(body), plain + len(gzip.decompress(body))
    row("the page's files", plain / 1e3, "kB", 120)
    row("the same, compressed", sent / 1e3, "kB", 40)


def measure_browser(port):
    if not PROGRAM:
        print(f"delays in a browser are left out: {PACKAGE} is not installed")
        return
    origin, firsts, late, foreign = f"http://127.0.0.1:{port}", [], [], []
    with Browser() as browser:
        for seconds in [1] * 9 + [10]:
            page = browser.page(before=WATCH)
            page.call("Emulation.setDeviceMetricsOverride", **SCREEN)
            page.open(f"{origin}/#/camera/live")
            page.until("window.first")
            firsts.append(page.run("window.first"))
            time.sleep(seconds)
            late = page.run("window.late")
            foreign += [url for url in page.requests if not url.startswith((f"{origin}/", "blob:"))]
            page.close()
    widths = {width for _, width in late}
    if 1280 not in widths:
        raise RuntimeError(f"the page shows pictures that are {widths} pixels wide")
    late = [ms for ms, width in late[5:] if width == 1280]
    row("the page in a browser: requests to anybody else", len(foreign), "", 0)
    row("the same: from opening it to its first picture, p50", statistics.median(firsts), "ms", 300)
    row("the same, the longest of 10", max(firsts), "ms", 300)
    row("1280x720 at 15/s: arrival of the packet to the canvas, p50", statistics.median(late), "ms", 30)
    row("the same, p99", quantile(late, 0.99), "ms", 80)


def measure_snapshots(daemon, rounds):
    times, costs, count = [], [], 50
    for _ in range(rounds):
        alone = daemon.shares(count * 0.06)[0] / 100
        before, began = daemon.cpu()[0], time.monotonic()
        for _ in range(count):
            asked = time.monotonic()
            jpeg = daemon.get("/api/v1/cameras/live/snapshot.jpg?width=640")
            times.append((time.monotonic() - asked) * 1e3)
            if jpeg[:2] != b"\xff\xd8":
                raise RuntimeError(jpeg)
            time.sleep(max(0, asked + 0.06 - time.monotonic()))
        costs.append((daemon.cpu()[0] - before - alone * (time.monotonic() - began)) / count * 1e3)
    row("snapshot 640 wide: processor time", statistics.median(costs), "ms", 2)
    row("the same: from the request to the JPEG, p50", statistics.median(times), "ms", 50)
    row("the same, p99", quantile(times, 0.99), "ms", 50)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("footage")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--cameras", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    os.makedirs(f"{options.build}/clips", exist_ok=True)
    slow = encode(options.footage, f"{options.build}/clips/page-5.mp4", 5)
    live = encode(options.footage, f"{options.build}/clips/page-25.mp4", 25)
    framed = f"{options.build}/framed"
    with tempfile.TemporaryDirectory(prefix="bench-page-") as where:
        measure_idle_memory(framed, where, options.cameras)
        daemon = Daemon(framed, where, {f"c{i}": slow for i in range(options.cameras)})
        try:
            time.sleep(5)
            measure_page(daemon.port)
            row("nobody looks: JPEGs", daemon.counters()["framed_previews_total"], "", 0)
            quiet = [daemon.shares(options.seconds)[0] for _ in range(options.rounds)]
            before = resident_mib(daemon.child.pid)
            measure_wall(daemon, options.cameras, options.rounds, options.seconds)
            time.sleep(2)
            again = daemon.counters()["framed_previews_total"]
            after = statistics.median(daemon.shares(options.seconds)[0] for _ in range(options.rounds))
            row("nobody looks any more: JPEGs", daemon.counters()["framed_previews_total"] - again, "", 0)
            row("the same: processor time, over that before anybody looked", after - statistics.median(quiet), "%", max(quiet) - min(quiet))
            print(f"resident memory: {before:.0f} MiB before anybody looked, {resident_mib(daemon.child.pid):.0f} MiB after:"
                  " each decoder keeps room for a picture more")
        finally:
            daemon.child.terminate()
            daemon.child.wait(20)
        daemon = Daemon(framed, where, {"live": live})
        try:
            time.sleep(2)
            measure_first(daemon)
            measure_late(daemon)
            measure_browser(daemon.port)
            measure_snapshots(daemon, options.rounds)
        finally:
            daemon.child.terminate()
            daemon.child.wait(20)


main()
