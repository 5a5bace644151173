#!/usr/bin/python3
"""A box found in a tensor leads back to the camera's picture: its corners, mapped by consume.py with the frame's header, lie within 0.01 pixel of
their true position. Tested with the picture's outer edges, in sizes up to 4K, and with a rectangle drawn into the source and measured in the
tensor."""
import math
import os

import numpy
from framed_client import PATIENCE, Checks, Framed, consume, folder

NEAR = 0.01  # source pixels
SIZES = [(320, 240), (768, 432), (1081, 607), (1920, 1080), (3840, 2160)]
# keys of an output in addition to its size, and (fit, degrees, mirrored x, mirrored y, crop)
GEOMETRIES = {
    "letterbox": ("", ("letterbox", 0, 1, 1, None)),
    "stretch": (", fit: stretch", ("stretch", 0, 1, 1, None)),
    "crop_fit": (", fit: crop", ("crop", 0, 1, 1, None)),
    "none": (", fit: none", ("none", 0, 1, 1, None)),
    "quarter": (", rotate: 90", ("letterbox", 90, 1, 1, None)),
    "turned": (", rotate: 30", ("letterbox", 30, 1, 1, None)),
    "stretched": (", fit: stretch, rotate: -75", ("stretch", -75, 1, 1, None)),
    "mirrored": (", flip: horizontal", ("letterbox", 0, -1, 1, None)),
    "window": (", crop: [31, 18, 200, 117]", ("letterbox", 0, 1, 1, (31, 18, 200, 117))),
    "all": (", fit: crop, rotate: 200, flip: both, crop: [7, 9, 301, 77]", ("crop", 200, -1, -1, (7, 9, 301, 77))),
}
TENSORS = [(640, 640), (416, 352)]
# A white rectangle on black, and outputs that enlarge it: first with axes along the tensor's, then with any.
DRAWN, LEFT, TOP, RIGHT, BOTTOM = (48, 30), 10, 7, 31, 19
STRAIGHT = {
    "letterbox": "size: 384x384",
    "stretch": "size: 240x270, fit: stretch",
    "cut": "size: 400x280, fit: crop, crop: [4, 3, 40, 24]",
    "quarter": "size: 300x480, rotate: 90",
    "threequarters": "size: 301x477, rotate: 270, flip: vertical",
    "mirrored": "size: 384x240, flip: both",
    "affine": "size: 300x200, affine: [8, 0, -37.25, 0, 6, 11.5]",
    "affine_turned": "size: 300x400, affine: [0, -8, 260.5, 9, 0, -20]",
}
SLANTED = {
    "turned": "size: 480x480, rotate: 33",
    "skewed": "size: 480x400, affine: [8, 2.5, -40, -1.5, 7, 90]",
}


def write_video(path, pictures, size):
    """Writes raw BGRA pictures; None: a black one."""
    with open(path, "wb") as file:
        for picture in pictures:
            if picture is None:
                file.truncate(file.seek(4 * size[0] * size[1], os.SEEK_CUR))
            else:
                file.write(picture.tobytes())


def camera(where, name, size, outputs):
    """Returns a camera that shows the raw pictures in NAME.bgra, with a file for each output."""
    lines = "".join(f"      {output}: {{{keys}, sink: 'file:{where}/{name}-{output}.framed'}}\n"
                    for output, keys in outputs.items())
    video = f"{{pixel_format: bgra, video_size: {size[0]}x{size[1]}, framerate: 25}}"
    return f"  {name}:\n    url: {where}/{name}.bgra\n    demuxer: rawvideo\n    options: {video}\n    outputs:\n{lines}"


def run(checks, where, cameras):
    with Framed(where, "defaults: {overflow: wait, fill: 0}\ncameras:\n" + "".join(cameras)) as framed:
        checks.check(framed.wait(60 * PATIENCE) == 0, f"exit {framed.child.returncode}:\n{framed.errors()}")


def frame(where, name):
    """Returns (Header, tensor) of the first frame that an output has written."""
    with open(f"{where}/{name}.framed", "rb") as file:
        header, payload = next(consume.read_frames(file))
    return header, consume.tensor_of(header, payload)


# --- the picture's outer edges


