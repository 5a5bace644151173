#!/usr/bin/python3
"""The bits of fingerprints against the definition in numpy, from lumas of 32 x 32 and from whole pictures."""
import os
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

PROGRAM = os.path.join(os.environ.get("B", "build"), "bench-fingerprint")
SIZES = ((1920, 1080), (1280, 720), (641, 367), (160, 90), (97, 61), (32, 32), (20, 200), (3, 2), (1, 1))
GRID, SPLIT = (32, 18), 5  # defaults: columns and rows, and the cells of each


def table():
    frequencies, pixels = numpy.mgrid[1:9, 0:32]
    return numpy.rint(4096 * numpy.cos(numpy.pi * frequencies * (2 * pixels + 1) / 64)).astype(int)


def fingerprint(luma):
    rows = (luma.astype(int) @ table().T + 256) >> 9
    numbers = (table() @ rows).ravel()
    return sum(1 << i for i, bit in enumerate(numbers > numpy.median(numbers)) if bit)


def axis(side, cells):
    """Returns the edges of the cells, and the share of each cell in each of 32 areas, in 1/32."""
    begins, areas = numpy.arange(cells) * 32, numpy.arange(32)[:, None] * cells
    shares = numpy.minimum(begins + 32, areas + cells) - numpy.maximum(begins, areas)
    return numpy.arange(cells + 1) * side // cells, shares.clip(0)


def luma_of(picture):
    """Returns the mean of each area, from the cells' sums and pixel counts, weighted with their shares."""
    height, width = picture.shape
    columns, rows = min(GRID[0], width), min(GRID[1], height)
    split = max(min(SPLIT, width // columns // 2, height // rows // 2), 1)
    (xs, across), (ys, down) = axis(width, columns * split), axis(height, rows * split)
    sums = numpy.add.reduceat(numpy.add.reduceat(picture.astype(int), ys[:-1], axis=0), xs[:-1], axis=1)
    pixels = numpy.outer(down @ numpy.diff(ys), across @ numpy.diff(xs))
    return (2 * (down @ sums @ across.T) + pixels) // (2 * pixels)


def answers(mode, sent):
    result = subprocess.run([PROGRAM, mode], input=sent, stdout=subprocess.PIPE, check=True)
    return [int(line, 16) for line in result.stdout.split()]


def levels(picture):
    return numpy.clip(picture, 0, 255).astype(numpy.uint8)


def check_lumas(checks, random):
    y, x = numpy.mgrid[0:32, 0:32]
    lumas = [random.integers(0, 256, (32, 32)) for _ in range(300)]
    lumas += [127 + 90 * numpy.sin(x / a + b) * numpy.cos(y / b) + random.normal(0, 2, (32, 32))
              for a, b in random.uniform(1, 9, (300, 2))]
    lumas = [levels(luma) for luma in [*lumas, x * 0 + 200, (x > 15) * 255, (x + y) % 2 * 255]]
    found = answers("luma", b"".join(luma.tobytes() for luma in lumas))
    differ = sum(ours != fingerprint(luma) for ours, luma in zip(found, lumas))
    checks.check(len(found) == len(lumas) and differ == 0, f"{differ} of {len(found)} differ")


def check_pictures(checks, random):
    pictures = []
    for width, height in SIZES:
        y, x = numpy.mgrid[0:height, 0:width]
        soft = 127 + 60 * numpy.sin(x * 9 / width) + 50 * numpy.cos(y * 7 / height + x * 3 / width)
        pictures += [levels(random.integers(0, 256, soft.shape)), levels(soft + random.normal(0, 6, soft.shape))]
    sent = b"".join(numpy.array(picture.shape[::-1], "<i4").tobytes() + picture.tobytes() for picture in pictures)
    found = answers("pictures", sent)
    checks.check(len(found) == len(pictures), f"{len(found)} of {len(pictures)}")
    for picture, ours in zip(pictures, found):
        theirs = fingerprint(luma_of(picture))
        checks.check(ours == theirs, f"{picture.shape[::-1]}: {ours:016x}, not {theirs:016x}")


def main():
    checks, random = Checks("test_fingerprint"), numpy.random.default_rng(3)
    check_lumas(checks, random)
    check_pictures(checks, random)
    checks.end()


main()
