#!/usr/bin/python3
"""Three framed, three members of etcd and the cameras of a site on one machine, each box a host with its own cable:
every fault that the README promises to survive. The checks use the frames' headers at consumers: no camera is without
pictures for more than ten seconds, no two boxes show a camera at the same time except for a frozen process, epochs rise,
ledgers add up, and healthy boxes keep their cameras."""
import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "e2e")]
from checks import Checks  # noqa: E402
from framed_client import BINARY, framedio_environment  # noqa: E402
from rtsp_camera import Camera  # noqa: E402
from numbered_clip import GOP, NumberedClip, encode  # noqa: E402

from boxes import Network  # noqa: E402
from consumers import BY_CAMERA, calm_gaps, gaps, generations, overlaps  # noqa: E402
from faults import LIMITS, RANDOM, busiest, dead, drain, etcd_away, frozen, random_freeze, spread  # noqa: E402
from processes import TOKEN  # noqa: E402
from site_of_boxes import LEASE, PROMISE, Site, until  # noqa: E402

SILENT = 0.6 * LEASE + 1  # seconds from etcd's last answer to the last picture
RATE = 10  # pictures per second of each camera
KEYFRAMES = GOP / RATE  # seconds between two


# --- single faults

def moved(site, before, hit):
    """Returns the cameras that healthy boxes have lost."""
    after = {camera: node for node, cameras in site.placed().items() for camera in cameras}
    well = {each.box.name for i, each in enumerate(site.framed) if i not in hit}
    return [camera for node, cameras in before.items() for camera in cameras if node in well and after.get(camera) != node]


def twice(site, frames, excused):
    """Returns [(camera, seconds, node before, node after)] of cameras shown by two boxes at once."""
    return [(camera, *each) for camera in site.cameras for each in overlaps(frames, camera) if each[1] not in excused]


def judge(checks, site, what, frames, excused=()):
    over = twice(site, frames, excused)
    checks.check(not over, f"{what}: shown by two boxes at once: {over}")
    timed = [frame for frame in frames if frame.flags & BY_CAMERA]
    checks.check(len(timed) > 0.8 * len(frames), f"{what}: {len(timed)} of {len(frames)} frames have the camera's time")


def report(name, what, longest, rest):
    print(f"{name:14} {what:52} gap p50 {statistics.median(longest):5.2f} max {max(longest):5.2f} s, {rest}", flush=True)


def limit_of(camera, fault):
    """Returns the limit in seconds. A camera that begins after a keyframe shows no picture until the next one."""
    return LIMITS[fault] + (KEYFRAMES if camera.late and LIMITS[fault] < PROMISE else 0)


def try_fault(checks, site, fault):
    spread(site)
    before, began = site.placed(), time.monotonic()
    run = fault(site)
    hit = next(run)
    for _ in run:
        pass
    site.heal()
    time.sleep(1)
    ended = time.monotonic()
    frames = [frame for frame in site.watch.taken() if began - 1 <= frame.at <= ended]
    found = gaps(frames, site.cameras, began, ended)
    longest, name, needless = found.values(), fault.__name__, moved(site, before, hit)
    judge(checks, site, name, frames, {site.framed[i].box.name for i in hit} if fault is frozen else ())
    over = {camera: round(gap, 1) for camera, gap in found.items() if gap > limit_of(site.cameras[camera], fault)}
    checks.check(not over, f"{name}: without pictures for {over} s")
    checks.check(not needless or fault is etcd_away, f"{name}: moved for nothing: {needless}")
    report(name, fault.__doc__.splitlines()[0], longest, f"needless moves {len(needless)}")


# --- without faults

def try_rebalance(checks, site):
    """A box that returned empty gets cameras from the fullest, one every ten seconds, after a calm minute."""
    hit, began = busiest(site), time.monotonic()
    drain(site, hit)
    site.framed[hit].cluster("undrain", site.framed[hit].box.name)
    site.heal()
    placed, moves = site.placed(), []
    while len(moves) < 2 and time.monotonic() < began + 90:
        time.sleep(0.2)
        now = site.placed()
        if now != placed:
            moves.append(time.monotonic())
            checks.check(sum(len(set(now[node]) - set(placed.get(node, ()))) for node in now) == 1, f"rebalanced: {placed} to {now}")
        placed = now
    site.heal()
    ended = time.monotonic()
    frames = [frame for frame in site.watch.taken() if began - 1 <= frame.at <= ended]
    longest = gaps(frames, site.cameras, began, ended)
    judge(checks, site, "rebalanced", frames)
    apart = min((b - a for a, b in zip(moves, moves[1:])), default=0)
    checks.check(len(moves) == 2 and moves[0] - began > 55 and apart > 9, f"rebalanced: {[round(at - began, 1) for at in moves]}")
    checks.check({len(cameras) for cameras in placed.values()} == {2}, f"rebalanced: {placed}")
    checks.check(max(longest.values()) <= 1 + KEYFRAMES, f"rebalanced: {longest} s without pictures")
    report("rebalanced", "a box that came back empty", longest.values(),
           f"moves after {', '.join(f'{at - began:.0f}' for at in moves)} s")


