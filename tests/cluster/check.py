#!/usr/bin/python3
"""Three framed, three members of etcd and the cameras of a site on one machine, each box a host with a cable of its own:
every fault that the README promises to survive. What is asserted is seen at consumers, in the frames' own headers: no
camera is without pictures for more than ten seconds, no two boxes show a camera at the same time but for a process that
was frozen, epochs rise, ledgers add up, and boxes that are well keep their cameras."""
import argparse
import base64
import contextlib
import json
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
from numbered_clip import NumberedClip, encode  # noqa: E402

from boxes import Network  # noqa: E402
from consumers import Watch, gaps, generations, overlaps  # noqa: E402
from processes import TOKEN, Etcd, Framed  # noqa: E402

LEASE = 5
PROMISE = 2 * LEASE  # seconds that a camera may be without pictures
PORT = 20000  # of the first camera's output

CAMERA = """\
cameras:
  {name}:
    url: {url}
    transport: tcp
    outputs:
      pictures: {{kernel: warp, size: 64x64, sink: "tcp:0.0.0.0:{port}", open: true, overflow: drop_oldest}}
"""


class Site:
    """All of it running, every camera shown."""

    def __init__(self, where, network, cameras, lease=LEASE, alone="stop", quota=0):
        self.where, self.network, self.cameras = where, network, cameras
        self.etcd = [Etcd(box, where, network.boxes, quota=quota) for box in network.boxes]
        self.framed = [Framed(box, where, network.boxes, BINARY, lease=lease, alone=alone) for box in network.boxes]
        self.ports = {name: PORT + i for i, name in enumerate(cameras)}

    def __enter__(self):
        for each in self.etcd:
            each.start()
        self.until(lambda: any(each.leads() for each in self.etcd), 15, "no leader")
        for name, camera in self.cameras.items():
            self.put(name, CAMERA.format(name=name, url=camera.url(), port=self.ports[name]))
        for each in self.framed:
            each.start()
        return self

    def __exit__(self, *_):
        for each in (*self.framed, *self.etcd):
            with contextlib.suppress(OSError):
                each.stop()

    def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(what)
            time.sleep(0.05)

    def ask(self, path, body):
        for each in self.etcd:
            with contextlib.suppress(OSError):
                return each.ask(path, body)
        raise OSError("no etcd answers")

    def put(self, name, text):
        self.ask("kv/put", {"key": base64.b64encode(f"/framed/yard/camera/{name}".encode()).decode(),
                            "value": base64.b64encode(json.dumps({"schema": 1, "text": text}).encode()).decode()})

    def keys(self, folder):
        prefix = f"/framed/yard/{folder}"
        answer = self.ask("kv/range", {"key": base64.b64encode(prefix.encode()).decode(),
                                       "range_end": base64.b64encode((prefix[:-1] + chr(ord(prefix[-1]) + 1)).encode()).decode()})
        return {base64.b64decode(pair["key"]).decode()[len("/framed/yard/"):]: base64.b64decode(pair.get("value", "")).decode()
                for pair in answer.get("kvs", [])}

    def addresses(self):
        return {name: {box.name: (box.address, port) for box in self.network.boxes} for name, port in self.ports.items()}

    def box_of(self, camera):
        plan = json.loads(self.keys("plan")["plan"])
        return plan["cameras"][camera]["node"]

    def placed(self):
        """node -> cameras, by the plan."""
        plan = json.loads(self.keys("plan").get("plan", "{}"))
        found = {}
        for camera, entry in plan.get("cameras", {}).items():
            found.setdefault(entry["node"], []).append(camera)
        return found

    def leader(self):
        return next(i for i, each in enumerate(self.etcd) if each.leads())


# --- faults: each changes something and puts it right again; `hit` is the index of the box that it meets

def busiest(site):
    placed = site.placed()
    return max(range(len(site.framed)), key=lambda i: len(placed.get(site.framed[i].box.name, [])))


def follower(site):
    return next(i for i in range(len(site.etcd)) if i != site.leader())


def killed(site, watch):
    """kill -9 of a framed."""
    hit = busiest(site)
    site.framed[hit].kill()
    yield hit
    watch.settle(site, without=hit)
    site.framed[hit].start()


