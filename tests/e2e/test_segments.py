#!/usr/bin/python3
"""Split files: cut at full seconds of the clock or below a size, renamed when complete, readable by common
programs; also after kill -9 at a random moment, and on a disk that is full for a while (tests/faults/disk.c)."""
import contextlib
import glob
import os
import random
import re
import signal
import time

import framed_client
import numpy
from framed_client import PATIENCE, Checks, Framed, Process, consume, ffmpeg, folder, footage, make_clip, until

SECOND = 10**9
SIZES = {"clip.mp4": (320, 240), "footage.mp4": (768, 432)}
OUTPUTS = ("tensors", "player", "planes", "arrays")
CAMERA = """
backend: cpu
defaults: {{segment: 1s, overflow: wait}}
cameras:
  gate:
    url: {where}/{clip}
    loop: true
    pace: {pace}
    outputs:
      tensors: {{size: 64x64, sink: "file:{where}/to/t-%Y%m%d-%H%M%S.framed"}}
      player: {{kernel: yuv, format: yuv420p, sink: "file:{where}/to/p-%s.y4m"}}
      planes: {{kernel: yuv, format: yuv420p, segment: 1MiB, sink: "file:{where}/to/r-%F-%H%M%S.raw"}}
      arrays: {{size: 64x48, tensor: {{layout: nhwc}}, sink: "file:{where}/to/n-%j%H%M%S%z.npy"}}
"""


def config(where, pace="realtime", clip="clip.mp4"):
    return CAMERA.format(where=where, pace=pace, clip=clip)


def frame_bytes(clip):
    width, height = SIZES[clip]
    return width * height * 3 // 2


def headers(path):
    """Returns the headers of a framed file, which must contain whole frames only."""
    found = []
    with open(path, "rb") as file:
        while data := file.read(256):
            found.append(consume.header_of(data))
            if len(file.read(found[-1].payload_bytes)) != found[-1].payload_bytes:
                raise ValueError(f"{path} is cut")
    return found


def files(where, ending):
    return sorted(glob.glob(f"{where}/to/*.{ending}"), key=os.path.getmtime)


def count_framed(where, _):
    return sum(len(headers(path)) for path in files(where, "framed"))


def count_y4m(where, _):
    """Returns the frames that ffmpeg counts; data after the last whole frame would be an error."""
    lines = [ffmpeg("-i", path, "-f", "framemd5", "-").decode().splitlines() for path in files(where, "y4m")]
    return sum(not line.startswith("#") for digests in lines for line in digests)


def count_npy(where, _):
    frames = 0
    for path in files(where, "npy"):
        with open(path, "rb") as file:
            while file.tell() < os.path.getsize(path):
                frames += numpy.load(file).shape == (48, 64, 3)
    return frames


def count_raw(where, clip):
    sizes = [os.path.getsize(path) for path in files(where, "raw")]
    frame = frame_bytes(clip)
    return sum(sizes) // frame if not any(size % frame for size in sizes) else -1


COUNTS = dict(zip(OUTPUTS, (count_framed, count_y4m, count_raw, count_npy)))


