#!/usr/bin/python3
"""The header of a .y4m has the frame rate of the output, not of its source."""
import fractions
import os

from framed_client import Checks, Framed, folder, make_clip

SECONDS, RATE = 2, 25
CONFIG = """
backend: cpu
cameras:
  whole:
    url: {where}/clip.mp4
    outputs:
      all: {{kernel: yuv, sink: "file:{where}/all.y4m"}}
      five: {{kernel: yuv, fps: 5, sink: "file:{where}/five.y4m"}}
      odd: {{kernel: yuv, fps: 12.5, sink: "file:{where}/odd.y4m"}}
      above: {{kernel: yuv, fps: 60, sink: "file:{where}/above.y4m"}}
  thinned:
    url: {where}/clip.mp4
    fps: 10
    outputs:
      ten: {{kernel: yuv, sink: "file:{where}/ten.y4m"}}
      two: {{kernel: yuv, fps: 2, sink: "file:{where}/two.y4m"}}
      below: {{kernel: yuv, fps: 20, sink: "file:{where}/below.y4m"}}
"""
RATES = {"all": "25:1", "five": "5:1", "odd": "25:2", "above": "25:1", "ten": "10:1", "two": "2:1", "below": "10:1"}


def header_of(path):
    """Returns the header's fields by letter, and the number of pictures."""
    with open(path, "rb") as file:
        words = file.readline().decode().split()
        fields = {word[0]: word[1:] for word in words[1:]}
        size = int(fields["W"]) * int(fields["H"]) * 3 // 2
        count = 0
        while file.readline():
            count += len(file.read(size)) == size
    return fields, count


def check_rates(checks, where):
    make_clip(os.path.join(where, "clip.mp4"), frames=SECONDS * RATE, rate=RATE)
    with Framed(where, CONFIG.format(where=where)) as framed:
        checks.check(framed.wait(30) == 0, framed.errors())
    for name, rate in RATES.items():
        fields, count = header_of(f"{where}/{name}.y4m")
        checks.check(fields["F"] == rate, f"{name}: F{fields['F']}, not {rate}")
        lasts = count / fractions.Fraction(rate.replace(":", "/"))
        checks.check(abs(lasts - SECONDS) <= 0.2, f"{name}: {count} pictures at {fields['F']} last {float(lasts)} s")


def main():
    checks = Checks("y4m")
    with folder() as where:
        check_rates(checks, where)
    checks.end()


main()
