#!/usr/bin/python3
"""A hardware decoder cannot be opened, fails, hangs or gives no pictures: the CPU decodes the rest of the connection, at once, 0.5 s or 3 s later.
Clients get every picture once, with the CPU's bytes and flags, and one line reports the failure. The decoder is libavcodec's for the CPU under
another name (tests/faults/decoder.c), or libavcodec's VAAPI with libva and our own driver (va_driver.c)."""
import concurrent.futures
import contextlib
import json
import os
import subprocess
import threading
import time

import va_pictures
from framed_client import BINARY, PATIENCE, SANITIZED, Checks, Framed, consume, folder, free_port, make_clip, run

SHIM = os.path.join(os.path.dirname(BINARY), "faults", "decoder.so")
FRAMES = 100  # 4 s, a keyframe each second
FAULT_AT = 55

CAMERA = """
cameras:
  gate:
    url: {url}
    pace: {pace}
    decode: {decode}
    outputs:
      planes: {{kernel: yuv, format: yuv420p, overflow: wait, sink: "unix:{where}/planes.sock"}}
"""
# Fault -> codec and the end of the one line that reports it; None: no line.
FAULTS = {
    "": ("h264", None),
    "open": ("h265", "v4l2m2m cannot be opened (No such device): decoding on the cpu"),
    "hang-open": ("h264", "v4l2m2m cannot be opened (no answer for 3 s): decoding on the cpu"),
    f"fail:{FAULT_AT}": ("h264", "v4l2m2m failed (Input/output error): decoding on the cpu"),
    f"hang:{FAULT_AT}": ("h265", "v4l2m2m failed (no answer for 0.5 s): decoding on the cpu"),
    f"silent:{FAULT_AT}": ("h264", "v4l2m2m failed (it gives no pictures): decoding on the cpu"),
    f"wrong:{FAULT_AT}": ("h264", None),
}
VAAPI = f"vaapi:{va_pictures.DEVICE}"
VAAPI_FAULTS = {
    "": ("h265", None),
    f"refused:{FAULT_AT}": ("h264", f"{VAAPI} failed (Input/output error): decoding on the cpu"),
    f"hang:{FAULT_AT}": ("h264", f"{VAAPI} failed (no answer for 0.5 s): decoding on the cpu"),
    f"copy:{FAULT_AT}": ("h265", f"{VAAPI} failed (Input/output error): decoding on the cpu"),
}