def check_cuts(checks, where, clip):
    paths = files(where, "framed")
    checks.check(len(paths) >= 3, f"{len(paths)} files in 3 s of segments of 1 s")
    for number, path in enumerate(paths):
        times = [header.capture_ns for header in headers(path)]
        runs = {at // SECOND for at in times}
        checks.check(len(runs) == 1, f"{path}: frames of {len(runs)} seconds")
        named = time.strftime("t-%Y%m%d-%H%M%S.framed", time.localtime(times[0] // SECOND))
        checks.check(os.path.basename(path) == named, f"{path}: begins at {times[0]}, {named}")
        late = times[0] % SECOND
        checks.check(number == 0 or late < SECOND // 2, f"{path}: begins {late / 1e6} ms behind the second")
    sequences = [header.sequence for path in paths for header in headers(path)]
    checks.check(sequences == list(range(len(sequences))), "frames are missing between the files")
    sizes = [os.path.getsize(path) for path in files(where, "raw")]
    good = max(sizes) <= 2**20 and min(sizes[:-1]) > 2**20 - 2 * frame_bytes(clip)
    checks.check(good, f"sizes of at most 1 MiB: {sizes}")


def check_account(checks, where, metrics, case, clip="clip.mp4"):
    for output, count in COUNTS.items():
        offered, emitted, lost = metrics.account(camera="gate", output=output)
        frames = count(where, clip)
        good = frames == emitted and offered == emitted + lost
        checks.check(good, f"{case}, {output}: {frames} in files, offered {offered}, emitted {emitted}, lost {lost}")


def parts(where):
    return glob.glob(f"{where}/to/*.part")


def empty(where):
    for path in glob.glob(f"{where}/to/*"):
        os.unlink(path)


def check_run(checks, where, clip):
    empty(where)
    with Framed(where, config(where, clip=clip)) as framed:
        until(lambda: len(files(where, "framed")) >= 3, 20)
        checks.check(len(parts(where)) == 4, f"being written: {parts(where)}")
        code = framed.stop()
        checks.check(code == 0 and not parts(where), f"exit {code}, {parts(where)}\n{framed.errors()}")
        check_account(checks, where, framed.metrics(), clip, clip)
    check_cuts(checks, where, clip)


def check_kill(checks, where, seed):
    """Files with their final name are complete at once; after the next start no others are left, and no whole frame is lost."""
    random.seed(seed)
    for _ in range(4):
        empty(where)
        with Framed(where, config(where, "full")) as framed:
            until(lambda: len(parts(where)) == 4, 10)
            time.sleep(random.random() * 1.5)
            framed.child.send_signal(signal.SIGKILL)
            framed.wait(5)
        named = {output: count(where, "clip.mp4") for output, count in COUNTS.items()}
        left = parts(where)
        sizes = {path: os.path.getsize(path) for path in left}
        checks.check(len(left) <= 4, f"seed {seed}: left {left}")
        with Framed(where, config(where, clip="none.mp4")) as framed:
            until(lambda: not parts(where), 5)
            framed.stop()
            told = re.findall(r"left of .* by an earlier run: 1 finished", framed.errors())
        checks.check(not parts(where), f"seed {seed}: still left: {parts(where)}\n{framed.errors()}")
        checks.check(len(told) == len(left), f"seed {seed}: told of {told}, not of {left}\n{framed.errors()}")
        counts = {output: count(where, "clip.mp4") for output, count in COUNTS.items() if output != "planes"}
        grown = all(counts[output] >= named[output] for output in counts)
        checks.check(grown, f"seed {seed}: {counts} after {named}, {sizes}")


def check_stuck(checks, where):
    """A file in another format than the output's stays and is reported once; a file that does not match the output is not reported."""
    empty(where)
    for name, text in (("p-1.y4m", "no pictures"), ("p-2.y4m", "nor here"), ("n-001000000+0000.npy", "no array"), ("q", "")):
        with open(f"{where}/to/{name}.part", "w") as file:
            file.write(text)
    with Framed(where, config(where)) as framed:
        until(lambda: len(files(where, "y4m")) > 1, 10)
        framed.stop()
        told = re.findall(r"(\d) cannot be finished and stay as they are: (\S+): (.*)", framed.errors())
    kept = sorted(map(os.path.basename, parts(where)))
    checks.check(kept == ["n-001000000+0000.npy.part", "p-1.y4m.part", "p-2.y4m.part", "q.part"], f"kept {kept}")
    stuck = {(number, os.path.basename(path)[:2]) for number, path, _ in told}
    checks.check(len(told) == 2 and stuck == {("2", "p-"), ("1", "n-")}, f"told of {told}\n{framed.errors()}")


def check_full(checks, where, plain):
    """A full disk is reported once, the frames meanwhile are lost with reason sink and none before; writing resumes
    when there is space; SIGTERM does not wait for space."""
    text = config(where).replace("overflow: wait", "overflow: drop_oldest")
    if plain:
        text = re.sub(r"-%[^.]*\.", ".", text).replace("segment: 1s, ", "").replace("segment: 1MiB, ", "")
    case = "full, one file" if plain else "full, segments"
    empty(where)
    full = f"{where}/to/full"
    with Framed(where, text, {"FRAMED_DISK_FULL": full}) as framed:
        until(lambda: os.path.exists(f"{where}/framed.metrics"), 10)
        time.sleep(1.2)
        open(full, "w").close()
        time.sleep(2.5)
        lost = framed.live_metrics().losses()
        os.unlink(full)
        start = time.monotonic()
        again = until(lambda: len(re.findall("writing .* again", framed.errors())) == 4, 10)
        took = time.monotonic() - start
        checks.check(again and took < 5 * PATIENCE, f"{case}: goes on after {took:.1f} s\n{framed.errors()}")
        print(f"{case}: all four files go on {took:.1f} s after there is room")
        told = framed.errors().count("No space left on device: frames are lost")
        checks.check(told == 4, f"{case}: told {told} times of 4 sinks in 2.5 s\n{framed.errors()}")
        checks.check(set(lost) == {"sink"} and lost["sink"] > 4 * 25, f"{case}: lost {lost}")
        time.sleep(0.5)
        open(full, "w").close()
        time.sleep(0.5)
        start = time.monotonic()
        code = framed.stop()
        took = time.monotonic() - start
        checks.check(code == 0 and took < 2 * PATIENCE, f"{case}: exit {code} after {took:.1f} s\n{framed.errors()}")
        os.unlink(full)
        check_account(checks, where, framed.metrics(), case)
        checks.check(not parts(where), f"{case}: {parts(where)}")
        checks.check("unaccounted" not in framed.errors(), f"{case}: {framed.errors()}")


def check_small_disk(checks, where):
    """The kernel's own full disk: a file system of 12 MiB in a namespace, half of it ballast at first."""
    small = f"{where}/small"
    os.mkdir(small)
    mount = f"mount -t tmpfs -o size=12m none {small} && fallocate -l 6MiB {small}/ballast && echo && exec sleep 600"
    with Process(["unshare", "-rm", "sh", "-c", mount], f"{where}/mount.log") as holder:
        if not holder.child.stdout.readline():
            checks.skip(f"a full tmpfs, which cannot be mounted here: {' '.join(holder.errors().split())}")
            return
        empty(where)
        os.rmdir(f"{where}/to")
        os.symlink(f"/proc/{holder.child.pid}/root{small}", f"{where}/to")  # the folder in the namespace
        framed = Framed(where, config(where).replace("overflow: wait", "overflow: drop_oldest").replace(f"{where}/to", small))
        enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", str(holder.child.pid)]
        framed.arguments = enter + framed.arguments
        with framed:
            check_ballast(checks, where, framed)


def check_ballast(checks, where, framed):
    said = "No space left on device: frames are lost"
    full = until(lambda: framed.errors().count(said) >= 2, 10)
    start = time.monotonic()
    time.sleep(2)
    lines = framed.errors().count(said)
    limit = 4 * (time.monotonic() - start + 1)  # a sink of small frames finds space between the frames of others
    checks.check(full and lines <= limit, f"tmpfs: told {lines} times\n{framed.errors()}")
    before = framed.live_metrics().account(output="player")
    os.unlink(f"{where}/to/ballast")
    start = time.monotonic()
    again = until(lambda: framed.live_metrics().account(output="player")[1] > before[1], 10)
    took = time.monotonic() - start
    checks.check(again and took < 5 * PATIENCE, f"tmpfs: goes on after {took:.1f} s\n{framed.errors()}")
    print(f"tmpfs: goes on {took:.1f} s after there is room")
    lines = framed.errors().count(said)
    until(lambda: framed.errors().count(said) >= lines + 2, 10)  # the disk fills up again
    start = time.monotonic()
    code = framed.stop()
    took = time.monotonic() - start
    checks.check(code == 0 and took < 2 * PATIENCE, f"tmpfs: exit {code} after {took:.1f} s\n{framed.errors()}")
    print(f"tmpfs: stopped in {took:.2f} s while it is full")
    lost = framed.metrics().losses()
    checks.check(lost["sink"] > 0 and lost.keys() <= {"sink", "stopping"}, f"tmpfs: lost {lost}")
    checks.check(not parts(where), f"tmpfs: {parts(where)}")
    check_account(checks, where, framed.metrics(), "tmpfs")


def main():
    checks = Checks("segments")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        os.mkdir(f"{where}/to")
        check_run(checks, where, "clip.mp4")
        if footage("car-detection.mp4"):
            os.symlink(footage("car-detection.mp4"), f"{where}/footage.mp4")
            check_run(checks, where, "footage.mp4")
        else:
            checks.skip("no footage in ../shared/media")
        check_kill(checks, where, int(os.environ.get("SEED", time.time())))
        check_stuck(checks, where)
        check_small_disk(checks, where)
        with contextlib.suppress(OSError):
            os.unlink(f"{where}/to")
            os.mkdir(f"{where}/to")
        framed_client.BINARY += "-faults"
        check_full(checks, where, plain=False)
        check_full(checks, where, plain=True)
    checks.end()


main()
