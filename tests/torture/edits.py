#!/usr/bin/python3
"""A thousand changes (FRAMED_EDITS) add and remove cameras by HTTP within 60 s beside ten that lose no picture. Then
framed is killed at random moments of such changes (FRAMED_KILLS times): each time it leaves a valid configuration with
every confirmed change, and the one in progress wholly or not at all."""
import glob
import http.client
import json
import os
import random
import re
import signal
import subprocess
import threading
import time

import torment  # makes the next imports possible
from framed_client import BINARY, Checks, Framed, folder, free_port, make_clip, until
from http_client import Editor, port_of
from reloading import Reloaded, Street, check_untouched, config

KEPT, CLIENTS = 10, 4
EDITS = int(os.environ.get("FRAMED_EDITS", "1000"))
KILLS = int(os.environ.get("FRAMED_KILLS", "60"))
SECONDS = 60
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
TOP = "http: 127.0.0.1:{port}\nhttp_write: true"


def keys_of(where, name, **more):
    return {"url": f"{where}/clip.mp4", "loop": True, "pace": "realtime", **more,
            "outputs": {"o": {"size": "64x64", "sink": f"unix:{where}/{name}.sock"}}}


def spread(checks, port, where, seconds):
    """Each client adds and removes its own cameras, at the requested rate. Returns the sorted response times and the duration."""
    taken, each, began = [], EDITS // CLIENTS // 2, time.monotonic()

    def work(client):
        editor = Editor(port)
        for turn in range(each):
            name = f"new{client}-{turn % 5}"
            time.sleep(max(0.0, began + turn * seconds / each - time.monotonic()))
            for act in (lambda: editor.put(name, keys_of(where, name)), lambda: editor.delete(name)):
                start = time.monotonic()
                status, said = act()
                taken.append(time.monotonic() - start)
                checks.check(status == 200, f"{name}: {status} {said}")

    threads = [threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(taken), time.monotonic() - began


def check_thousand(checks, where, street):
    names, port = sorted(street.cameras), free_port()
    with Reloaded(where, config({name: street.plain(name) for name in names}, TOP.format(port=port))) as framed:
        until(lambda: all(os.path.exists(f"{where}/{name}.sock") for name in names), 10)
        watchers = {name: street.watch(name) for name in names}
        until(lambda: all(len(watcher.seen) > 5 for watcher in watchers.values()), 20)
        taken, seconds = spread(checks, port_of(framed), where, SECONDS * 0.8)
        print(f"{len(taken)} changes in {seconds:.1f} s: answered after {1000 * taken[len(taken) // 2]:.0f} ms (half), "
              f"{1000 * taken[int(len(taken) * 0.99)]:.0f} ms (p99), {1000 * taken[-1]:.0f} ms (the last)")
        checks.check(len(taken) >= EDITS - 2 * CLIENTS and seconds < SECONDS, f"{len(taken)} in {seconds:.1f} s")
        for name, watcher in watchers.items():
            check_untouched(checks, name, street.cameras[name], watcher)
        checks.check(os.listdir(f"{where}/framed.d") == [], f"left: {os.listdir(f'{where}/framed.d')}")
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()[-2000:]}")
    for name in names:
        lost = framed.metrics().losses(camera=name)
        checks.check(set(lost) <= {"client", "stopping"}, f"{name}: lost {lost}")


def there(where):
    """Returns name -> fps from the files."""
    found = {}
    for path in glob.glob(f"{where}/framed.d/api-*.yaml"):
        with open(path) as file:
            text = file.read()
        name = re.fullmatch(r"api-(.*)\.yaml", os.path.basename(path))[1]
        found[name] = json.loads(text.split("\n", 1)[1])["cameras"][name]["fps"]
    return found


class Hasty(threading.Thread):
    """Changes one camera until the daemon dies. Then the file matches `sure` or `tried`."""

    def __init__(self, port, where, name, sure, dice):
        super().__init__(daemon=True)
        self.port, self.where, self.name, self.dice = port, where, name, dice
        self.sure = self.tried = sure  # fps of the last confirmed and the last attempted change; None: no camera
        self.refused = None
        self.start()

    def run(self):
        editor = Editor(self.port)
        while True:
            self.tried = None if self.sure and self.dice.random() < 0.3 else self.dice.randrange(1, 1000)
            try:
                if self.tried is None:
                    answer = editor.delete(self.name)
                else:
                    answer = editor.put(self.name, keys_of(self.where, self.name, fps=self.tried))
            except (OSError, ValueError, http.client.HTTPException):
                return
            if answer[0] != 200:
                self.refused = answer
                return
            self.sure = self.tried


def check_kills(checks, where, dice):
    port, names, state = free_port(), [f"c{i}" for i in range(CLIENTS)], {}
    made = drafts = 0
    for turn in range(KILLS):
        # Cameras need not run to have their files changed.
        with Framed(where, 'paused: "*"\ncameras: {keep: ' + json.dumps(keys_of(where, "keep")) + "}\n" + TOP.format(port=port)) as framed:
            editor = Editor(port_of(framed))
            until(lambda: framed.child.poll() is not None or "http on" in framed.errors(), 5)
            hasty = [Hasty(editor.port, where, name, state.get(name), random.Random(dice.random())) for name in names]
            time.sleep(dice.random() * 0.3)
            framed.child.send_signal(signal.SIGKILL)
            framed.child.wait()
            for one in hasty:
                one.join(20)
        done = subprocess.run([BINARY, "check", "-c", framed.config], capture_output=True, text=True)
        checks.check(done.returncode == 0, f"kill {turn}: {done.stderr}")
        state = there(where)
        drafts += sum(name.startswith(".") for name in os.listdir(f"{where}/framed.d"))
        for one in hasty:
            checks.check(not one.refused, f"kill {turn}: {one.name}: {one.refused}")
            is_whole = state.get(one.name) in (one.sure, one.tried)
            checks.check(is_whole, f"kill {turn}: {one.name} is {state.get(one.name)}, answered {one.sure}, tried {one.tried}")
        made += sum(one.sure != one.tried for one in hasty)
    print(f"{KILLS} kills, {made} changes under way, {drafts} drafts for the next start to remove")
    checks.check(made >= KILLS, f"only {made} changes were under way")


def main():
    checks, dice = Checks("edits"), random.Random(SEED)
    print(f"SEED={SEED}")
    with folder() as where:
        make_clip(f"{where}/clip.mp4")
        check_kills(checks, where, dice)
    with folder() as where, Street(where, [f"kept{i}" for i in range(KEPT)]) as street:
        make_clip(f"{where}/clip.mp4")
        check_thousand(checks, where, street)
    checks.end()


main()
