#!/usr/bin/python3
"""Crops: a client of a ring sends boxes back, and each comes as an element with the bytes and the matrix of an ordinary output that shows the same
rectangle. Only results that come too late are lost, over reloads and to the last picture."""
import collections
import json
import math
import os
import sys
import threading
import time

import numpy
from framed_client import PATIENCE, Checks, Framed, consume, folder, framedio_environment, make_clip, run, until

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio

FRAMES, RATE = 50, 25
WIDTH, HEIGHT = 320, 240
TENSOR = "tensor: {dtype: f16, scale: 1/255}"
KEPT = "keep: 4s"  # even on a busy box
# x1, y1, x2, y2, score, class
FOUND = [
    (10, 20, 50, 61, 0.7, 2),
    (5, 5, 300, 200, 0.95, 7),  # of a class that is not listed
    (100.4, 30.2, 180.9, 90.1, 0.8, 5),
    (50, 50, 50, 60, 0.9, 2),  # no area
    (300.5, 200, 340, 260, 0.5, 2),
    (0, 0, 9, 9, 0.1, 2),  # one too many
]
WANTED = [2, 0, 4]  # by their scores
CONFIG = """
backend: {backend}
cameras:
  gate:
    url: {where}/gate.mp4
    pace: {pace}
    loop: {loop}
    outputs:
      detector: {{size: 160x160, overflow: wait, slots: 8, sink: "ring:{where}/detector.ring"}}
      plates: {{{shape}, slots: 64, crops: {{of: detector, classes: [2, 5], margin: {margin}%, most: 3, {keep}}}, sink: "ring:{where}/plates.ring", detections: {{sink: "file:{where}/plates.jsonl"}}}}
      file: {{{shape}, crops: {{of: detector, most: 3, {keep}}}, sink: "file:{where}/crops.framed"}}
      late: {{{shape}, crops: {{of: detector, keep: 1ms}}, sink: "file:{where}/late.framed"}}
      none: {{{shape}, crops: {{of: detector, classes: 9, {keep}}}, sink: "file:{where}/none.framed"}}
      both: {{{shape}, slots: 64, crops: {{of: batch, {keep}}}, sink: "file:{where}/both.framed"}}
{ordinary}
  yard:
    url: {where}/yard.mp4
    pace: {pace}
    loop: {loop}
batches:
  batch: {{cameras: ["*"], size: 160x160, overflow: wait, slots: 8, sink: "ring:{where}/batch.ring"}}
"""
SHAPES = {"letterbox": f"size: 64x48, {TENSOR}", "stretch": f"size: 96x32, fit: stretch, filter: triangle, {TENSOR}"}


def rect_of(box, margin):
    """Returns the [x, y, width, height] that a box covers with its margin."""
    x1, y1, x2, y2 = (float(numpy.float32(value)) for value in box[:4])
    x1, y1, x2, y2 = max(x1, 0), max(y1, 0), min(x2, WIDTH), min(y2, HEIGHT)
    across, down = (x2 - x1) * margin / 100, (y2 - y1) * margin / 100
    left, top = max(math.floor(x1 - across), 0), max(math.floor(y1 - down), 0)
    return [left, top, min(math.ceil(x2 + across), WIDTH) - left, min(math.ceil(y2 + down), HEIGHT) - top]


def config_of(where, margin=10, shape="letterbox", keep=KEPT, pace="realtime", loop="false", backend="cpu"):
    ordinary = "".join(
        f'      box{i}: {{{SHAPES[shape]}, overflow: wait, crop: {rect_of(FOUND[i], margin)}, '
        f'sink: "file:{where}/box{i}-{margin}.framed"}}\n' for i in WANTED)
    return CONFIG.format(where=where, margin=margin, shape=SHAPES[shape], keep=keep, pace=pace, loop=loop, ordinary=ordinary,
                         backend=backend)


class Finder(threading.Thread):
    """Sends the same objects for each picture of a ring, 5 ms after it came. sent: pts of the pictures, by camera."""

    def __init__(self, where, ring, found=FOUND):
        super().__init__(daemon=True)
        self.address, self.found, self.sent, self.count = f"ring:{where}/{ring}.ring", found, {}, 0
        self.start()

    def run(self):
        for frame in framedio.open(self.address, newest=False):
            for picture in frame if hasattr(frame, "elements") else [frame]:
                if hasattr(picture, "empty") and picture.empty:
                    continue
                time.sleep(0.005)
                picture.send(self.found)
                self.sent.setdefault(picture.camera, []).append(picture.header.pts_ns)
                self.count += 1


