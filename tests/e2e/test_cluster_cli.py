#!/usr/bin/python3
"""`framed cluster` with a real etcd: its writes, its reports of nodes and cameras that exist only in etcd, and that no password is in any output."""
import base64
import json
import subprocess
import time

from etcd_server import INSTALLED, Etcd
from framed_client import BINARY, Checks, folder

SECRET = "Zorngiebel"
CAMERA = "url: 'rtsp://viewer:${{CLUSTER_SECRET}}@10.0.0.{0}/a', outputs: {{o: {{sink: 'unix:/tmp/o{0}'}}}}"


class Site:
    """An etcd with a site in it. `said` contains all output of `framed cluster`."""

    def __init__(self, where, etcd):
        self.where, self.etcd, self.said = where, etcd, ""
        self.config = self.write("framed.yaml", f"cluster: {{etcd: ['{etcd.url}'], site: yard}}\ncameras: {{wrong: 1}}\n")

    def write(self, name, text):
        with open(f"{self.where}/{name}", "w") as file:
            file.write(text)
        return f"{self.where}/{name}"

    def cameras(self, *numbers, defaults="fps: 5", also=""):
        lines = "".join(f"  cam{n}: {{{CAMERA.format(n)}}}\n" for n in numbers)
        return self.write("cameras.yaml", f"defaults: {{{defaults}}}\ncameras:\n{lines}{also}")

    def run(self, *words, config=None):
        done = subprocess.run([BINARY, "cluster", *words, "-c", config or self.config], capture_output=True, text=True,
                              timeout=60, env={"CLUSTER_SECRET": SECRET})
        self.said += done.stdout + done.stderr
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    def get(self, kind):
        """Returns name -> text of the keys in etcd below `kind`."""
        start = f"/framed/yard/{kind}/".encode()
        found = self.etcd.ask("kv/range", {"key": base64.b64encode(start).decode(),
                                           "range_end": base64.b64encode(start[:-1] + b"0").decode()})
        return {base64.b64decode(e["key"])[len(start):].decode(): base64.b64decode(e.get("value", "")).decode()
                for e in found.get("kvs", [])}

    def put(self, key, document):
        self.etcd.ask("kv/put", {"key": base64.b64encode(f"/framed/yard/{key}".encode()).decode(),
                                 "value": base64.b64encode(json.dumps({"schema": 1, **document}).encode()).decode()})


def check_apply(checks, site):
    checks.check(site.run("apply", "-f", site.cameras(1, 2, 3)) ==
                 (0, ["added cam1", "added cam2", "added cam3", "3 cameras changed, 0 the same"], []), site.said)
    stored = site.get("camera")
    document = json.loads(stored["cam2"])
    checks.check(sorted(stored) == ["cam1", "cam2", "cam3"] and document["schema"] == 1, f"{stored}")
    checks.check(document["text"].startswith("defaults: none\ncameras:\n  cam2:\n") and "fps: 5" in document["text"] and
                 f"viewer:{SECRET}@" in document["text"], document["text"])
    checks.check(document["cost"] == 0, f"{document['cost']}")
    checks.check(site.run("apply", "-f", site.cameras(1, 2, 3)) == (0, ["0 cameras changed, 3 the same"], []), site.said)
    checks.check(site.get("camera") == stored, "it was written though it is the same")
    # Another default changes all; a missing camera is kept, and reported, until it is pruned.
    checks.check(site.run("apply", "-f", site.cameras(1, 3, defaults="fps: 6, on: {vlan: a}")) ==
                 (0, ["changed cam1", "changed cam3", "2 cameras changed, 0 the same",
                      "cam2 is in the cluster and not in the file (--prune removes it)"], []), site.said)
    checks.check(json.loads(site.get("camera")["cam1"])["on"] == {"vlan": "a"}, f"{site.get('camera')}")
    site.run("apply", "-f", site.cameras(1, 3, defaults="fps: 6, on: {vlan: a}, picture: 3840x2160"))
    checks.check(json.loads(site.get("camera")["cam1"])["cost"] == 4, f"{site.get('camera')}")
    site.run("apply", "-f", site.cameras(1, 3, defaults="fps: 6, on: {vlan: a}"))
    site.put("trouble/cam2", {"node": "box1", "why": "no"})
    checks.check(site.run("apply", "-f", site.cameras(1, 3, defaults="fps: 6, on: {vlan: a}"), "--prune") ==
                 (0, ["removed cam2", "1 camera changed, 2 the same"], []), site.said)
    checks.check(sorted(site.get("camera")) == ["cam1", "cam3"] and not site.get("trouble"), f"{site.get('trouble')}")


