#!/usr/bin/python3
"""Two daemons that share an etcd, on one machine: cameras run once, move on request and by their labels, many at once, and leave a daemon that is
drained or killed. The daemons' own cameras are not affected. tests/cluster tests broken networks."""
import base64
import json
import os
import subprocess
import time
import urllib.request

from etcd_server import INSTALLED, Etcd
from framed_client import BINARY, Checks, Framed, Reader, folder, free_port, make_clip, until
from framed_client import status as framed_status
from http_client import Client
from pace import is_short

LEASE, CAMERAS = 2, [f"cam{i}" for i in range(6)]


class Box(Framed):
    """`own` is a camera in its own file."""

    def __init__(self, where, name, etcd):
        folder = f"{where}/{name}"
        os.mkdir(folder)
        self.folder, self.port = folder, free_port()
        super().__init__(folder, f"backend: cpu\ndefaults: {{fps: 1}}\nhttp: 127.0.0.1:{self.port}\ncluster: {{etcd: ['{etcd.url}'], site: yard, node: {name}, "
                                 f"lease: {LEASE}s, room: 8, labels: {{vlan: {name}}}}}\n"
                                 f"cameras: {{own: {{url: '{where}/clip.mp4', fps: 25, pace: realtime, loop: true, outputs: {{o: {{size: 64x64, "
                                 f"sink: 'unix:{folder}/own'}}}}}}}}\n")


