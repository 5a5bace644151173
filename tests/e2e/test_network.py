#!/usr/bin/python3
"""RTP over networks that lose and reorder packets: every damaged picture is flagged, the reported losses are the real ones,
packets that arrive late but in time are used, and no picture waits longer than the limit. Our own cameras record each
packet that their network lost; if the kernel has netem, it does the same to a camera in a namespace."""
import contextlib
import os
import threading

from camera_rows import Result, ask
from disturbed_camera import DisturbedCamera, Disturbance
from framed_client import PATIENCE, Checks, Framed, folder, until
from network_namespace import Namespace, why_no_netem
from numbered_clip import RATE, NumberedClip, encode
from pace import is_short
from rtsp_camera import Camera
from watch import OUTPUT, Watcher, check_ledger, reference

SECONDS = 15
HELD_MAX = 0.1  # s; the longest that framed waits for a packet
SLACK = 0.06  # s; of the test machine


class Case:
    """A camera whose packets are lost (`lossy`), reordered (`mixed`) or up to `late` s late. `knows` is True if it records
    which pictures arrived whole."""

    def __init__(self, name, camera, late, lossy, mixed):
        self.name, self.key, self.camera, self.late, self.lossy = name, name.replace(" ", "-"), camera, late, lossy
        self.mixed, self.watcher, self.knows = mixed, None, True

    def text(self, where):
        return (f'  {self.key}: {{url: "{self.camera.url()}", transport: udp, outputs: {{o: {OUTPUT},'
                f' sink: "unix:{where}/{self.key}.sock"}}}}}}\n')


def disturbed(name, clip, lossy=False, **how):
    disturbance = Disturbance(**how)
    return Case(name, DisturbedCamera(clip, disturbance), disturbance.longest(), lossy, disturbance.mixes())


def cases(clips):
    for codec in ("h264", "h265"):
        yield disturbed(f"{codec} loss", clips[codec], lossy=True, loss=0.01)
        yield disturbed(f"{codec} order", clips[codec], delay=0.01, early=0.05)
        yield disturbed(f"{codec} jitter", clips[codec], delay=0.01, jitter=0.004)
        yield disturbed(f"{codec} all", clips[codec], lossy=True, loss=0.01, delay=0.01, jitter=0.004, early=0.05)


def check_case(checks, case, result):
    name, account, camera = case.name, result.account, case.camera
    for what in ("doubled", "disordered", "unflagged"):
        checks.check(not getattr(account, what), f"{name}: {what} {getattr(account, what)[:5]}")
    missing = result.missing_whole() if case.knows and not camera.delayed else []
    checks.check(not missing, f"{name}: {len(missing)} good pictures are missing or flagged: {missing[:5]}")
    checks.check(len(camera.calls) == 1, f"{name}: {len(camera.calls)} connections")
    checks.check(len(result.seen) > SECONDS * RATE * 0.8 / PATIENCE, f"{name}: {len(result.seen)} pictures")
    longest = max(result.delays(), default=99)
    checks.check(longest < (case.late + HELD_MAX + SLACK) * PATIENCE, f"{name}: a picture came after {longest:.3f} s")
    reordered = result.network.get("reordered")
    checks.check(bool(reordered) == case.mixed, f"{name}: {reordered} packets came behind a later one")
    if case.lossy:
        checks.check(camera.withheld > 0, f"{name}: nothing was lost")
    print(f"{name:14} {len(result.seen):4} pictures, {account.flagged:3} flagged, {camera.withheld:3} packets lost,"
          f" {result.network.get('lost')} shown, {camera.delayed:2} too late, {1000 * (result.delay() or 0):5.1f} ms,"
          f" at most {1000 * longest:.0f}", flush=True)
    for problem in result.problems:
        checks.check(False, f"{name}: {problem}")


def play(checks, where, listed, digests):
    """Returns case -> Result."""
    config = "log: {level: info}\ncameras:\n" + "".join(case.text(where) for case in listed)
    with Framed(where, config) as framed:
        for case in listed:
            case.watcher = Watcher(f"unix:{where}/{case.key}.sock", digests)
        framed.watch(SECONDS)
        told = ask(where, listed)
        results = {case: Result(case, told.get(case.key, {}), "") for case in listed}
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()[-2000:]}")
        for case in listed:
            case.watcher.join(5)
            check_ledger(checks, framed.metrics(), case.key, case.watcher.seen)
    return results


def check_disturbed(checks, where, clips, digests):
    listed = list(cases(clips))
    try:
        results = play(checks, where, listed, digests)
    finally:
        close_all(listed)
    for case, result in results.items():
        # A busy machine sends late itself.
        result.shows_losses(more=case.camera.delayed + (20 if is_short() else 0))
        check_case(checks, case, result)


def close_all(listed):
    threads = [threading.Thread(target=case.camera.close) for case in listed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_netem(checks, where, clips, digests):
    if why := why_no_netem():
        checks.skip(f"netem: {why}")
        return
    ways = {"loss": ("loss", "1%"), "order": ("delay", "10ms", "reorder", "5%"), "jitter": ("delay", "10ms", "4ms")}
    with contextlib.ExitStack() as stack:
        networks = [stack.enter_context(Namespace()) for _ in ways]
        listed = []
        for (name, way), network in zip(ways.items(), networks):
            network.disturb(*way)
            with network.entered():
                camera = Camera(clips["h264"], host=network.inner)
                listed.append(Case(f"netem {name}", camera, 0.014, name == "loss", name != "loss"))
            listed[-1].knows, listed[-1].camera.delayed = False, 0
        try:
            results = play(checks, where, listed, digests)
        finally:
            close_all(listed)
        for case, network in zip(listed, networks):
            case.camera.withheld = network.dropped()
    for case, result in results.items():
        check_case(checks, case, result)
        lost = result.network.get("lost")
        # netem also counts lost RTSP and RTCP packets.
        near = lost is not None and abs(lost - case.camera.withheld) <= 3 + 0.1 * case.camera.withheld
        checks.check(near, f"{case.name}: {lost} losses shown, {case.camera.withheld} by netem")


def main():
    checks = Checks("network")
    with folder() as where:
        clips, digests = {}, {}
        for codec in ("h264", "h265"):
            path = encode(os.path.join(where, f"clip.{codec}"), int((SECONDS + 5) * RATE), codec)
            clips[codec] = NumberedClip(path, codec)
            digests.update(reference(path))
        check_disturbed(checks, where, clips, digests)
        check_netem(checks, where, clips, digests)
    checks.end()


main()
