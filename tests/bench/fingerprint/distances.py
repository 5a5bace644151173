#!/usr/bin/python3
"""Bits that differ between fingerprints of near-duplicates and of distinct pictures of clips, as histograms: the share
of pairs with each distance, in percent. Also the share of bits that differ from a DCT in double of areas that are not
rounded to levels.

usage: distances.py [--program build/bench-fingerprint] [--pictures 60] CLIP...
"""
import argparse
import subprocess

import cv2
import numpy as np

EDGES = (0, 2, 4, 6, 8, 12, 18, 24, 32, 65)  # half of the bits are set, except for ties: distances are even


def fingerprints(program, pictures):
    """Returns 64 bits of each picture, computed with the daemon's statistics and fingerprint."""
    sent = b"".join(np.array(picture.shape[::-1], "<i4").tobytes() + picture.tobytes() for picture in pictures)
    lines = subprocess.run([program, "pictures"], input=sent, stdout=subprocess.PIPE, check=True).stdout.split()
    return np.array([[int(line, 16) >> bit & 1 for bit in range(64)] for line in lines], bool)


def pictures_of(clip, n):
    """Returns n evenly spaced pictures of a clip, as luma of 8 bits."""
    capture, pictures = cv2.VideoCapture(clip), []
    while capture.grab():
        pictures.append(capture.retrieve()[1] if len(pictures) % 3 == 0 else None)
    capture.release()
    pictures = [cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY) for picture in pictures if picture is not None]
    return pictures[:: max(len(pictures) // n, 1)][:n]


def variants(random):
    """Returns name -> a function that makes a near-duplicate of a picture."""
    def levels(picture):
        return np.clip(np.rint(picture), 0, 255).astype(np.uint8)

    def encoded(picture, quality):
        return cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_GRAYSCALE)

    return {
        "encoded as JPEG, quality 75": lambda picture: encoded(picture, 75),
        "encoded as JPEG, quality 20": lambda picture: encoded(picture, 20),
        "noise of 4 levels": lambda picture: levels(picture + random.normal(0, 4, picture.shape)),
        "noise of 12 levels": lambda picture: levels(picture + random.normal(0, 12, picture.shape)),
        "10 levels higher": lambda picture: levels(picture.astype(float) + 10),
        "gain 0.9": lambda picture: levels(picture * 0.9),
        "gain 0.3 and noise of 4": lambda picture: levels(picture * 0.3 + 16 + random.normal(0, 4, picture.shape)),
        "1 pixel aside": lambda picture: np.roll(picture, 1, axis=1),
        "1 pixel down": lambda picture: np.roll(picture, 1, axis=0),
        "half as large": lambda picture: cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA),
        "1.5 x as large": lambda picture: cv2.resize(picture, None, fx=1.5, fy=1.5, interpolation=cv2.INTER_CUBIC),
    }


def print_row(name, distances):
    distances = np.asarray(distances)
    shares = np.histogram(distances, EDGES)[0] * 100 / len(distances)
    cells = "  ".join(f"{share:5.1f}" if share else "    -" for share in shares)
    print(f"{name:30}  {cells}  {np.median(distances):6g}  {distances.max():3}")


def in_double(picture):
    areas = cv2.resize(picture.astype(float), (32, 32), interpolation=cv2.INTER_AREA)
    numbers = cv2.dct(areas)[1:9, 1:9].ravel()
    return numbers > np.median(numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bench-fingerprint")
    parser.add_argument("--pictures", type=int, default=60, help="of each clip")
    parser.add_argument("clips", nargs="+", metavar="CLIP")
    options = parser.parse_args()
    clips = [pictures_of(clip, options.pictures) for clip in options.clips]
    pictures = [picture for clip in clips for picture in clip]
    of_clip = np.repeat(np.arange(len(clips)), [len(clip) for clip in clips])
    own = fingerprints(options.program, pictures)
    columns = [str(begin) if end - begin == 2 else f"{begin}-{end - 2}" for begin, end in zip(EDGES, EDGES[1:-1] + (66,))]
    print(f"{len(pictures)} pictures; share of pairs in percent by distance:")
    print(" " * 32 + "  ".join(f"{column:>5}" for column in columns) + "  median  max")
    for name, change in variants(np.random.default_rng(1)).items():
        changed = fingerprints(options.program, [change(picture) for picture in pictures])
        print_row(name, (changed != own).sum(axis=1))
    apart = (own[:, None] != own[None]).sum(axis=2)
    same = of_clip[:, None] == of_clip[None]
    neighbours = np.array([apart[i, i + 1] for i in range(len(own) - 1) if same[i, i + 1]])
    print_row("the next of the same clip", neighbours)
    print_row("others of the same clip", apart[same & np.triu(np.ones(same.shape, bool), 2)])
    if not same.all():
        print_row("of another clip", apart[~same])
    differ = (np.array([in_double(picture) for picture in pictures]) != own).mean()
    print(f"bits that differ from those of a DCT in double: {differ * 100:.2f} %")


main()
