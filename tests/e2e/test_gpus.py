#!/usr/bin/python3
"""One of two GPUs fails in mid-stream: its cameras go on at once on the other one and come back; the other one's lose nothing. The binary is framed
with GPUs that fail on request (tests/faults/faults.c); without two GPUs the cpu stands in for both."""
import os
import time

import framed_client
from framed_client import Checks, Framed, Reader, folder, make_clip, status, until

CAMERAS = ("a", "b", "c", "d")
IN_FLIGHT = 4  # frames of one camera that fail together
MOVED_S = 2  # from the failure to frames of all its cameras on the other GPU

CAMERA = """
  {name}:
    url: {where}/clip.mp4
    pace: realtime
    loop: true
    outputs: {{tensor: {{size: 128x128, sink: "unix:{where}/{name}.sock"}}}}
"""


def places(where):
    """Returns camera -> the number of its GPU."""
    return {name: camera["device"] for name, camera in status(where).items()}


def check_failure(checks, where):
    text = "backend: cuda\ncuda: {devices: [0, 1]}\ndefaults: {overflow: wait}\ncameras:"
    text += "".join(CAMERA.format(where=where, name=name) for name in CAMERAS)
    faults = {"FRAMED_GPUS": "2", "FRAMED_FAULTS": "job@1:150,open@1:1"}
    with Framed(where, text, faults) as framed:
        readers = {name: Reader(f"unix:{where}/{name}.sock", keep=False) for name in CAMERAS}
        checks.check(until(lambda: all(r.count > 10 for r in readers.values()), 20), "no frames")
        home = places(where)
        checks.check(sorted(home.values()) == [0, 0, 1, 1], f"the cameras are not spread: {home}")
        checks.check(until(lambda: "the other GPU takes over" in framed.errors(), 20), framed.errors())
        failed = time.monotonic()
        before = {name: reader.count for name, reader in readers.items()}
        moved = until(lambda: all(r.count > before[n] + IN_FLIGHT for n, r in readers.items()), MOVED_S)
        checks.check(moved, f"not all go on after {time.monotonic() - failed:.1f} s")
        checks.check(until(lambda: set(places(where).values()) == {0}, 5), f"not on the other: {places(where)}")
        checks.check(until(lambda: places(where) == home, 20), f"not back: {places(where)}\n{framed.errors()}")
        code = framed.stop()
        checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
        metrics = framed.metrics()
    for name, gpu in home.items():
        lost = metrics.losses(camera=name).get("backend", 0)
        checks.check(lost <= IN_FLIGHT * gpu, f"{name} of GPU {gpu} lost {lost} frames")
    for gpu in ("0", "1"):
        checks.check(metrics.sum("framed_device_up", device=gpu) == 1, f"GPU {gpu} is not up")
    checks.check(metrics.sum("framed_backend_fallbacks_total") == 1, "not one failure")


def main():
    checks = Checks("gpus")
    framed_client.BINARY += "-faults"
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"), frames=100)
        check_failure(checks, where)
    checks.end()


main()