# --- many

def try_random(checks, site, count, seed):
    """A fault may hit the box that has just taken over: the promise counts from the last fault's start or end."""
    choice, began, changes, frozen_boxes, tally = random.Random(seed), time.monotonic(), [], set(), {}
    for _ in range(count):
        box, fault = choice.randrange(len(site.framed)), choice.choice(RANDOM)
        tally[fault.__name__] = tally.get(fault.__name__, 0) + 1
        if fault is random_freeze:
            frozen_boxes.add(site.framed[box].box.name)
        run = fault(site, box)
        next(run)
        changes.append(time.monotonic())
        time.sleep(choice.uniform(0, 6))
        for _ in run:
            pass
        changes.append(time.monotonic())
        time.sleep(choice.uniform(0, 6))
    site.heal(seconds=60)
    ended = time.monotonic()
    frames = [frame for frame in site.watch.taken() if began <= frame.at <= ended]
    longest = gaps(frames, site.cameras, began, ended).values()
    calm = max(calm_gaps(frames, site.cameras, changes, began, ended).values())
    judge(checks, site, f"random, seed {seed}", frames, frozen_boxes)
    checks.check(calm <= PROMISE, f"random, seed {seed}: {calm:.1f} s without pictures behind the last fault")
    report("random", f"{count} faults in {ended - began:.0f} s, seed {seed}", longest, f"behind the last fault {calm:.2f} s")
    print("  " + ", ".join(f"{n} x {name[len('random_'):]}" for name, n in sorted(tally.items())), flush=True)


# --- etcd gone

def shown_without_etcd(checks, site, alone, killed, back):
    """Checks frames while etcd is gone: with `stop` until the fence, with `keep` all of them."""
    frames = [frame for frame in site.watch.taken() if killed <= frame.at <= back]
    last = max((frame.at for frame in frames), default=killed) - killed
    longest = max(gaps(frames, site.cameras, killed, back).values())
    if alone == "stop":
        checks.check(last <= SILENT, f"stop: the last frame came {last:.1f} s after etcd had gone")
        print(f"stop: the last frame {last:.2f} s after etcd had gone, then none for {back - killed - last:.0f} s", flush=True)
    else:
        wanted = (back - killed) * RATE * len(site.cameras)
        checks.check(longest <= 1 and len(frames) > 0.95 * wanted, f"keep: {len(frames)} of {wanted:.0f}, a gap of {longest:.1f} s")
        print(f"keep: {len(frames)} of {wanted:.0f} frames in {back - killed:.0f} s, longest gap {longest:.2f} s", flush=True)


def try_away(checks, site, alone, seconds):
    """All of etcd is gone for `seconds`."""
    before, killed = site.placed(), time.monotonic()
    for each in site.etcd:
        each.kill()
    time.sleep(seconds)
    back = time.monotonic()
    shown_without_etcd(checks, site, alone, killed, back)
    for each in site.etcd:
        each.start()
    site.heal(seconds=60)
    time.sleep(1)
    ended = time.monotonic()
    frames = [frame for frame in site.watch.taken() if killed - 1 <= frame.at <= ended]
    longest = gaps(frames, site.cameras, back, ended).values()
    needless = moved(site, before, ())
    judge(checks, site, f"away, {alone}", frames)
    checks.check(max(longest) <= (PROMISE if alone == "stop" else 1 + KEYFRAMES), f"{alone}: {max(longest):.1f} s without frames behind")
    checks.check(not needless, f"{alone}: moved for nothing: {needless}")
    report("away", f"all of etcd gone for {seconds} s, alone: {alone}", longest, f"needless moves {len(needless)}, gaps from its return on")


# --- for people

def demonstrate(site):
    """One box loses its power: shows the effect on each camera."""
    time.sleep(2 * KEYFRAMES)  # new cameras show pictures first
    before, hit = {camera: site.box_of(camera) for camera in site.cameras}, busiest(site)
    print(f"\nsix cameras at three boxes, etcd at each; now {site.network.boxes[hit].name} loses its power", flush=True)
    began = time.monotonic()
    run = dead(site, hit)
    next(run)
    site.settle(without={hit})
    ended = time.monotonic()
    longest = gaps(site.watch.taken(), site.cameras, began, ended)
    print(f"\n{'camera':10} {'before':8} {'after':8} without pictures for")
    for camera, node in before.items():
        print(f"{camera:10} {node:8} {site.box_of(camera):8} {longest[camera]:.2f} s")
    print(f"\n{site.framed[1 - min(hit, 1)].cluster('status')[1]}")
    print("the box has its power again", flush=True)
    next(run, None)
    site.heal()
    print(site.framed[1 - min(hit, 1)].cluster("status")[1], flush=True)
    print("it is back and empty: cameras go back to it, one in ten seconds, once no box has come or gone for a minute", flush=True)


