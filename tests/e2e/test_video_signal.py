#!/usr/bin/python3
"""Interlaced and HDR pictures are flagged in each header and logged once; y4m files name the field order, and a new
file begins where it changes; the counters have the number of pictures."""
import json
import glob

from framed_client import Checks, Framed, ffmpeg, folder
import consume

INTERLACED, HDR = 16, 32
FRAMES = 10
SOURCE = ["-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25", "-frames:v", str(FRAMES)]
X265 = "log-level=none:"
# file: (encoder's options, flags of every picture, y4m's interlacing, a word of the log)
CLIPS = {
    "plain.ts": (["-c:v", "libx264"], 0, "p", None),
    "deep.mkv": (["-c:v", "ffv1", "-pix_fmt", "yuv420p12le"], 0, "p", None),
    "top.ts": (["-c:v", "libx264", "-flags", "+ildct+ilme", "-top", "1"], INTERLACED, "t", "top field first"),
    "bottom.ts": (["-c:v", "libx264", "-x264-params", "bff=1"], INTERLACED, "b", "bottom field first"),
    "mpeg2.ts": (["-c:v", "mpeg2video", "-flags", "+ildct+ilme", "-top", "1"], INTERLACED, "t", "top field first"),
    "fields.ts": (["-c:v", "libx265", "-x265-params", X265 + "interlace=tff"], INTERLACED, "?", "no single field order"),
    "pq.ts": (["-c:v", "libx265", "-x265-params", X265 + "transfer=smpte2084:colorprim=bt2020:colormatrix=bt2020nc"],
              HDR, "p", "HDR"),
    "hlg.ts": (["-vf", "setparams=color_trc=arib-std-b67", "-c:v", "libx264"], HDR, "p", "HDR"),
}
CAMERA = """
  {name}:
    url: {where}/{file}
    outputs:
      header: {{size: 64x64, sink: "file:{where}/{name}.framed"}}
      player: {{kernel: yuv, format: yuv420p, sink: "file:{where}/{name}.y4m"}}
"""


def make_clips(where):
    for file, (encoder, _, _, _) in CLIPS.items():
        ffmpeg(*SOURCE, *encoder, f"{where}/{file}")
    with open(f"{where}/mixed.ts", "wb") as to:
        for file in ("plain.ts", "top.ts", "plain.ts", "bottom.ts"):
            with open(f"{where}/{file}", "rb") as part:
                to.write(part.read())


def headers(where, name):
    with open(f"{where}/{name}.framed", "rb") as file:
        return [header for header, _ in consume.read_frames(file)]


def y4m(path):
    """Returns (interlacing, frames) of a file."""
    with open(path, "rb") as file:
        data = file.read()
    return next(word[1:] for word in data.split(b"\n", 1)[0].split() if word[:1] == b"I").decode(), data.count(b"FRAME\n")


def lines_of(log, name):
    return [line for line in log.splitlines() if f"camera={name} " in line]


def check_clip(checks, where, file, log, metrics):
    _, flags, interlacing, word = CLIPS[file]
    name = file.split(".")[0]
    found = [header.flags & (INTERLACED | HDR) for header in headers(where, name)]
    checks.check(found == FRAMES * [flags], f"{name}: flags {found}")
    said = y4m(f"{where}/{name}.y4m")
    checks.check(said == (interlacing, FRAMES), f"{name}: y4m says {said}")
    told = [line for line in lines_of(log, name) if "interlaced" in line or "HDR" in line or "field first" in line]
    checks.check(len(told) == (word is not None) and (not word or word in told[0]), f"{name}: the log says {told}")
    for flag, bit in (("interlaced", INTERLACED), ("hdr", HDR), ("damaged", 0)):
        counted = [value for _, value in metrics.all("framed_pictures_flagged_total", camera=name, flag=flag)]
        checks.check(counted == [FRAMES if flags & bit else 0], f"{name}: {counted} pictures counted as {flag}")
    converted = [value for _, value in metrics.all("framed_pictures_converted_total", camera=name)]
    checks.check(converted == [FRAMES if name == "deep" else 0], f"{name}: {converted} pictures counted as converted")


def check_mixed(checks, where, log):
    """Progressive pictures in an interlaced stream begin no new file; another field order does."""
    flags = [header.flags & INTERLACED for header in headers(where, "mixed")]
    checks.check(flags == [flag for flag in (0, INTERLACED, 0, INTERLACED) for _ in range(FRAMES)], f"mixed: {flags}")
    files = [y4m(path) for path in sorted(glob.glob(f"{where}/mixed*.y4m"))]  # .1, .2, and the last
    checks.check(files == [("p", FRAMES), ("t", 2 * FRAMES), ("?", FRAMES)], f"mixed: y4m says {files}")
    told = [line for line in lines_of(log, "mixed") if "pictures are interlaced" in line]
    checks.check(len(told) == 2 and "top field first" in told[0] and "no single field order" in told[1],
                 f"mixed: the log says {told}")


def main():
    checks = Checks("video_signal")
    with folder() as where:
        make_clips(where)
        files = [*CLIPS, "mixed.ts"]
        cameras = [CAMERA.format(where=where, name=file.split(".")[0], file=file) for file in files]
        with Framed(where, "defaults: {overflow: wait}\ncameras:" + "".join(cameras)) as framed:
            checks.check(framed.wait(60) == 0, f"exit {framed.child.returncode}")
            log = framed.errors()
            for file in CLIPS:
                check_clip(checks, where, file, log, framed.metrics())
            check_mixed(checks, where, log)
    checks.end()


main()
