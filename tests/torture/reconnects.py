#!/usr/bin/python3
"""A thousand reconnects (FRAMED_RECONNECTS) with twenty cameras that hang up after a few pictures, in several ways:
memory, descriptors and threads stay flat, and every picture arrives once."""
import itertools
import os
import time

from torment import Holdings, Stage
from faulty_camera import Connection
from framed_client import Checks, Framed, folder
from watch import Account, check_ledger

CAMERAS = 20
RECONNECTS = int(os.environ.get("FRAMED_RECONNECTS", "1000"))
PICTURES = 5  # of a connection
WAYS = (Connection.fin, Connection.reset, Connection.half)


def hang_up_again_and_again(camera):
    """Hangs up before the sixth picture of every connection; each time sets up the next."""
    ways = itertools.cycle(WAYS)

    def act(connection):
        arm(camera.next_keyframe() + PICTURES)
        next(ways)(connection)

    def arm(number):
        camera.next(act, number)

    arm(PICTURES)


def run(checks, stage, framed):
    holdings = Holdings(framed)
    begin = time.monotonic()
    while (plays := sum(camera.plays for camera in stage.cameras.values())) < RECONNECTS + CAMERAS:
        if framed.child.poll() is not None or time.monotonic() - begin > 2 + 6 * RECONNECTS / CAMERAS:
            break
        holdings.sample()
        time.sleep(0.25)
    print(f"{plays - CAMERAS} reconnects in {time.monotonic() - begin:.0f} s")
    checks.check(plays >= RECONNECTS + CAMERAS, f"only {plays} connections:\n{framed.errors()[-2000:]}")
    holdings.check_flat(checks)


def main():
    checks = Checks("reconnects")
    with folder() as where, Stage(where, CAMERAS, 4000) as stage:
        for camera in stage.cameras.values():
            hang_up_again_and_again(camera)
        with Framed(where, stage.config()) as framed:
            stage.watch()
            run(checks, stage, framed)
            code = framed.stop()
            checks.check(code == 0, f"exit {code}")
            for name, watcher in stage.watchers.items():
                watcher.join(5)
                _, lost = check_ledger(checks, framed.metrics(), name, watcher.seen)
                account = Account(stage.cameras[name].sent, watcher.seen)
                account.check(checks, name)
                checks.check(len(account.missing) <= lost, f"{name}: lost {account.missing}")
            stage.batches.check(checks, framed.metrics())
    checks.end()


main()
