#!/usr/bin/python3
"""Cameras that are put, removed, paused and resumed by HTTP do not disturb others; changes outlast restarts, and files written by people are not
touched."""
import glob
import http.client
import json
import os
import re
import signal
import subprocess
import time

from api_schemas import Api
from framed_client import BINARY, PATIENCE, Checks, Framed, Reader, folder, free_port, make_clip, until
from http_client import Editor, port_of
from reloading import Reloaded, Street, check_untouched, config

TOP = "http: 127.0.0.1:{port}\nhttp_write: true  # a comment"


def keys_of(url, where, name, **more):
    """Returns a camera whose one output is 64x64 on NAME.sock."""
    return {"url": url, "loop": True, "pace": "realtime", **more,
            "outputs": {"o": {"size": "64x64", "sink": f"unix:{where}/{name}.sock"}}}


def shown(address):
    """Returns the number of frames that arrive, at most three."""
    reader = Reader(address, 3)
    reader.join(10)
    return len(reader.frames)


def check_beside_others(checks, where, street):
    """100 changes beside two cameras that lose no picture."""
    port = free_port()
    with Reloaded(where, config({name: street.plain(name) for name in "ab"}, TOP.format(port=port))) as framed:
        editor = Editor(port_of(framed))
        until(lambda: os.path.exists(f"{where}/b.sock"), 5)
        watchers = {name: street.watch(name) for name in "ab"}
        until(lambda: all(len(watcher.seen) > 5 for watcher in watchers.values()), 5)
        for turn in range(50):
            name = f"new{turn % 7}"
            status, said = editor.put(name, keys_of(f"{where}/clip.mp4", where, name))
            checks.check((status, said.get("done")) == (200, "put"), f"put {name}: {status} {said}")
            if turn in (0, 25):
                checks.check(shown(f"unix:{where}/{name}.sock") == 3, f"{name} shows no picture")
            status, said = editor.delete(name)
            checks.check((status, said.get("done")) == (200, "removed"), f"delete {name}: {status} {said}")
        for name, watcher in watchers.items():
            check_untouched(checks, name, street.cameras[name], watcher)
        checks.check(editor.states().keys() == {"a", "b"}, f"left: {editor.states()}")
        checks.check(os.listdir(f"{where}/framed.d") == [], f"files left: {os.listdir(f'{where}/framed.d')}")
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()}")
    for name in watchers:
        lost = framed.metrics().losses(camera=name)
        checks.check(set(lost) <= {"client", "stopping"}, f"{name}: lost {lost}")


def check_events(checks, where, clip):
    """Each change is sent to clients that follow events, also to later ones; refused changes and those without effect are not."""
    with Framed(where, config({"a": json.dumps(keys_of(clip, where, "a"))}, "http: 0\nhttp_write: true")) as framed:
        port = port_of(framed)
        editor = Editor(port)
        for ask in (lambda: editor.put("new", keys_of(clip, where, "new")), lambda: editor.put("new", {"url": 7}), lambda: editor.pause("new"),
                    lambda: editor.pause("new"), lambda: editor.resume("new"), lambda: editor.delete("new"), lambda: editor.delete("new")):
            ask()
        following = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * PATIENCE)
        following.request("GET", "/api/v1/events?types=change")
        told, answer = [], following.getresponse()
        while len(told) < 5 and (line := answer.readline().decode()):
            if line.startswith("data: "):
                told.append(json.loads(line[6:]))
            if len(told) == 4:
                editor.pause("a")
        api = Api()
        checks.check(all(not api.wrong("ChangeEvent", one) and abs(one["t"] - time.time()) < 60 for one in told), f"{told}")
        told = [(one["camera"], one["change"]) for one in told]
        checks.check(told == [("new", "put"), ("new", "paused"), ("new", "resumed"), ("new", "removed"), ("a", "paused")], f"{told}")
        following.close()