def frozen(site, watch):
    """SIGSTOP, and SIGCONT once others have its cameras."""
    hit = busiest(site)
    site.framed[hit].signal(signal.SIGSTOP)
    yield hit
    watch.settle(site, without=hit)
    site.framed[hit].signal(signal.SIGCONT)


def dead(site, watch, hit):
    site.network.boxes[hit].pull()
    site.framed[hit].kill()
    site.etcd[hit].kill()
    yield hit
    watch.settle(site, without=hit)
    site.network.boxes[hit].plug()
    site.etcd[hit].start()
    site.framed[hit].start()


def dead_follower(site, watch):
    """A box without power."""
    yield from dead(site, watch, follower(site))


def dead_leader(site, watch):
    """A box without power, whose etcd led."""
    yield from dead(site, watch, site.leader())


def cut(site, watch, hit):
    site.network.boxes[hit].pull()
    yield hit
    watch.settle(site, without=hit)
    site.network.boxes[hit].plug()


def cut_follower(site, watch):
    """The cable of a box, out and in."""
    yield from cut(site, watch, follower(site))


def cut_leader(site, watch):
    """The cable of the box whose etcd leads, out and in."""
    yield from cut(site, watch, site.leader())


def etcd_away(site, _watch):
    """Two of three etcd killed for 12 s: nobody may place anything, and all stop."""
    leader = site.leader()
    two = [leader, next(i for i in range(3) if i != leader)]
    for i in two:
        site.etcd[i].kill()
    yield None
    time.sleep(12)
    for i in two:
        site.etcd[i].start()


def split(site, watch):
    """A box that reaches cameras and consumers, but no other box."""
    hit = busiest(site)
    others = [box.address for i, box in enumerate(site.network.boxes) if i != hit]
    for address in others:
        site.network.boxes[hit].ip("route", "add", "blackhole", address)
    yield hit
    watch.settle(site, without=hit)
    for address in others:
        site.network.boxes[hit].ip("route", "del", "blackhole", address)


def stopped(site, watch):
    """SIGTERM: the others take over at once."""
    hit = busiest(site)
    site.framed[hit].stop()
    yield hit
    watch.settle(site, without=hit)
    site.framed[hit].start()


def drained(site, watch):
    """framed cluster drain: cameras go one by one, by the plan."""
    hit = busiest(site)
    name = site.network.boxes[hit].name
    site.framed[hit].cluster("drain", name)
    yield hit
    watch.settle(site, without=hit)
    site.framed[hit].cluster("undrain", name)


def full(site, _watch):
    """etcd's disk is full for 10 s: nothing can be written, and leases go on."""
    filler = base64.b64encode(bytes(1 << 19)).decode()
    for i in range(64):
        try:
            site.ask("kv/put", {"key": base64.b64encode(f"/filler/{i}".encode()).decode(), "value": filler})
        except OSError:
            break
    yield None
    time.sleep(10)
    answer = site.ask("kv/deleterange", {"key": base64.b64encode(b"/filler/").decode(),
                                         "range_end": base64.b64encode(b"/filler0").decode()})
    site.ask("kv/compaction", {"revision": answer["header"]["revision"]})
    for each in site.etcd:
        each.ask("maintenance/defragment", {}, seconds=10)
    for alarm in site.ask("maintenance/alarm", {"action": "GET"}).get("alarms", []):
        site.ask("maintenance/alarm", {"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": alarm["memberID"]})


# --- random faults: one box at a time, for up to six seconds

def random_kill(site, box):
    site.framed[box].kill()
    yield
    site.framed[box].start()


def random_freeze(site, box):
    site.framed[box].signal(signal.SIGSTOP)
    yield
    site.framed[box].signal(signal.SIGCONT)


def random_etcd(site, box):
    site.etcd[box].kill()
    yield
    site.etcd[box].start()


def random_cable(site, box):
    site.network.boxes[box].pull()
    yield
    site.network.boxes[box].plug()


RANDOM = [random_kill, random_freeze, random_etcd, random_cable]


