#!/usr/bin/python3
"""Cameras that misbehave, each in its own way and all at once in one framed: how soon each is good again, that every decodable picture comes once and
in order, that damage is flagged, and that no old picture passes for live. Prints a row for each fault. Each camera also has elements in a batch; its
two good cameras lose nothing whatever the others do."""
import os
import re
import socket
import threading
import time

from fault_cases import CLIPS, REFUSED, Case, begun, camera_of, cases, make_clips, refused
from faulty_camera import Camera, Connection
from framed_client import PATIENCE, Checks, Framed, folder, status, until
from numbered_clip import GOP
from pace import is_short
from watch import CAPTURE_CLOCK, OUTPUT, Account, BatchWatcher, Watcher, check_ledger, check_steady, reference

DIGESTS = {}
GOOD = ("good0", "good1")
GROUP = 8  # cameras of a batch that misbehave
ORDERS = ("count: 8, per_camera: 4, wait: auto", "count: 10, order: fixed, wait: 20ms, tail: zero")


# --- the verdict

def check_case(checks, framed, metrics, case):
    for problem in case.problems:
        checks.check(False, problem)
    if case.told:
        print(case.told)
    offered, lost = check_ledger(checks, metrics, case.name, case.watcher.seen)
    losses = metrics.losses(camera=case.name, output="o")
    took = "-" if case.took is None else f"{case.took:.2f}"
    if case.fault is refused:
        said = len(re.findall(rf"camera={case.name} .*password", framed.errors()))
        checks.check(said == 1, f"{case.name}: said {said} times")
        checks.check(offered == 0, f"{case.name}: pictures without the password")
        print(f"{case.name:18} {took:>6}   {len(case.camera.calls)} tries in {REFUSED:g} s")
        return
    account = Account(case.camera.sent, case.watcher.seen)
    account.check(checks, case.name)
    if not case.harmed and not is_short():
        allowed = case.lost + lost - losses["stopping"]
        checks.check(len(account.missing) <= allowed, f"{case.name}: lost {account.missing}, {losses}")
        checks.check(account.flagged <= (case.name == "fin-in-picture"), f"{case.name}: {account.flagged} flagged")
    if case.epochs and not is_short():
        # A session that was given up may have been sent a picture, too, which no client sees.
        seen = {s.known for s in case.watcher.seen}
        connections = len({s.connection for s in case.camera.sent if s.number in seen})
        extra = connections - (2 if "reconnect" in case.name else 1)
        checks.check(account.epochs == case.epochs + extra, f"{case.name}: {account.epochs} epochs")
    print(f"{case.name:18} {took:>6} {len(account.missing):5} {len(account.doubled):7} {len(account.torn):5}"
          f" {account.flagged:8} {len(account.unflagged):9}  {dict(losses) or ''}", flush=True)


def check_packets(checks, case, network):
    """framed counts as lost the packets that the camera kept back."""
    if network and network["transport"]:
        checks.check(network["lost"] == case.camera.withheld,
                     f"{case.name}: {network['lost']} packets lost, {case.camera.withheld} kept back")


def check_capture_rises(checks, case):
    seen = case.watcher.seen
    back = [(before.header.capture_ns - now.header.capture_ns) / 1e9 for before, now in zip(seen, seen[1:])
            if before.header.epoch == now.header.epoch and before.header.capture_ns >= now.header.capture_ns]
    checks.check(not back, f"{case.name}: capture times go back by {back} s within an epoch")


def check_live(checks, case):
    """No picture is older than max_age plus the time to deliver it, by the camera's own clock."""
    due = {sent.number: sent.due for sent in case.camera.sent}
    ages = [s.header.finished_ns / 1e9 - due[s.known] for s in case.watcher.seen if s.known in due]
    print(f"oldest picture under max_age 0.4 s: {max(ages):.2f} s")
    checks.check(max(ages) < 0.4 + 0.4 * PATIENCE, f"{case.name}: a picture {max(ages):.2f} s old")


