#!/usr/bin/python3
"""Twenty cameras, where one refuses and one never answers: the others show pictures within 2 s and lose none."""
import os
import time

from torment import Stage
from framed_client import PATIENCE, Checks, Framed, folder, until
from watch import Account, check_steady

CAMERAS, REFUSES, DEAF = 20, "camera7", "camera13"
START = 2.0  # s from framed's start to the first picture of the slowest
SECONDS = float(os.environ.get("FRAMED_NEIGHBOURS_SECONDS", "30"))


def main():
    checks = Checks("neighbours")
    with folder() as where, Stage(where, CAMERAS, 2000) as stage:
        stage.cameras[REFUSES].refuse()
        stage.cameras[DEAF].deaf = True
        well = [name for name in stage.cameras if name not in (REFUSES, DEAF)]
        begin = time.monotonic()
        with Framed(where, stage.config()) as framed:
            stage.watch()
            until(lambda: all(stage.watchers[name].seen for name in well), 20)
            first = [stage.watchers[name].good_after(0)[:1] for name in well]
            slowest = max((times[0] - begin for times in first if times), default=0)
            print(f"first pictures: the slowest of {len(well)} cameras after {slowest:.2f} s")
            checks.check(all(first) and slowest < START * PATIENCE, f"{slowest:.2f} s:\n{framed.errors()}")
            time.sleep(SECONDS)
            up = framed.live_metrics().sum("framed_camera_up")
            checks.check(up == len(well), f"{up} cameras are up")
            code = framed.stop()
            checks.check(code == 0, f"exit {code}")
            pictures = 0
            for name in well:
                stage.watchers[name].join(5)
                pictures += len(stage.watchers[name].seen)
                offered, emitted, lost = framed.metrics().account(camera=name, output="o")
                losses = framed.metrics().losses(camera=name, output="o")
                checks.check(offered == emitted + lost, f"{name}: {offered} offered, {emitted} emitted, {lost} lost")
                checks.check(lost == losses["stopping"], f"{name}: {losses}")
                account = Account(stage.cameras[name].sent, stage.watchers[name].seen)
                checks.check(not account.missing and not account.doubled and not account.unflagged,
                             f"{name}: {vars(account)}")
            stage.batches.check(checks, framed.metrics())
            for batch, watcher in stage.batches.watchers.items():
                for name in set(well) & set(stage.batches.members(framed.metrics(), batch)):
                    check_steady(checks, framed.metrics(), name, stage.cameras[name], watcher.shares[name], batch)
            print(f"{pictures} pictures, none lost" if not checks.failed else "")
    checks.end()


main()
