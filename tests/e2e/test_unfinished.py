#!/usr/bin/python3
"""A killed framed's recording whose output now has another pattern is listed by `framed status` until it is gone;
files that are being written or will be finished are not listed; of many, the oldest are listed."""
import fcntl
import json
import os
import re
import signal
import time

from framed_client import Checks, Framed, folder, make_clip, run, until

LISTED = 20
HOUR = 3600
CONFIG = """
control: {where}/own.sock
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      archive: {{kernel: yuv, sink: "file:{where}/to/{name}-%s.y4m"}}
"""


def write(path, size, age):
    with open(path, "wb") as file:
        file.write(b"x" * size)
    os.utime(path, (time.time() - age,) * 2)


def status(where, *options):
    return run("status", "-c", f"{where}/framed.yaml", *options)


def unfinished(where):
    code, output, _ = status(where, "--json")
    return json.loads(output)["unfinished"] if code == 0 else None


def names(told):
    return [os.path.basename(file["path"]) for file in told["files"]]


def reload(checks, where, name):
    with open(f"{where}/framed.yaml", "w") as file:
        file.write(CONFIG.format(where=where, name=name))
    code, _, errors = run("reload", "-c", f"{where}/framed.yaml")
    checks.check(code == 0, f"reload: exit {code}: {errors}")


def kill_recording(checks, where):
    """Returns the file left by a killed framed, made an hour old."""
    with Framed(where, CONFIG.format(where=where, name="old")) as framed:
        parts = lambda: [e for e in os.scandir(f"{where}/to") if e.name.endswith(".part") and e.stat().st_size > 0]
        checks.check(until(parts, 20), "nothing was recorded")
        framed.child.send_signal(signal.SIGKILL)
        framed.child.wait()
        (part,) = parts()
    os.utime(part.path, (time.time() - HOUR,) * 2)
    return part.path


def check_killed(checks, where, part):
    told = until(lambda: (told := unfinished(where)) and told["count"] and told, 20)
    if not checks.check(told, f"not listed: {unfinished(where)}"):
        return
    size = os.path.getsize(part)
    checks.check(told["count"] == 1 and told["bytes"] == size, f"{told}")
    (file,) = told["files"]
    checks.check(file["path"] == part and file["bytes"] == size and HOUR <= file["age_s"] < HOUR + 60, f"{file}")
    _, text, _ = status(where)
    checks.check(re.search(rf"^recordings that no output will finish: 1, \d+\.\d MiB\n  {re.escape(part)} "
                           rf"\(\d+\.\d MiB, written 1h 0\dm ago\)$", text, re.M), f"no such lines in\n{text}")


def check_others(checks, where):
    """Lists only files that no process writes and no output will finish."""
    to = f"{where}/to"
    write(f"{to}/young.y4m.part", 10, -HOUR)  # stays young for the whole test
    write(f"{to}/new-1234567.y4m.part", 10, HOUR)  # matches the current pattern: the next start finishes it
    write(f"{to}/notes.txt", 10, HOUR)
    write(f"{to}/held.y4m.part", 10, HOUR)
    os.mkdir(f"{to}/folder.part")
    with open(f"{to}/held.y4m.part") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        reload(checks, where, "new")
        write(f"{to}/mark.y4m.part", 7, 2 * HOUR)
        reload(checks, where, "new")
        told = until(lambda: (told := unfinished(where)) and told["count"] == 2 and told, 10)
        checks.check(told and names(told)[0] == "mark.y4m.part", f"others: {unfinished(where)}")
    for name in ("held", "mark"):
        os.unlink(f"{to}/{name}.y4m.part")


def check_many(checks, where):
    for i in range(30):
        write(f"{where}/to/many{i:02}.part", 1 << 20, HOUR + 60 * (30 - i if i % 2 else 30 + i))
    reload(checks, where, "new")
    told = until(lambda: (told := unfinished(where)) and told["count"] == 31 and told, 10)
    if not checks.check(told, f"many: {unfinished(where)}"):
        return
    ages = [file["age_s"] for file in told["files"]]
    checks.check(len(ages) == LISTED and ages == sorted(ages, reverse=True), f"many: {ages}")
    checks.check(names(told)[0] == "many28.part" and told["bytes"] > 30 << 20, f"many: {told}")
    checks.check("\n  and 11 more\n" in status(where)[1], "many: not said how many more")


def check_gone(checks, where, part):
    for i in range(30):
        os.unlink(f"{where}/to/many{i:02}.part")
    os.unlink(part)
    reload(checks, where, "newer")
    told = until(lambda: (told := unfinished(where)) and told["count"] == 1 and told, 10)
    checks.check(told and names(told) == ["new-1234567.y4m.part"], f"gone: {unfinished(where)}")


def main():
    checks = Checks("unfinished")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"), frames=25)
        os.mkdir(f"{where}/to")
        part = kill_recording(checks, where)
        with Framed(where, CONFIG.format(where=where, name="new")) as framed:
            check_killed(checks, where, part)
            check_others(checks, where)
            check_many(checks, where)
            check_gone(checks, where, part)
            checks.check(framed.stop() == 0, f"exit {framed.child.returncode}")
    checks.end()


main()