def check_mistakes(checks, where, clip):
    """Each mistake is reported with its place in the body, and changes nothing."""
    port = free_port()
    main = config({"gate": json.dumps(keys_of(clip, where, "gate"))}, TOP.format(port=port))
    with Framed(where, main) as framed:
        editor = Editor(port_of(framed))
        good = keys_of(clip, where, "x")
        status, said = editor.ask("PUT", "x", body='{"url": "x",\n "outputs": {"o": {"sink": "tcp:0",\n  "size": "big"}}}')
        found = [(m.get("line"), m.get("column"), m.get("key"), "file" in m) for m in said.get("mistakes", [])]
        checks.check(status == 400 and found == [(3, 11, "cameras.x.outputs.o.size", False)], f"{status} {said}")
        checks.check(said["error"].startswith("cameras.x.outputs.o.size: 'big' is not"), f"{said}")
        found = [(m.get("line"), m.get("column"), m.get("key")) for m in editor.ask("PUT", "x", body="\n{}")[1]["mistakes"]]
        checks.check(found and all(place[:2] == (1, 1) for place in found), f"mistakes of the whole camera: {found}")
        for name, body, status, begin in (
            ("x", '{"url": 1, "url": 2}', 400, "line 1, column 16: "),
            ("x", '{"url"', 400, "line 1, column "),
            ("x", '{"url": "a" "Hechtsprung5"}', 400, "line 1, column "),
            ("x", '[{}]', 400, "a camera is an object"),
            ("x", '{}}}, "paused": ["*"]}', 400, "line 1, column "),
            ("x.y", json.dumps(good), 400, "a camera's name has only letters"),
            ("x" * 24, json.dumps(good), 400, "a camera's name has 1 to 23"),
            ("x", json.dumps({**good, "url": "a\U0001f600b://"}), 400, "cameras.x.url: is not an input"),
            ("gate", json.dumps(good), 409, f"camera gate stands in {where}/framed.yaml:"),
        ):
            answer = editor.ask("PUT", name, body=body)
            right = answer[0] == status and answer[1]["error"].startswith(begin) and "Hechtsprung5" not in str(answer)
            checks.check(right, f"{name} {body}: {answer}, not {status} {begin}")
        begun = time.monotonic()
        answer = editor.ask("PUT", "x", body=json.dumps({"url": "a" * 1000000}))
        took = time.monotonic() - begun
        checks.check(answer[0] == 400 and took < 4, f"the longest body stops the loop: {took:.1f} s for {answer[0]}")
        place = re.search(r"framed\.yaml:(\d+):3,", editor.delete("gate")[1]["error"])
        line = main.split("\n").index(next(row for row in main.split("\n") if row.startswith("  gate:"))) + 1
        checks.check(place and int(place[1]) == line, f"{editor.delete('gate')}, not line {line}")
        for answer in (editor.delete("x"), editor.pause("x"), editor.resume("x")):
            checks.check(answer == (404, {"error": "there is no camera x"}), f"{answer}")
        checks.check(not os.path.exists(f"{where}/framed.d"), "a folder for nothing")
        # Another file contains a mistake by now: the answer names it, and a put changes nothing.
        os.mkdir(f"{where}/framed.d")
        with open(f"{where}/framed.d/mine.yaml", "w") as file:
            file.write("cameras: {y: {url: x}}\n")
        status, said = editor.put("x", good)
        files = [one.get("file") for one in said.get("mistakes", [])]
        checks.check(status == 409 and files == [f"{where}/framed.d/mine.yaml"], f"{status} {said}")
        checks.check(os.listdir(f"{where}/framed.d") == ["mine.yaml"], os.listdir(f"{where}/framed.d"))
        os.remove(f"{where}/framed.d/mine.yaml")
        checks.check(editor.put("x", good)[0] == 200, "nor does it keep anything from later changes")
        with open(framed.config) as file:
            checks.check(file.read() == main, "the configuration itself was written")
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()}")


