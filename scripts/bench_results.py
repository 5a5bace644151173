#!/usr/bin/python3
"""The daemon's cost of results from clients, and the time from a result to its line.

usage: bench_results.py [--framed BINARY] [--cameras 8] [--fps 15] [--objects 50] [--seconds 10] [--runs 3]

Each camera has a ring and a client that returns every frame: without a result; with a result of this many objects; and
the same while a reader takes the lines. Prints the daemon's loop time for each, in percent of a core (the least of the
runs), and the median and the 99th percentile from sending a result to reading its line. Pictures are small: they cost
other threads time, not the loop.
"""
import argparse
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

RESULT, OBJECT, SLOT = struct.Struct("<4sHHIIQII"), struct.Struct("<4ff2Hq"), struct.Struct("<IIQ")
CAMERA = """
  camera{i}:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      t: {{size: 64x64, fps: {fps}, sink: "ring:{where}/{i}.ring", detections: {{sink: "unix:{where}/{i}.sock", labels: [person, car]}}}}
"""


def connect(path, kind):
    peer = socket.socket(socket.AF_UNIX, kind)
    while True:
        try:
            peer.connect(path)
            return peer
        except OSError:
            time.sleep(0.01)


def detect(path, objects, sent):
    """Returns frames, with that many objects unless it is None; records when, by sequence."""
    peer = connect(path, socket.SOCK_SEQPACKET)
    rows = b"".join(OBJECT.pack(i % 50 + 1.25, 15.5, i % 50 + 9.75, 30.125, 0.8765, i % 3, 0, i) for i in range(objects or 0))
    while True:
        message, files, _, _ = socket.recv_fds(peer, 272, 2)
        for file in files:
            os.close(file)
        if not message:
            return
        if message.startswith(b"FRNG"):
            continue
        slot, _, ticket = SLOT.unpack_from(message, 256)
        if objects is None:
            peer.send(SLOT.pack(slot, 0, ticket))
            continue
        sent[struct.unpack_from("<Q", message, 16)[0]] = time.monotonic()
        peer.send(RESULT.pack(b"FRRS", 1, 1, slot, 0, ticket, objects, 0) + rows)


def read_lines(path, sent, took):
    """Records the time from each line's result to the line."""
    with connect(path, socket.SOCK_STREAM).makefile("rb") as lines:
        for line in lines:
            now, at = time.monotonic(), line.index(b'"seq":') + 6
            took.append(now - sent[int(line[at : line.index(b",", at)])])


def loop_ns(pid):
    """Returns the run time of the daemon's first thread."""
    with open(f"/proc/{pid}/task/{pid}/schedstat") as stat:
        return int(stat.read().split()[0])


def measure(options, where, objects, reads):
    """Returns (percent of a core for the loop, seconds of every line)."""
    text = "".join(CAMERA.format(i=i, where=where, fps=options.fps) for i in range(options.cameras))
    with open(f"{where}/framed.yaml", "w") as file:
        file.write(f"backend: cpu\nlog: {{level: warning}}\ncontrol: {where}/control.sock\ncameras:{text}")
    took = []
    with subprocess.Popen([options.framed, "run", "-c", f"{where}/framed.yaml"]) as framed:
        threads = []
        for i in range(options.cameras):
            sent = {}
            threads.append(threading.Thread(target=detect, args=[f"{where}/{i}.ring", objects, sent]))
            if reads:
                threads.append(threading.Thread(target=read_lines, args=[f"{where}/{i}.sock", sent, took]))
        for thread in threads:
            thread.start()
        time.sleep(2)
        del took[:]
        before, began = loop_ns(framed.pid), time.monotonic()
        time.sleep(options.seconds)
        percent = (loop_ns(framed.pid) - before) / (time.monotonic() - began) / 1e7
        framed.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
    return percent, took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framed", default="build/framed")
    for name, default in ("cameras", 8), ("fps", 15), ("objects", 50), ("seconds", 10), ("runs", 3):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    print(f"{options.cameras} cameras x {options.fps} frames/s x {options.objects} objects; the daemon's loop, % of a core:")
    with tempfile.TemporaryDirectory(prefix="framed-results-") as where:
        subprocess.run(
            ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=128x128:rate=25", "-frames:v", "50", "-pix_fmt",
             "yuv420p", "-c:v", "libx264", "-g", "25", "-bf", "0", f"{where}/clip.mp4"], check=True)
        least, all_took = {}, []
        for _ in range(options.runs):
            for name, objects, reads in (("frames alone", None, False), ("results", options.objects, False),
                                         ("results, lines read", options.objects, True)):
                percent, took = measure(options, where, objects, reads)
                least[name] = min(percent, least.get(name, percent))
                all_took += took
    for name, percent in least.items():
        print(f"  {name:20} {percent:5.2f}")
    if len(all_took) < 100:
        sys.exit("too few lines came")
    cuts = statistics.quantiles(all_took, n=100)
    print(f"result to line: p50 {cuts[49] * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f} ms of {len(all_took)} lines")


main()
