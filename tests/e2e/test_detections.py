#!/usr/bin/python3
"""Detections that clients of rings send back: lines of JSON on sockets and in files, whose sums match the daemon's; clients that send nonsense or
floods, and readers that do not read, without harm to others; and reloads."""
import glob
import json
import math
import os
import re
import socket
import time

import consume
from detector import RETURN, Client, Detector, Lines, result, rows
from framed_client import PATIENCE, Checks, Framed, folder, make_clip, run, status, until

CAMERAS = 8
OBJECTS = 50

CAMERA = """
  cam{n}:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      detector: {{size: 320x320, fps: 15, sink: "ring:{where}/{n}.ring", detections: {{sink: "{sink}", labels: [person, "a \\"b\\""]}}}}
"""
CLIENT = """
      {name}: {{size: 320x320, slots: 4, sink: "ring:{where}/{name}.ring"{more}}}"""


def check_line(checks, line, camera):
    wanted = {"camera", "output", "seq", "epoch", "time", "pts", "latency_ms", "width", "height", "objects"}
    checks.check(set(line) - {"late"} == wanted, f"keys {sorted(line)}")
    checks.check((line["camera"], line["output"]) == (camera, "detector"), str(line)[:80])
    checks.check((line["width"], line["height"]) == (320, 240), str(line)[:200])
    checks.check(abs(line["time"] - time.time()) < 3600 and 0 <= line["latency_ms"] < 1e5, str(line)[:200])
    checks.check(len(line["objects"]) == OBJECTS, f"{len(line['objects'])} objects")
    first = {"box": [20, 20, 30, 30], "score": 0.5, "class": 0, "label": "person"}
    second = {"box": [21, 20, 31, 30], "score": 0.5, "class": 1, "label": 'a "b"', "track": 1}
    third = {"box": [22, 20, 32, 30], "score": 0.5, "class": 2, "track": 2}
    checks.check(line["objects"][:3] == [first, second, third], str(line["objects"][:3]))


def check_all(checks, where):
    """8 cameras x 15 frames/s x 50 objects: one line per result in order, on sockets of both kinds and in files."""
    sinks = [f"unix:{where}/{n}.sock" for n in range(CAMERAS)]
    sinks[1], sinks[2] = "tcp:0", f"file:{where}/lines-%Y%m%d-%H%M%S.jsonl"
    cameras = "".join(CAMERA.format(n=n, where=where, sink=sinks[n]) for n in range(CAMERAS))
    with Framed(where, f"backend: cpu\ncameras:{cameras}") as framed:
        until(lambda: "detections: listens on tcp" in framed.errors(), 10 * PATIENCE)
        sinks[1] = "tcp:127.0.0.1:" + re.search(r"detections: listens on tcp \S+ port (\d+)", framed.errors())[1]
        readers = {n: Lines(sinks[n]) for n in range(CAMERAS) if n != 2}
        until(lambda: all(of["outputs"][0]["results"]["lines"]["clients"] == 1 for of in status(where).values()), 10)
        detectors = [Detector(f"{where}/{n}.ring", rows(OBJECTS)) for n in range(CAMERAS)]
        until(lambda: min(len(detector.sequences) for detector in detectors) >= 60, 20 * PATIENCE)
        shown = {name: camera["outputs"][0]["results"] for name, camera in status(where).items()}
        for detector in detectors:
            detector.stop()
        time.sleep(0.5 * PATIENCE)
        checks.check(framed.stop() == 0, framed.errors())
        metrics = framed.metrics()
    for n, detector in enumerate(detectors):
        of = {"camera": f"cam{n}", "output": "detector"}
        if n == 2:
            files = sorted(glob.glob(f"{where}/lines-*.jsonl"))
            checks.check(len(files) == 1 and not glob.glob(f"{where}/*.part"), f"{os.listdir(where)}")
            text = b"".join(open(file, "rb").read() for file in files)
            lines = [json.loads(line) for line in text.splitlines()]
        else:
            readers[n].join(10)
            lines = readers[n].objects()
        for line in lines:
            check_line(checks, line, f"cam{n}")
        came = [(line["epoch"], line["seq"]) for line in lines]
        checks.check(came == detector.sequences, f"cam{n}: {len(came)} lines of {len(detector.sequences)} results")
        results, objects = metrics.sum("framed_results_total", **of), metrics.sum("framed_result_objects_total", **of)
        checks.check((results, objects) == (len(came), len(came) * OBJECTS), f"cam{n}: {results}, {objects} objects")
        lent, answered = (metrics.sum("framed_result_frames_total", stage=stage, **of) for stage in ("lent", "answered"))
        checks.check(answered == results <= lent <= results + 6, f"cam{n}: {answered} answers of {lent} frames")
        _, emitted, _ = metrics.account(**of)
        checks.check(answered <= emitted <= lent, f"cam{n}: {emitted} emitted, {answered} answered of {lent}")
        for name in ("framed_results_wrong_total", "framed_result_objects_dropped_total", "framed_result_lines_lost_total"):
            checks.check(metrics.sum(name, **of) == 0, f"cam{n}: {name} {metrics.sum(name, **of)}")
        checks.check(metrics.sum("framed_result_seconds_count", **of) == results, "the histogram has another count")
        checks.check(shown[f"cam{n}"]["results"] >= 60 and shown[f"cam{n}"]["cameras"][0]["objects_last"] == OBJECTS,
                     f"status: {shown[f'cam{n}']}")
        checks.check(shown[f"cam{n}"]["latency"]["p50_s"] is not None, f"status: {shown[f'cam{n}']['latency']}")