def check_restart(checks, where, clip):
    """Put cameras and pauses outlast a restart; a box may start without any camera."""
    port = free_port()
    with Framed(where, TOP.format(port=port)) as framed:
        editor = Editor(port_of(framed))
        checks.check(editor.states() == {}, "it begins without a camera")
        for name in ("gate", "yard"):
            answer = editor.put(name, keys_of(clip, where, name))
            checks.check(answer[0] == 200, f"{answer}")
        answer = editor.pause("yard")
        checks.check(answer[0] == 200 and editor.states()["yard"] == "paused", f"{answer} {editor.states()}")
        checks.check(editor.pause("yard")[1]["done"] == "camera yard is already paused", "paused twice")
        checks.check(shown(f"unix:{where}/gate.sock") == 3, "the other one shows pictures")
        checks.check(all(os.stat(path).st_mode & 0o77 == 0 for path in glob.glob(f"{where}/framed.d/*")), "for all to read")
        framed.child.send_signal(signal.SIGKILL)
        framed.child.wait()
    with open(f"{where}/framed.d/.api-half.yaml", "w") as file:
        file.write("{")
    # The other camera is paused by hand.
    with Framed(where, "paused: gate\n" + TOP.format(port=port)) as framed:
        editor = Editor(port_of(framed))
        checks.check(editor.states() == {"gate": "paused", "yard": "paused"}, f"{editor.states()}")
        checks.check(not os.path.exists(f"{where}/framed.d/.api-half.yaml"), "a draft that nobody will finish")
        answer = editor.resume("gate")
        by_hand = f"camera gate is paused in {where}/framed.yaml:1:9, where it is to be changed by hand"
        checks.check(answer == (409, {"error": by_hand}), f"{answer}")
        checks.check(editor.resume("yard")[0] == 200 and shown(f"unix:{where}/yard.sock") == 3, "resumed, it shows pictures")
        for name in ("gate", "yard"):
            checks.check(editor.delete(name)[0] in (200, 409), "removed")
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()}")


def check_commands(checks, where, clip):
    """framed pause and framed resume do the same, without HTTP."""
    with Framed(where, config({"gate": json.dumps(keys_of(clip, where, "gate"))})) as framed:
        until(lambda: os.path.exists(f"{where}/control.sock"), 5)

        def order(*arguments):
            done = subprocess.run([BINARY, *arguments, "-c", framed.config], capture_output=True, text=True,
                                  env={**os.environ, "RUNTIME_DIRECTORY": where})
            return done.returncode, done.stdout + done.stderr

        for arguments, expected in (
            (("pause", "gate"), (0, "camera gate: paused\n")),
            (("pause", "gate"), (0, "camera gate is already paused\n")),
            (("pause", "door"), (1, "there is no camera door\nframed pause: nothing has changed\n")),
            (("resume", "gate"), (0, "camera gate: resumed\n")),
            (("resume",), (2, "framed resume: CAMERA: is missing (framed resume --help lists the options)\n")),
        ):
            said = order(*arguments)
            checks.check(said == expected, f"{arguments}: {said}, not {expected}")
            is_paused = os.path.exists(f"{where}/framed.d/paused-gate.yaml")
            checks.check(is_paused == (arguments == ("pause", "gate") or arguments[-1] == "door"), f"{arguments}: its file")
        checks.check(shown(f"unix:{where}/gate.sock") == 3, "resumed, it shows no pictures")
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()}")


def main():
    checks = Checks("edits")
    with folder() as where:
        clip = f"{where}/clip.mp4"
        make_clip(clip)
        check_mistakes(checks, where, clip)
    with folder() as where:
        clip = f"{where}/clip.mp4"
        make_clip(clip)
        check_events(checks, where, clip)
    with folder() as where:
        clip = f"{where}/clip.mp4"
        make_clip(clip)
        check_restart(checks, where, clip)
    with folder() as where:
        clip = f"{where}/clip.mp4"
        make_clip(clip)
        check_commands(checks, where, clip)
    with folder() as where, Street(where, "ab") as street:
        make_clip(f"{where}/clip.mp4")
        check_beside_others(checks, where, street)
    checks.end()


main()
