"""Consumers of every camera at every box: they reconnect forever and record each frame's header. They do not use the
cluster, so that they get the same as detectors."""
import collections
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from consume import WIRE, header_of  # noqa: E402

BY_CAMERA = 8  # flag: the capture time comes from the camera's clock

# `at`: CLOCK_MONOTONIC after reading the whole frame; `capture`: seconds since 1970, by the camera's clock or, without
# the flag, by the box's.
Frame = collections.namedtuple("Frame", "at camera node epoch sequence capture flags")


class Consumer(threading.Thread):
    def __init__(self, watch, camera, node, address):
        super().__init__(daemon=True)
        self.watch, self.camera, self.node, self.address = watch, camera, node, address

    def run(self):
        while not self.watch.over.is_set():
            try:
                with socket.create_connection(self.address, timeout=0.5) as peer:
                    peer.settimeout(2)
                    self.read(peer)
            except OSError:
                time.sleep(0.05)

    def read(self, peer):
        with peer.makefile("rb") as file:
            while not self.watch.over.is_set():
                data = file.read(WIRE.size)
                if len(data) < WIRE.size:
                    return
                header = header_of(data)
                file.read(header.header_bytes - WIRE.size + header.payload_bytes)
                self.watch.note(Frame(time.monotonic(), self.camera, self.node, header.epoch, header.sequence,
                                      header.capture_ns / 1e9, header.flags))


class Watch:
    """`addresses`: camera -> node -> (host, port)."""

    def __init__(self, addresses):
        self.lock, self.frames, self.over = threading.Lock(), [], threading.Event()
        self.threads = [Consumer(self, camera, node, address)
                        for camera, nodes in addresses.items() for node, address in nodes.items()]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()

    def note(self, frame):
        with self.lock:
            self.frames.append(frame)

    def taken(self):
        with self.lock:
            return list(self.frames)

    def where(self, seconds):
        """Returns camera -> nodes that showed it within the last `seconds`."""
        since = time.monotonic() - seconds
        found = collections.defaultdict(set)
        with self.lock:
            for frame in reversed(self.frames):
                if frame.at < since:
                    return found
                found[frame.camera].add(frame.node)
        return found


def pauses(frames, camera, began, ended):
    """Returns [(from, to)] between consecutive frames of the camera, and to both ends of the period."""
    times = [began, *sorted(f.at for f in frames if f.camera == camera and began <= f.at <= ended), ended]
    return list(zip(times, times[1:]))


def gaps(frames, cameras, began, ended):
    """Returns camera -> the longest time without a frame between the two."""
    return {camera: max(b - a for a, b in pauses(frames, camera, began, ended)) for camera in cameras}


def calm_gaps(frames, cameras, changes, began, ended):
    """Returns camera -> the longest time without a frame and without a change: the changes, which are times, split the
    pauses."""
    longest = {}
    for camera in cameras:
        longest[camera] = 0
        for a, b in pauses(frames, camera, began, ended):
            times = [a, *(c for c in sorted(changes) if a < c < b), b]
            longest[camera] = max(longest[camera], max(t - s for s, t in zip(times, times[1:])))
    return longest


def generations(frames, camera):
    """Returns generation -> its frames, in order of capture."""
    found = collections.defaultdict(list)
    for frame in frames:
        if frame.camera == camera:
            found[frame.epoch >> 16].append(frame)
    return {generation: sorted(found[generation], key=lambda f: f.capture) for generation in sorted(found)}


def overlaps(frames, camera):
    """Returns [(seconds, node before, node after)] of generations that captured frames after a later one had begun. Only
    frames with the camera's time count, since boxes' clocks may differ."""
    found = []
    runs = list(generations([frame for frame in frames if frame.flags & BY_CAMERA], camera).items())
    for (_, before), (_, after) in zip(runs, runs[1:]):
        over = before[-1].capture - after[0].capture
        if over > 0:
            found.append((over, before[-1].node, after[0].node))
    return found