# --- in every run

def check_epochs(checks, site, frames):
    for camera in site.cameras:
        runs = generations(frames, camera)
        checks.check(all(len({f.node for f in run}) == 1 for run in runs.values()),
                     f"{camera}: a generation at two boxes: { {g: {f.node for f in r} for g, r in runs.items()} }")


@contextlib.contextmanager
def followed(site, camera):
    """Yields a list that fills with framedio's frames of the camera, on any box: (at, epoch, sequence)."""
    hosts = ",".join(box.address for box in site.network.boxes)
    command = [sys.executable, os.path.join(TESTS, "cluster", "follower.py"), f"cluster:etcd://{hosts}/yard/{camera}/pictures",
               TOKEN]
    frames = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=framedio_environment()) as child:
        def read():
            for line in child.stdout:
                at, epoch, sequence = line.split()
                frames.append((float(at), int(epoch), int(sequence)))
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield frames
        finally:
            child.terminate()
            thread.join(5)


def check_followed(checks, frames, began, ended, limit):
    """One reader sees the camera all the time, and never returns to an older box."""
    times = [began, *(at for at, _, _ in frames if began <= at <= ended), ended]
    longest = max(b - a for a, b in zip(times, times[1:]))
    epochs = [epoch for _, epoch, _ in frames]
    checks.check(len(frames) > 20 and longest <= limit, f"framedio: {len(frames)} frames, {longest:.1f} s without")
    checks.check(epochs == sorted(epochs), "framedio: epochs went back")
    print(f"framedio       {len(frames)} frames of {len({e >> 16 for e in epochs})} generations, longest gap {longest:5.2f} s", flush=True)


def check_ledgers(checks, site):
    """Checks the accounts that each box logged for ended outputs."""
    total = 0
    for each in site.framed:
        accounts = re.findall(r"offered=(\d+) emitted=(\d+) lost=(\d+)", each.text())
        wrong = [account for account in accounts if int(account[0]) != int(account[1]) + int(account[2])]
        total += len(accounts)
        checks.check(not wrong, f"{each.box.name}: of {len(accounts)} accounts {wrong}")
    checks.check(total >= len(site.cameras), f"{total} accounts")


def try_all(checks, site, options):
    only = options.only.split(",")
    faults = [fault for fault in LIMITS if not options.only or fault.__name__ in only]
    if options.demo:
        demonstrate(site)
        return
    print("placed:", {node: len(cameras) for node, cameras in site.placed().items()}, flush=True)
    with followed(site, next(iter(site.cameras))) as reader:
        until(lambda: reader, 15, lambda: "framedio reads nothing")
        began = time.monotonic()
        if options.away:
            try_away(checks, site, options.alone, options.away)
        for fault in [] if options.away else faults:
            try_fault(checks, site, fault)
        if options.rebalance or not (options.only or options.away):
            try_rebalance(checks, site)
        if options.random:
            try_random(checks, site, options.random, options.seed)
        check_epochs(checks, site, site.watch.taken())
        check_followed(checks, reader, began, time.monotonic(), 2 * PROMISE + options.away)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cameras", type=int, default=6)
    parser.add_argument("--only", default="", help="names of faults, with commas")
    parser.add_argument("--random", type=int, default=8, help="faults at random, behind the others")
    parser.add_argument("--rebalance", action="store_true", help="also with --only")
    parser.add_argument("--away", type=int, default=0, help="seconds without etcd, in place of the other faults")
    parser.add_argument("--alone", choices=("stop", "keep"), default="stop")
    parser.add_argument("--demo", action="store_true", help="show what becomes of the cameras of one box")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args()


def main():
    options, checks = parse(), Checks("cluster")
    if os.geteuid() != 0:
        sys.exit("cluster: network namespaces are root's: run it as root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything is cleaned up
    where = tempfile.mkdtemp(prefix="cluster", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    clip = NumberedClip(encode(f"{where}/clip.h264", 50))
    try:
        with Network(3) as network, contextlib.ExitStack() as stack:
            cameras = {f"camera{i + 1}": stack.enter_context(Camera(clip, host=network.outside.address))
                       for i in range(options.cameras)}
            for i, camera in enumerate(cameras.values()):
                camera.rate, camera.late = RATE, i % 2 * GOP // 2
            site = stack.enter_context(Site(where, network, cameras, BINARY, alone=options.alone, quota=16 << 20))
            try_all(checks, site, options)
        if not options.demo:
            check_ledgers(checks, site)
    finally:
        if checks.failed or sys.exc_info()[0]:
            print(f"logs: {where}")
        else:
            shutil.rmtree(where, ignore_errors=True)
    if not options.demo:
        checks.end()


if __name__ == "__main__":
    main()