def check_capture(checks, case):
    """The camera's clock is set an hour ahead, then two back: capture times follow, and nothing else changes."""
    arrivals = {sent.number: sent.wall for sent in case.camera.sent}
    shifts = {round((s.header.capture_ns / 1e9 - arrivals[s.known]) / 3600) for s in case.watcher.seen
              if s.header.flags & CAPTURE_CLOCK and s.known in arrivals}
    checks.check(shifts == {0, 1, -1}, f"{case.name}: capture times are {shifts} hours off")


# --- batches

class Batches:
    """Good cameras, each a member of every batch, and batches of some cases each."""

    def __init__(self, where, listed):
        self.where, self.good = where, {name: Camera(CLIPS["plain"], start=False) for name in GOOD}
        self.groups = {f"batch{i // GROUP}": listed[i : i + GROUP] for i in range(0, len(listed), GROUP)}

    def text(self):
        rows = "batches:\n"
        for i, (name, group) in enumerate(self.groups.items()):
            members = ", ".join([case.name for case in group] + ["good?"])
            keys = OUTPUT.replace("slots: 128", "slots: 32")
            rows += f'  {name}: {keys}, cameras: [{members}], {ORDERS[i % 2]}, sink: "unix:{self.where}/{name}.sock"}}\n'
        return rows

    def good_text(self):
        cases = [Case(name, None) for name in GOOD]
        for case in cases:
            case.camera = self.good[case.name]
        return "".join(case.text(self.where) for case in cases)

    def watch(self):
        self.plain = {name: Watcher(f"unix:{self.where}/{name}.sock", DIGESTS, camera)
                      for name, camera in self.good.items()}
        self.watchers = {name: BatchWatcher(f"unix:{self.where}/{name}.sock", DIGESTS, self.good)
                         for name in self.groups}
        return [*self.plain.values(), *self.watchers.values()]

    def listen(self):
        for camera in self.good.values():
            camera.listen()

    def close(self):
        for camera in self.good.values():
            camera.close()

    def check(self, checks, metrics):
        for name, watcher in self.watchers.items():
            watcher.check(checks, metrics, name, {case.name: case.camera for case in self.groups[name]} | self.good)
            print(f"{name}: {watcher.batches} batches, {watcher.elements} elements, lost of the good cameras "
                  + " ".join(str(dict(metrics.losses(camera=good, output=name))) for good in GOOD))
        for name, camera in self.good.items():
            self.plain[name].join(5)
            check_ledger(checks, metrics, name, self.plain[name].seen)
            check_steady(checks, metrics, name, camera, self.plain[name].seen)
            for batch, watcher in self.watchers.items():
                check_steady(checks, metrics, name, camera, watcher.shares[name], batch, busy=len(camera.sent) // 100)


# --- the run

def held(framed):
    """Returns (descriptors, threads) of a process."""
    return [len(os.listdir(f"/proc/{framed.child.pid}/{kind}")) for kind in ("fd", "task")]


def at_rest(where, config, listed, batches):
    """Returns framed's descriptors and threads with every camera gone and every client connected."""
    with Framed(where, config) as framed:
        watchers = [Watcher(f"unix:{where}/{case.name}.sock", DIGESTS) for case in listed] + batches.watch()
        until(lambda: framed.errors().count("next try") >= len(listed) + len(GOOD), 20)
        time.sleep(0.5)
        counts = held(framed)
        framed.stop()
        for watcher in watchers:
            watcher.join(5)
        return counts


def check_held(checks, before, after):
    print(f"with every camera gone: {before[0]} descriptors, {before[1]} threads before, {after[0]}, {after[1]} after")
    checks.check(after[0] <= before[0], f"{after[0]} descriptors, {before[0]} before")
    checks.check(after[1] <= before[1], f"{after[1]} threads, {before[1]} before")


def check_all(checks, where, listed, batches):
    config = ("log: {level: info}\ncameras:" + "".join(case.text(where) for case in listed) + batches.good_text()
              + batches.text())
    before = at_rest(where, config, listed, batches)
    batches.listen()
    for case in listed:
        if case.camera.starts:
            case.camera.listen()
    with Framed(where, config) as framed:
        for case in listed:
            case.watcher = Watcher(f"unix:{where}/{case.name}.sock", DIGESTS)
        batches.watch()
        threads = [threading.Thread(target=case.run, daemon=True) for case in listed]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(150 * PATIENCE)
        told = status(where)
        batches.close()
        check_held(checks, before, until(lambda: (now := held(framed)) <= before and now, 3) or held(framed))
        print(f"{framed.resident_kib() / 1024:.1f} MiB resident")
        code = framed.stop()
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-2000:]}")
        for case in listed:
            case.watcher.join(5)
        print("fault                   s  lost doubled torn flagged unflagged")
        for case in listed:
            check_case(checks, framed, framed.metrics(), case)
            check_packets(checks, case, told.get(case.name, {}).get("network"))
            check_capture_rises(checks, case)
            if case.name == "frozen-max-age":
                check_live(checks, case)
            if case.name == "report-steps" and not is_short():
                check_capture(checks, case)
        batches.check(checks, framed.metrics())
        if checks.failed:
            print(framed.errors())