# Seconds that a camera may be without pictures, beside the promise.
FAULTS = {killed: PROMISE, frozen: PROMISE, dead_follower: PROMISE, dead_leader: PROMISE, cut_follower: PROMISE,
          cut_leader: PROMISE, split: PROMISE, stopped: 2.5, drained: 2.5, full: 2, etcd_away: 12 + PROMISE}


class Watching(Watch):
    def settle(self, site, without=None, seconds=30):
        """Until every camera is shown, each at one box, which is not that one."""
        gone = site.framed[without].box.name if without is not None else None
        def settled():
            where = self.where(0.6)
            return all(len(where.get(name, ())) == 1 and gone not in where[name] for name in site.cameras)
        site.until(settled, seconds, f"cameras shown: {dict(self.where(0.6))}")


def moved(site, before, hit):
    """Cameras of boxes that were well and have lost them."""
    after = {camera: node for node, cameras in site.placed().items() for camera in cameras}
    well = {each.box.name for i, each in enumerate(site.framed) if i != hit}
    return [camera for node, cameras in before.items() for camera in cameras if node in well and after.get(camera) != node]


def try_fault(checks, site, watch, fault):
    before, began = site.placed(), time.monotonic()
    run = fault(site, watch)
    hit = next(run)
    for _ in run:
        pass
    time.sleep(2 * LEASE)  # what comes back is back
    watch.settle(site)
    ended = time.monotonic()
    frames = [frame for frame in watch.taken() if began - 1 <= frame.at <= ended]
    longest = gaps(frames, site.cameras, began, ended)
    worst = sorted(longest.values())
    needless = moved(site, before, hit)
    excused = {"frozen": site.framed[hit].box.name} if hit is not None and fault is frozen else {}
    over = [(camera, *each) for camera in site.cameras for each in overlaps(frames, camera)
            if each[1] != excused.get("frozen")]
    name = fault.__name__
    checks.check(worst[-1] <= FAULTS[fault], f"{name}: a camera was without pictures for {worst[-1]:.1f} s")
    checks.check(not over, f"{name}: shown by two boxes at once: {over}")
    checks.check(not needless or fault is etcd_away, f"{name}: moved for nothing: {needless}")
    print(f"{name:16} {fault.__doc__.strip().splitlines()[0]:60} gap p50 {statistics.median(worst):5.2f} max {worst[-1]:5.2f} s,"
          f" needless moves {len(needless)}", flush=True)


def try_random(checks, site, watch, count, seed):
    """Gaps are printed and not judged where a fault meets the box that has just taken over."""
    choice, began = random.Random(seed), time.monotonic()
    frozen_boxes = set()
    for _ in range(count):
        box, fault = choice.randrange(len(site.framed)), choice.choice(RANDOM)
        if fault is random_freeze:
            frozen_boxes.add(site.framed[box].box.name)
        run = fault(site, box)
        next(run)
        time.sleep(choice.uniform(0, 6))
        for _ in run:
            pass
        time.sleep(choice.uniform(0, 6))
    watch.settle(site, seconds=60)
    ended = time.monotonic()
    frames = [frame for frame in watch.taken() if began <= frame.at <= ended]
    longest = sorted(gaps(frames, site.cameras, began, ended).values())
    over = [(camera, *each) for camera in site.cameras for each in overlaps(frames, camera) if each[1] not in frozen_boxes]
    checks.check(not over, f"random, seed {seed}: shown by two boxes at once: {over}")
    print(f"random           {count} faults in {ended - began:.0f} s, seed {seed}: gap p50 {statistics.median(longest):5.2f} max"
          f" {longest[-1]:5.2f} s", flush=True)


def demonstrate(site, watch):
    """One box loses its power: what became of each camera."""
    before, hit = {camera: site.box_of(camera) for camera in site.cameras}, busiest(site)
    print(f"\nsix cameras at three boxes, etcd at each; now {site.network.boxes[hit].name} loses its power", flush=True)
    began = time.monotonic()
    run = dead(site, watch, hit)
    next(run)
    watch.settle(site, without=hit)
    ended = time.monotonic()
    longest = gaps(watch.taken(), site.cameras, began - 1, ended)
    print(f"\n{'camera':10} {'before':8} {'after':8} without pictures for")
    for camera, node in before.items():
        print(f"{camera:10} {node:8} {site.box_of(camera):8} {longest[camera]:.2f} s")
    print(f"\n{site.framed[1 - min(hit, 1)].cluster('status')[1]}")
    print("the box has its power again", flush=True)
    next(run, None)
    time.sleep(LEASE)
    print(site.framed[1 - min(hit, 1)].cluster("status")[1], flush=True)


