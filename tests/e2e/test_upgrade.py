#!/usr/bin/python3
"""A new version runs with the configuration of the one before: keys that are gone are warned of, and ignored."""
import json
import os

from framed_client import Checks, folder, make_clip, run, until
from http_client import Client
from reloading import Reloaded

# What a configuration of version 0.1.0 may have that is gone: (the key, its place, the lines).
TEXT = """tuned: "cpu=abacus, 1 processor; gpu=none; driver=none"
control: {where}/control.sock
http: unix:{where}/http.sock
http_write: true
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs:
      kept: {{kernel: yuv, sink: "unix:{where}/kept.sock"}}
"""
GONE = {"tuned": ["1:1: tuned: is gone since framed 0.1.0 and is ignored ("]}


def warnings(text, key):
    return [line for line in text.splitlines() if line.startswith("warning") and f"{key}: " in line and "gone" in line]


def check_check(checks, path):
    """`framed check` names every place, also beside a mistake, and does not fail."""
    code, _, errors = run("check", "-c", path)
    for key, places in GONE.items():
        expected = [f"warning: {path}:{place}" for place in places]
        said = warnings(errors, key)
        checks.check(
            code == 0 and len(said) == len(expected) and all(map(str.startswith, said, expected)),
            f"check of {key}: exit {code}, {errors}",
        )
    with open(path) as file:
        text = file.read() + "nothing: 1\n"
    code, _, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 78 and all(warnings(errors, key) for key in GONE), f"beside a mistake: exit {code}, {errors}")


def check_run(checks, where, text):
    """One warning for each key at the start and at each reload; none for a change by HTTP, which does not show the key."""
    with Reloaded(where, text) as framed:
        checks.check(until(lambda: os.path.exists(f"{where}/http.sock"), 20), f"does not start:\n{framed.errors()}")
        for key, places in GONE.items():
            said = warnings(framed.errors(), key)
            checks.check(len(said) == 1 and places[0] in said[0], f"run says of {key}: {said}")
        checks.check(framed.reload(), f"a reload is refused:\n{framed.errors()}")
        for key in GONE:
            checks.check(len(warnings(framed.errors(), key)) == 2, f"a reload says of {key}:\n{framed.errors()}")
        code, _, errors = run("pause", "gate", "-c", framed.config)
        checks.check(code == 0, f"pause: {errors}")
        _, _, shown = Client(path=f"{where}/http.sock").get("/api/v1/config")
        for key in GONE:
            checks.check(len(warnings(framed.errors(), key)) == 2, f"a pause says of {key}:\n{framed.errors()}")
            checks.check(key not in json.loads(shown)["running"], f"what runs has {key}: {shown}")


def check_unseen(checks):
    """What framed prints of its keys has none that is gone."""
    for command in ("defaults", "schema", "keys"):
        code, output, errors = run(command)
        for key in GONE:
            checks.check(code == 0 and key not in output, f"{command} shows {key}: exit {code} {errors}")


def main():
    checks = Checks("upgrade")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"))
        text = TEXT.format(where=where, clip=clip)
        path = f"{where}/framed.yaml"
        with open(path, "w") as file:
            file.write(text)
        check_check(checks, path)
        check_unseen(checks)
        check_run(checks, where, text)
    checks.end()


main()
