#!/usr/bin/python3
"""Eight cameras that flap at random for FRAMED_SOAK_SECONDS (600): nothing doubled, out of order or damaged without a
flag, every ledger exact, memory, descriptors and threads flat, every camera good at the end."""
import os
import random
import threading
import time

from torment import Holdings, Stage
from faulty_camera import Connection
from framed_client import Checks, Framed, folder, until
from watch import Account, check_ledger

CAMERAS = 8
SECONDS = float(os.environ.get("FRAMED_SOAK_SECONDS", "600"))
WARM_SECONDS = 60  # until memory that is used for the first time no longer counts
SEED = int(os.environ.get("FRAMED_SOAK_SEED", "1"))


def lose_picture(connection):
    """Not packets of one: what is left of it may pass for whole, as far as a decoder can tell."""
    connection.mangle = lambda payloads: [None] * len(payloads)


ACTS = {
    "fin": Connection.fin,
    "half a picture": Connection.half,
    "reset": Connection.reset,
    "bye": Connection.bye,
    "mute": Connection.go_mute,
    "frozen": lambda connection: connection.freeze(1),
    "an hour on": lambda connection: connection.jump(3600),
    "a minute back": lambda connection: connection.jump(-60),
    "the sender's clock": lambda connection: connection.wall_step(-3600),
    "a picture lost": lose_picture,
    "begins anew": Connection.restart,
    "babble": lambda connection: connection.babble(100),
}


def flap(camera, seed, over):
    """One fault after another; now and then the camera is away for a while."""
    chance = random.Random(seed)
    while not over.wait(chance.uniform(2, 10)):
        camera.next(chance.choice(list(ACTS.values())))
        if chance.random() < 0.15:
            camera.refuse()
            camera.next(Connection.fin)
            over.wait(chance.uniform(0.5, 4))
            camera.listen()


def watch_over(stage, framed, holdings):
    begin = told = time.monotonic()
    while time.monotonic() - begin < SECONDS and framed.child.poll() is None:
        time.sleep(1)
        kib, files, threads = holdings.sample()
        if time.monotonic() - told >= 60:
            told = time.monotonic()
            plays = sum(camera.plays for camera in stage.cameras.values())
            print(f"{told - begin:4.0f} s: {plays} connections, {kib / 1024:.1f} MiB, {files} descriptors, {threads}"
                  " threads", flush=True)


def check_end(checks, stage, framed):
    """Every camera is good within the longest pause of the back-off, once all faults are over."""
    numbers = {name: camera.number for name, camera in stage.cameras.items()}
    for name, watcher in stage.watchers.items():
        good = until(lambda: len(watcher.good_after(numbers[name])) > 25, 45)
        checks.check(good, f"{name}: not good at the end:\n{framed.errors()[-2000:]}")


def main():
    checks = Checks("soak")
    over = threading.Event()
    with folder() as where, Stage(where, CAMERAS, 5000) as stage:
        with Framed(where, stage.config()) as framed:
            stage.watch()
            for i, camera in enumerate(stage.cameras.values()):
                threading.Thread(target=flap, args=(camera, SEED * 1000 + i, over), daemon=True).start()
            holdings = Holdings(framed)
            watch_over(stage, framed, holdings)
            over.set()
            time.sleep(5)
            check_end(checks, stage, framed)
            code = framed.stop()
            checks.check(code == 0, f"exit {code}")
            if SECONDS >= WARM_SECONDS:
                holdings.check_flat(checks)
            total = {"seen": 0, "flagged": 0, "doubled": 0, "disordered": 0, "unflagged": 0}
            for name, watcher in stage.watchers.items():
                watcher.join(5)
                check_ledger(checks, framed.metrics(), name, watcher.seen)
                account = Account(stage.cameras[name].sent, watcher.seen)
                account.check(checks, name)
                counts = (account.count, account.flagged, *map(len, (account.doubled, account.disordered, account.unflagged)))
                total = {what: so_far + count for (what, so_far), count in zip(total.items(), counts)}
            print(", ".join(f"{count} {what}" for what, count in total.items()))
    checks.end()


main()
