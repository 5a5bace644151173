#!/usr/bin/python3
"""Batches of live cameras that send in bursts, die, stall and are slow, of cameras that come and go by reload, and a stop in mid-stream.
FRAMED_BATCH_SECONDS: how long cameras are watched (5); FRAMED_BATCH_RELOADS: how often the members change (10)."""
import collections
import contextlib
import os
import socket
import time

import numpy

import faulty_camera
from batch_client import BatchReader, check_ledger, check_order
from framed_client import PATIENCE, SANITIZED, Checks, Framed, Reader, folder, make_clip, until
from numbered_clip import GOP, NumberedClip, encode
from reloading import Reloaded

SECONDS = float(os.environ.get("FRAMED_BATCH_SECONDS", "5"))
RELOADS = int(os.environ.get("FRAMED_BATCH_RELOADS", "10"))
PAUSE = 0.45  # seconds at a keyframe
WAIT_MS = 40
TENSOR = "size: 32x32, tensor: {dtype: u8}"


class BurstingCamera(faulty_camera.Camera):
    """Sends 15 pictures per second in pairs; pauses at a keyframe, then sends the delayed pictures at once."""

    rate = 15

    def moment(self, index):
        in_group = index % GOP / self.rate
        if in_group < PAUSE:
            return (index - index % GOP) / self.rate + PAUSE
        return (index | 1) / self.rate


class SlowCamera(faulty_camera.Camera):
    rate = 1


def config_of(where, cameras, more):
    """Returns cameras, each with its own output `plain`, and a batch of all of them, `detector`."""
    rows = "".join(f'  {name}: {{url: "{camera.url()}", transport: tcp, media_timeout: 60s, outputs: '
                   f'{{plain: {{{TENSOR}, slots: 32, sink: "unix:{where}/{name}.sock"}}}}}}\n'
                   for name, camera in cameras.items())
    return f'cameras:\n{rows}batches: {{detector: {{cameras: "*", {TENSOR}, {more}, sink: "ring:{where}/b.ring"}}}}\n'


class Watched:
    """A framed with such a configuration, and its clients, connected before the first picture."""

    def __init__(self, stack, where, cameras, more):
        self.cameras = cameras
        self.framed = stack.enter_context(Framed(where, config_of(where, cameras, more)))
        self.batches = BatchReader(f"ring:{where}/b.ring")
        self.plain = {name: Reader(f"unix:{where}/{name}.sock", keep=False) for name in cameras}

    def end(self, checks):
        """Ends framed. Returns camera -> losses of its share of the batches."""
        began = time.monotonic()
        code = self.framed.stop(10)
        took = time.monotonic() - began
        checks.check(code == 0, f"exit {code}:\n{self.framed.errors()[-3000:]}")
        checks.check(took < 2 * PATIENCE, f"it took {took:.1f} s to end")
        for reader in (self.batches, *self.plain.values()):
            reader.join(5)
            checks.check(not reader.error, f"{reader.address}: {reader.error}")
        check_order(checks, "detector", self.batches.batches)
        self.counts = collections.Counter(element.camera for element in self.batches.elements())
        metrics = self.framed.metrics()
        check_ledger(checks, metrics, "plain", {name: reader.count for name, reader in self.plain.items()})
        return check_ledger(checks, metrics, "detector", self.counts, self.cameras)


def cameras_of(stack, where, kinds):
    clip = NumberedClip(encode(os.path.join(where, "clip.h264"), 4 * GOP))
    return {name: stack.enter_context(kind(clip)) for name, kind in kinds.items()}