FILES = """
backend: cpu
cameras:
  cam:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      o: {{size: 64x64, sink: "ring:{where}/f.ring", detections: {{sink: "file:{where}/%s.jsonl", segment: {segment}, keep: {keep}}}}}
"""


def check_files(checks, where):
    """One file per second; a file that a killed daemon leaves is cut after its last whole line; `keep` deletes the oldest."""
    with Framed(where, FILES.format(where=where, segment="1s", keep=0)) as framed:
        detector = Detector(f"{where}/f.ring", rows(3))
        until(lambda: len(glob.glob(f"{where}/*.jsonl")) >= 3, 20 * PATIENCE)
        framed.child.kill()
        framed.child.wait()
        detector.stop()
    (part,) = glob.glob(f"{where}/*.part")
    with open(part, "ab") as file:
        file.write(b'{"camera":"ca')
    framed = Framed(where, FILES.format(where=where, segment="1s", keep=0))
    with framed:
        until(lambda: "files left of" in framed.errors(), 10 * PATIENCE)
        checks.check("1 finished" in framed.errors() and not os.path.exists(part), framed.errors())
        checks.check(framed.stop() in (0, 1), framed.errors())
    files = sorted(glob.glob(f"{where}/*.jsonl"))
    lines = [[json.loads(line) for line in open(file)] for file in files]
    came = [line["seq"] for of in lines for line in of]
    checks.check(came == list(range(came[0], came[0] + len(came))) and len(came) > 50, f"lines of frames {came}")
    for file, of in zip(files, lines):
        second = {int(line["time"]) for line in of}
        checks.check(second == {int(os.path.basename(file).split(".")[0])}, f"{file} has lines of {second}")
    with Framed(where, FILES.format(where=where, segment="1s", keep="2s")) as framed:
        detector = Detector(f"{where}/f.ring", rows(3))
        until(lambda: not os.path.exists(files[0]), 20 * PATIENCE)
        checks.check(not os.path.exists(files[0]), f"{files[0]} is still there")
        detector.stop()
        checks.check(framed.stop() == 0, framed.errors())


def send_nonsense(client):
    """Sends each possible mistake of a client, on a frame of its own; returns reason -> count."""
    nan, huge = math.nan, 2**40
    bad = {
        "version": lambda slot, ticket: result(slot, ticket, [], version=2),
        "flags": lambda slot, ticket: result(slot, ticket, [], flags=9),
        "length": lambda slot, ticket: result(slot, ticket, rows(2), count=3),
        "ticket": lambda slot, ticket: result(slot, huge, []),
        "slot": lambda slot, ticket: result((slot + 1) % 4, ticket, [], flags=0),
        "element": lambda slot, ticket: result(slot, ticket, [], element=7),
    }
    for message in bad.values():
        _, slot, ticket = client.next()
        client.peer.send(message(slot, ticket))
        client.give_back(slot, ticket)
    _, slot, ticket = client.next()
    _, other, newer = client.next()
    client.peer.send(result(slot, ticket, [], flags=0) + b"")
    client.peer.send(result(slot, ticket, [], flags=0))  # twice
    client.give_back(other, newer)
    client.give_back(slot, ticket)
    _, slot, ticket = client.next()
    client.peer.send(result(slot, ticket, [(nan, 60, 30, 70, 0.5, 0, 0, 0), (1, 60, math.inf, 70, 0.5, 0, 0, 0),
                                           (30, 60, 20, 70, 0.5, 0, 0, 0), (20, 1, 30, 39, 0.5, 0, 0, 0),
                                           (20, 60, 30, 70, 0.5, 0, 1, 0), (20, 60, 30, 70, nan, 0, 0, 0)]))
    return {**dict.fromkeys(bad, 1), "twice": 1}


