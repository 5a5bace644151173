"""What the torture tests share: cameras with their watchers, and what a process holds over time."""
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from faulty_camera import Camera
from framed_client import SANITIZED
from numbered_clip import NumberedClip, encode
from watch import OUTPUT, Watcher, reference

GROWTH_KIB = 4096  # of resident memory, that the last third of the time may have over the one before

CAMERA = """
  {name}:
    url: {url}
    connect_timeout: 2s
    media_timeout: 2s
    close_timeout: 300ms
    outputs:
      o: {output}, sink: "unix:{where}/{name}.sock"}}
"""


class Stage:
    """So many cameras that show one clip."""

    def __init__(self, where, count, pictures):
        path = encode(os.path.join(where, "clip.h264"), pictures)
        self.where, self.clip, self.digests = where, NumberedClip(path), reference(path)
        self.cameras = {f"camera{i}": Camera(self.clip) for i in range(count)}
        self.watchers = {}

    def config(self):
        return "log: {level: warning}\ncameras:" + "".join(
            CAMERA.format(name=name, url=camera.url(), output=OUTPUT, where=self.where)
            for name, camera in self.cameras.items()
        )

    def watch(self):
        for name, camera in self.cameras.items():
            self.watchers[name] = Watcher(f"unix:{self.where}/{name}.sock", self.digests, camera)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for camera in self.cameras.values():
            camera.close()


class Holdings:
    """(KiB resident, descriptors, threads) of a process, again and again."""

    def __init__(self, framed):
        self.framed, self.samples = framed, []

    def sample(self):
        proc = f"/proc/{self.framed.child.pid}"
        self.samples.append((self.framed.resident_kib(), *(len(os.listdir(f"{proc}/{kind}")) for kind in ("fd", "task"))))
        return self.samples[-1]

    def tell_ends(self):
        """The first that counts is from when a tenth of the time is over: until then everything starts."""
        for what, sample in ("first", self.samples[len(self.samples) // 10]), ("last", self.samples[-1]):
            kib, files, threads = sample
            print(f"{what}: {kib / 1024:.1f} MiB resident, {files} descriptors, {threads} threads", flush=True)

    def check_flat(self, checks):
        third = len(self.samples) // 3
        before, after = self.samples[third : 2 * third], self.samples[2 * third :]
        for i, (what, growth) in enumerate((("KiB", GROWTH_KIB), ("descriptors", 10), ("threads", 2))):
            first, last = (statistics.median(sample[i] for sample in part) for part in (before, after))
            print(f"{what}: {first:.0f} in the second third of the time, {last:.0f} in the last", flush=True)
            if not SANITIZED:  # a sanitizer keeps what is freed
                checks.check(last - first <= growth, f"{what} grow from {first} to {last}")