def test_bursts(checks, wait, per_camera, least, filled=0):
    """Eight cameras, whose keyframes are evenly spread. Where a batch takes one picture per camera, a burst may lose some. `least`: minimum share of
    the ordinary outputs' pictures that get into batches, nearly equal for all cameras. `filled`: minimum of the mean of elements per batch."""
    with folder() as where, contextlib.ExitStack() as stack:
        cameras = cameras_of(stack, where, {f"c{i}": BurstingCamera for i in range(8)})
        for i, camera in enumerate(cameras.values()):
            camera.delay = i * GOP / camera.rate / len(cameras)
        watched = Watched(stack, where, cameras, f"count: 8, wait: {wait}, per_camera: {per_camera}")
        until(lambda: all(reader.count > 40 for reader in watched.plain.values()), 15)
        time.sleep(SECONDS)
        lost = watched.end(checks)
        begun = max(reader.frames[40][0].received_ns for reader in watched.plain.values())
        batches = [batch for batch in watched.batches.batches if batch.opened >= begun]
        mean = numpy.mean([len(batch.elements) for batch in batches])
        full = numpy.mean([len(batch.elements) == 8 for batch in batches])
        age = [(batch.finished - element.received) / 1e6 for batch in batches for element in batch.elements]
        closed = collections.Counter(batch.closed_by for batch in batches)
        plain = {name: reader.count for name, reader in watched.plain.items()}
        rate = sum(watched.counts.values()) / sum(plain.values())
        shares = [watched.counts[name] / plain[name] / rate for name in cameras]
        losses = dict(sum(lost.values(), collections.Counter()))
        print(f"bursts, wait {wait}, per_camera {per_camera}: {mean:.2f} of 8 elements, {full:.0%} full,"
              f" {rate:.2%} of the unbatched rate, shares {min(shares):.3f} to {max(shares):.3f}, median age"
              f" {numpy.median(age):.0f} ms, p99 {numpy.percentile(age, 99):.0f} ms, closed {dict(closed)}, lost {losses}")
        checks.check(SANITIZED or mean >= filled, f"only {mean:.2f} elements of a batch")
        checks.check(SANITIZED or rate >= least, f"only {rate:.2%} of the unbatched rate: {lost}")
        checks.check(SANITIZED or max(abs(share - 1) for share in shares) <= 0.08, f"shares {shares}")


def test_bad_members(checks):
    """One is killed, one stalls, one is slow: the others are not affected."""
    kinds = {name: faulty_camera.Camera for name in ("a", "b", "c", "d", "e", "killed", "stalled")}
    with folder() as where, contextlib.ExitStack() as stack:
        cameras = cameras_of(stack, where, {**kinds, "slow": SlowCamera})
        for i, camera in enumerate(cameras.values()):
            camera.delay = i * 0.005
        watched = Watched(stack, where, cameras, f"count: 8, wait: {WAIT_MS}ms")
        until(lambda: all(reader.count > 2 for reader in watched.plain.values()), 15)
        cameras["killed"].close()
        cameras["stalled"].next(faulty_camera.Connection.go_mute)
        time.sleep(SECONDS)
        lost = watched.end(checks)
        normal = [name for name in cameras if len(name) == 1]
        finished = {(name, header.sequence): header.finished_ns
                    for name in normal for header, _ in watched.plain[name].frames}
        added = [(batch.closed - finished[element.camera, element.sequence]) / 1e6
                 for batch in watched.batches.batches for element in batch.elements
                 if (element.camera, element.sequence) in finished]
        worst = numpy.percentile(added, 99)
        print(f"bad members: {sum(watched.counts[name] for name in normal)} elements of the others, added latency"
              f" median {numpy.median(added):.1f} ms, p99 {worst:.1f} ms, most {max(added):.1f} ms; wait {WAIT_MS} ms")
        checks.check(watched.counts["slow"] >= 2 and watched.counts["killed"], f"{watched.counts}")
        checks.check(SANITIZED or worst <= WAIT_MS + 150, f"added latency p99 {worst:.1f} ms")
        checks.check(SANITIZED or not any(lost[name] for name in normal), f"lost {lost}")


