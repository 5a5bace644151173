#!/usr/bin/python3
"""A new version runs with the files of the previous one: its configuration, whose removed keys are ignored with a warning,
its state and its drop-in files; and the previous version can read the files that it leaves."""
import json
import os
import re
import subprocess
import time

from framed_client import BINARY, ROOT, Checks, Framed, folder, make_clip, run, status, until
from http_client import Client
from reloading import Reloaded

# A configuration of version 0.1.0 with removed keys.
TEXT = """tuned: "cpu=abacus, 1 processor; gpu=none; driver=none"
nats: {{user: framed, password: "${{NATS_PASSWORD:-x}}", jetstream: true}}
notify: {{nats: "nats://127.0.0.1/alerts", calm: 5m}}
control: {where}/control.sock
http: unix:{where}/http.sock
http_write: true
cameras:
  gate:
    url: {clip}
    spare: "off"
    loop: true
    pace: realtime
    outputs:
      kept: {{kernel: yuv, sink: "unix:{where}/kept.sock"}}
      lines: {{kernel: stats, sink: "nats://127.0.0.1/gate.lines"}}
      ring: {{sink: "ring:{where}/kept.ring", detections: {{sink: "NATS://127.0.0.1/gate.objects", labels: [person]}}}}
  yard: {{url: {clip}, loop: true, pace: realtime, outputs: {{lines: {{kernel: stats, sink: "nats://127.0.0.1/yard"}}}}}}
"""
# Messages for each row of the table of removed keys, in the file's order.
GONE = [
    ["1:1: tuned: is gone since framed 0.1.0: ignored ("],
    ["2:1: nats: is gone since framed 0.2.0: ignored ("],
    ["3:10: notify.nats: is gone since framed 0.2.0: ignored ("],
    ["10:5: cameras.gate.spare: is gone since framed 0.2.0: ignored ("],
    [
        "15:30: cameras.gate.outputs.lines.sink: this value is gone since framed 0.2.0: the output is off (",
        "17:112: cameras.yard.outputs.lines.sink: this value is gone since framed 0.2.0: the output is off (",
    ],
    ["16:77: cameras.gate.outputs.ring.detections.sink: this value is gone since framed 0.2.0: ignored ("],
]
WORDS = ("tuned", "nats")  # in no list of keys


def warnings(text):
    return [line for line in text.splitlines() if line.startswith("warning") and "gone since" in line]


def are(lines, path, places):
    """True if each place has a line, in order."""
    return len(lines) == len(places) and all(f"{path}:{place}" in line for line, place in zip(lines, places))


def check_check(checks, path):
    """`framed check` names every place, also beside a mistake, and does not fail because of them."""
    code, _, errors = run("check", "-c", path)
    places = sorted(sum(GONE, []), key=lambda place: int(place.split(":")[0]))
    checks.check(code == 0 and are(warnings(errors), f"warning: {path}", places), f"exit {code}, {errors}")
    with open(path) as file:
        text = file.read() + "nothing: 1\n"
    code, _, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 78 and are(warnings(errors), "warning: stdin", places), f"beside a mistake: exit {code}, {errors}")


def check_run(checks, where, text):
    """One warning per row at the start and at each reload; none for a change by HTTP, which does not show the key."""
    firsts = [places[0] for places in GONE]
    with Reloaded(where, text) as framed:
        checks.check(until(lambda: os.path.exists(f"{where}/http.sock"), 20), f"does not start:\n{framed.errors()}")
        checks.check(are(warnings(framed.errors()), framed.config, firsts), f"run says:\n{framed.errors()}")
        checks.check(framed.reload(), f"a reload is refused:\n{framed.errors()}")
        checks.check(are(warnings(framed.errors()), framed.config, 2 * firsts), f"a reload says:\n{framed.errors()}")
        running = until(lambda: [one["state"] for one in status(where).values()] == ["running"] * 2, 20)
        checks.check(running, f"an output that is off stops its camera: {status(where)}")
        code, _, errors = run("pause", "gate", "-c", framed.config)
        _, _, shown = Client(path=f"{where}/http.sock").get("/api/v1/config")
        checks.check(code == 0 and len(warnings(framed.errors())) == 2 * len(firsts), f"a pause says:\n{framed.errors()}")
        checks.check(not [word for word in WORDS if word in json.loads(shown)["running"]], f"what runs is shown as {shown}")


