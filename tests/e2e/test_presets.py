#!/usr/bin/python3
"""Compares the tensors of every preset with OpenCV and numpy doing the framework's own steps: resize, pad, normalise."""
import os

import cv2
import numpy
from framed_client import Checks, Framed, folder

SIZE = (640, 384)
SOURCES = [(1920, 1080), (1081, 607), (704, 576), (1081, 1920), (100, 75)]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# preset: order of channels, scale, mean, std
PRESETS = {
    "ultralytics": ("rgb", 1 / 255, 0, 1),
    "yolox": ("bgr", 1, 0, 1),
    "mmdet": ("bgr", 1, (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)),
    "stretch": ("rgb", 1 / 255, 0, 1),
    "imagenet-stretch": ("rgb", 1 / 255, MEAN, STD),
    "opencv-blob": ("bgr", 1, 0, 1),
}


def place(preset, source):
    """Returns width, height, left and top of the picture in the tensor."""
    ratio = min(SIZE[0] / source[0], SIZE[1] / source[1])
    width, height = source[0] * ratio, source[1] * ratio
    if preset == "ultralytics":
        width, height = round(width), round(height)
        return width, height, round((SIZE[0] - width) / 2 - 0.1), round((SIZE[1] - height) / 2 - 0.1)
    if preset == "yolox":
        return int(width), int(height), 0, 0
    if preset == "mmdet":
        return int(width + 0.5), int(height + 0.5), 0, 0
    return *SIZE, 0, 0


def soft_picture(source):
    """Returns noise without sharp edges, where rounded weights would show."""
    noise = numpy.random.default_rng(1).integers(0, 256, (source[1], source[0], 3), dtype="u1")
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 3), None, 0, 255, cv2.NORM_MINMAX)


def try_source(checks, where, source):
    picture = soft_picture(source)
    with open(f"{where}/picture.bgr", "wb") as file:
        file.write(picture.tobytes())
    outputs = "".join(
        f"      o{i}: {{preset: {preset}, size: {SIZE[0]}x{SIZE[1]}, overflow: wait, sink: 'file:{where}/{i}.npy'}}\n"
        for i, preset in enumerate(PRESETS))
    options = f"{{pixel_format: bgr24, video_size: {source[0]}x{source[1]}, framerate: 25}}"
    config = (f"cameras:\n  a:\n    url: {where}/picture.bgr\n    demuxer: rawvideo\n    options: {options}\n"
              f"    outputs:\n{outputs}")
    with Framed(where, config) as framed:
        code = framed.wait(60)
        checks.check(code == 0, f"{source}: exit {code}:\n{framed.errors()}")
    for i, (preset, (order, scale, mean, std)) in enumerate(PRESETS.items()):
        ours = numpy.load(f"{where}/{i}.npy").reshape(3, SIZE[1], SIZE[0])
        levels = numpy.moveaxis(ours, 0, 2) * numpy.array(std) + numpy.array(mean)
        levels = (levels / scale)[..., ::1 if order == "bgr" else -1]
        width, height, left, top = place(preset, source)
        theirs = numpy.full((SIZE[1], SIZE[0], 3), 114, "f8")
        # In floats: on bytes OpenCV's resize truncates fractions, a tenth of a level in the mean.
        resized = cv2.resize(picture.astype("f4"), (width, height), interpolation=cv2.INTER_LINEAR)
        theirs[top:top + height, left:left + width] = resized
        apart = numpy.abs(levels - theirs)
        checks.check(ours.dtype == numpy.float32, f"{preset}: {ours.dtype}")
        checks.check(apart.max() < 1, f"{preset} of {source}: {apart.max()} levels apart")
        checks.check(abs((levels - theirs).mean()) < 0.02, f"{preset} of {source}: {(levels - theirs).mean()} in the mean")
        apart[top:top + height, left:left + width] = 0
        checks.check(apart.max() < 0.001, f"{preset} of {source}: {apart.max()} levels apart in the pad")
    for i in range(len(PRESETS)):
        os.unlink(f"{where}/{i}.npy")


def main():
    checks = Checks("presets")
    for source in SOURCES:
        with folder() as where:
            try_source(checks, where, source)
    checks.end()


main()
