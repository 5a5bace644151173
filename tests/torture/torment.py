"""Shared by the torture tests: cameras with their watchers, and a process's resources over time."""
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from faulty_camera import Camera
from framed_client import SANITIZED
from numbered_clip import NumberedClip, encode
from watch import OUTPUT, BatchWatcher, Watcher, reference

GROWTH_KIB = 4096  # of resident memory; allowed growth of the last third of the time over the second

CAMERA = """
  {name}:
    url: {url}
    connect_timeout: 2s
    media_timeout: 2s
    close_timeout: 300ms
    outputs:
      o: {output}, sink: "unix:{where}/{name}.sock"}}
"""


# Sinks of every kind that a client reads, both orders and tails; enough slots for a Python client.
BATCH = OUTPUT.replace("slots: 128", "slots: 48")
BATCHES = {
    "most": ("unix", '"*", count: 8, wait: auto, per_camera: 2'),
    "few": ("ring", '["*", "!*1?"], count: 2, wait: 10ms, tail: zero'),
    "fixed": ("unix", '["*?3", "*?5", "*?7"], count: 8, order: fixed, wait: 50ms, tail: zero'),
}


class Batches:
    """Batches over these cameras (name -> Camera), and their watchers."""

    def __init__(self, where, cameras, digests, wanted=None):
        self.where, self.cameras, self.digests, self.wanted = where, cameras, digests, wanted or BATCHES
        self.watchers = {}

    def address(self, name):
        return f"{self.wanted[name][0]}:{self.where}/{name}.batch"

    def text(self):
        return "batches:\n" + "".join(
            f'  {name}: {BATCH}, cameras: {keys}, sink: "{self.address(name)}"}}\n' for name, (_, keys) in self.wanted.items())

    def watch(self):
        self.watchers = {name: BatchWatcher(self.address(name), self.digests, self.cameras) for name in self.wanted}

    def members(self, metrics, name):
        """Returns framed's members: cameras with an output of the batch's name."""
        return {has["camera"]: self.cameras[has["camera"]]
                for has, _ in metrics.all("framed_frames_total", output=name, stage="offered")}

    def check(self, checks, metrics):
        """All sums match, and no member's element is doubled, out of order or damaged without a flag."""
        for name, watcher in self.watchers.items():
            members = self.members(metrics, name)
            checks.check(members, f"{name}: no members")
            watcher.check(checks, metrics, name, members)
            losses = dict(metrics.losses(output=name))
            print(f"batch {name}: {watcher.batches} batches of {len(members)} cameras, {watcher.elements} elements,"
                  f" lost {losses}", flush=True)


class Stage:
    """`count` cameras that show one clip."""

    def __init__(self, where, count, pictures):
        path = encode(os.path.join(where, "clip.h264"), pictures)
        self.where, self.clip, self.digests = where, NumberedClip(path), reference(path)
        self.cameras = {f"camera{i}": Camera(self.clip) for i in range(count)}
        self.watchers, self.batches = {}, Batches(where, self.cameras, self.digests)

    def config(self):
        return "log: {level: warning}\ncameras:" + "".join(
            CAMERA.format(name=name, url=camera.url(), output=OUTPUT, where=self.where)
            for name, camera in self.cameras.items()
        ) + self.batches.text()

    def watch(self):
        self.batches.watch()
        for name, camera in self.cameras.items():
            self.watchers[name] = Watcher(f"unix:{self.where}/{name}.sock", self.digests, camera)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for camera in self.cameras.values():
            camera.close()


class Holdings:
    """Samples of a process's (KiB resident, descriptors, threads)."""

    def __init__(self, framed):
        self.framed, self.samples = framed, []

    def sample(self):
        proc = f"/proc/{self.framed.child.pid}"
        self.samples.append((self.framed.resident_kib(), *(len(os.listdir(f"{proc}/{kind}")) for kind in ("fd", "task"))))
        return self.samples[-1]

    def tell_ends(self):
        """Prints the first and last samples; the first is taken after a tenth of the time, when everything has started."""
        for what, sample in ("first", self.samples[len(self.samples) // 10]), ("last", self.samples[-1]):
            kib, files, threads = sample
            print(f"{what}: {kib / 1024:.1f} MiB resident, {files} descriptors, {threads} threads", flush=True)

    def check_flat(self, checks):
        third = len(self.samples) // 3
        before, after = self.samples[third : 2 * third], self.samples[2 * third :]
        for i, (what, growth) in enumerate((("KiB", GROWTH_KIB), ("descriptors", 10), ("threads", 2))):
            first, last = (statistics.median(sample[i] for sample in part) for part in (before, after))
            print(f"{what}: {first:.0f} in the second third of the time, {last:.0f} in the last", flush=True)
            if not SANITIZED:  # a sanitizer keeps freed memory
                checks.check(last - first <= growth, f"{what} grow from {first} to {last}")