class Taker(threading.Thread):
    """Keeps every batch of a ring, and sends one object per element, as large as the element."""

    def __init__(self, where, ring):
        super().__init__(daemon=True)
        self.address, self.batches, self.sent = f"ring:{where}/{ring}.ring", [], 0
        self.start()

    def run(self):
        for batch in framedio.open(self.address, newest=False):
            for element in batch:
                self.sent += element.send([(0, 0, element.header.width, element.header.height, 0.5, 1)], source=False)
            self.batches.append(batch.keep())


def read_file(where, name):
    """Returns pts -> (payload, matrix) of an ordinary output."""
    with open(f"{where}/{name}.framed", "rb") as file:
        return {header.pts_ns: (bytes(payload), header.dst_to_src) for header, payload in consume.read_frames(file)}


def read_batches(where, name):
    with open(f"{where}/{name}.framed", "rb") as file:
        return [(batch, bytes(payload)) for batch, payload in consume.read_frames(file)]


def check_batch(checks, batch, ordinary):
    checks.check((batch.count, batch.capacity) == (3, 3), f"{batch.count} of {batch.capacity} elements")
    for part, (element, i) in enumerate(zip(batch, WANTED)):
        payload, matrix = ordinary[i].get(element.header.pts_ns, (None, None))
        says = element.object, element.part, element.parts, element.camera, element.region
        checks.check(says == (i, part, 3, "gate", ""), f"element {part}: {says}")
        checks.check(element.numpy().tobytes() == payload, f"other bytes of box {i} at {element.header.pts_ns}")
        checks.check(matrix and tuple(element.header.dst_to_src) == tuple(matrix), f"matrix of box {i}")


def check_account(checks, metrics, output, offered, reasons=()):
    numbers = [metrics.sum("framed_frames_total", camera="gate", output=output, stage=stage) for stage in ("offered", "emitted")]
    lost = metrics.losses(camera="gate", output=output)
    checks.check(numbers[0] == offered, f"{output}: {numbers[0]} batches, not {offered}")
    checks.check(numbers[0] == numbers[1] + sum(lost.values()), f"{output}: {numbers}, lost {lost}")
    checks.check(set(lost) <= set(reasons), f"{output}: lost {lost}")
    return lost


def check_found_in_crops(checks, where, shape, sent):
    """Objects found in elements come out in pixels of the camera's picture."""
    with open(f"{where}/plates.jsonl") as file:
        lines = [json.loads(line) for line in file]
    checks.check(0 < len(lines) == sent, f"{len(lines)} lines of {sent} results")
    for number, line in enumerate(lines):
        x, y, width, height = rect_of(FOUND[WANTED[line.get("part", 0)]], 10)
        got, wanted = line["objects"][0]["box"], (x, y, x + width, y + height)
        exact = all(abs(a - b) < 0.01 for a, b in zip(got, wanted))  # a letterbox shows more than the rectangle
        around = got[0] <= x + 0.01 and got[1] <= y + 0.01 and got[2] >= wanted[2] - 0.01 and got[3] >= wanted[3] - 0.01
        checks.check(exact if shape == "stretch" else around, f"line {number}: {got}, not {wanted}")


def start_clients(framed, where):
    """Connects a reader of the crops before the finders: pictures wait for finders, but not for readers of crops."""
    taker = Taker(where, "plates")
    until(lambda: os.path.exists(f"{where}/plates.ring"), 20)
    until(lambda: framed.live_metrics().sum("framed_sink_clients", output="plates") == 1, 20)
    return taker, [Finder(where, "detector"), Finder(where, "batch")]


def check_to_the_end(checks, where, shape, backend="cpu"):
    """Every picture of a file is examined, with a reader connected first: crops do not wait for one."""
    with Framed(where, config_of(where, shape=shape, backend=backend)) as framed:
        taker, finders = start_clients(framed, where)
        code = framed.wait(60)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
        until(lambda: len(taker.batches) == FRAMES, 5)
        sent = [len(finder.sent.get("gate", [])) for finder in finders]
    metrics = framed.metrics()
    ordinary = {i: read_file(where, f"box{i}-10") for i in WANTED}
    checks.check(sent == [FRAMES, FRAMES], f"{sent} results")
    checks.check(len(taker.batches) == FRAMES, f"{len(taker.batches)} batches")
    for number, batch in enumerate(taker.batches):
        checks.check((batch.sequence, batch.lost) == (number, 0), f"batch {batch.sequence}, lost {batch.lost}")
        checks.check({(e.parent_sequence, e.sequence, e.header.lost) for e in batch} == {(number, number, 0)}, f"of {number}")
        checks.check(bool(batch[0].flags & 4) == (number == 0), f"batch {number}: flags {batch[0].flags}")
        check_batch(checks, batch, ordinary)
    check_found_in_crops(checks, where, shape, taker.sent)
    for name in ("plates", "file", "both"):
        check_account(checks, metrics, name, FRAMES)
    check_account(checks, metrics, "late", FRAMES, ["late"])
    checks.check(metrics.losses(camera="gate", output="late")["late"] > 0, "nothing was late")
    check_account(checks, metrics, "none", 0)
    files = read_batches(where, "crops")
    checks.check(len(files) == FRAMES, f"{len(files)} batches in the file")
    # Without `classes` the box of class 7 has the best score, and without a margin all rectangles differ.
    checks.check(all(list(batch.headers["object"]) == [1, 2, 0] for batch, _ in files), "objects in the file")


