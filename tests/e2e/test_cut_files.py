#!/usr/bin/python3
"""A truncated file: its remaining pictures come, the log says so, and the exit code is 1, in all formats that contain their length. A raw stream and
MPEG-TS do not."""
import os

from framed_client import Checks, Framed, Metrics, ffmpeg, folder, until

FRAMES = 50
SOURCE = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", str(FRAMES), "-pix_fmt", "yuv420p"]
H264 = ["-c:v", "libx264", "-bf", "0"]
TELL = {
    "fast.mp4": [*H264, "-movflags", "faststart"],
    "fragments.mp4": [*H264, "-g", "10", "-movflags", "frag_keyframe+empty_moov"],
    "clip.mkv": H264,
    "clip.webm": ["-c:v", "libvpx"],
    "clip.flv": H264,
    "clip.avi": ["-c:v", "mjpeg"],
    "clip.y4m": [],
}
DO_NOT_TELL = {"clip.ts": H264, "clip.h264": H264}
CONFIG = """
backend: cpu
cameras:
  clip:
    url: {where}/{file}
    loop: {loop}
    outputs: {{o: {{kernel: yuv, sink: "file:{where}/o.framed"}}}}
"""
SAID = "the file is cut short"


def cut(where, file, left):
    """Copies the first `left` bytes of a file."""
    with open(f"{where}/{file}", "rb") as source, open(f"{where}/cut.{file}", "wb") as to:
        to.write(source.read(left))
    return f"cut.{file}"


def play(where, file):
    """Returns (exit code, pictures, log)."""
    with Framed(where, CONFIG.format(where=where, file=file, loop="false")) as framed:
        code = framed.wait(20)
        return code, Metrics(framed.counters).account()[1], framed.errors()


def check_file(checks, where, file, coder, tells):
    ffmpeg(*SOURCE, *coder, f"{where}/{file}")
    code, pictures, log = play(where, file)
    checks.check(code == 0 and pictures == FRAMES and SAID not in log, f"{file}: exit {code}, {pictures} pictures\n{log}")
    size = os.path.getsize(f"{where}/{file}")
    for left in (size // 2 + 777, size * 3 // 4):
        code, pictures, log = play(where, cut(where, file, left))
        case = f"{left} of the {size} bytes of {file}"
        checks.check(code == tells and (SAID in log) == tells, f"{case}: exit {code}, {pictures} pictures\n{log}")
        checks.check(FRAMES // 4 < pictures < FRAMES, f"{case}: {pictures} pictures\n{log}")


def check_loop(checks, where):
    """Played in a loop, such a file goes on, and is reported once."""
    text = CONFIG.format(where=where, file="cut.fast.mp4", loop="true")
    with Framed(where, text) as framed:
        until(lambda: "running:" in framed.errors(), 10)
        went_on = until(lambda: framed.live_metrics().account()[1] > 3 * FRAMES, 20)
        checks.check(went_on, f"a loop: {framed.errors()}")
        code = framed.stop()
        told = framed.errors().count(SAID)
        checks.check(code == 0 and told == 1, f"a loop: exit {code}, told {told} times\n{framed.errors()}")


def main():
    checks = Checks("cut_files")
    with folder() as where:
        for file, coder in TELL.items():
            check_file(checks, where, file, coder, True)
        for file, coder in DO_NOT_TELL.items():
            check_file(checks, where, file, coder, False)
        check_loop(checks, where)
    checks.end()


main()
