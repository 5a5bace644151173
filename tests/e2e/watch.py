"""Records what a client of framed saw of a numbered clip, picture by picture, and compares it with what the camera sent."""
import collections
import os
import threading
import time
import zlib

import numpy
from framed_client import PATIENCE, SANITIZED, Framed, consume, folder
from pace import is_short
from numbered_clip import UNKNOWN, read_numbers

WIDTH, HEIGHT = 160, 96
OUTPUT = f"{{size: {WIDTH}x{HEIGHT}, fit: stretch, tensor: {{dtype: u8, layout: nhwc, order: gray}}, slots: 128"
DAMAGED, CAPTURE_CLOCK = 1, 8  # flags

# known: number by digest, or UNKNOWN; read: when the client had it, CLOCK_MONOTONIC in s.
Seen = collections.namedtuple("Seen", "header known top bottom read")
Header = collections.namedtuple("Header", "sequence epoch flags pts_ns capture_ns finished_ns")

REFERENCE = """
cameras:
  clip:
    url: {clip}
    outputs:
      o: {output}, overflow: wait, sink: "file:{where}/clip.framed"}}
"""


def reference(path):
    """Returns digest -> number of framed's results for the clip, read from a file."""
    with folder() as where:
        with Framed(where, REFERENCE.format(clip=path, output=OUTPUT, where=where)) as framed:
            if framed.wait(60) != 0:
                raise RuntimeError(f"no reference of {path}:\n{framed.errors()}")
        with open(f"{where}/clip.framed", "rb") as file:
            digests = [zlib.crc32(payload) for _, payload in consume.read_frames(file)]
    if len(set(digests)) != len(digests):
        raise RuntimeError(f"pictures of {path} are equal")
    return {digest: number for number, digest in enumerate(digests)}


class Watcher(threading.Thread):
    """Reads a socket until it closes. With the sending camera, the numbers of a repeated clip go on rising."""

    def __init__(self, address, digests, camera=None):
        super().__init__(daemon=True)
        self.address, self.digests, self.camera, self.seen, self.error = address, digests, camera, [], None
        self.start()

    def run(self):
        try:
            for header, payload in consume.frames_from(self.address, 10 * PATIENCE):
                self.seen.append(self.look(header, payload))
        except (OSError, ValueError) as error:
            self.error = error

    def look(self, header, payload, camera=None):
        read = time.monotonic()
        known = self.digests.get(zlib.crc32(payload), UNKNOWN)
        numbers = (known, known)
        if known == UNKNOWN:
            numbers = read_numbers(numpy.frombuffer(payload, "u1").reshape(HEIGHT, WIDTH))
        slim = Header(*(getattr(header, name) for name in Header._fields))
        return Seen(slim, *(self.unwrap(number, camera or self.camera) for number in (known, *numbers)), read)

    @staticmethod
    def unwrap(number, camera):
        if number == UNKNOWN or not camera:
            return number
        turn = len(camera.clip.units)
        return number + turn * round((camera.number - number) / turn)

    def good_after(self, number):
        """Returns the times when good pictures from `number` on were finished (CLOCK_MONOTONIC, s)."""
        late = []
        for one in reversed(list(self.seen)):
            if one.known != UNKNOWN and one.known < number:
                break
            if one.known != UNKNOWN:
                late.append(one.header.finished_ns / 1e9)
        return late[::-1]


class BatchWatcher(Watcher):
    """The same for a batch: `shares` contains each camera's seen pictures. `cameras`: name -> camera, of those with a repeated clip."""

    def __init__(self, address, digests, cameras=()):
        self.cameras, self.shares = dict(cameras), collections.defaultdict(list)
        self.batches, self.elements, self.missed = 0, 0, 0
        super().__init__(address, digests)

    def run(self):
        try:
            for batch, payload in consume.frames_from(self.address, 10 * PATIENCE):
                self.batches, self.missed = self.batches + 1, batch.lost
                self.elements += batch.elements
                for header, element in consume.elements_of(batch, payload):
                    self.shares[header.camera].append(self.look(header, element, self.cameras.get(header.camera)))
        except (OSError, ValueError) as error:
            self.error = error

    def check_sums(self, checks, metrics, name):
        """Checks the batch `name`: the client saw every batch that was closed."""
        self.join(5)
        checks.check(not self.error, f"{name}: {self.error}")
        closed = metrics.sum("framed_batches_total", batch=name)
        losses = metrics.losses(output=name)
        failed = metrics.sum("framed_batch_elements_sum", batch=name) - self.elements  # lost after their batch was closed
        seen = sum(map(len, self.shares.values()))
        checks.check(closed == self.batches and not self.missed,
                     f"{name}: {closed} batches closed, {self.batches} seen, {self.missed} missed")
        checks.check(0 <= failed <= losses["stopping"] + losses["backend"],
                     f"{name}: {failed} elements more than seen, {dict(losses)}")
        checks.check(self.elements == seen, f"{name}: {self.elements} elements told, {seen} seen")

    def check(self, checks, metrics, name, members):
        """Checks the sums of the batch, the share of each member, and what holds despite any fault."""
        self.check_sums(checks, metrics, name)
        checks.check(set(self.shares) <= set(members), f"{name}: elements of {set(self.shares)}")
        for member, camera in members.items():
            check_ledger(checks, metrics, member, self.shares[member], name)
            Account(camera.sent, self.shares[member]).check(checks, f"{member} in {name}")


