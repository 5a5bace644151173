#!/usr/bin/python3
"""framed's motion kernel compared with two OpenCV recipes on the labelled clips, unchanged and with disturbances:
events noticed, false alarms per minute, and milliseconds per picture on one core.

usage: beside_opencv.py PROGRAM FOLDER [--only NAME,...] [--still 60] [--least PERCENT] [--alone] [--show]
  PROGRAM  bench-motion-clip; FOLDER  has car-detection.mp4 and bottle-detection.mp4
"""
import argparse
import statistics

import cv2

import detectors
import disturb
import footage
import score

LEARN_S = 10
CAPTION = f"""
Both clips once, 11 events, the longest stillness of each made {{still:.0f}} s long from its own pictures there and back; before
them {LEARN_S} s of stillness to learn, not scored. The rules are the same for all: each detector sees each picture's luma and
gives boxes of at least {{least:.2f}} % of the picture; a picture is moving when a box of it touches one of the
picture before; an event is noticed by a moving picture with a box that touches the labelled one; an alarm is a run of
moving pictures, false when no event is in it. `flagged`: moving pictures of all that have no event. The delay in pictures
from the event's first: median and largest."""


def run(stream, disturbance, options):
    """Returns the boxes that each detector finds in each picture."""
    clip = stream.clip
    found = detectors.make(options.program, clip.width, clip.height, clip.rate, options.least / 100, options.alone)
    boxes = {name: [] for name in found}
    for picture in disturbance(stream.pictures(), clip.rate):
        for name, detector in found.items():
            boxes[name].append(detector.feed(picture))
    for detector in found.values():
        detector.close()
    if any(len(each) != len(stream.order) for each in boxes.values()):
        raise RuntimeError("pictures are missing")
    return boxes


def milliseconds(clip, options):
    """Returns medians over the clip at 1080p."""
    found = detectors.make(options.program, 1920, 1080, clip.rate, options.least / 100, options.alone)
    for picture in clip.luma:
        large = cv2.resize(picture, (1920, 1080), interpolation=cv2.INTER_CUBIC)
        for detector in found.values():
            detector.feed(large)
    for detector in found.values():
        detector.close()
    return {name: statistics.median(detector.spent) / 1e6 for name, detector in found.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(disturb.ALL))
    parser.add_argument("--still", type=float, default=60, help="seconds of stillness in each stream")
    parser.add_argument("--least", type=float, default=100 * detectors.USUAL, help="percent of the picture in a box")
    parser.add_argument("--alone", action="store_true", help="framed without the recipes")
    parser.add_argument("--show", action="store_true", help="say which events were missed")
    options = parser.parse_args()
    clips = [footage.Clip(options.folder, name) for name in ("car-detection.mp4", "bottle-detection.mp4")]
    print("| disturbance | detector | noticed | delay | false alarms a minute | flagged |\n|---|---|---|---|---|---|")
    for name in options.only:
        scores = {}
        for stream in (footage.once(clip, LEARN_S, options.still) for clip in clips):
            for detector, boxes in run(stream, disturb.ALL[name], options).items():
                scores.setdefault(detector, score.Score()).add(stream, boxes)
        for detector, sums in scores.items():
            print(f"| {name} | {detector} | {' | '.join(sums.row())} |", flush=True)
            if options.show:
                print("".join(f"    missed: {missed}\n" for missed in sums.missed), end="", flush=True)
    print(CAPTION.format(still=options.still, least=options.least))
    print("\nFrom a 1080p picture's luma to boxes, ms on one core: " +
          ", ".join(f"{name} {spent:.2f}" for name, spent in milliseconds(clips[0], options).items()))


main()