def check_unseen(checks):
    """The keys that framed prints include no removed one."""
    for command in ("defaults", "schema", "keys"):
        code, output, errors = run(command)
        checks.check(code == 0 and not [word for word in WORDS if word in output], f"{command}: exit {code} {errors}")


CONFIG = """control: {where}/control.sock
notify: {{command: [{where}/tell]}}
cameras:
  gate: {{url: {clip}, loop: true, pace: realtime, outputs: {{o: {{kernel: yuv, sink: "unix:{where}/gate.sock"}}}}}}
  yard: {{url: "rtsp://admin:wrong@127.0.0.1:9/", outputs: {{o: {{kernel: yuv, sink: "unix:{where}/yard.sock"}}}}}}
"""
DROP_INS = {
    "api-lane.yaml": """# What framed's API put: it replaces or removes this file.
{{"cameras": {{"lane":
{{"url":"{clip}","loop":true,"pace":"realtime","outputs":{{"o":{{"kernel":"yuv","sink":"unix:{where}/lane.sock"}}}}}}
}}}}
""",
    "paused-gate.yaml": """# Until the camera is resumed.
{{"paused": ["gate"]}}
""",
}
EVENT = (
    '{{"alert":"yard-down-{ms}","host":"","camera":"{camera}","kind":"down","state":"raised","time":"2026-09-21T12:26:40.000Z",'
    '"since":"2026-09-21T12:26:39.000Z","time_ms":{ms},"raised_ms":{ms},"since_ms":{ms},"interruptions":2,'
    '"availability_7d":0.5,"why":"it is \\"gone\\"","text":"camera {camera} is down"}}'
)
# As version 0.1.0 wrote them. Bit 1 of an event's targets is the command, bit 3 was NATS.
STATE = {
    "alerts": "framed alerts 1\ncamera yard\nalert down 1 0 {ms} -1 {ms} 2\nhours {hour} 1800000/3600000x2 0/0x1\n"
    f"event 2 {EVENT.replace('{camera}', 'yard')}\nevent 8 {EVENT.replace('{camera}', 'shed')}\n",
    "decoders": f"framed decoders 1\nkey {'0' * 64}\ndecoder vaapi h264 equal\n",
    "login-pauses": f"framed login pauses 1\nkey {'0123456789abcdef' * 2}\nhost 127.0.0.1 1 {{next}} {{s}}:00ff {{s}}:00fe {{s}}:00fd {{s}}:00fc\n",
}
# The format that version 0.1.0 reads, for files that a later version may rewrite.
GRAMMAR = {
    "alerts": r"framed alerts 1\n(camera [\w-]{1,23}\n(alert \w{1,15} [012] [01] \d{1,15} -?\d{1,14} \d{1,15} \d{1,9}\n)*"
    r"(hours \d{1,9}( \d{1,8}/\d{1,8}x\d{1,4})+\n)?)*(event [0-9a-f]{1,2} {.*}\n)*",
    "login-pauses": r"framed login pauses 1\nkey [0-9a-f]+\n(host \S{1,255} [012] \d+( \d+:[0-9a-f]{4}){1,4}\n)*",
}


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        return file.read()