def check_ledger(checks, metrics, name, seen, output="o"):
    """Checks that every frame of the camera's output is accounted for, and that the client saw those emitted. Returns (offered, lost)."""
    offered, emitted, lost = metrics.account(camera=name, output=output)
    losses = metrics.losses(camera=name, output=output)
    checks.check(offered == emitted + lost, f"{name}, {output}: {offered} offered, {emitted} emitted, {losses}")
    checks.check(emitted == len(seen), f"{name}, {output}: {emitted} emitted, {len(seen)} seen")
    return offered, lost


def check_steady(checks, metrics, name, camera, seen, output="o", busy=0):
    """Checks that a good camera's pictures came once each, in one epoch, since the client connected. `busy`: maximum of overflows, on an overloaded
    box."""
    losses = metrics.losses(camera=name, output=output)
    account = Account(camera.sent, seen)
    what = f"{name}, {output}"
    missing = [number for number in account.missing if not seen or number >= seen[0].top]
    if SANITIZED or is_short():  # it may be too slow for all cameras
        checks.check(seen and len(missing) <= losses.total(), f"{what}: {len(seen)} seen, {missing[:10]} missing, {losses}")
    else:
        full = losses.get("overflow", 0)
        checks.check(set(losses) <= {"client", "stopping", "overflow"} and full <= busy, f"{what}: lost {dict(losses)}")
        checks.check(seen and len(missing) <= full, f"{what}: {len(seen)} seen, missing {missing[:10]}")
    checks.check(account.flagged == 0 and (account.epochs == 1 or is_short()),
                 f"{what}: {account.flagged} flagged, {account.epochs} epochs")


class Account:
    """Compares the pictures that one camera sent whole with those seen."""

    def __init__(self, sent, seen):
        whole = [s for s in seen if s.top != UNKNOWN and s.top == s.bottom]
        numbers = [s.top for s in whole if not s.header.flags & DAMAGED]  # damaged ones show older content
        got = collections.Counter(numbers)
        self.count = len(seen)
        self.doubled = [n for n, times in got.items() if times > 1]
        self.disordered = [(a, b) for a, b in zip(numbers, numbers[1:]) if b < a]
        self.torn = [s.header.sequence for s in seen if s.top != s.bottom]
        wrong = [s for s in seen if s.known == UNKNOWN]
        self.unflagged = [s.header.sequence for s in wrong if not s.header.flags & DAMAGED]
        self.flagged = len([s for s in seen if s.header.flags & DAMAGED])
        self.missing = self.missing_of(sent, {s.top for s in whole}, max(numbers, default=-1))
        self.epochs = len({s.header.epoch for s in seen})
        self.pts = list(self.bad_pts(seen))

    def check(self, checks, name, replaced=False):
        """Checks what holds despite any fault. `replaced`: by a reload, so that epochs may have restarted."""
        for what in ("doubled", "disordered", "unflagged") + (() if replaced else ("pts",)):
            checks.check(not getattr(self, what), f"{name}: {what} {getattr(self, what)[:10]}")

    @staticmethod
    def missing_of(sent, got, last):
        """Returns the missing pictures up to the last one that came."""
        whole = {}
        for picture in sent:
            if picture.whole and picture.number <= last:
                whole.setdefault(picture.connection, []).append(picture.number)
        return [n for numbers in whole.values() for n in numbers if n not in got]

    @staticmethod
    def bad_pts(seen):
        """Yields pts errors: within an epoch, pts must advance by 40 ms per picture, the clip's interval. Damaged pictures are skipped: they may show
        an earlier one."""
        for a, b in zip(seen, seen[1:]):
            damaged = (a.header.flags | b.header.flags) & DAMAGED
            if damaged or a.header.epoch != b.header.epoch or UNKNOWN in (a.known, b.known):
                continue
            step, wanted = b.header.pts_ns - a.header.pts_ns, (b.known - a.known) * 40_000_000
            if step <= 0 or abs(step - wanted) > 1_000_000:
                yield a.known, b.known, step