def check_mistakes(checks, site):
    before = site.get("camera")
    wrong = site.write("wrong.yaml", "cameras:\n  gate: {url: x, fps: fast, outputs: {o: {sink: 'unix:/s'}}}\n  yard: {}\n")
    code, _, said = site.run("apply", "-f", wrong)
    checks.check(code == 78 and len(said) == 3 and said[0].startswith(f"{wrong}:2:23: cameras.gate.fps: 'fast' is not"), f"{said}")
    batch = site.cameras(1, also="batches: {all: {cameras: '*', sink: 'unix:/b'}}\n")
    code, _, said = site.run("apply", "-f", batch)
    checks.check(code == 78 and said == [f"{batch}:4:11: batches.all: cannot be given to a cluster (cameras alone)"], f"{said}")
    none = site.write("none.yaml", "http: off\n")
    for words, config, expected, what in (
            (["status"], none, 78, "cluster.etcd is missing"),
            (["status"], site.write("nameless.yaml", "cluster: {etcd: 'http://h:1'}\n"), 78, "1:11: cluster.site: is missing"),
            (["status"], f"{site.where}/nowhere.yaml", 78, "No such file"),
            (["remove", "cam1", "gate"], None, 1, "gate is no camera of the cluster"),
            (["where", "gate"], None, 1, "gate is no camera of the cluster"),
            (["move", "cam1", "box9"], None, 1, "box9 is no node of the cluster"),
            (["drain", "box9"], None, 1, "box9 is no node of the cluster"),
            (["add", site.cameras(1)], None, 1, "cam1 is there already"),
            (["apply"], None, 2, "apply: wants -f FILE"), (["move", "cam1"], None, 2, "move: wants an argument more"),
            (["status", "cam1"], None, 2, "cam1: is one argument too many"), (["status", "--prune"], None, 2, "--prune: is only of"),
            (["drain", "a", "--json"], None, 2, "--json: is only of"), (["start"], None, 2, "start: is no command"),
            ([], None, 2, "COMMAND: is missing")):
        code, _, said = site.run(*words, config=config)
        checks.check(code == expected and len(said) == 1 and what in said[0], f"{words}: {code}, {said}")
    checks.check(site.get("camera") == before, "something was written")


def check_by_name(checks, site):
    checks.check(site.run("add", site.cameras(7, 8)) == (0, ["added cam7", "added cam8"], []), site.said)
    checks.check(site.run("remove", "cam7", "cam8") == (0, ["removed cam7", "removed cam8"], []), site.said)
    many = range(100, 380)
    code, said, _ = site.run("add", site.cameras(*many))
    checks.check(code == 0 and len(said) == len(many) and len(site.get("camera")) == len(many) + 2, f"{said[-3:]}")
    code, said, _ = site.run("remove", *[f"cam{n}" for n in many])
    checks.check(code == 0 and len(said) == len(many) and len(site.get("camera")) == 2, f"{said[-3:]}")


def node(**keys):
    return {"incarnation": 5, "obeys": 7, "room": 16, "taken": 2, "version": "9.8.7", "http": "http://10.0.0.1:9090",
            "since": int(time.time() * 1000) - 7300000, "labels": {"vlan": "a"}, **keys}