def shown_at(corner, size, tensor, geometry):
    """Returns where the tensor shows a corner of the source: turned and mirrored about the middle of the shown part, then fitted. All in edges: no
    half pixels."""
    fit, degrees, mirror_x, mirror_y, crop = geometry
    left, top, width, height = crop or (0, 0, *size)
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    x, y = corner[0] - left - width / 2, corner[1] - top - height / 2
    x, y = mirror_x * (c * x - s * y), mirror_y * (s * x + c * y)
    fit_x = tensor[0] / (abs(c) * width + abs(s) * height)
    fit_y = tensor[1] / (abs(s) * width + abs(c) * height)
    if fit != "stretch":
        fit_x = fit_y = {"letterbox": min(fit_x, fit_y), "crop": max(fit_x, fit_y), "none": 1}[fit]
    return x * fit_x + tensor[0] / 2, y * fit_y + tensor[1] / 2


def check_edges(checks, where):
    outputs = {f"{name}{n}": f"size: {tensor[0]}x{tensor[1]}{keys}"
               for name, (keys, _) in GEOMETRIES.items() for n, tensor in enumerate(TENSORS)}
    halves = [dict(list(outputs.items())[half::2]) for half in (0, 1)]
    cameras = []
    for size in SIZES:
        for half, some in enumerate(halves):
            write_video(f"{where}/s{size[0]}-{half}.bgra", [None], size)
            cameras.append(camera(where, f"s{size[0]}-{half}", size, some))
    run(checks, where, cameras)
    furthest = 0
    for size in SIZES:
        for name, (_, geometry) in GEOMETRIES.items():
            for n, tensor in enumerate(TENSORS):
                header, _ = frame(where, f"s{size[0]}-{n}-{name}{n}")
                for corner in ((0, 0), (size[0], 0), (0, size[1]), size, (size[0] / 3, size[1] / 5)):
                    back = consume.corner_in_source(header, *shown_at(corner, size, tensor, geometry))
                    off = math.dist(back, corner)
                    furthest = max(furthest, off)
                    checks.check(off < NEAR, f"{size} to {tensor}, {name}: {corner} comes back as {back}")
    print(f"boxes: outer edges come back within {furthest:.5f} pixels")


# --- a drawn rectangle


def drawn():
    picture = numpy.zeros((DRAWN[1], DRAWN[0], 4), "u1")
    picture[TOP:BOTTOM, LEFT:RIGHT] = 255
    return picture


def span(levels, middle):
    """Returns both ends of the white part of a row, around the pixel `middle`; the ramps at its ends are symmetric."""
    covered = levels.astype("f8") / 255
    return middle - covered[:middle].sum(), middle + covered[middle:].sum()


def centroid(level):
    y, x = numpy.mgrid[: level.shape[0], : level.shape[1]] + 0.5
    return (x * level).sum() / level.sum(), (y * level).sum() / level.sum()


def check_drawn(checks, where):
    write_video(f"{where}/drawn.bgra", [drawn()], DRAWN)
    run(checks, where, [camera(where, "drawn", DRAWN, STRAIGHT | SLANTED)])
    furthest = 0
    for name in STRAIGHT:
        header, tensor = frame(where, f"drawn-{name}")
        x, y = (int(part) for part in centroid(tensor[0].astype("f8")))
        (left, right), (top, bottom) = span(tensor[0][y], x), span(tensor[0][:, x], y)
        corners = [consume.corner_in_source(header, *corner) for corner in ((left, top), (right, bottom))]
        (x0, x1), (y0, y1) = (sorted(pair) for pair in zip(*corners))
        off = max(abs(x0 - LEFT), abs(x1 - RIGHT), abs(y0 - TOP), abs(y1 - BOTTOM))
        furthest = max(furthest, off)
        checks.check(off < NEAR, f"drawn, {name}: {x0:.4f} {y0:.4f} {x1:.4f} {y1:.4f}")
    for name in SLANTED:
        header, tensor = frame(where, f"drawn-{name}")
        middle = consume.corner_in_source(header, *centroid(tensor[0].astype("f8")))
        off = math.dist(middle, ((LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2))
        furthest = max(furthest, off)
        checks.check(off < NEAR, f"drawn, {name}: its middle comes back as {middle}")
    print(f"boxes: a drawn rectangle comes back within {furthest:.5f} pixels")


def main():
    checks = Checks("boxes")
    for check in (check_edges, check_drawn):
        with folder() as where:
            check(checks, where)
    checks.end()


main()
