#!/usr/bin/python3
"""Gates and alarms over a clip of known events, through the daemon: each gate delivers the right pictures, all others
are counted as still, and each alarm is raised and cleared once."""
import os
import subprocess

import numpy

from framed_client import Checks, Framed, Reader, folder

RATE = 5
WIDTH, HEIGHT = 320, 180

# Contents of the clip: (event, seconds).
EVENTS = [("still", 40), ("block", 4), ("still", 26), ("dark", 15), ("still", 25), ("frozen", 25), ("still", 25)]

CONFIG = """
cameras:
  clip:
    url: {where}/clip.mkv
    stats: true
    motion: {{mask: "0,0 100,0 100,60 0,60"}}
    outputs:
      all: {{size: 64x64, sink: "unix:{where}/all.sock"}}
      motion: {{size: 64x64, gate: motion, sink: "unix:{where}/motion.sock"}}
  masked:
    url: {where}/clip.mkv
    motion: {{mask: "0,0 320,0 320,120 0,120"}}
    outputs:
      motion: {{size: 64x64, gate: {{motion: true, every: 0}}, sink: "unix:{where}/masked.sock"}}
"""


def starts():
    """Returns name -> seconds at which each event of that name begins."""
    at, ret = 0, {}
    for name, seconds in EVENTS:
        ret.setdefault(name, []).append(at)
        at += seconds
    return ret


def pictures():
    """Yields the clip's gray pictures: a scene with noise, a moving block, and faults."""
    random = numpy.random.default_rng(1)
    scene = random.integers(60, 200, (HEIGHT // 12, WIDTH // 16), "u1").repeat(12, 0).repeat(16, 1).astype(int)
    last = None
    for event, seconds in EVENTS:
        for i in range(seconds * RATE):
            picture = scene.copy()
            if event == "block":
                x = 20 + i * 10
                picture[60:110, x : x + 40] = 230 if picture[60:110, x : x + 40].mean() < 130 else 30
            if event == "dark":
                picture = numpy.full_like(scene, 18)
            picture = numpy.clip(picture + random.integers(-3, 4, picture.shape), 0, 255).astype("u1")
            last = last if event == "frozen" else picture
            yield last


def make_clip(path):
    ffmpeg = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-color_range", "tv", "-s", f"{WIDTH}x{HEIGHT}"]
    chroma = bytes([128]) * (WIDTH * HEIGHT // 2)
    subprocess.run([*ffmpeg, "-r", str(RATE), "-i", "-", "-c:v", "ffv1", "-color_range", "tv", path],
                   input=b"".join(picture.tobytes() + chroma for picture in pictures()), check=True)


def seconds_of(reader):
    return [header.pts_ns / 1e9 for header, _ in reader.frames]


def check_motion(checks, times, event):
    """The gate passes the first picture, all from the event's start to the end of the hold, and one every 10 s."""
    inside = [t for t in times if event <= t < event + 4 + 5]
    outside = [t for t in times if not event <= t < event + 4 + 5.5]
    checks.check(times[0] == 0, f"the first is of {times[0]} s")
    checks.check(len(inside) >= 7.5 * RATE, f"{len(inside)} pictures of the event")
    gaps = [b - a for a, b in zip(times, times[1:])]
    checks.check(max(gaps) <= 10.01, f"a gap of {max(gaps)} s")
    checks.check(len(outside) < 40, f"{len(outside)} pictures beside it, at {outside}")


def check_accounts(checks, metrics):
    for camera, output in (("clip", "all"), ("clip", "motion"), ("masked", "motion")):
        offered, emitted, lost = metrics.account(camera=camera, output=output)
        still = metrics.losses(camera=camera, output=output)["still"]
        checks.check(offered == sum(seconds for _, seconds in EVENTS) * RATE, f"{camera} {output}: {offered} offered")
        checks.check((offered - emitted, lost) == (still, still), f"{camera} {output}: {emitted} emitted, {lost} lost, {still} still")
        checks.check((still > 0) == (output != "all"), f"{camera} {output}: {still} still")


def check_alarms(checks, log):
    for alarm in ("dark", "frozen"):
        for what in ("raised", "cleared"):
            lines = [line for line in log.splitlines() if f"camera=clip alarm {alarm} {what}" in line]
            checks.check(len(lines) == 1, f"{alarm} {what}: {lines}")
    others = [line for line in log.splitlines() if "camera=clip alarm" in line]
    checks.check(len(others) == 4, f"alarms: {others}")


def main():
    checks, at = Checks("scene"), starts()
    with folder() as where:
        make_clip(os.path.join(where, "clip.mkv"))
        with Framed(where, CONFIG.format(where=where)) as framed:
            readers = {name: Reader(f"unix:{where}/{name}.sock") for name in ("all", "motion", "masked")}
            checks.check(framed.wait(60) == 0, f"framed ended: {framed.errors()[-2000:]}")
            for reader in readers.values():
                reader.join()
            check_accounts(checks, framed.metrics())
            check_alarms(checks, framed.errors())
        check_motion(checks, seconds_of(readers["motion"]), at["block"][0])
        masked = [t for t in seconds_of(readers["masked"]) if at["block"][0] <= t < at["block"][0] + 5]
        checks.check(not masked, f"motion behind the mask: {masked}")
    checks.end()


main()