def check_view(checks, site):
    site.run("apply", "-f", site.cameras(1, 2, 3, 4, 5, 6), "--prune")
    checks.check("cam6 - 0 unplaced no node lives".split() in [line.split() for line in site.run("status")[1]], site.said[-900:])
    site.put("node/box1", node(running=[{"camera": "cam1", "generation": 3, "cost": 1.5}, {"camera": "cam2", "generation": 1}]))
    site.put("node/box2", node(obeys=6, http="", draining=True))
    site.put("plan", {"version": 7, "cameras": {
        "cam1": {"node": "box1", "bound": 5, "generation": 3}, "cam2": {"node": "box1", "bound": 5, "generation": 2},
        "cam3": {"node": "box2", "bound": 5, "generation": 1}, "cam4": {"node": "box3", "bound": 4, "generation": 9},
        "cam5": {"node": "", "generation": 4}}})
    site.put("trouble/cam3", {"node": "box2", "why": f"no rtsp://u:{SECRET}@h/"})
    code, said, _ = site.run("status")
    lines = [line.split() for line in said]
    checks.check(code == 0 and said[0] == "cluster yard, plan 7, 2 nodes, 6 cameras", f"{said}")
    for expected in ("box1 9.8.7 16.0 3.5 2 2 7 2 h", "box2 9.8.7 16.0 2.0 1 0 6 of 7 2 h draining", "box3 - - - 1 - - - gone",
                     "cam1 box1 3 running", "cam2 box1 2 starting waits for box2, which has not carried out plan 7",
                     "cam3 box2 1 starting box2: no rtsp://h/", "cam4 box3 9 waiting", "cam5 - 4 unplaced no node has room for it", "cam6 - 0 unplaced it is in no plan yet"):
        checks.check(expected.split() in lines, f"{expected} is not among\n" + "\n".join(said))
    code, said, _ = site.run("status", "--json")
    status = json.loads("\n".join(said))
    checks.check(code == 0 and status["plan"] == 7 and [n["obeys"] for n in status["nodes"]] == [True, False], f"{status}")
    checks.check([c["state"] for c in status["cameras"]] == ["running", *["starting"] * 2, "waiting", *["unplaced"] * 2], f"{status}")
    checks.check(site.run("where", "cam1") == (0, ["box1 running http://10.0.0.1:9090"], []), site.said[-200:])
    checks.check(site.run("where", "cam5")[::2] == (1, ["framed cluster: cam5 runs nowhere: no node has room for it"]), "cam5")
    site.run("drain", "box1")
    checks.check("every node that may run it is draining" in site.run("where", "cam5")[2][0], site.said[-200:])
    site.run("undrain", "box1")
    site.put("node/box2", node(obeys=9))  # obeys a plan from before etcd was restored
    checks.check(any(line.split()[:7] == "box2 9.8.7 16.0 2.0 1 0 9".split() and " 9 of 7 " in line for line in site.run("status")[1]), site.said[-900:])
    # A running camera goes on with its previous text if its node refused the new one; refusals of other nodes no longer count.
    for refuser, expected in (("box1", "cam1 box1 3 running box1: no"), ("box2", "cam1 box1 3 running")):
        site.put("trouble/cam1", {"node": refuser, "why": "no"})
        lines = [line.split() for line in site.run("status")[1]]
        checks.check(expected.split() in lines, f"{expected} is not among\n{lines}")


def check_wishes(checks, site):
    checks.check(site.run("move", "cam1", "box2") == (0, ["moved cam1"], []), site.said[-200:])
    wish = lambda: json.loads(site.get("camera")["cam1"])["wish"]
    checks.check(wish() == "box2", f"{wish()}")
    site.run("apply", "-f", site.cameras(1, defaults="fps: 9"))
    checks.check(wish() == "box2" and "fps: 9" in site.get("camera")["cam1"], "a new text ends the wish")
    checks.check("running, to go to box2" in "\n".join(site.run("status")[1]), site.said[-600:])
    checks.check(site.run("move", "cam1", "-") == (0, ["freed cam1"], []) and wish() == "", f"{wish()}")
    checks.check(site.run("drain", "box3") == (0, ["box3 gives its cameras away"], []), site.said[-200:])
    checks.check(list(site.get("drain")) == ["box3"], f"{site.get('drain')}")
    checks.check("gone, draining" in "\n".join(site.run("status")[1]), site.said[-600:])
    checks.check(site.run("undrain", "box3") == (0, ["box3 takes cameras"], []) and not site.get("drain"), f"{site.get('drain')}")


def check_versions(checks, site):
    site.put("camera/cam1", {"schema": 2})
    site.put("plan", {"schema": 2})
    said = "\n".join(site.run("status")[1])
    checks.check("a plan of a newer framed" in said and "unreadable" in said, said)
    checks.check(site.run("move", "cam1", "box1")[::2] == (1, ["framed cluster: cam1 is of a newer framed"]), site.said[-200:])


def main():
    checks = Checks("test_cluster_cli")
    if not INSTALLED:
        checks.skip("no etcd (Debian: etcd-server)")
        checks.end()
    with folder() as where, Etcd(where) as etcd:
        etcd.wait()
        site = Site(where, etcd)
        check_apply(checks, site)
        check_mistakes(checks, site)
        check_by_name(checks, site)
        check_view(checks, site)
        check_wishes(checks, site)
        check_versions(checks, site)
        etcd.stop()
        code, _, said = site.run("status")
        checks.check(code == 1 and len(said) == 1 and etcd.url in said[0], f"without etcd: {said}")
        checks.check(SECRET not in site.said, "a password was printed")
    checks.end()


main()
