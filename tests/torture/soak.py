#!/usr/bin/python3
"""Twenty cameras for FRAMED_SOAK_SECONDS (600), of which eight flap at random: of those nothing is doubled, out of
order or damaged without a flag, and each is good at the end; the other twelve lose nothing. Every ledger is exact, and
memory, descriptors and threads stay flat."""
import collections
import gc
import os
import random
import threading
import time

from torment import Holdings, Stage
from faulty_camera import Connection
from framed_client import Checks, Framed, folder, until
from watch import Account, check_ledger

CAMERAS, FLAPPING = 20, 8
SECONDS = float(os.environ.get("FRAMED_SOAK_SECONDS", "600"))
WARM_SECONDS = 60  # until memory that is used for the first time no longer counts
SEED = int(os.environ.get("FRAMED_SOAK_SEED", "1"))


def lose_packet(connection):
    def but_one(payloads):
        lost = random.randrange(len(payloads))
        return [None if i == lost else payload for i, payload in enumerate(payloads)]

    connection.mangle = but_one


def lose_picture(connection):
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
    "a packet lost": lose_packet,
    "a picture lost": lose_picture,
    "begins anew": Connection.restart,
    "babble": lambda connection: connection.babble(100),
    "noise": lambda connection: connection.noise(500),
    "garbage": Connection.garble,
}


def note(done, name):
    """The act, which says ahead of which picture it was done."""

    def act(connection):
        done.append((connection.camera.number, name))
        ACTS[name](connection)

    return act


def flap(camera, seed, over, done):
    """One fault after another; now and then the camera is away for a while."""
    chance = random.Random(seed)
    while not over.wait(chance.uniform(2, 10)):
        camera.next(note(done, chance.choice(list(ACTS))))
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


def check_steady(checks, name, losses, account):
    """Its pictures came, each once, over one connection."""
    checks.check(set(losses) <= {"stopping"}, f"{name}: lost {dict(losses)}")
    checks.check(not account.missing, f"{name}: missing {account.missing[:10]}")
    checks.check(account.flagged == 0 and account.epochs == 1,
                 f"{name}: {account.flagged} flagged, {account.epochs} epochs")


def tell_unflagged(name, account, seen, done):
    """What was done to the camera before each, as far as the pictures around it say where that was."""
    for sequence in account.unflagged:
        at = next(i for i, one in enumerate(seen) if one.header.sequence == sequence)
        number = max((one.known for one in seen[max(0, at - 100) : at]), default=0)
        acts = [(when, what) for when, what in done if abs(when - number) < 250]
        print(f"{name}: picture {sequence}, some way behind {number}: {acts}", flush=True)


def check_accounts(checks, stage, metrics, acts):
    totals = {what: collections.Counter() for what in ("flap", "are steady")}
    for name, watcher in stage.watchers.items():
        watcher.join(5)
        check_ledger(checks, metrics, name, watcher.seen)
        account = Account(stage.cameras[name].sent, watcher.seen)
        account.check(checks, name)
        if name not in acts:
            check_steady(checks, name, metrics.losses(camera=name), account)
        tell_unflagged(name, account, watcher.seen, acts.get(name, []))
        totals["flap" if name in acts else "are steady"].update(
            {"cameras": 1, "connections": stage.cameras[name].plays, "seen": account.count, "flagged": account.flagged,
             **{what: len(getattr(account, what)) for what in ("missing", "doubled", "disordered", "unflagged")}})
    for what, total in totals.items():
        print(f"cameras that {what}:", ", ".join(f"{count} {which}" for which, count in total.items()), flush=True)


def main():
    checks = Checks("soak")
    over = threading.Event()
    gc.disable()  # millions of pictures are kept here, and looking through them would hold up the cameras
    with folder() as where, Stage(where, CAMERAS, 5000) as stage:
        acts = {name: [] for name in list(stage.cameras)[:FLAPPING]}
        with Framed(where, stage.config()) as framed:
            stage.watch()
            for i, (name, done) in enumerate(acts.items()):
                arguments = stage.cameras[name], SEED * 1000 + i, over, done
                threading.Thread(target=flap, args=arguments, daemon=True).start()
            holdings = Holdings(framed)
            watch_over(stage, framed, holdings)
            over.set()
            time.sleep(5)
            for camera in stage.cameras.values():
                camera.call_off()  # what one that was away has yet to do
            check_end(checks, stage, framed)
            code = framed.stop()
            checks.check(code == 0, f"exit {code}")
            holdings.tell_ends()
            if SECONDS >= WARM_SECONDS:
                holdings.check_flat(checks)
            check_accounts(checks, stage, framed.metrics(), acts)
    checks.end()


main()
