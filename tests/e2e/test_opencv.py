#!/usr/bin/python3
"""Compares letterboxed frames with OpenCV's warpAffine with the same matrix."""
import os

import cv2
import definition
import numpy
from framed_client import Checks, Framed, ffmpeg, folder, footage, make_clip

SIZE = (640, 640)
FRAMES = 8
CONFIG = """
cameras:
  raw:
    url: {where}/frames.nut
    outputs:
      arrays:
        size: 640x640
        overflow: wait
        tensor: {{dtype: u8, layout: nhwc, order: {order}, scale: 1}}
        sink: file:{where}/arrays.npy
"""


def try_format(checks, clip, pixel_format, order):
    with folder() as where:
        nut = os.path.join(where, "frames.nut")
        passthrough = ["-fps_mode", "passthrough"]
        pick = ["-i", clip, "-map", "0:v:0", "-vf", "select=not(mod(n\\,5))", *passthrough]
        ffmpeg(*pick, "-frames:v", str(FRAMES), "-pix_fmt", pixel_format, "-c:v", "rawvideo", nut)
        capture = cv2.VideoCapture(clip)
        width, height = (int(capture.get(key)) for key in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        capture.release()
        raw = numpy.frombuffer(ffmpeg("-i", nut, *passthrough, "-f", "rawvideo", "-"), "u1")
        frames = raw.reshape(-1, height, width, 3)
        with Framed(where, CONFIG.format(where=where, order=order)) as framed:
            code = framed.wait(30)
            checks.check(code == 0, f"{pixel_format}: exit {code}:\n{framed.errors()}")
        with open(os.path.join(where, "arrays.npy"), "rb") as file:
            ours = [numpy.load(file).reshape(640, 640, 3) for _ in range(FRAMES)]
    matrix = definition.letterbox((width, height), SIZE)
    border = {"flags": cv2.INTER_LINEAR, "borderMode": cv2.BORDER_CONSTANT, "borderValue": (114,) * 3}
    theirs = [cv2.warpAffine(frame, matrix, SIZE, **border) for frame in frames]
    apart = numpy.abs(numpy.stack(ours).astype(int) - numpy.stack(theirs))
    print(
        f"{pixel_format} {width}x{height}: mean difference {apart.mean():.4f}, largest {apart.max()} of 255"
        " (OpenCV rounds positions to 1/32 pixel: at a sharp edge that is several levels)"
    )
    checks.check(apart.mean() < 0.5, f"{pixel_format}: mean difference {apart.mean()}")
    # 1/64 pixel along both axes at an edge of 255 levels: a larger difference is not position rounding.
    checks.check(apart.max() <= 10, f"{pixel_format}: largest difference {apart.max()}")


def main():
    checks = Checks("opencv")
    with folder() as where:
        clip = footage("car-detection.mp4") or make_clip(os.path.join(where, "clip.mp4"), size="768x432")
        try_format(checks, clip, "rgb24", "rgb")
        try_format(checks, clip, "bgr24", "bgr")
    checks.end()


main()
