#!/usr/bin/python3
"""An output with `gate: motion` gets the pictures in which a block moves, the pictures of the hold and one every EVERY s. All others are counted as
still, and pictures with bit errors, which look like motion, never open the gate."""
import re
import subprocess

import numpy
from framed_client import Checks, Framed, Reader, folder
from watch import DAMAGED

RATE, SIZE = 10, (320, 192)
SECONDS, MOVES, KEYFRAMES_S = 40, (16, 19), 4
BROKEN = 32  # second of a keyframe: all pictures up to the next one are damaged
HOLD, EVERY = 2, 10
CONFIG = """
cameras:
  yard:
    url: {where}/clip.h264
    options: {{framerate: {rate}}}
    outputs:
      all: {{size: 64x64, sink: "unix:{where}/all.sock"}}
      moving: {{size: 64x64, gate: {{motion: true, hold: {hold}s, every: {every}s}}, sink: "unix:{where}/moving.sock"}}
"""


def pictures():
    """Yields a rough ground with noise, and from MOVES[0] to MOVES[1] a block that crosses it."""
    random, (width, height) = numpy.random.default_rng(1), SIZE
    ground = random.integers(60, 180, (height // 16, width // 16)).repeat(16, 0).repeat(16, 1)
    for number in range(SECONDS * RATE):
        picture = ground + random.integers(-3, 4, ground.shape)
        if MOVES[0] * RATE <= number < MOVES[1] * RATE:
            x = (number - MOVES[0] * RATE) * 9
            picture[70:120, x:x + 48] = 220
        yield picture.astype("u1")


def write_clip(path):
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", "{}x{}".format(*SIZE), "-r", str(RATE)]
    coder = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-g", str(KEYFRAMES_S * RATE), "-bf", "0", "-sc_threshold",
             "0", "-threads", "1", "-pix_fmt", "yuv420p", "-f", "h264"]
    done = subprocess.run(["ffmpeg", "-v", "error", *raw, "-i", "-", *coder, "-"], check=True, stdout=subprocess.PIPE,
                          input=b"".join(picture.tobytes() for picture in pictures()))
    stream = bytearray(done.stdout)
    keyframes = [found.start() for found in re.finditer(b"\0\0\1\x65", stream)]
    at = keyframes[BROKEN // KEYFRAMES_S] + 1500  # behind the slice's header
    for place in range(at, at + 200):
        stream[place] ^= 0x55
    with open(path, "wb") as file:
        file.write(stream)


def check_gate(checks, seconds):
    """Checks the pictures that passed the gate."""
    first, last = MOVES[0] + 3 / RATE, MOVES[1] + HOLD - 3 / RATE
    wanted = {number for number in range(SECONDS * RATE) if first <= number / RATE <= last}
    came = {round(second * RATE) for second in seconds}
    checks.check(wanted <= came, f"pictures of motion or of its hold did not come: {sorted(wanted - came)}")
    outside = [second for second in seconds if second > 2 and not MOVES[0] <= second <= MOVES[1] + HOLD + 0.5]
    checks.check(len(outside) <= 3, f"pictures of stillness came at {outside}")
    gaps = [b - a for a, b in zip(seconds, seconds[1:])]
    checks.check(max(gaps) <= EVERY + 0.01, f"none came for {max(gaps)} s")


def main():
    checks = Checks("motion")
    with folder() as where:
        write_clip(f"{where}/clip.h264")
        with Framed(where, CONFIG.format(where=where, rate=RATE, hold=HOLD, every=EVERY)) as framed:
            readers = {name: Reader(f"unix:{where}/{name}.sock") for name in ("all", "moving")}
            checks.check(framed.wait(60) == 0, f"framed ended: {framed.errors()[-2000:]}")
            for reader in readers.values():
                reader.join()
            metrics = framed.metrics()
        start = readers["all"].frames[0][0].pts_ns
        damaged = [(h.pts_ns - start) / 1e9 for h, _ in readers["all"].frames if h.flags & DAMAGED]
        checks.check(len(damaged) > KEYFRAMES_S * RATE - 3 and BROKEN - 0.1 < damaged[0] < BROKEN + 0.1,
                     f"the damaged pictures are {damaged}")
        check_gate(checks, [(header.pts_ns - start) / 1e9 for header, _ in readers["moving"].frames])
        offered, emitted, lost = metrics.account(camera="yard", output="moving")
        still = metrics.losses(camera="yard", output="moving")["still"]
        checks.check((offered, emitted, lost) == (SECONDS * RATE, len(readers["moving"].frames), still),
                     f"{offered} offered, {emitted} emitted, {lost} lost, {still} still")
    checks.end()


main()
