"""Shared by the tests that change framed's configuration while it runs: cameras as text, and a check that a camera was not disturbed."""
import os
import signal
import stat

from faulty_camera import Camera
from framed_client import Framed, until
from numbered_clip import NumberedClip, encode
from watch import OUTPUT, Account, Watcher, reference

KEYS = "connect_timeout: 2s, media_timeout: 2s, close_timeout: 300ms"


def output(sink, more=""):
    """Returns an output of the numbered clip that a Watcher reads."""
    return f'{OUTPUT}{more}, sink: "{sink}"}}'


def camera(url, outputs, more=""):
    inner = ", ".join(f"{name}: {text}" for name, text in outputs.items())
    return f'{{url: "{url}", {KEYS}{more}, outputs: {{{inner}}}}}'


def config(cameras, top=""):
    return f"{top}\ncameras:\n" + "".join(f"  {name}: {text}\n" for name, text in cameras.items())


class Street:
    """RTSP cameras that show one numbered clip, closed when the with-block ends."""

    def __init__(self, where, names, pictures=1000):
        path = encode(os.path.join(where, "clip.h264"), pictures)
        self.where, self.digests = where, reference(path)
        clip = NumberedClip(path)
        self.cameras = {name: Camera(clip) for name in names}

    def url(self, name):
        return self.cameras[name].url()

    def socket(self, name):
        return f"unix:{self.where}/{name}.sock"

    def plain(self, name, more=""):
        """Returns the camera with one output, o, on its socket."""
        return camera(self.url(name), {"o": output(self.socket(name))}, more)

    def watch(self, name, address=None):
        return Watcher(address or self.socket(name), self.digests, self.cameras[name])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.cameras.values():
            one.close()


class Reloaded(Framed):
    def reloads(self):
        """Returns (applied, refused)."""
        metrics = self.live_metrics()
        return tuple(metrics.sum("framed_config_reloads_total", result=result) for result in ("applied", "refused"))

    def write(self, text):
        """Replaces the file in one step: framed never reads half of it."""
        with open(self.config + ".new", "w") as file:
            file.write(text)
        os.rename(self.config + ".new", self.config)

    def reload(self, text=None):
        """Reloads the new text, or the unchanged file; returns True if it was applied."""
        if text is not None:
            self.write(text)
        before = self.reloads()
        self.child.send_signal(signal.SIGHUP)
        after = until(lambda: (now := self.reloads()) != before and now, 5)
        # An earlier signal may be counted now, too.
        return bool(after) and after[0] > before[0] and after[1] == before[1]

    def listeners(self):
        """Returns path or port -> inode of the socket that listens there."""
        own, found = set(), {}
        for fd in os.listdir(f"/proc/{self.child.pid}/fd"):
            try:
                status = os.stat(f"/proc/{self.child.pid}/fd/{fd}")
            except FileNotFoundError:
                continue
            if stat.S_ISSOCK(status.st_mode):
                own.add(status.st_ino)
        with open("/proc/net/unix") as rows:
            for row in list(rows)[1:]:
                fields = row.split()
                if len(fields) == 8 and int(fields[3], 16) & 0x10000 and int(fields[6]) in own:
                    # The kernel keeps the name that the socket was bound to.
                    found[fields[7].removesuffix(f".{self.child.pid}")] = int(fields[6])
        with open("/proc/net/tcp") as rows:
            for row in list(rows)[1:]:
                fields = row.split()
                if fields[3] == "0A" and int(fields[9]) in own:
                    found[int(fields[1].split(":")[1], 16)] = int(fields[9])
        return found


def gaps(numbers):
    """Returns (last before, first after) wherever a number is left out or repeated."""
    return [(a, b) for a, b in zip(numbers, numbers[1:]) if b != a + 1]


def check_untouched(checks, what, one, watcher, may_lose=False):
    """Checks that the watcher of a camera got every picture, in one epoch, and is still connected."""
    checks.check(watcher.is_alive(), f"{what}: the client lost its connection: {watcher.error}")
    seen = list(watcher.seen)
    numbers = [s.header.sequence for s in seen]
    checks.check(len(seen) > 10, f"{what}: only {len(seen)} pictures")
    checks.check(may_lose or not gaps(numbers), f"{what}: gaps {gaps(numbers)}")
    account = Account(one.sent, seen)
    account.check(checks, what)
    checks.check(account.epochs == 1, f"{what}: {account.epochs} epochs")
    missing = [n for n in account.missing if n >= seen[0].top]
    checks.check(may_lose or not missing, f"{what}: {missing} are missing")
    checks.check(one.plays == 1, f"{what}: {one.plays} connections to the camera")
