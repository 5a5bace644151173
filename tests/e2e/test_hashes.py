#!/usr/bin/python3
"""Hashes of H.265's pictures: with `check_hashes`, a picture that differs from its hash is flagged, and a reload applies the key. Without the key no
picture is flagged. H.264 has no hashes."""
import os

from framed_client import Checks, Framed, ffmpeg, folder, run, until

FRAMES = 24
MD5 = b"\x50\x01\x84\x31\x00"  # the suffix SEI with three MD5 digests
CONFIG = """
backend: cpu
control: unix:{where}/control.sock
defaults: {{check_hashes: {checks}}}
cameras:
  h265: {{url: "{where}/wrong.mp4", loop: true, pace: realtime, outputs: {{o: {{sink: "unix:{where}/h265.sock"}}}}}}
  h264: {{url: "{where}/h264.mp4", loop: true, pace: realtime, outputs: {{o: {{sink: "unix:{where}/h264.sock"}}}}}}
"""


def make_clips(where):
    """Makes a clip of H.264, and one of H.265 with a wrong hash for a picture in its middle; returns the number of hashes."""
    source = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", str(FRAMES), "-pix_fmt", "yuv420p"]
    ffmpeg(*source, "-c:v", "libx264", f"{where}/h264.mp4")
    ffmpeg(*source, "-c:v", "libx265", "-x265-params", "log-level=error:bframes=0:hash=1", f"{where}/h265.mp4")
    with open(f"{where}/h265.mp4", "rb") as file:
        clip = bytearray(file.read())
    found = [at for at in range(len(clip)) if clip.startswith(MD5, at)]
    clip[found[len(found) // 2] + len(MD5) + 7] ^= 1
    with open(f"{where}/wrong.mp4", "wb") as file:
        file.write(clip)
    return len(found)


class Counters:
    def __init__(self, framed):
        self.metrics = framed.live_metrics()

    def flagged(self, camera):
        return self.metrics.sum("framed_pictures_flagged_total", camera=camera, flag="damaged")

    def pictures(self, camera):
        return self.metrics.sum("framed_pictures_total", camera=camera)


def check_reload(checks, where):
    def seen(turns):
        return min(Counters(framed).pictures(camera) for camera in ("h264", "h265")) > turns * FRAMES

    with Framed(where, CONFIG.format(where=where, checks="false")) as framed:
        until(lambda: os.path.exists(f"{where}/h264.sock"), 10)
        checks.check(until(lambda: seen(2), 20), f"no pictures: {framed.errors()}")
        told = {camera: Counters(framed).flagged(camera) for camera in ("h264", "h265")}
        checks.check(told == {"h264": 0, "h265": 0}, f"without the key: {told}")
        with open(framed.config, "w") as file:
            file.write(CONFIG.format(where=where, checks="true"))
        said = "`check_hashes` of 2 cameras without `decode: cpu`: pictures that hardware decodes are not compared\n"
        checks.check(said in run("check", "-c", framed.config)[1], "check does not tell that hashes want the CPU")
        code, _, errors = run("reload", "-c", framed.config)
        checks.check(code == 0, f"reload: exit {code}, {errors}")
        checks.check(until(lambda: Counters(framed).flagged("h265") >= 2, 20), f"with the key: {framed.errors()}")
        checks.check(Counters(framed).flagged("h264") == 0, "H.264 is flagged")
        checks.check(framed.stop() == 0, framed.errors())


def main():
    checks = Checks("hashes")
    with folder() as where:
        found = make_clips(where)
        checks.check(found == FRAMES, f"{found} hashes in {FRAMES} pictures")
        check_reload(checks, where)
    checks.end()


main()
