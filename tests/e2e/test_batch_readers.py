#!/usr/bin/python3
"""A batch of two cameras, read by consume.py from a ring, a socket and a file: headers and payloads agree. Also checks status and counters."""
import itertools
import os
import re

import numpy

from framed_client import PATIENCE, Checks, Framed, consume, folder, make_clip, run, until

CONFIG = """
cameras:
  gate: &clip
    url: {where}/clip.mp4
    loop: true
    pace: realtime
  yard: *clip
batches:
{batches}
"""
BATCH = """  {name}:
    cameras: ["*"]
    count: 4
    tail: {tail}
    size: 64x48
    filter: bilinear
    tensor: {{dtype: u8, layout: nchw, order: rgb}}
    sink: {sink}
"""


def copied(batch, payload):
    """Returns a Batch, its tensor, and (Header, tensor) of each of its elements."""
    elements = [(header, consume.tensor_of(header, data).copy()) for header, data in consume.elements_of(batch, payload)]
    return batch._replace(headers=batch.headers.copy()), consume.tensor_of(batch, payload).copy(), elements


def read(address, count):
    frames = consume.frames_from(address, 10 * PATIENCE)
    return [copied(*frame) for frame in itertools.islice(frames, count)]


def check_batch(checks, name, batch, tensor, elements):
    count = 4 if name == "socket" else batch.count  # tail: zero
    filled = numpy.flatnonzero(batch.headers["flags"] & consume.EMPTY == 0)
    checks.check(batch.magic == "FRBT" and batch.capacity == 4, f"{name}: {batch}")
    checks.check(tensor.shape == (count, 3, 48, 64), f"{name}: shape {tensor.shape}")
    checks.check(len(filled) == batch.elements == len(elements) > 0, f"{name}: {len(elements)} elements")
    checks.check(batch.headers["dst_to_src"].shape == (count, 6), f"{name}: {batch.headers['dst_to_src'].shape}")
    for index, (header, picture) in zip(filled, elements):
        checks.check((picture == tensor[index]).all() and picture.std() > 1, f"{name}: another picture at {index}")
        checks.check(header.camera in ("gate", "yard"), f"{name}: camera {header.camera}")
        x, y = consume.corner_in_source(header, 64, 48)
        checks.check(abs(x - 320) < 0.01 and abs(y - 240) < 0.01, f"{name}: corner at {x} {y}")


def check_status(checks, where):
    """Status has one line per batch, and cameras show the sinks of their batches."""
    table = run("status", "--socket", f"{where}/control.sock")[1]
    reasons = r"\d+: (?:(?:full|all|wait|reload) \d+(?:, )?)+"
    for line in ("BATCH +STATE +CAPACITY +MEAN +SINK +CLIENTS +BATCHES",
                 rf"ring +open +4 +[1-4]\.\d +ring:\S+/b\.ring +\d +{reasons}",
                 rf"file +open +4 +[1-4]\.\d +file:\S+/b\.framed +\d +{reasons}"):
        checks.check(re.search(f"^{line}$", table, re.M), f"no line {line!r} in\n{table}")
    checks.check(len(re.findall(r"^  ring +open ", table, re.M)) == 2, f"the cameras' shares in\n{table}")


def check_counters(checks, metrics):
    for name in ("ring", "socket", "file"):
        closed = metrics.sum("framed_batches_total", batch=name)
        elements = metrics.sum("framed_batch_elements_sum", batch=name)
        checks.check(0 < closed <= elements <= 4 * closed, f"{name}: {elements} elements of {closed} batches")
        for histogram in ("framed_batch_elements", "framed_batch_wait_seconds"):
            count = metrics.sum(f"{histogram}_count", batch=name)
            checks.check(count == closed, f"{name}: {histogram} counts {count} of {closed} batches")


def main():
    checks = Checks("batch_readers")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        sinks = {"ring": f"ring:{where}/b.ring", "socket": f"unix:{where}/b.sock", "file": f"file:{where}/b.framed"}
        tails = {"ring": "cut", "socket": "zero", "file": "cut"}
        batches = "".join(BATCH.format(name=name, sink=sinks[name], tail=tails[name]) for name in sinks)
        with Framed(where, CONFIG.format(where=where, batches=batches)) as framed:
            found = {name: read(sinks[name], 20) for name in ("ring", "socket")}
            until(lambda: os.path.getsize(f"{where}/b.framed") > 200000, 20)
            check_status(checks, where)
            framed.stop()
            check_counters(checks, framed.metrics())
        with open(f"{where}/b.framed", "rb") as file:
            found["file"] = [copied(*frame) for frame in consume.read_frames(file)]
        for name, batches in found.items():
            checks.check(len(batches) >= 20, f"{name}: {len(batches)} batches")
            for batch, tensor, elements in batches:
                check_batch(checks, name, batch, tensor, elements)
            cameras = {header.camera for *_, elements in batches for header, _ in elements}
            checks.check(cameras == {"gate", "yard"}, f"{name}: only of {cameras}")
            sequences = [batch.sequence for batch, *_ in batches]
            checks.check(sequences == list(range(sequences[0], sequences[0] + len(batches))), f"{name}: {sequences}")
    checks.end()


main()
