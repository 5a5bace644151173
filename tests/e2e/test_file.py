#!/usr/bin/python3
"""A file, once, with `overflow: wait`: every frame arrives exactly once, on sockets and in files, and framed ends by itself."""
import os

import definition
import numpy
from framed_client import Checks, Framed, Metrics, Reader, decode_yuv420, folder, make_clip

SIZE = (256, 192)
FRAMES = 40
CONFIG = """
defaults: {{overflow: wait}}
cameras:
  clip:
    url: {where}/clip.mp4
    outputs:
      levels:
        size: 256x192
        tensor: {{dtype: u8, layout: nchw, order: rgb, scale: 1}}
        sink: unix:{where}/levels.sock
      halves:
        size: 256x192
        tensor: {{dtype: f16, layout: nhwc, order: gray, scale: 1/255}}
        sink: unix:{where}/halves.sock
      player:
        kernel: yuv
        format: yuv420p
        sink: file:{where}/player.y4m
      planes:
        kernel: yuv
        format: nv12
        sink: file:{where}/planes.raw
      arrays:
        size: 256x192
        tensor: {{dtype: u8, layout: nhwc, order: bgr, scale: 1}}
        sink: file:{where}/arrays.npy
"""
OUTPUTS = ("levels", "halves", "player", "planes", "arrays")


def check_sockets(checks, pictures, expected, levels, halves):
    checks.check([h.sequence for h, _ in levels.frames] == list(range(FRAMES)), "levels: not every frame in order")
    checks.check([h.sequence for h, _ in halves.frames] == list(range(FRAMES)), "halves: not every frame in order")
    worst = max(numpy.abs(t.transpose(1, 2, 0) - e).max() for (_, t), e in zip(levels.tensors(), expected))
    checks.check(worst <= 1, f"u8 nchw rgb differs by {worst} levels")
    gray = [definition.rounded(definition.warp_gray420(planes, SIZE)) for planes in pictures]
    worst = max(numpy.abs(t.astype("f8") * 255 - e).max() for (_, t), e in zip(halves.tensors(), gray))
    checks.check(worst <= 1.1, f"f16 gray differs by {worst} levels")  # a f16 near 1 is off by up to 0.06 levels


def check_files(checks, where, pictures, expected):
    height, width = pictures[0][0].shape
    frame = width * height * 3 // 2
    with open(f"{where}/player.y4m", "rb") as file:
        header = file.readline().split()
        checks.check(header[0] == b"YUV4MPEG2" and b"W%d" % width in header, f"y4m header {header}")
        same = all(
            file.readline().startswith(b"FRAME") and file.read(frame) == b"".join(p.tobytes() for p in planes)
            for planes in pictures
        )
        checks.check(same and not file.read(1), "player.y4m is not the decoded clip")
    with open(f"{where}/planes.raw", "rb") as file:
        raw = file.read()
    nv12 = b"".join(y.tobytes() + numpy.stack([u, v], axis=-1).tobytes() for y, u, v in pictures)
    checks.check(raw == nv12, "planes.raw is not the decoded clip as nv12")
    with open(f"{where}/arrays.npy", "rb") as file:
        arrays = [numpy.load(file) for _ in range(FRAMES)]
        checks.check(not file.read(1), "arrays.npy goes on after the last frame")
    worst = max(numpy.abs(a.reshape(e.shape) - e[:, :, ::-1]).max() for a, e in zip(arrays, expected))
    checks.check(worst <= 1, f"npy differs by {worst} levels")


def check_account(checks, metrics):
    for output in OUTPUTS:
        account = metrics.account(camera="clip", output=output)
        checks.check(account == (FRAMES, FRAMES, 0), f"{output}: (offered, emitted, lost) = {account}")


def main():
    checks = Checks("file")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"), frames=FRAMES, b_frames=2)
        pictures = decode_yuv420(clip)
        expected = [definition.rounded(definition.warp_yuv420(planes, SIZE)) for planes in pictures]
        with Framed(where, CONFIG.format(where=where)) as framed:
            readers = [Reader(f"unix:{where}/{name}.sock") for name in ("levels", "halves")]
            code = framed.wait(60)
            checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
            for reader in readers:
                reader.join(5)
            check_sockets(checks, pictures, expected, *readers)
            check_files(checks, where, pictures, expected)
            check_account(checks, Metrics(framed.counters))
    checks.end()


main()
