#!/usr/bin/python3
"""A thousand reloads (FRAMED_RELOADS) of a framed with twenty cameras: each adds, changes or removes cameras and outputs,
swaps sockets and files, or has a bad file. Ten cameras never change: they lose no picture, and memory, descriptors and
threads stay flat. The other cameras join and leave batches by their names: clients see every closed batch, and the ten
cameras have each picture once."""
import os
import random
import statistics
import threading
import time

from torment import Batches, Holdings  # also makes the next imports possible
from framed_client import Checks, folder
from reloading import Reloaded, Street, camera, check_untouched, config, output
from watch import Account, check_ledger, check_steady

KEPT, OTHERS = 10, 10
RELOADS = int(os.environ.get("FRAMED_RELOADS", "1000"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
SAMPLE_EVERY = 5  # reloads

BATCHES = {
    "joined": ("unix", '["kept0", "other*"], count: 4, per_camera: 2, wait: auto'),
    "chosen": ("ring", '["kept?", "other*", "!other3"], count: 8, wait: 20ms, tail: zero'),
    "stable": ("unix", '["kept?", "!kept8", "!kept9"], count: 8, order: fixed, wait: 50ms'),
}

BAD = ("backend: cpu\n", "cameras: [", "nothing: 1\n", None)


def text_of(cameras, batches, top=""):
    return config(cameras, top) + batches.text()


class Others:
    """The changing cameras: each one's keys, and its outputs with their keys."""

    def __init__(self, street, names, dice):
        self.street, self.names, self.dice = street, names, dice
        self.sockets = list(names)
        self.there = {name: self.some_camera() for name in names}

    def some_output(self):
        return f", max_age: {self.dice.choice((0, 1, 2))}s"

    def some_camera(self):
        keys = self.dice.choice(("", ", damaged: drop", ", fps: 20"))
        return [keys, {"o": self.some_output()}]

    def add_or_remove(self):
        name = self.dice.choice(self.names)
        if name in self.there:
            del self.there[name]
        else:
            self.there[name] = self.some_camera()

    def change_camera(self):
        for name in self.dice.sample(sorted(self.there), min(2, len(self.there))):
            self.there[name] = self.some_camera()

    def change_outputs(self):
        for name in self.dice.sample(sorted(self.there), min(3, len(self.there))):
            outputs = self.there[name][1]
            extra = self.dice.choice("pqf")
            if extra in outputs:
                del outputs[extra]
            else:
                outputs[extra] = self.some_output()
            outputs["o"] = self.dice.choice((outputs["o"], self.some_output()))

    def swap(self):
        self.dice.shuffle(self.sockets)

    def step(self):
        self.dice.choice((self.add_or_remove, self.change_camera, self.change_outputs, self.swap))()

    def sink(self, name, out):
        place = f"{self.street.where}/{self.sockets[self.names.index(name)]}-{out}"
        if out == "f":
            return f"file:{place}.framed"
        return f"ring:{place}.ring" if out == "q" else f"unix:{place}.sock"

    def cameras(self):
        return {
            name: camera(
                self.street.url(name), {o: output(self.sink(name, o), more) for o, more in outputs.items()}, keys
            )
            for name, (keys, outputs) in self.there.items()
        }


def forget_files(where):
    """Removes files left by swaps, which would fill the disk."""
    for name in os.listdir(where):
        if name.endswith(".framed"):
            os.remove(os.path.join(where, name))


def run(checks, framed, kept, others, batches, dice):
    """Returns the duration of each reload, from signal to counters."""
    holdings, took = Holdings(framed), []
    applied = refused = 0
    for i in range(RELOADS):
        bad = dice.random() < 0.1
        if bad:
            text = (dice.choice(BAD)
                    or text_of({**kept, **others.cameras()}, batches).replace("connect_timeout", "conect_timeout"))
        else:
            others.step()
            text = text_of({**kept, **others.cameras()}, batches)
        begin = time.monotonic()
        done = framed.reload(text)
        took.append(time.monotonic() - begin)
        if not checks.check(done != bad, f"reload {i}, seed {SEED}: {'applied' if done else 'refused'}:\n{framed.errors()[-2000:]}"):
            break
        applied, refused = applied + done, refused + bad
        if i % SAMPLE_EVERY == 0:
            holdings.sample()
            forget_files(framed.where)
    print(f"SEED={SEED}: {applied} reloads applied, {refused} refused", flush=True)
    holdings.check_flat(checks)
    return took


class Box(threading.Thread):
    """Measures how long the machine delays a sleeping program: beyond LATE it is too busy to judge losses."""

    STEP, LATE = 0.01, 0.1

    def __init__(self):
        super().__init__(daemon=True)
        self.longest = 0
        self.start()

    def run(self):
        while True:
            begin = time.monotonic()
            time.sleep(self.STEP)
            self.longest = max(self.longest, time.monotonic() - begin - self.STEP)


def check_kept(checks, street, watchers, metrics, box):
    print(f"{'camera':8} pictures    lost  longest wait for one, ms")
    for name, watcher in watchers.items():
        losses = metrics.losses(camera=name, output="o")
        print(f"{name:8} {len(watcher.seen):8} {losses.total():7} {1000 * longest_wait(watcher):8.0f}", flush=True)
        # A camera loses pictures to "client" before its client connects.
        checks.check(set(losses) <= {"client", "overflow", "backend_busy"}, f"{name}: lost {dict(losses)}")
        check_untouched(checks, name, street.cameras[name], watcher, (losses["overflow"] or losses["backend_busy"]) and box.longest > Box.LATE)
    if box.longest > Box.LATE:
        print(f"the box let a program wait for {1000 * box.longest:.0f} ms: what cameras lost to that is not judged")


def check_batches(checks, street, kept, batches, metrics, box):
    """Every closed batch was seen. Cameras that stay have each picture, others none twice or out of order."""
    for batch, watcher in batches.watchers.items():
        watcher.check_sums(checks, metrics, batch)
        members = set(batches.members(metrics, batch)) & set(kept)
        checks.check(members and (batch == "stable" or set(watcher.shares) - set(kept)), f"{batch}: {set(watcher.shares)}")
        for name, seen in watcher.shares.items():
            Account(street.cameras[name].sent, seen).check(checks, f"{name} in {batch}", name not in kept)
        for name in members:
            check_ledger(checks, metrics, name, watcher.shares[name], batch)
            if box.longest <= Box.LATE:
                check_steady(checks, metrics, name, street.cameras[name], watcher.shares[name], batch)
        closed = {has["closed"]: int(n) for has, n in metrics.all("framed_batches_total", batch=batch) if n}
        lost = metrics.losses(output=batch)
        print(f"batch {batch}: {watcher.elements} elements of {len(watcher.shares)} cameras, closed {closed},"
              f" lost {dict(lost)}", flush=True)


def longest_wait(watcher):
    """Returns the longest time between two finished pictures, s."""
    at = [seen.header.finished_ns for seen in watcher.seen]
    return max((b - a) / 1e9 for a, b in zip(at, at[1:]))


def main():
    checks, dice = Checks("reload torture"), random.Random(SEED)
    names = [f"kept{i}" for i in range(KEPT)], [f"other{i}" for i in range(OTHERS)]
    with folder() as where, Street(where, sum(names, []), 4000) as street:
        kept = {name: street.plain(name) for name in names[0]}
        others = Others(street, names[1], dice)
        batches = Batches(where, street.cameras, street.digests, BATCHES)
        with Reloaded(where, text_of({**kept, **others.cameras()}, batches, "log: {level: warning}")) as framed:
            framed.where = where
            box = Box()
            watchers = {name: street.watch(name) for name in kept}
            batches.watch()
            time.sleep(2)
            listeners = {path: inode for path, inode in framed.listeners().items() if "kept" in str(path)}
            took = run(checks, framed, {**kept}, others, batches, dice)
            same = {path: framed.listeners().get(path) for path in listeners}
            checks.check(same == listeners, f"listening sockets: {listeners} became {same}")
            check_kept(checks, street, watchers, framed.live_metrics(), box)
            print(f"a reload took {1000 * statistics.median(took):.0f} ms (median), {1000 * max(took):.0f} ms at most")
            checks.check(framed.stop() == 0, f"exit:\n{framed.errors()[-2000:]}")
            checks.check("unaccounted" not in framed.errors(), framed.errors()[-2000:])
        for name, watcher in watchers.items():
            watcher.join(5)
            check_ledger(checks, framed.metrics(), name, watcher.seen)
        check_batches(checks, street, kept, batches, framed.metrics(), box)
    checks.end()


main()
