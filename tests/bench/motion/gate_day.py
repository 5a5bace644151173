#!/usr/bin/python3
"""The share of a camera's pictures that a detector behind `gate: motion` gets on a day made of the labelled clips and
stillness, and the labelled events that it misses. First with the kernel and the gate's rule alone; then with the daemon,
on a file at full pace, as seen by a program that reads its frames.

usage: gate_day.py PROGRAM FOLDER [--seconds 3600] [--framed FRAMED] [--daemon-seconds 300]
  PROGRAM  bench-motion-clip; FOLDER  has car-detection.mp4 and bottle-detection.mp4; FRAMED  the daemon, or none
"""
import argparse
import logging
import re
import subprocess
import tempfile
import threading

import framedio

import detectors
import disturb
import footage

LEARN_S, HOLD_S, EVERY_S, SEED = 10, 5.0, 10.0, 17
ROUNDS = {"car-detection.mp4": 5, "bottle-detection.mp4": 3}  # repetitions of the clip per hour: about 20 events each
ENOUGH = 3  # pictures of an event from which on it counts as seen; one may have come without motion
CONFIG = """
log: {{level: warning}}
cameras:
  day:
    url: {where}/day.mp4
    outputs:
      detector:
        size: 320x320
        gate: {{motion: true, hold: {hold}s, every: {every}s}}
        sink: unix:{where}/detector.sock
"""


def simulated(moving, rate):
    """Returns the gate's decision for each picture: open while something moves, for HOLD_S after it, and once every EVERY_S."""
    passed, moved_at, passed_at = [], None, None
    for number, moves in enumerate(moving):
        now = number / rate
        moved_at = now if moves else moved_at
        held = moved_at is not None and now - moved_at < HOLD_S
        opened = held or passed_at is None or now - passed_at >= EVERY_S
        passed_at = now if opened else passed_at
        passed.append(opened)
    return passed


def report(label, stream, passed):
    """Prints the share of delivered pictures, and the events with too few."""
    rate, whole = stream.clip.rate, len(stream.order) - stream.learning
    came, of_events, came_of_events, missed, events = sum(passed[stream.learning:]), 0, 0, [], 0
    for event, begin, end in stream.passages():
        places = [place for place in range(begin, end) if event["first"] <= stream.order[place] <= event["last"]]
        got = sum(passed[place] for place in places)
        events, of_events, came_of_events = events + 1, of_events + len(places), came_of_events + got
        if got < ENOUGH:
            missed.append(f"{event['name']} at {begin / rate:.1f} s")
    print(f"| {stream.clip.name} | {label} | {whole / rate / 60:.1f} min, {whole} | {100 * came / whole:.1f} % | "
          f"{100 * of_events / whole:.1f} % | {100 * came_of_events / of_events:.1f} % | {len(missed)} of {events} |",
          flush=True)
    for text in missed:
        print(f"    missed: {text}")


def by_kernel(stream, program):
    clip = stream.clip
    kernel = detectors.Kernel(program, clip.width, clip.height, clip.rate)
    for picture in disturb.weather(stream.pictures(), clip.rate):
        kernel.feed(picture)
    kernel.close()
    return simulated(kernel.moving, clip.rate)


def write_clip(stream, path):
    """Writes the day as H.264 of good quality."""
    clip = stream.clip
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{clip.width}x{clip.height}", "-r", f"{clip.rate:.6f}"]
    coder = subprocess.Popen(["ffmpeg", "-v", "error", "-y", *raw, "-i", "-", "-pix_fmt", "yuv420p", "-c:v", "libx264",
                              "-preset", "veryfast", "-crf", "20", "-g", str(round(4 * clip.rate)), path],
                             stdin=subprocess.PIPE)
    with coder.stdin as pipe:
        for picture in disturb.weather(stream.pictures(), clip.rate):
            pipe.write(picture.tobytes())
    if coder.wait():
        raise RuntimeError("ffmpeg failed")


def still_pictures(counters):
    """Returns the number of pictures lost as `still`, from the daemon's counters."""
    with open(counters) as file:
        rows = re.findall(r'^framed_frames_lost_total\{.*reason="still".*\} (\d+)', file.read(), re.M)
    return sum(int(row) for row in rows)


def by_daemon(stream, framed):
    """Returns for each picture whether a reader of the daemon's frames got it."""
    passed = [False] * len(stream.order)
    with tempfile.TemporaryDirectory(prefix="bench-gate-") as where:
        write_clip(stream, f"{where}/day.mp4")
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(CONFIG.format(where=where, hold=HOLD_S, every=EVERY_S))
        daemon = subprocess.Popen([framed, "run", "-c", f"{where}/framed.yaml", "--metrics", f"{where}/metrics"])
        ends = threading.Timer(540, daemon.kill)  # in case the daemon hangs
        ends.start()
        try:
            first, reader = None, framedio.open(f"unix:{where}/detector.sock", newest=False)
            while True:
                over = daemon.poll() is not None  # no more frames can follow
                try:
                    frame = reader.next(timeout=1)
                except framedio.Timeout:
                    if over:
                        break
                    continue
                first = frame.pts if first is None else first
                passed[round((frame.pts - first) * stream.clip.rate)] = True
        finally:
            ends.cancel()
            daemon.terminate()  # if it still runs
            code = daemon.wait()
        still = still_pictures(f"{where}/metrics")
    if code or sum(passed) + still != len(passed):
        raise RuntimeError(f"framed: exit {code}; {sum(passed)} frames and {still} still of {len(passed)}")
    return passed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--framed")
    parser.add_argument("--daemon-seconds", type=float, default=300)
    options = parser.parse_args()
    logging.getLogger("framedio").setLevel(logging.ERROR)  # it would log that the daemon comes and goes
    print("| clip | gate | lasts, pictures | came | events' share | came of events' pictures | missed |\n"
          "|---|---|---|---|---|---|---|")
    for name, rounds in ROUNDS.items():
        clip = footage.Clip(options.folder, name)
        for seconds, label, gate in ((options.seconds, "the rule", lambda day: by_kernel(day, options.program)),
                                     (options.daemon_seconds, "the rule", lambda day: by_kernel(day, options.program)),
                                     (options.daemon_seconds, "the daemon", lambda day: by_daemon(day, options.framed))):
            if label == "the daemon" and not options.framed:
                continue
            day = footage.again(clip, LEARN_S, seconds, max(1, round(rounds * seconds / 3600)), SEED)
            report(label, day, gate(day))
    print(f"""
Each clip {' and '.join(str(rounds) for rounds in ROUNDS.values())} times an hour, with stillness of its own pictures between the events, of random length (seed
{SEED}), and noise, sun, clouds and a light that is switched, put on it. The gate: while something moves, {HOLD_S:.0f} s after, one
picture each {EVERY_S:.0f} s otherwise; {LEARN_S} s before the day are to learn and are not counted. An event is missed with fewer than
{ENOUGH} of its pictures.""")


main()
