#!/usr/bin/python3
"""framed verify: every preset named after a framework makes that framework's tensors, and tensors of images match their
levels."""
import hashlib
import os
import re
import struct
import zlib

import numpy
from framed_client import MEDIA, Checks, folder, run

LINE = re.compile(r"^(\S+) +(\S+)? +(\d+x\d+) +to +(\d+x\d+) +largest ([012]), mean (0\.\d{4}), padding 0$", re.M)


def png(pixels, path):
    """Writes RGB levels."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def check_vectors(checks, where):
    code, output, errors = run("verify", env={"STATE_DIRECTORY": where}, timeout=120)
    checks.check(code == 0 and not errors, f"exit {code}:\n{output}{errors}")
    lines = LINE.findall(output)
    checks.check(len(lines) == 48 == output[:output.index("framed ")].count("\n"), f"{len(lines)} lines:\n{output}")
    cases = {(preset, value): [line for line in lines if line[:2] == (preset, value)] for preset, value, *_ in lines}
    checks.check(len(cases) == 12 and all(len(case) == 4 for case in cases.values()), str(cases))
    for (preset, value), case in cases.items():
        mean = sum(float(line[5]) for line in case) / 4
        largest = max(int(line[4]) for line in case)
        bounds = (1, 0.1) if value == "triangle" else (0, 0) if (preset, value) == ("deepstream", "") else (2, 0.01)
        checks.check(largest <= bounds[0] and mean <= bounds[1], f"{preset} {value}: {largest}, {mean}")
    sizes = {line[:4] for line in lines}
    checks.check(("ultralytics-rect", "", "1920x1080", "640x384") in sizes, output)
    checks.check(("opencv-blob", "opencv-crop", "704x576", "640x640") in sizes, output)
    code, output, errors = run("verify", "--preset", "torchvision")
    checks.check(code == 0 and output.count("torchvision") == 4 == len(output.splitlines()), output + errors)


def check_images(checks, where):
    y, x, c = numpy.ogrid[:48, :64, :3]
    pixels = (3 * x + 5 * y + 70 * c).astype("u1")
    path = os.path.join(where, "slope.png")
    png(pixels, path)
    # At this size each level becomes one element, in BGR.
    expected = numpy.ascontiguousarray(pixels[..., ::-1].transpose(2, 0, 1), "f4")
    code, output, errors = run("verify", "--preset", "yolox", "--size", "64x48", path)
    checks.check(code == 0, f"exit {code}: {errors}")
    for wanted in (path, "picture  64x48 rgb24", "tensor   1x3x48x64 f32", "matrix   [[1, 0, 0], [0, 1, 0]]",
                   "means    " + " ".join(f"{channel.mean(dtype='f8'):.6f}" for channel in expected),
                   "sha256   " + hashlib.sha256(expected.tobytes()).hexdigest()):
        checks.check(wanted in output, f"no {wanted!r} in:\n{output}")
    code, output, errors = run("verify", "--preset", "framed", path, path)
    checks.check(code == 0 and output.count("  matrix   [[10, 0, 4.5], [0, 10, 84.5]]\n") == 2, output + errors)
    video = os.path.join(MEDIA, "car-detection.mp4")
    if os.path.exists(video):
        code, output, errors = run("verify", "--preset", "ultralytics", video)
        checks.check(code == 0 and "tensor   1x3x640x640 f32" in output and not errors, output + errors)


def check_refusals(checks, where):
    empty = os.path.join(where, "empty.jpg")
    open(empty, "wb").close()
    cut = os.path.join(where, "cut.png")
    png(numpy.zeros((64, 64, 3), "u1"), cut)
    os.truncate(cut, 60)
    for arguments, code, said in (
        (["--preset", "darknet"], 2, "darknet: is no preset"),
        (["--preset", "framed"], 2, "is no preset of another framework, and no image is named"),
        (["--preset", "yolox", "rtsp://camera/"], 2, "is no file"),
        (["--preset", "yolox", "--size", "0x1", empty], 2, "--size: "),
        ([empty], 2, "want a --preset"),
        (["--preset", "yolox", empty], 1, "empty.jpg"),
        (["--preset", "yolox", cut], 1, "cut.png"),
        (["--preset", "yolox", where + "/none.png"], 1, "No such file"),
    ):
        got, output, errors = run("verify", *arguments)
        checks.check(got == code and said in errors and len(errors.splitlines()) == 1, f"{arguments}: {got} {errors}")


def main():
    checks = Checks("verify")
    with folder() as where:
        check_vectors(checks, where)
        check_images(checks, where)
        check_refusals(checks, where)
    checks.end()


main()