def cluster(box, *words):
    done = subprocess.run([BINARY, "cluster", *words, "-c", box.config], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def status(box):
    """Returns {camera: (node, state)} of live nodes, and the errors."""
    code, text, errors = cluster(box, "status", "--json")
    found = json.loads(text) if code == 0 else {"cameras": []}
    return {camera["camera"]: (camera["node"], camera["state"]) for camera in found["cameras"]}, errors


def settles(box, expected, seconds=10):
    """Returns true once all cameras run as expected: {camera: node}, or a set of nodes for all of them."""
    def is_so():
        now, _ = status(box)
        return now and all(state == "running" and (node in expected if isinstance(expected, set) else node == expected[camera])
                           for camera, (node, state) in now.items())
    return until(is_so, seconds)


def check_placed(checks, boxes):
    checks.check(settles(boxes[0], {"box0", "box1"}), f"not all run: {status(boxes[0])}\n{boxes[0].errors()}\n{boxes[1].errors()}")
    # Each camera's requested node is the one where it is not: all move at once, and back.
    for turn in range(3):
        wanted = {camera: f"box{(i + turn) % 2}" for i, camera in enumerate(CAMERAS)}
        for camera, node in wanted.items():
            code, _, errors = cluster(boxes[0], "move", camera, node)
            checks.check(code == 0, f"{camera} to {node}: {errors}")
        checks.check(settles(boxes[0], wanted), f"turn {turn}: {status(boxes[0])}\n{boxes[0].errors()}\n{boxes[1].errors()}")
        checks.check([box.child.poll() for box in boxes] == [None, None], "a daemon has ended")
    for camera in CAMERAS:
        cluster(boxes[0], "move", camera, "-")


def check_drain(checks, boxes):
    checks.check(cluster(boxes[0], "drain", "box1")[0] == 0, "drain")
    checks.check(settles(boxes[0], {"box0"}), f"drained: {status(boxes[0])}\n{boxes[0].errors()}\n{boxes[1].errors()}")
    checks.check(cluster(boxes[0], "undrain", "box1")[0] == 0, "undrain")


def add(checks, box, where, name, more):
    """Adds a camera to the cluster; `more`: further keys."""
    with open(f"{where}/more.yaml", "w") as file:
        file.write(f"defaults: {{pace: realtime, loop: true}}\ncameras: {{{name}: {{url: '{where}/clip.mp4', {more}outputs: "
                   f"{{o: {{size: 64x64, sink: 'unix:{where}/{name}'}}}}}}}}\n")
    code, _, errors = cluster(box, "add", f"{where}/more.yaml")
    checks.check(code == 0, f"add {name}: {errors}")


def state(box, camera):
    """Returns (node, state, why) from `framed cluster status`."""
    found = json.loads(cluster(box, "status", "--json")[1])["cameras"]
    return next((each["node"], each["state"], each["why"]) for each in found if each["camera"] == camera)


def check_refused(checks, boxes, where):
    """Labels of one node or of none, a name that is in use, and no room: each is reported with its camera, and other cameras are not disturbed."""
    add(checks, boxes[0], where, "east", "on: {vlan: box1}, ")
    checks.check(until(lambda: state(boxes[0], "east")[:2] == ("box1", "running"), 10), f"by label: {state(boxes[0], 'east')}")
    cluster(boxes[0], "move", "east", "box0")
    time.sleep(1)
    checks.check(state(boxes[0], "east")[:2] == ("box1", "running"), f"against its label: {state(boxes[0], 'east')}")
    add(checks, boxes[0], where, "west", "on: {vlan: nowhere}, ")
    checks.check(until(lambda: state(boxes[0], "west")[1:] == ("unplaced", "no node has its labels"), 10), f"{state(boxes[0], 'west')}")
    add(checks, boxes[0], where, "own", "")
    checks.check(until(lambda: state(boxes[0], "own")[1] == "unplaced" and "own" in state(boxes[0], "own")[2], 10),
                 f"a name that both boxes have: {state(boxes[0], 'own')}")
    for camera in ("east", "west", "own"):
        cluster(boxes[0], "remove", camera)
    checks.check(settles(boxes[0], {"box0", "box1"}), f"behind these: {status(boxes[0])}")


def check_full(checks, boxes, where):
    """One box is left, with room 8: its own camera uses 1, and the cluster may use 90 %."""
    add(checks, boxes[1], where, "seventh", "")
    checks.check(until(lambda: state(boxes[1], "seventh")[1:] == ("unplaced", "no node has room for it"), 10), f"{state(boxes[1], 'seventh')}")
    with urllib.request.urlopen(f"http://127.0.0.1:{boxes[1].port}/metrics", timeout=5) as answer:
        told = answer.read().decode()
    checks.check("framed_cluster_unplaced 1\n" in told and "framed_cluster_troubled 1\n" in told, f"no metric of it: {told[-2000:]}")
    cluster(boxes[1], "remove", "seventh")
    checks.check(settles(boxes[1], {"box1"}), f"behind it: {status(boxes[1])}")


def check_own(checks, box, reader):
    """Checks the frames of a camera in the box's own file since its start."""
    headers = [header for header, _ in reader.frames]
    holes = [b.sequence - a.sequence for a, b in zip(headers, headers[1:]) if b.sequence != a.sequence + 1]
    jumps = sum(b.epoch - a.epoch for a, b in zip(headers, headers[1:]))
    turns = sum(b.pts_ns < a.pts_ns for a, b in zip(headers, headers[1:]))
    checks.check(len(headers) > 10 and not holes, f"{box.config}: {len(headers)} frames, holes {holes}, {reader.error}")
    checks.check(max(header.epoch for header in headers) < 1000 and jumps <= turns + 20, f"epochs: {headers[-1].epoch}")


def put_plan(etcd, text):
    """Writes the plan by hand; None: removes it."""
    key = base64.b64encode(b"/framed/yard/plan").decode()
    if text is None:
        return etcd.ask("kv/deleterange", {"key": key})
    return etcd.ask("kv/put", {"key": key, "value": base64.b64encode(text.encode()).decode()})


def plan(etcd):
    """Returns the plan's text; "" if there is none."""
    found = etcd.ask("kv/range", {"key": base64.b64encode(b"/framed/yard/plan").decode()}).get("kvs")
    return base64.b64decode(found[0]["value"]).decode() if found else ""


def generations(etcd):
    """Returns {camera: generation} of the plan; empty if there is none."""
    return {camera: entry["generation"] for camera, entry in json.loads(plan(etcd) or "{}").get("cameras", {}).items()}


def check_lost_plan(checks, boxes, etcd):
    """The plan is removed: generations in the next one go on rising, as epochs must not go back."""
    before = generations(etcd)
    put_plan(etcd, None)
    checks.check(until(lambda: generations(etcd), 10), "there is no plan")
    after = generations(etcd) or {}
    checks.check(all(after.get(camera, 0) > before[camera] for camera in CAMERAS), f"{before}, and then {after}")
    checks.check(settles(boxes[0], {"box0", "box1"}), f"{status(boxes[0])}\n{boxes[0].errors()}\n{boxes[1].errors()}")


def check_killed(checks, boxes):
    boxes[0].child.kill()
    boxes[0].child.wait()
    checks.check(settles(boxes[1], {"box1"}, 10), f"of a killed one: {status(boxes[1])}\n{boxes[1].errors()}")


def check_plan_by_hand(checks, box, etcd):
    """A plan that is unreadable, or from a newer framed, moves no camera. A box outside the cluster stays out meanwhile."""
    def runs():
        with urllib.request.urlopen(f"http://127.0.0.1:{box.port}/api/v1/cluster", timeout=5) as answer:
            found = json.load(answer)
        return found["state"], found["error"] or "", len(framed_status(box.folder)) - 1  # without its own camera
    good = plan(etcd)
    newer = json.dumps({**json.loads(good), "schema": 2})
    for text, word in (("scribble", "cannot be read"), (newer, "newer framed")):
        put_plan(etcd, text)
        time.sleep(1)
        said, why, n = runs()
        checks.check(said == "in" and n == len(CAMERAS) and word in why, f"with {word}: {said}, {n} cameras, {why}")
    key = base64.b64encode(b"/framed/yard/node/box1").decode()
    etcd.ask("kv/deleterange", {"key": key})
    checks.check(until(lambda: runs()[2] == 0 and "stays out" in runs()[1], 5), f"out, with a newer plan: {runs()}")
    time.sleep(2 * LEASE)
    said, why, n = runs()
    checks.check(said != "in" and n == 0, f"out, with a newer plan: {said}, {n} cameras, {why}")
    checks.check(plan(etcd) == newer, "the newer plan was written over")
    put_plan(etcd, good)
    checks.check(until(lambda: runs()[0] == "in" and runs()[2] == len(CAMERAS), 10), f"behind a newer plan: {runs()}")


def check_where(checks, box, expected):
    """Checks HTTP's answer for a camera that the box does not have."""
    def said():
        try:
            status, _, body = Client(box.port).get("/api/v1/where/nobody")
        except OSError:
            return None  # framed has just been started
        return status, json.loads(body).get("error")
    checks.check(until(said, 10) and said() == expected, f"where: {said()}, not {expected}")


def main():
    checks = Checks("cluster")
    if not INSTALLED:
        checks.skip("etcd-server is not installed")
        checks.end()
    with folder() as where, Etcd(where) as etcd:
        etcd.wait()
        make_clip(f"{where}/clip.mp4")
        with Box(where, "box0", etcd) as one, Box(where, "box1", etcd) as other:
            cameras = "".join(f"  {name}: {{url: '{where}/clip.mp4', outputs: {{o: {{size: 64x64, sink: 'unix:{where}/{name}'}}}}}}\n"
                              for name in CAMERAS)
            with open(f"{where}/cameras.yaml", "w") as file:
                file.write(f"defaults: {{pace: realtime, loop: true}}\ncameras:\n{cameras}")
            code, _, errors = cluster(one, "apply", "-f", f"{where}/cameras.yaml")
            checks.check(code == 0, f"apply: {errors}")
            boxes = [one, other]
            readers = [Reader(f"unix:{box.folder}/own", keep=False) for box in boxes]
            check_placed(checks, boxes)
            check_refused(checks, boxes, where)
            check_drain(checks, boxes)
            check_lost_plan(checks, boxes, etcd)
            check_own(checks, one, readers[0])
            check_killed(checks, boxes)
            check_full(checks, boxes, where)
            check_plan_by_hand(checks, other, etcd)
            check_own(checks, other, readers[1])
            text = other.errors()
            # On a busy box, etcd may answer too late.
            expected = ["its key is gone"] + ["this box is out"] * is_short()
            wrong = [line for line in text.splitlines()
                     if "error" in line.split()[:2] and not any(words in line for words in expected)]
            checks.check(not wrong, f"{wrong}")
            check_where(checks, other, (404, "there is no camera of that name"))
            etcd.stop()
            check_where(checks, other, (404, "there is no camera of that name"))
        with Box(where, "box2", etcd) as late:
            check_where(checks, late, (503, "etcd has not been reached yet"))
    checks.end()


main()