def check_epochs(checks, site, frames):
    for camera in site.cameras:
        runs = generations(frames, camera)
        checks.check(all(len({f.node for f in run}) == 1 for run in runs.values()),
                     f"{camera}: a generation at two boxes: { {g: {f.node for f in r} for g, r in runs.items()} }")


@contextlib.contextmanager
def followed(site, camera):
    """A list that fills with what framedio reads of the camera, wherever it is: (at, epoch, sequence)."""
    hosts = ",".join(box.address for box in site.network.boxes)
    command = [sys.executable, os.path.join(TESTS, "cluster", "follower.py"), f"cluster:etcd://{hosts}/yard/{camera}/pictures",
               TOKEN]
    frames = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=framedio_environment()) as child:
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


def check_followed(checks, frames, began, ended):
    """One reader sees the camera all along, and never goes back to an older box."""
    times = [began, *(at for at, _, _ in frames if began <= at <= ended), ended]
    longest = max(b - a for a, b in zip(times, times[1:]))
    epochs = [epoch for _, epoch, _ in frames]
    checks.check(len(frames) > 50 and longest <= 2 * PROMISE, f"framedio: {len(frames)} frames, {longest:.1f} s without")
    checks.check(epochs == sorted(epochs), "framedio: epochs went back")
    print(f"framedio         {len(frames)} frames of {len({e >> 16 for e in epochs})} generations, longest gap {longest:5.2f} s", flush=True)


def check_ledgers(checks, site):
    """Of outputs that have ended: what a box wrote about each."""
    total = 0
    for each in site.framed:
        accounts = re.findall(r"offered=(\d+) emitted=(\d+) lost=(\d+)", each.text())
        wrong = [account for account in accounts if int(account[0]) != int(account[1]) + int(account[2])]
        total += len(accounts)
        checks.check(not wrong, f"{each.box.name}: of {len(accounts)} accounts {wrong}")
    checks.check(total >= len(site.cameras), f"{total} accounts")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cameras", type=int, default=6)
    parser.add_argument("--only", default="", help="names of faults, with commas")
    parser.add_argument("--random", type=int, default=10, help="faults at random, behind the others")
    parser.add_argument("--demo", action="store_true", help="show what becomes of the cameras of one box")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    checks = Checks("cluster")
    where = tempfile.mkdtemp(prefix="cluster", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    clip = NumberedClip(encode(f"{where}/clip.h264", 50))
    faults = [fault for fault in FAULTS if not options.only or fault.__name__ in options.only.split(",")]
    try:
        with Network(3) as network, contextlib.ExitStack() as stack:
            cameras = {f"camera{i + 1}": stack.enter_context(Camera(clip, host=network.outside.address))
                       for i in range(options.cameras)}
            for camera in cameras.values():
                camera.rate = 10
            site = stack.enter_context(Site(where, network, cameras, quota=16 << 20))
            watch = stack.enter_context(Watching(site.addresses()))
            watch.settle(site)
            reader = stack.enter_context(followed(site, next(iter(cameras))))
            began = time.monotonic() + 3
            print("placed:", {node: len(cameras) for node, cameras in site.placed().items()}, flush=True)
            if options.demo:
                demonstrate(site, watch)
                return
            for fault in faults:
                try_fault(checks, site, watch, fault)
            if options.random:
                try_random(checks, site, watch, options.random, options.seed)
            check_epochs(checks, site, watch.taken())
            check_followed(checks, reader, began, time.monotonic())
        check_ledgers(checks, site)
    finally:
        if checks.failed or sys.exc_info()[0]:
            print(f"logs: {where}")
        else:
            shutil.rmtree(where, ignore_errors=True)
    checks.end()


if __name__ == "__main__":
    main()