# --- SIGTERM

def stuck_client(where, name):
    """Returns a client that is connected and never reads."""
    client = socket.socket(socket.AF_UNIX)
    until(lambda: client.connect_ex(f"{where}/{name}.sock") == 0, 10)
    return client


def check_term(checks, where, name, prepare, more=""):
    case = Case(name, None, more=more)
    with Camera(CLIPS["plain"]) as case.camera, Framed(where, "cameras:" + case.text(where)) as framed:
        client = prepare(where, case)
        start = time.monotonic()
        code = framed.stop()
        took = time.monotonic() - start
        print(f"SIGTERM, {name}: gone after {took:.2f} s")
        checks.check(code == 0 and took < 2 * PATIENCE, f"SIGTERM, {name}: exit {code} after {took:.1f} s")
        offered, emitted, lost = framed.metrics().account(camera=name)
        checks.check(offered == emitted + lost, f"SIGTERM, {name}: {offered} offered, {emitted} emitted, {lost} lost")
        if client:
            client.close()


def connecting(_where, case):
    case.camera.mute = {"DESCRIBE"}
    until(lambda: any(method == "DESCRIBE" for method, _ in case.camera.requests), 10)


def silent(where, case):
    case.watcher = Watcher(f"unix:{where}/{case.name}.sock", DIGESTS)
    begun(case)
    case.camera.mute = {"TEARDOWN"}
    case.camera.next(Connection.go_mute)
    time.sleep(0.5)


def waited_for(where, case):
    client = stuck_client(where, case.name)
    until(lambda: case.camera.number > 2 * GOP, 20)
    return client


def check_terms(checks, where):
    check_term(checks, where, "connecting", connecting)
    check_term(checks, where, "silent", silent)
    check_term(checks, where, "stuck-client", waited_for)
    check_term(checks, where, "waits-for-client", waited_for, more=", overflow: wait")


def main():
    checks = Checks("faults")
    wanted = os.environ.get("FRAMED_FAULTS", "").split()
    with folder() as where:
        make_clips(where)
        for clip in CLIPS.values():
            DIGESTS.update(reference(clip.path))
        listed = [case for case in cases() if not wanted or case.name in wanted]
        for case in listed:
            case.camera = camera_of(case)
        batches = Batches(where, listed)
        try:
            check_all(checks, where, listed, batches)
        finally:
            batches.close()
            for case in listed:
                case.camera.close()
        check_terms(checks, where)
    checks.end()


main()