def flood(path, seconds):
    """Sends results of one frame as fast as the daemon reads them; returns their number."""
    client, n = Client(path), 0
    _, slot, ticket = client.next()
    message = result(slot, ticket, rows(299), flags=0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.peer.send(message)
        n += 1
    client.peer.close()
    return n


def check_bad(checks, where):
    """Nonsense and floods on a ring, and a reader of lines that does not read: the good client and the good reader lose nothing, and each mistake is
    counted under its reason."""
    camera = CAMERA.format(n=0, where=where, sink=f"unix:{where}/bad.sock")
    with Framed(where, f"backend: cpu\ncameras:{camera}") as framed:
        lines, dead = Lines(f"unix:{where}/bad.sock"), consume.connect(f"unix:{where}/bad.sock", 10)
        dead.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        until(lambda: status(where)["cam0"]["outputs"][0]["results"]["lines"]["clients"] == 2, 10)
        good = Detector(f"{where}/0.ring", rows(300))
        client = Client(f"{where}/0.ring")
        expected = send_nonsense(client)
        client.peer.close()
        floods = flood(f"{where}/0.ring", 2)
        until(lambda: len(good.sequences) >= 120, 30 * PATIENCE)
        good.stop()
        time.sleep(0.5 * PATIENCE)
        shown = status(where)["cam0"]["outputs"][0]["results"]
        late = Lines(dead)
        time.sleep(0.5 * PATIENCE)
        checks.check(framed.stop() == 0, framed.errors())
        metrics = framed.metrics()
        checks.check("a client was dropped" not in framed.errors(), framed.errors())
    for reader in lines, late:
        reader.join(10 * PATIENCE)
    came = lines.objects()
    own = [(line["epoch"], line["seq"]) for line in came if len(line["objects"]) == 300]
    checks.check(own == good.sequences, f"{len(own)} lines of {len(good.sequences)} good results")
    wrong = {has["reason"]: int(n) for has, n in metrics.all("framed_results_wrong_total") if n}
    flooded = wrong.pop("flood", 0)
    checks.check({reason: n for reason, n in wrong.items() if reason != "twice"} ==
                 {reason: n for reason, n in expected.items() if reason != "twice"}, f"wrong: {wrong}")
    # The flood's first result is good; the next ones are for the same frame while the client holds other frames.
    checks.check(flooded + wrong["twice"] + 1 >= floods and flooded > 0, f"{flooded} and {wrong} of {floods} in a flood")
    dropped = {has["reason"]: int(n) for has, n in metrics.all("framed_result_objects_dropped_total") if n}
    checks.check(dropped == {"number": 3, "flags": 1, "area": 1, "outside": 1}, f"dropped: {dropped}")
    results = metrics.sum("framed_results_total")
    checks.check(results == len(came), f"{results} results, {len(came)} lines")
    lost = metrics.sum("framed_result_lines_lost_total")
    checks.check(0 < lost < results and shown["lines"]["lost"] > 0, f"the late reader lost {lost} of {results}")
    read = [json.dumps(line) for line in late.objects()]
    checks.check(len(read) + lost == results, f"the late reader got {len(read)} and lost {lost} of {results}")
    checks.check(set(read) <= {json.dumps(line) for line in came}, "the late reader got another line")
    checks.check(good.lost == 0, f"the good client lost {good.lost} frames")


def check_reload(checks, where):
    """Lines are added, changed and removed while a client goes on: it gets every frame on one connection."""
    camera = CAMERA.format(n=0, where=where, sink=f"unix:{where}/new.sock")
    without = re.sub(r", detections: .*}}?}$", "}", camera, flags=re.M)
    texts = [f"backend: cpu\ncameras:{text}" for text in (without, camera, camera.replace("person", "cat"), without)]
    with Framed(where, texts[0]) as framed:
        good = Detector(f"{where}/0.ring", rows(2))
        readers = []
        for step, text in enumerate(texts[1:], 1):
            with open(framed.config, "w") as file:
                file.write(text)
            before = framed.errors().count("reloaded")
            framed.child.send_signal(1)
            until(lambda: framed.errors().count("reloaded") > before, 10 * PATIENCE)
            if step < 3:
                readers.append(Lines(f"unix:{where}/new.sock"))
            at = len(good.sequences)
            until(lambda: len(good.sequences) > at + 15, 10 * PATIENCE)
        for reader in readers:
            reader.join(10 * PATIENCE)
            checks.check(not reader.is_alive(), "a reader of lines that are gone is still connected")
        checks.check(not os.path.exists(f"{where}/new.sock"), "the socket is still there")
        good.stop()
        checks.check(framed.stop() == 0, framed.errors())
        metrics = framed.metrics()
    labels = [{line["objects"][0]["label"] for line in reader.objects()} for reader in readers]
    checks.check(labels == [{"person"}, {"cat"}], f"labels {labels}")
    checks.check(good.lost == 0, f"the client lost {good.lost} frames")
    checks.check(metrics.losses().keys() <= {"thinned", "client", "stopping"}, f"lost {metrics.losses()}")
    checks.check(metrics.sum("framed_results_wrong_total", reason="not_wanted") > 0, "nothing was sent unasked")


REPLACED = """
backend: cpu
cameras:
  cam:
    url: {where}/{clip}.mp4
    loop: true
    pace: realtime
    outputs:
      o: {{size: {size}, sink: "ring:{where}/o.ring", detections: {{sink: "unix:{where}/o.sock"}}}}
batches:
  all: {{cameras: "*", size: 64x64, sink: "ring:{where}/all.ring", detections: {{sink: "unix:{where}/{lines}.sock"}}}}
"""


def check_replaced(checks, where):
    """A new output has its lines at the old one's address at once, and a batch with other cameras gets new lines."""
    os.link(f"{where}/clip.mp4", f"{where}/other.mp4")
    with Framed(where, REPLACED.format(where=where, clip="clip", size="64x64", lines="before")) as framed:
        until(lambda: framed.errors().count("detections: listens") == 2, 10 * PATIENCE)
        for step, (clip, size) in enumerate((("clip", "96x96"), ("other", "96x96"))):
            readers = [Lines(f"unix:{where}/{name}.sock") for name in ("o", ("before", "after0")[step])]
            with open(framed.config, "w") as file:
                file.write(REPLACED.format(where=where, clip=clip, size=size, lines=f"after{step}"))
            code, text, errors = run("reload", "-c", framed.config, env={"RUNTIME_DIRECTORY": where})
            checks.check(code == 0, f"reload: {text}{errors}")
            until(lambda: framed.errors().count("detections: listens") == 2 * step + 4, 5)
            for name in ("o", f"after{step}"):
                checks.check(os.path.exists(f"{where}/{name}.sock"), f"step {step}: nobody listens at {name}.sock")
            for reader in readers:
                reader.join(10 * PATIENCE)
                checks.check(not reader.is_alive(), f"step {step}: a reader of lines that are gone is still connected")
        checks.check(framed.stop() == 0, framed.errors())
        checks.check("another program" not in framed.errors(), framed.errors())


BATCH = """
backend: cpu
cameras:
  a: {{url: {where}/clip.mp4, loop: true, pace: realtime}}
  b: {{url: {where}/clip.mp4, loop: true, pace: realtime}}
batches:
  both: {{cameras: "*", size: 320x320, sink: "ring:{where}/both.ring", detections: {{sink: "unix:{where}/both.sock"}}}}
"""


def check_batch(checks, where):
    """One message per element: lines of both cameras."""
    with Framed(where, BATCH.format(where=where)) as framed:
        lines, client, sent = Lines(f"unix:{where}/both.sock"), Client(f"{where}/both.ring"), 0
        for _ in range(20):
            count, slot, ticket = client.next()
            for element in range(count):
                client.peer.send(result(slot, ticket, rows(3), element=element, model=4,
                                        flags=RETURN if element == count - 1 else 0))
                sent += 1
        time.sleep(0.5 * PATIENCE)
        code, text, _ = run("status", "-c", framed.config, "--json", env={"RUNTIME_DIRECTORY": where})
        shown = json.loads(text)["batches"][0]["results"] if code == 0 else {}
        client.peer.close()
        checks.check(framed.stop() == 0, framed.errors())
        metrics = framed.metrics()
    lines.join(10)
    came = lines.objects()
    by_camera = {name: [line["seq"] for line in came if line["camera"] == name] for name in "ab"}
    checks.check(all(len(of) >= 10 and of == sorted(set(of)) for of in by_camera.values()), f"{by_camera}")
    checks.check(all(line["output"] == "both" and line["model"] == 4 for line in came), str(came[:1]))
    wrong = metrics.sum("framed_results_wrong_total")
    checks.check(len(came) + wrong == sent and wrong == metrics.sum("framed_results_wrong_total", reason="element"),
                 f"{len(came)} lines and {wrong} wrong of {sent}")
    checks.check(shown["results"] == len(came) and {of["name"] for of in shown["cameras"]} == {"a", "b"}, f"{shown}")


def main():
    checks = Checks("detections")
    for check in (check_all, check_files, check_bad, check_reload, check_replaced, check_batch):
        with folder() as where:
            make_clip(os.path.join(where, "clip.mp4"))
            check(checks, where)
    checks.end()


main()
