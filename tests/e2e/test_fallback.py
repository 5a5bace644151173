#!/usr/bin/python3
"""The device fails in mid-stream: the cpu takes over, the device comes back, and the frames are the same as without the failure, except for those
counted as lost. The binary is framed with a cuda side that fails on request (tests/faults/faults.c)."""
import os

import framed_client
from framed_client import Checks, Framed, Reader, folder, make_clip, until

CAMERAS = ("left", "right")
FRAMES = 150  # 6 s
IN_FLIGHT = 4  # frames of one camera that fail together
PIXELS = 320 * 240 * 3 // 2

CAMERA = """
  {name}:
    url: {where}/{name}.mp4
    pace: realtime
    outputs:
      tensor:
        size: 128x128
        tensor: {{dtype: u8, layout: nhwc, order: rgb}}
        sink: unix:{where}/{name}.sock
      planes: {{kernel: yuv, format: yuv420p, sink: "file:{where}/{name}.raw"}}
"""


def config(where):
    cameras = "".join(CAMERA.format(where=where, name=name) for name in CAMERAS)
    return "defaults: {overflow: wait}\ncameras:" + cameras


class Run:
    """One run over both clips, to its end."""

    def __init__(self, checks, where, faults):
        with Framed(where, config(where), {"FRAMED_FAULTS": faults}) as framed:
            readers = {name: Reader(f"unix:{where}/{name}.sock") for name in CAMERAS}
            code = framed.wait(60)
            self.log = framed.errors()
            checks.check(code == 0, f"{faults}: exit {code}:\n{self.log}")
            for reader in readers.values():
                reader.join(5)
            self.metrics = framed.metrics()
        self.tensors = {name: {h.sequence: bytes(t) for h, t in reader.frames} for name, reader in readers.items()}
        self.order = {name: [h.sequence for h, _ in reader.frames] for name, reader in readers.items()}
        self.planes = {name: pictures(f"{where}/{name}.raw") for name in CAMERAS}

    def said(self, text):
        return sum(text in line for line in self.log.splitlines())


def pictures(path):
    with open(path, "rb") as file:
        data = file.read()
    return [data[at : at + PIXELS] for at in range(0, len(data), PIXELS)]


def check_camera(checks, name, faults, run, sound):
    order = run.order[name]
    lost = run.metrics.losses(camera=name, output="tensor")
    account = run.metrics.account(camera=name, output="tensor")
    checks.check(order == sorted(set(order)), f"{faults}: {name}: not in order: {order}")
    checks.check(set(lost) <= {"backend"}, f"{faults}: {name}: {lost}")
    checks.check(account == (FRAMES, len(order), FRAMES - len(order)), f"{faults}: {name}: {account}, {len(order)}")
    checks.check(lost["backend"] <= IN_FLIGHT, f"{faults}: {name}: {lost['backend']} frames were lost")
    wrong = [n for n in order if run.tensors[name][n] != sound.tensors[name][n]]
    checks.check(not wrong, f"{faults}: {name}: tensors {wrong} differ")
    same = run.planes[name] == [sound.planes[name][n] for n in order]
    checks.check(same, f"{faults}: {name}: planes differ, {len(run.planes[name])} of {len(order)}")


def check_run(checks, where, faults, sound):
    run = Run(checks, where, faults)
    for name in CAMERAS:
        check_camera(checks, name, faults, run, sound)
    lost = sum(run.metrics.losses(output="tensor").values())
    checks.check(lost > 0, f"{faults}: nothing failed")
    for text in ("backend cuda failed: Input/output error; cpu takes over", "backend cuda is back"):
        checks.check(run.said(text) == 1, f"{faults}: {run.said(text)} times '{text}':\n{run.log}")
    refused = run.said("backend cuda cannot be opened again")
    checks.check(refused == faults.count("open"), f"{faults}: {refused} tries in vain are in the log:\n{run.log}")
    fallbacks = run.metrics.sum("framed_backend_fallbacks_total")
    checks.check(fallbacks == 1, f"{faults}: {fallbacks} fallbacks counted")
    checks.check(run.metrics.sum("framed_backend", backend="cuda") == 1, f"{faults}: cuda does not work at the end")
    legs = [has["leg"] for has, _ in run.metrics.all("framed_device_busy_seconds_total")]
    checks.check(legs == ["upload", "kernel", "download"], f"{faults}: {legs} of the device")


def check_refused(checks, where, sound):
    """One job fails alone: its camera goes on with a new plan; the device and the other cameras are not affected."""
    run = Run(checks, where, "refuse:40")
    for name in CAMERAS:
        check_camera(checks, name, "refuse:40", run, sound)
    lost = [sum(run.metrics.losses(camera=name, output="tensor").values()) for name in CAMERAS]
    checks.check(sum(lost) == max(lost) == 1, f"refuse:40: frames lost by camera: {lost}")
    checks.check(run.said("a job failed, its plan was opened again") == 1, f"refuse:40: the log says:\n{run.log}")
    checks.check(run.metrics.sum("framed_backend_fallbacks_total") == 0, "refuse:40: the device was given up")


def check_stop(checks, where):
    """SIGTERM while the cpu replaces a device that does not come back."""
    text = config(where).replace("pace: realtime", "pace: realtime\n    loop: true")
    gone = ",".join(f"open:{n}" for n in range(1, 20))
    with Framed(where, text, {"FRAMED_FAULTS": f"job:20,{gone}"}) as framed:
        readers = [Reader(f"unix:{where}/{name}.sock", keep=False) for name in CAMERAS]
        failed = until(lambda: "cpu takes over" in framed.errors(), 20)
        checks.check(failed, "the device did not fail")
        before = [reader.count for reader in readers]
        going = until(lambda: all(r.count > n + 10 for r, n in zip(readers, before)), 20)
        checks.check(going, "no frames from the cpu")
        metrics = framed.live_metrics()
        works = metrics.sum("framed_backend", backend="cpu")
        checks.check(works == 1, "the metrics do not say that the cpu works")
        legs = metrics.all("framed_device_busy_seconds_total")
        checks.check(not legs, f"the cpu has no such legs: {legs}")
        code = framed.stop(2.5)
        checks.check(code == 0, f"exit {code} after SIGTERM:\n{framed.errors()[-2000:]}")


def check_hanging_close(checks, where):
    """SIGTERM, and the driver does not return from closing the device: the stop has a limit up to its end."""
    text = config(where).replace("pace: realtime", "pace: realtime\n    loop: true")
    with Framed(where, text, {"FRAMED_FAULTS": "close:1"}) as framed:
        reader = Reader(f"unix:{where}/left.sock", keep=False)
        checks.check(until(lambda: reader.count > 10, 20), "no frames")
        code = framed.stop(2.5)
        said = "the stop hangs: leaving it" in framed.errors()
        checks.check(code == 0 and said, f"exit {code} after SIGTERM:\n{framed.errors()[-2000:]}")


def main():
    checks = Checks("fallback")
    framed_client.BINARY += "-faults"
    with folder() as where:
        for i, name in enumerate(CAMERAS):
            make_clip(os.path.join(where, f"{name}.mp4"), frames=FRAMES, b_frames=2 * i)
        sound = Run(checks, where, "")
        for name in CAMERAS:
            checks.check(sound.order[name] == list(range(FRAMES)), f"{name}: frames are missing without a failure")
        # Each leaves the device about 4 s of the clip to come back.
        for faults in ("job:80,open:1", "submit:40", "plan:2"):
            check_run(checks, where, faults, sound)
        check_refused(checks, where, sound)
        check_stop(checks, where)
        check_hanging_close(checks, where)
    checks.end()


main()
