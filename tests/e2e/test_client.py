#!/usr/bin/python3
"""libframed with the real daemon: over a ring, a unix and a tcp socket it gives the frames and batches that a reader of
the bytes sees; a program of three lines lives through restarts of the daemon."""
import json
import os
import subprocess

import numpy
from framed_client import BINARY, PATIENCE, Checks, Framed, Reader, consume, folder, free_port, make_clip, until

FRAMES = os.path.join(os.path.dirname(BINARY), "tests", "e2e", "client_frames")
COUNT = 40
CONFIG = """
backend: cpu
defaults: {{overflow: wait, slots: 8}}
cameras:
  clip:
    url: {where}/clip.mp4
    outputs:
      ring: {{size: 320x320, sink: "ring:{where}/frames.ring"}}
      unix: {{size: 320x320, sink: "unix:{where}/frames.sock"}}
      tcp: {{size: 320x320, tensor: {{dtype: f32, scale: 1/255}}, sink: "tcp:127.0.0.1:{port}"}}
      bytes: {{size: 320x320, sink: "unix:{where}/bytes.sock"}}
      floats: {{size: 320x320, tensor: {{dtype: f32, scale: 1/255}}, sink: "unix:{where}/floats.sock"}}
"""
BATCHES = """
backend: cpu
defaults: {{loop: true, pace: realtime, size: 160x160, slots: 8}}
cameras:
  gate: {{url: {where}/clip.mp4}}
  yard: {{url: {where}/clip.mp4}}
batches:
  ring: {{cameras: ["*"], count: 2, wait: 200ms, sink: "ring:{where}/batches.ring"}}
  unix: {{cameras: ["*"], count: 2, wait: 200ms, sink: "unix:{where}/batches.sock"}}
"""


class Frames:
    """The lines of a program that reads with libframed."""

    def __init__(self, address, which="all", count=COUNT, hold_ms=0):
        self.child = subprocess.Popen([FRAMES, address, which, str(count), str(hold_ms)], stdout=subprocess.PIPE, text=True)

    def wait(self, seconds=30):
        """(frames, counts)"""
        try:
            output, _ = self.child.communicate(timeout=seconds * PATIENCE)
        finally:
            self.child.kill()
            self.child.wait()
        *frames, counts = map(json.loads, output.splitlines())
        return frames, counts


def sums(payload):
    data = numpy.frombuffer(payload, "u1").astype("u8")
    return [int(data.sum()), int((data * numpy.arange(len(data), dtype="u8")).sum())]


def check_frames(checks, where):
    """Every sink, each frame in turn: the bytes of the plain socket beside it."""
    port = free_port()
    plain = {kind: Reader(f"unix:{where}/{kind}.sock", COUNT) for kind in ("bytes", "floats")}
    programs = {
        "ring": Frames(f"ring:{where}/frames.ring"),
        "unix": Frames(f"unix:{where}/frames.sock"),
        "tcp": Frames(f"tcp:localhost:{port}"),
    }
    with Framed(where, CONFIG.format(where=where, port=port)):
        for reader in plain.values():
            reader.join(30 * PATIENCE)
        for name, program in programs.items():
            frames, counts = program.wait()
            expected = [(header.sequence, header.epoch, sums(payload))
                        for header, payload in plain["floats" if name == "tcp" else "bytes"].frames]
            seen = [(frame["sequence"], frame["epoch"], frame["sums"]) for frame in frames]
            checks.check(len(seen) == COUNT and seen == expected, f"{name}: {seen[:3]}..., not {expected[:3]}...")
            checks.check(all(frame["whole"] and frame["camera"] == "clip" for frame in frames), f"{name}: {frames[:3]}")
            wanted = {"frames": COUNT, "skipped": 0, "torn": 0, "lost": 0, "connections": 1}
            checks.check(counts == wanted, f"{name}: {counts}")


def check_batches(checks, where):
    """Both sinks: whole batches, whose elements are those of the two cameras."""
    with Framed(where, BATCHES.format(where=where)):
        for address in (f"ring:{where}/batches.ring", f"unix:{where}/batches.sock"):
            frames, counts = Frames(address, count=20).wait()
            checks.check(len(frames) == 20 and counts["torn"] == 0, f"{address}: {counts}")
            for batch in frames:
                filled = [element for element in batch["elements"] if not element[2] & consume.EMPTY]
                cameras = sorted(camera for camera, *_ in filled)
                good = batch["whole"] and set(cameras) <= {"gate", "yard"} and len(filled) >= 1
                checks.check(good and all(width == 320 for *_, width in filled), f"{address}: {batch}")
                checks.check(batch["bytes"] == len(batch["elements"]) * 3 * 160 * 160, f"{address}: {batch}")
            both = sum(len(batch["elements"]) == 2 for batch in frames)
            checks.check(both >= 10, f"{address}: {both} of 20 batches have two pictures")


def main():
    checks = Checks("client")
    for check in (check_frames, check_batches):
        with folder() as where:
            make_clip(os.path.join(where, "clip.mp4"))
            check(checks, where)
    checks.end()


main()