def reload_config(where, members):
    rows = "".join(f'  {name}: {{url: "{where}/clip.mp4", loop: true, pace: realtime, outputs: '
                   f'{{own: {{{TENSOR}, sink: "unix:{where}/{name}.sock"}}}}}}\n' for name in "abcd")
    return (f"cameras:\n{rows}batches: {{detector: {{cameras: [{members}], {TENSOR}, count: 3, slots: 16,"
            f' overflow: wait, sink: "ring:{where}/b.ring"}}}}\n')


def test_reload(checks):
    """Members come and go. Remaining members lose nothing, and the counters match the client's elements."""
    turns = ("a, b", "a, b, c", "a, b, c, d", "a, b, d")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        with Reloaded(where, reload_config(where, turns[0])) as framed:
            reader = BatchReader(f"ring:{where}/b.ring")
            until(lambda: len(reader.batches) > 10, 10)
            for i in range(1, RELOADS + 1):
                checks.check(framed.reload(reload_config(where, turns[i % len(turns)])), f"reload {i} was refused")
                had = len(reader.batches)
                until(lambda: len(reader.batches) > had + 5, 5)
            code = framed.stop(10)
            checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
            reader.join(5)
            check_order(checks, "reload", reader.batches)
            counts = collections.Counter(element.camera for element in reader.elements())
            lost = check_ledger(checks, framed.metrics(), "detector", counts, "ab")
            reasons = collections.Counter(batch.closed_by for batch in reader.batches)
            print(f"reload: {RELOADS} times, elements {dict(counts)}, closed {dict(reasons)}, lost {lost}")
            checks.check(not any(lost.values()), f"lost {lost}")
            checks.check(set(counts) == set("abcd"), f"elements of {set(counts)}")


def stalled_config(where, names):
    rows = "".join(f'  {name}: {{url: "{where}/clip.mp4", loop: true, pace: realtime, outputs: '
                   f'{{own: {{{TENSOR}, sink: "unix:{where}/{name}.sock"}}}}}}\n' for name in names)
    return (f'cameras:\n{rows}batches: {{detector: {{cameras: "*", size: 640x640, tensor: {{dtype: u8}}, count: 2,'
            f' sink: "unix:{where}/detector.sock"}}}}\n')


def test_stalled_client(checks):
    """A client of a batch reads nothing while a camera is removed: the camera's sums close, and it can come back."""
    with folder() as where, contextlib.ExitStack() as stack:
        make_clip(os.path.join(where, "clip.mp4"))
        framed = stack.enter_context(Reloaded(where, stalled_config(where, "ab")))
        stalled = stack.enter_context(socket.socket(socket.AF_UNIX))
        until(lambda: os.path.exists(f"{where}/detector.sock"), 5)
        stalled.connect(f"{where}/detector.sock")
        former = Reader(f"unix:{where}/b.sock", limit=20, keep=False)
        checks.check(until(lambda: former.count == 20, 10), f"{former.count} frames, {former.error}")
        checks.check(framed.reload(stalled_config(where, "a")), "the camera was not removed")
        checks.check(framed.reload(stalled_config(where, "ab")), "the camera did not come back")

        def delivers():
            successor = Reader(f"unix:{where}/b.sock", limit=5, keep=False)
            successor.join(1)
            return successor.count == 5

        checks.check(until(delivers, 8), "no frames of its successor")
        stopped = [line for line in framed.errors().splitlines() if "camera=b" in line and "output=detector" in line]
        checks.check(any("stopping" in line for line in stopped), f"nothing counted as lost: {stopped}")
        checks.check(framed.stop(10) == 0, framed.errors()[-3000:])


def main():
    checks = Checks("batches")
    test_bursts(checks, "auto", 1, 0.95)
    test_bursts(checks, "auto", 8, 0.99)
    test_bursts(checks, "200ms", 8, 0.99, 7)
    test_bad_members(checks)
    test_reload(checks)
    test_stalled_client(checks)
    checks.end()


main()