def check_other_size(checks, where):
    """Pictures become smaller in the middle of a stream: from there on, crops are taken from the new ones."""
    sizes = (WIDTH, HEIGHT), (256, 192)
    with open(f"{where}/gate.h264", "wb") as file:
        for i, (width, height) in enumerate(sizes):
            clip = make_clip(f"{where}/{i}.h264", frames=FRAMES // 2, rate=RATE, size=f"{width}x{height}")
            with open(clip, "rb") as part:
                file.write(part.read())
    config = config_of(where).replace(f"url: {where}/gate.mp4", f"url: {where}/gate.h264\n    demuxer: h264")
    with Framed(where, config) as framed:
        taker, finders = start_clients(framed, where)
        code = framed.wait(60)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
    ordinary = {i: read_file(where, f"box{i}-10") for i in WANTED[:2]}
    seen = collections.Counter()
    for element in (element for batch in taker.batches for element in batch if element.object in ordinary):
        shown = ordinary[element.object].get(element.header.pts_ns, (b"", ()))
        checks.check(element.numpy().tobytes() == shown[0], f"other bytes of box {element.object} in {element.source_size}")
        seen[element.source_size] += 1
    # Results for the last pictures of the former size come too late.
    checks.check(seen[sizes[1]] >= FRAMES - 4 and seen[sizes[0]] >= FRAMES - 20 and len(seen) == 2, f"{seen}")
    sent = [len(finder.sent["gate"]) for finder in finders]
    checks.check(min(sent) >= FRAMES - 2, f"{sent} results")
    check_account(checks, framed.metrics(), "plates", sent[0], ["late"])


def check_reload(checks, where):
    """The margin changes while boxes come: crops change, and the other outputs lose nothing."""
    with Framed(where, config_of(where, loop="true")) as framed:
        taker, finders = Taker(where, "plates"), [Finder(where, "detector"), Finder(where, "batch")]
        until(lambda: len(taker.batches) >= 10, 20)
        with open(framed.config, "w") as file:
            file.write(config_of(where, margin=50, loop="true"))
        code, out, err = run("reload", "-c", framed.config, env={"RUNTIME_DIRECTORY": where})
        checks.check(code == 0, f"reload: {out}{err}")
        before = len(taker.batches)
        until(lambda: len(taker.batches) >= before + 10, 20)
        framed.stop()
        code = framed.wait(20)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
    ordinary = {margin: {i: read_file(where, f"box{i}-{margin}") for i in WANTED} for margin in (10, 50)}
    seen = {10: 0, 50: 0}
    for batch in taker.batches:
        for margin, shown in ordinary.items():
            if batch[0].header.pts_ns in shown[2] and batch[0].numpy().tobytes() == shown[2][batch[0].header.pts_ns][0]:
                seen[margin] += 1
                check_batch(checks, batch, shown)
    checks.check(min(seen.values()) >= 9 and sum(seen.values()) >= len(taker.batches) - 2, f"{seen} of {len(taker.batches)}")
    check_account(checks, framed.metrics(), "file", framed.metrics().sum(
        "framed_frames_total", camera="gate", output="file", stage="offered"), ["overflow", "stopping"])


def main():
    checks = Checks("crops")
    runs = [(check_to_the_end, (shape,)) for shape in SHAPES] + [(check_reload, ()), (check_other_size, ())]
    if os.path.exists("/dev/nvidiactl"):
        runs.append((check_to_the_end, ("letterbox", "cuda")))
    else:
        checks.skip("pictures in surfaces of NVDEC: no GPU")
    for check, arguments in runs:
        with folder() as where:
            for name in ("gate", "yard"):
                make_clip(os.path.join(where, f"{name}.mp4"), frames=FRAMES, rate=RATE, size=f"{WIDTH}x{HEIGHT}")
            check(checks, where, *arguments)
    checks.end()


main()