def check_files(checks, where, clip):
    """State and drop-in files of version 0.1.0 are used, and stay readable for version 0.1.0."""
    state, now = f"{where}/state", int(time.time())
    os.mkdir(state)
    os.mkdir(f"{where}/framed.d")
    values = {"where": where, "clip": clip, "ms": (now - 60) * 1000, "hour": now // 3600 - 2, "next": now + 600, "s": now - 30}
    for name, text in STATE.items():
        write(f"{state}/{name}", text.format(**values))
    for name, text in DROP_INS.items():
        write(f"{where}/framed.d/{name}", text.format(**values))
    write(f"{where}/tell", f"#!/bin/sh\ncat >>{where}/told\n")
    os.chmod(f"{where}/tell", 0o755)
    with Framed(where, CONFIG.format(**values), {"STATE_DIRECTORY": state}) as framed:
        cameras = until(lambda: (now := status(where)).get("lane", {}).get("state") == "running" and now, 30) or {}
        checks.check(set(cameras) == {"gate", "yard", "lane"} and cameras["gate"]["state"] == "paused", f"{cameras}")
        def known_of_yard():
            now = status(where).get("yard", {})
            return now.get("next_try_s") and now["alerts"] and now["availability"] and now

        yard = until(known_of_yard, 30) or status(where)["yard"]
        checks.check((yard["next_try_s"] or 0) > 60, f"a camera that locks accounts is tried at once: {yard}")
        checks.check(yard["alerts"] == ["down"], f"the alert is forgotten: {yard}")
        checks.check((yard["availability"] or {}).get("known_s", 0) >= 3600, f"the availability is forgotten: {yard}")
        told = until(lambda: os.path.exists(f"{where}/told") and "\n" in (now := read(f"{where}/told")) and now, 30) or ""
        checks.check([json.loads(line)["camera"] for line in told.splitlines()] == ["yard"], f"told: {told}")
        checks.check(framed.stop(20) == 0, f"does not end well:\n{framed.errors()}")
    for name, grammar in GRAMMAR.items():
        text = read(f"{state}/{name}")
        checks.check(re.fullmatch(grammar, text), f"version 0.1.0 cannot read {name}:\n{text}")
    kept = read(f"{state}/alerts")
    checks.check(f"alert down 1 0 {values['ms']} -1 " in kept and "event" not in kept, f"left behind:\n{kept}")
    checks.check(read(f"{state}/decoders") == STATE["decoders"], "decoders was changed")
    for name, text in DROP_INS.items():
        checks.check(read(f"{where}/framed.d/{name}") == text.format(**values), f"{name} was changed")


def check_library(checks):
    """The library has all functions of version 0.1.0."""
    library = os.path.join(os.path.dirname(BINARY), "libframed.so.1")
    dump = subprocess.run(["objdump", "-pT", library], check=True, capture_output=True, text=True).stdout
    checks.check(re.search(r"SONAME +libframed\.so\.1\n", dump), "the library has another name")
    with open(f"{ROOT}/scripts/debian/libframed1.symbols") as file:
        names = re.findall(r"^ (framed_\w+)@FRAMED_1 0\.1\.0$", file.read(), re.M)
    lost = [name for name in names if not re.search(rf"FRAMED_1 +{name}$", dump, re.M)]
    checks.check(len(names) == 23 and not lost, f"of {len(names)} functions the library has no {lost}")


def check_purge(checks, where):
    """A purge deletes the daemon's own state and nothing else."""
    root = f"{where}/root"
    main, yard, empty = (f"{root}/var/lib/{name}" for name in ("framed", "framed-yard", "framed-empty"))
    for path in (main, yard, empty, f"{root}/var/lib/framedothers", f"{root}/etc/framed/framed.d"):
        os.makedirs(path)
    for name, text in STATE.items():
        write(f"{main}/{name}", text)
        write(f"{empty}/{name}", text)
        write(f"{empty}/{name}.part", "")
    write(f"{root}/var/lib/framedothers/alerts", STATE["alerts"])
    for name in ("gate.mp4", "gate.mp4.part", "alerts.jsonl"):
        write(f"{main}/{name}", "framed ")
    write(f"{yard}/alerts", '{"camera":"yard"}\n')  # a recording of lines with this name
    os.symlink(f"{main}/gate.mp4", f"{yard}/decoders")
    script = ["sh", f"{ROOT}/scripts/debian/framed.postrm"]
    for word in ("remove", "upgrade"):
        subprocess.run([*script, word], check=True, env={**os.environ, "DPKG_ROOT": root})
    checks.check(set(STATE) < set(os.listdir(main)), f"a removal deletes state: {os.listdir(main)}")
    subprocess.run([*script, "purge"], check=True, env={**os.environ, "DPKG_ROOT": root})
    checks.check(sorted(os.listdir(main)) == ["alerts.jsonl", "gate.mp4", "gate.mp4.part"], f"left: {os.listdir(main)}")
    checks.check(sorted(os.listdir(yard)) == ["alerts", "decoders"], f"left: {os.listdir(yard)}")
    checks.check(not os.path.exists(empty), "a folder without recordings stays")
    checks.check(os.path.exists(f"{root}/var/lib/framedothers/alerts"), "the folder of another program was touched")
    checks.check(not os.path.exists(f"{root}/etc/framed"), "the configuration's folder stays")


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
    with folder() as where:
        check_files(checks, where, make_clip(os.path.join(where, "clip.mp4")))
        check_purge(checks, where)
    check_library(checks)
    checks.end()


main()
