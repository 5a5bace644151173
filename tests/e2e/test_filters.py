#!/usr/bin/python3
"""`filter: area` and `triangle`, reducing and enlarging, against the usual filters of training: OpenCV's INTER_AREA and Pillow's BILINEAR, each if
installed."""
import os

import numpy
from framed_client import Checks, Framed, folder

try:
    import cv2
except ImportError:
    cv2 = None
try:
    from PIL import Image
except ImportError:
    Image = None

WIDTH, HEIGHT = 960, 540
# Reductions by whole numbers and by others, of both axes alike and not, and enlargements.
SIZES = [(480, 270), (320, 180), (640, 360), (224, 224), (100, 77), (960, 540), (31, 17), (1280, 720)]
FILTERS = ("area", "triangle")
CONFIG = "cameras:\n  raw:\n    url: {where}/frame.rgb\n    demuxer: rawvideo\n    options: {{pixel_format: rgb24, " \
         "video_size: {width}x{height}}}\n    outputs:\n"
OUTPUT = "      {name}: {{size: {size}, fit: stretch, filter: {filter}, overflow: wait, " \
         "tensor: {{dtype: u8, layout: nhwc}}, sink: 'file:{where}/{name}.npy'}}\n"


def picture():
    """Returns a picture of noise, flat parts and edges of all kinds."""
    random = numpy.random.default_rng(7)
    noise = random.integers(0, 256, (HEIGHT, WIDTH, 3), "u1")
    y, x = numpy.mgrid[:HEIGHT, :WIDTH]
    rings = 127.5 + 127.5 * numpy.cos((x * x + y * y) / 900)
    mixed = numpy.where((x // 120 + y // 90)[..., None] % 2 == 0, noise, rings[..., None].astype("u1"))
    return numpy.ascontiguousarray(mixed)


def ours(checks, frame):
    """Returns {(filter, size): picture}."""
    with folder() as where:
        frame.tofile(os.path.join(where, "frame.rgb"))
        config = CONFIG.format(where=where, width=WIDTH, height=HEIGHT)
        names = {(key, size): f"{key[0]}{size[0]}" for key in FILTERS for size in SIZES}
        for (key, size), name in names.items():
            config += OUTPUT.format(where=where, name=name, size=f"{size[0]}x{size[1]}", filter=key)
        with Framed(where, config) as framed:
            checks.check(framed.wait(60) == 0, f"exit {framed.child.returncode}:\n{framed.errors()}")
        return {which: numpy.load(os.path.join(where, name + ".npy")).reshape(which[1][1], which[1][0], 3)
                for which, name in names.items()}


def compare(checks, made, key, theirs, sizes):
    for size in sizes:
        apart = numpy.abs(made[key, size].astype(int) - theirs(size))
        print(f"{key} to {size[0]}x{size[1]}: mean difference {apart.mean():.4f}, largest {apart.max()} of 255")
        checks.check(apart.max() <= 1, f"{key} to {size}: {apart.max()} levels apart")


def main():
    checks = Checks("filters")
    frame = picture()
    made = ours(checks, frame)
    if cv2:  # OpenCV's area filter is a different one if either axis enlarges
        reduced = [size for size in SIZES if size[0] <= WIDTH]
        compare(checks, made, "area", lambda size: cv2.resize(frame, size, interpolation=cv2.INTER_AREA), reduced)
    else:
        checks.skip("area: no OpenCV here")
    if Image:
        compare(checks, made, "triangle", lambda size: numpy.asarray(Image.fromarray(frame).resize(size, Image.BILINEAR)),
                SIZES)
    else:
        checks.skip("triangle: no Pillow here")
    checks.end()


if __name__ == "__main__":
    main()