class Reader(threading.Thread):
    """Records frames and their times of arrival."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.frames, self.error = address, [], None
        self.start()

    def run(self):
        try:
            for header, payload in consume.frames_from(self.address, 10 * PATIENCE):
                self.frames.append((header, bytes(payload), time.monotonic()))
        except (OSError, ValueError) as error:
            self.error = error


class Run:
    """One run over the clip, to its end."""

    def __init__(self, where, clip, fault, decode="v4l2m2m", live=False):
        self.where = os.path.join(where, decode[:5] + fault.replace(":", "") + ("live" if live else ""))
        self.pictures = os.path.join(where, "pictures")
        os.mkdir(self.where)
        self.clip, self.fault, self.decode, self.live = clip, fault, decode, live

    def __call__(self):
        with contextlib.ExitStack() as stack:
            url, pace = self.clip, "full" if self.decode == "cpu" else "realtime"
            if self.live:
                url, pace = f"tcp://127.0.0.1:{free_port()}", "full"
                sender = ["ffmpeg", "-v", "error", "-nostdin", "-re", "-i", self.clip, "-c", "copy", "-f", "mpegts",
                          url + "?listen=1"]
                stack.callback(subprocess.Popen(sender, stdin=subprocess.DEVNULL).kill)
            config = CAMERA.format(where=self.where, url=url, pace=pace, decode=self.decode)
            env = {"LD_PRELOAD": SHIM, "FRAMED_DECODER": self.fault}
            if self.decode == VAAPI:
                env = va_pictures.environment(self.pictures, self.fault)
            env["STATE_DIRECTORY"] = self.where
            framed = stack.enter_context(Framed(self.where, config, env))
            reader = Reader(f"unix:{self.where}/planes.sock")
            if self.live:  # the camera would reconnect for ever
                deadline = time.monotonic() + 30 * PATIENCE
                while len(reader.frames) < FRAMES - 5 and time.monotonic() < deadline:
                    time.sleep(0.05)
                asked, env = ["status", "-c", f"{self.where}/framed.yaml"], {"RUNTIME_DIRECTORY": self.where}
                self.table = run(*asked, env=env)[1]
                self.camera, = json.loads(run(*asked, "--json", env=env)[1])["cameras"]
                self.code = framed.stop()
            else:
                self.code = framed.wait(30)
            reader.join(5 * PATIENCE)
            self.frames = reader.frames
            self.log, self.metrics = framed.errors(), framed.metrics()

    def warnings(self):
        return [line for line in self.log.splitlines() if line.startswith(("warning", "error"))]

    def longest_gap(self):
        times = [came for _, _, came in self.frames]
        return max((b - a for a, b in zip(times, times[1:])), default=None)


def check_run(checks, run, whole, said):
    what = f"{run.decode} {run.fault or 'no fault'}{' live' if run.live else ''}"
    checks.check(run.code == 0, f"{what}: exit {run.code}:\n{run.log}")
    flags = [header.flags for header, _, _ in run.frames]
    # A tcp stream may miss pictures within a second of both its ends.
    end = len(run.frames) if run.live else FRAMES
    differ = [i for i, (got, wanted) in enumerate(zip(run.frames, whole)) if got[1] != wanted[1]]
    checks.check(len(run.frames) == end >= FRAMES - 5, f"{what}: {len(run.frames)} frames")
    if run.fault.startswith("wrong"):
        checks.check(differ == list(range(FAULT_AT - 1, FRAMES)), f"{what}: other bytes in {differ}")
    else:
        checks.check(not differ, f"{what}: other bytes in {differ}")
    wanted = [header.flags for header, _, _ in whole][:end]
    checks.check(flags == wanted, f"{what}: flags {flags}, not {wanted}")
    waits = run.fault.startswith(("hang", "silent"))  # for the deadline
    limit = 4 if waits else 1
    checks.check(run.longest_gap() < limit * PATIENCE, f"{what}: {run.longest_gap()} s without a picture")
    lines = run.warnings()
    checks.check([line.split("camera=gate ")[-1] for line in lines if run.decode in line] == ([said] if said else []),
                 f"{what}: {lines}")
    fallbacks = run.metrics.sum("framed_decoder_fallbacks_total", camera="gate")
    checks.check(fallbacks == (said is not None), f"{what}: {fallbacks} fallbacks")
    if run.live:
        checks.check((run.camera["decoder"], run.camera["decoder_fallbacks"]) == ("cpu", 1), str(run.camera))
        checks.check("decoder cpu, 1 fallback, backend" in run.table, run.table)


def main():
    checks = Checks("hardware")
    with folder() as where:
        clips = {codec: make_clip(f"{where}/{codec}.mp4", codec, FRAMES, b_frames=2) for codec in ("h264", "h265")}
        flat = make_clip(f"{where}/flat.mp4", frames=FRAMES)
        cpu = {clip: Run(where, clip, str(i), "cpu") for i, clip in enumerate((*clips.values(), flat))}
        runs = [(Run(where, clips[codec], fault), said) for fault, (codec, said) in FAULTS.items()]
        live = f"hang:{FAULT_AT}"
        runs.append((Run(where, flat, live, live=True), FAULTS[live][1]))
        if os.path.exists(va_pictures.DRIVER):
            for codec, name in (("h264", "h264-8"), ("h265", "hevc-8")):
                va_pictures.write(f"{where}/pictures", name, clips[codec], 320, 240)
            runs += [(Run(where, clips[codec], fault, VAAPI), said) for fault, (codec, said) in VAAPI_FAULTS.items()]
        else:
            checks.skip("libva-dev is not installed: no VAAPI")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for future in [pool.submit(run) for run in (*(run for run, _ in reversed(runs)), *cpu.values())]:
                future.result()
        for clip, run in cpu.items():
            checks.check(run.code == 0 and len(run.frames) == FRAMES, f"{clip}: {len(run.frames)}\n{run.log}")
        for run, said in runs:
            check_run(checks, run, cpu[run.clip].frames, said)
    checks.end()


if SANITIZED:
    checks = Checks("hardware")
    checks.skip("a library with a sanitizer wants to be loaded first")
    checks.end()
else:
    main()
