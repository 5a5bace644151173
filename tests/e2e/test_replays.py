#!/usr/bin/python3
"""Servers that begin each session with earlier pictures: a cache before a dead camera shows nothing and counts as an
outage, a cache before a working camera shows each picture once, and a server that plays its clip from the start for
each client is live."""
import os
import time

from faulty_camera import Camera, Connection
from framed_client import Checks, Framed, folder, status, until
from numbered_clip import GOP, RATE, NumberedClip, encode
from rtsp_camera import Sent
from watch import OUTPUT, UNKNOWN, Account, Watcher, reference

CAMERA = '  {name}: {{url: "{url}", outputs: {{o: {output}, sink: "unix:{where}/{name}.sock"}}}}}}\n'


class Cached(Connection):
    """Sends the pictures since the last keyframe at once, then the live ones of the camera."""

    def stream(self):
        camera = self.camera
        first = max(camera.number - 1, 0) // GOP * GOP
        cached = range(first, camera.number)
        for number in cached:
            self.send_picture(number, (number - first) / RATE)
        start = time.monotonic()
        for index in range(100000):
            due = start + index / RATE
            while (left := due - time.monotonic()) > 0:
                if request := self.receive(left):
                    self.answer(request)
            if camera.dead or camera.over.is_set():
                break
            number = camera.number
            for act in camera.acts(number):
                act(self)
            camera.number = number + 1
            whole, began = self.send_picture(number, (number - first) / RATE)
            camera.sent.append(Sent(number, self.serial, due, began, time.monotonic(), whole, time.time()))
        while not camera.over.is_set():
            self.receive(0.1)


class CachedCamera(Camera):
    connection, dead = Cached, False


class FromStart(Connection):
    """Sends the same pictures, numbers and timestamps to each client."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sequence, self.rtp_base, self.ssrc = 100, 1000, 0x0BADCAFE

    def stream(self):
        self.camera.number = 0
        super().stream()


class FromStartCamera(Camera):
    connection = FromStart


def begun(watcher, count=2 * GOP):
    return until(lambda: len(watcher.seen) >= count, 20)


def check_dead(checks, where, camera, watcher):
    name = "behind a cache, dead"
    checks.check(begun(watcher), f"{name}: {len(watcher.seen)} pictures")
    camera.dead = True
    until(lambda: status(where)["dead"]["state"] != "running", 20)
    shown = len(watcher.seen)
    plays = camera.plays
    until(lambda: camera.plays >= plays + 3, 30)
    time.sleep(1)
    told = status(where)["dead"]
    print(f"{name}: {shown} pictures shown, {len(watcher.seen) - shown} again, {camera.plays} sessions, {told['state']}")
    checks.check(len(watcher.seen) == shown, f"{name}: {len(watcher.seen) - shown} pictures were shown again")
    checks.check(camera.plays >= plays + 3, f"{name}: no more tries")
    checks.check(told["state"] != "running", f"{name}: {told['state']}")


def check_well(checks, camera, watcher):
    name = "behind a cache, well"
    checks.check(begun(watcher, 30), f"{name}: {len(watcher.seen)} pictures")
    for count in (80, 150):
        camera.next(Connection.fin)
        until(lambda count=count: len(watcher.seen) >= count, 20)
    account = Account(camera.sent, watcher.seen)
    print(f"{name}: {len(watcher.seen)} pictures in {camera.plays} sessions")
    checks.check(camera.plays >= 3, f"{name}: {camera.plays} sessions")
    for what in ("doubled", "torn", "unflagged"):
        checks.check(not getattr(account, what), f"{name}: {what} {getattr(account, what)[:5]}")
    checks.check(account.flagged == 0, f"{name}: {account.flagged} flagged")
    missing = [number for number in account.missing if number not in [s.number for s in camera.sent[-5:]]]
    checks.check(len(missing) <= 4, f"{name}: missing {missing[:10]}")


def check_from_start(checks, camera, watcher):
    name = "a clip from its start"
    checks.check(begun(watcher), f"{name}: {len(watcher.seen)} pictures")
    epoch = watcher.seen[-1].header.epoch
    camera.next(Connection.fin)
    again = lambda: [s.known for s in list(watcher.seen) if s.header.epoch > epoch and s.known != UNKNOWN]
    checks.check(until(lambda: len(again()) >= GOP, 20), f"{name}: {len(again())} pictures of a second session")
    print(f"{name}: {again()[:3]} ... in the second session")
    checks.check(again()[:1] and again()[0] < 3, f"{name}: begins with {again()[:1]}")


def main():
    checks = Checks("replays")
    with folder() as where:
        path = encode(os.path.join(where, "clip.h264"), 1000, "h264", (320, 192), "yuv420p")
        clip, digests = NumberedClip(path, "h264"), reference(path)
        with CachedCamera(clip) as dead, CachedCamera(clip) as well, FromStartCamera(clip) as start:
            cameras = {"dead": dead, "well": well, "start": start}
            config = "log: {level: info}\ncameras:\n" + "".join(
                CAMERA.format(name=name, url=camera.url(), output=OUTPUT, where=where)
                for name, camera in cameras.items())
            with Framed(where, config) as framed:
                watchers = {name: Watcher(f"unix:{where}/{name}.sock", digests) for name in cameras}
                check_well(checks, well, watchers["well"])
                check_from_start(checks, start, watchers["start"])
                check_dead(checks, where, dead, watchers["dead"])
                framed.stop()
                if checks.failed:
                    print(framed.errors()[-4000:])
    checks.end()


main()
