#!/usr/bin/python3
"""kernel: copy, end to end: a camera's own packets in files, beside tensors and over one connection. What is in the files
is byte for byte what the camera sent; kill -9 costs less than a second, and the files play."""
import glob
import os
import signal
import time

from containers import samples
from faulty_camera import Camera
from framed_client import PATIENCE, Checks, Framed, ffmpeg, folder, until
from numbered_clip import RATE, NumberedClip, encode

SECOND = 10**9
CAMERA = """
control: {where}/control.sock
cameras:
  gate:
    url: {url}
    connect_timeout: 2s
    media_timeout: 2s
    close_timeout: 300ms
    outputs:
{outputs}
"""
TENSORS = '      tensors: {{size: 64x64, sink: "unix:{where}/tensors.sock"}}\n'


def config(where, camera, outputs, tensors=True):
    lines = TENSORS.format(where=where) if tensors else ""
    for name, text in outputs.items():
        lines += f"      {name}: {{kernel: copy, {text}}}\n"
    return CAMERA.format(where=where, url=camera.url(), outputs=lines)


def to(where, name):
    return f'sink: "file:{where}/to/{name}"'


def files(where, pattern):
    return sorted(glob.glob(f"{where}/to/{pattern}"), key=os.path.getmtime)


def empty(where):
    os.makedirs(f"{where}/to", exist_ok=True)
    for path in glob.glob(f"{where}/to/*"):
        os.unlink(path)


def plays(checks, case, path, least=1):
    """As ffmpeg decodes it, without an error."""
    lines = ffmpeg("-i", path, "-f", "framemd5", "-").decode().splitlines()
    pictures = sum(not line.startswith("#") for line in lines)
    checks.check(pictures >= least, f"{case}: ffmpeg decodes {pictures} of {least} pictures of {path}")
    return pictures


def numbers_of(checks, case, clip, found):
    """Which of the clip's pictures the samples are; every byte of a picture's NAL units is compared."""
    known = {tuple(unit): number for number, unit in enumerate(clip.units)}
    numbers = [known.get(tuple(sample.nals)) for sample in found]
    checks.check(None not in numbers, f"{case}: {numbers.count(None)} of {len(numbers)} samples are no picture of the camera")
    return [number for number in numbers if number is not None]


def check_samples(checks, case, clip, paths):
    """All pictures from the first on, in the camera's order, none twice; each file begins with a keyframe."""
    numbers = []
    for path in paths:
        found = samples(path)
        checks.check(found and found[0].keyframe, f"{case}: {path} does not begin with a keyframe")
        if found:
            times = [sample.pts for sample in found]
            steps = {round((b - a) * RATE) for a, b in zip(times, times[1:])}
            checks.check(abs(times[0]) < 0.01 and steps <= {1}, f"{case}: times of {path}: from {times[0]}, steps {steps}")
        numbers += numbers_of(checks, case, clip, found)
    whole = list(range(numbers[0], numbers[0] + len(numbers))) if numbers else None
    checks.check(numbers == whole, f"{case}: pictures are missing or change places: {numbers}")
    return numbers


def check_always(checks, where, codec):
    """Segments, one file, both containers, beside a tensor: all from one connection."""
    clip = NumberedClip(encode(f"{where}/clip.{codec}", 400, codec), codec)
    outputs = {
        "segments": "segment: 2s, " + to(where, "s-%Y%m%d-%H%M%S.mp4"),
        "chunks": "segment: 2s, " + to(where, "c-%s.mkv"),
        "mp4": to(where, "one.mp4"),
        "mkv": to(where, "one.mkv"),
    }
    empty(where)
    with Camera(clip) as camera, Framed(where, config(where, camera, outputs)) as framed:
        checks.check(until(lambda: len(files(where, "s-*.mp4")) >= 2, 15), f"{codec}: no segments\n{framed.errors()}")
        code = framed.stop()
        checks.check(code == 0 and not files(where, "*.part"), f"{codec}: exit {code}\n{framed.errors()}")
        metrics, connections = framed.metrics(), len(camera.calls)
        checks.check(connections == 1, f"{codec}: {connections} connections")
    for output, pattern in (("segments", "s-*.mp4"), ("chunks", "c-*.mkv"), ("mp4", "one.mp4"), ("mkv", "one.mkv")):
        case, paths = f"{codec}, {output}", files(where, pattern)
        numbers = check_samples(checks, case, clip, paths)
        for path in paths:
            plays(checks, case, path, len(samples(path)))
        offered, emitted, lost = metrics.account(camera="gate", output=output)
        good = len(numbers) == emitted == offered and not lost
        checks.check(good, f"{case}: {len(numbers)} in files, offered {offered}, emitted {emitted}, lost {lost}")
        print(f"{case}: {len(paths)} files of {len(numbers)} pictures")
    check_names(checks, codec, where)


def check_names(checks, codec, where):
    """A file is named by the time of its first picture, and later ones begin with a multiple of 2 s, or the keyframe
    behind it."""
    for number, path in enumerate(files(where, "c-*.mkv")):
        at = int(os.path.basename(path)[2:].split(".")[0])
        began = os.path.getmtime(path) - samples(path)[-1].pts
        checks.check(abs(at - began) < 2 * PATIENCE, f"{codec}: {path} began at {began}")
        checks.check(number == 0 or at % 2 in (0, 1), f"{codec}: {path}")


def check_kill(checks, where):
    """kill -9 at some moment: what was sent until a second before is there, at once and after the next start."""
    clip = NumberedClip(encode(f"{where}/clip.h264", 400))
    outputs = {"mp4": "segment: 1h, " + to(where, "k-%s.mp4"), "mkv": "segment: 1h, " + to(where, "k-%s.mkv")}
    for seconds in (1.3, 2.2, 2.45):
        empty(where)
        with Camera(clip) as camera, Framed(where, config(where, camera, outputs)) as framed:
            until(lambda: camera.sent, 10)
            time.sleep(seconds * PATIENCE)
            framed.child.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            framed.wait(5)
            sent = [one.number for one in camera.sent if one.at < killed - 1 * PATIENCE]
        left = files(where, "*.part")
        checks.check(len(left) == 2, f"killed: {left}")
        for path in left:
            plain = path[: -len(".part")]
            os.link(path, f"{where}/{os.path.basename(plain)}")
            check_killed(checks, f"killed after {seconds} s", clip, f"{where}/{os.path.basename(plain)}", sent)
            os.unlink(f"{where}/{os.path.basename(plain)}")
        with Camera(clip, start=False) as nobody, Framed(where, config(where, nobody, outputs)) as framed:
            until(lambda: not files(where, "*.part"), 10)
            framed.stop()
            told = framed.errors().count("left of")
        checks.check(told == 2 and not files(where, "*.part"), f"told of {told}: {framed.errors()}")
        for path in files(where, "k-*"):
            check_killed(checks, f"killed after {seconds} s, finished", clip, path, sent)


def check_killed(checks, case, clip, path, sent):
    numbers = check_samples(checks, case, clip, [path])
    lost = max(len(sent) - len(numbers), 0)
    checks.check(lost == 0, f"{case}: {lost} pictures that were sent a second before are not in {path}")
    plays(checks, case, path, len(numbers))


def main():
    checks = Checks("record")
    with folder() as where:
        for codec in ("h264", "h265"):
            check_always(checks, where, codec)
        check_kill(checks, where)
    checks.end()


main()
