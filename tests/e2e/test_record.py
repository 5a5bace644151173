#!/usr/bin/python3
"""kernel: copy, end to end: a camera's own packets in files, beside tensors and over one connection. The files contain the
camera's bytes unchanged; kill -9 costs less than a second, and the files play. Also clips on request, `keep`, a full disk
(tests/faults/disk.c), reloads, and publishing to GStreamer's server."""
import glob
import os
import signal
import time

import framed_client
from containers import samples
from faulty_camera import Camera
from framed_client import BINARY, PATIENCE, ROOT, Checks, Framed, Process, ffmpeg, folder, free_port, run, until
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
    """ffmpeg decodes the file without an error."""
    lines = ffmpeg("-i", path, "-f", "framemd5", "-").decode().splitlines()
    pictures = sum(not line.startswith("#") for line in lines)
    checks.check(pictures >= least, f"{case}: ffmpeg decodes {pictures} of {least} pictures of {path}")
    return pictures


def numbers_of(checks, case, clip, found):
    """Returns the clip's picture number of each sample; every byte of a picture's NAL units is compared."""
    known = {tuple(unit): number for number, unit in enumerate(clip.units)}
    numbers = [known.get(tuple(sample.nals)) for sample in found]
    checks.check(None not in numbers, f"{case}: {numbers.count(None)} of {len(numbers)} samples are no picture of the camera")
    return [number for number in numbers if number is not None]


def check_samples(checks, case, clip, paths):
    """All pictures from the first on, in the camera's order, without duplicates; each file begins with a keyframe."""
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
    """Segments, one file, both containers, beside a tensor, all from one connection."""
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
    """A file is named after the time of its first picture; later files begin at a multiple of 2 s or at the next keyframe."""
    for number, path in enumerate(files(where, "c-*.mkv")):
        at = int(os.path.basename(path)[2:].split(".")[0])
        began = os.path.getmtime(path) - samples(path)[-1].pts
        checks.check(abs(at - began) < 2 * PATIENCE, f"{codec}: {path} began at {began}")
        checks.check(number == 0 or at % 2 in (0, 1), f"{codec}: {path}")


def check_kill(checks, where):
    """After kill -9 the file has all pictures sent until one second before, immediately and after the next start."""
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


def ask(where, *arguments):
    """Runs framed record; returns (exit code, output)."""
    code, out, err = run("record", "--socket", f"{where}/control.sock", *arguments)
    return code, out + err


def check_clip(checks, where):
    """A clip begins with the first keyframe of the last 2 s and ends 2 s after the request; a second request extends it.
    Without a request nothing is written."""
    clip = NumberedClip(f"{where}/clip.h264")
    outputs = {"clip": "before: 2s, " + to(where, "r-%s.mp4"), "all": to(where, "all.mkv")}
    empty(where)
    with Camera(clip) as camera, Framed(where, config(where, camera, outputs)) as framed:
        until(lambda: len(camera.sent) > 100, 20)
        checks.check(not files(where, "r-*"), f"written without a request: {files(where, 'r-*')}")
        asked = time.monotonic()
        code, said = ask(where, "gate", "2s")
        checks.check(code == 0 and "gate: 1 output writes a clip that ends in 2 s" in said, f"record: {code}, {said}")
        time.sleep(1)
        code, said = ask(where, "gate", "2s")
        until(lambda: files(where, "r-*.mp4"), 10)
        sent = {one.number: one.at for one in camera.sent}
        numbers = check_samples(checks, "clip", clip, files(where, "r-*.mp4"))
        if numbers:
            before, after = asked - sent[numbers[0]], sent[numbers[-1]] - asked
            good = 0.9 < before < 2.1 * PATIENCE and 2.8 < after < 3.2 * PATIENCE
            checks.check(good, f"clip: from {before:.2f} s before the request to {after:.2f} s after it")
            print(f"clip: {len(numbers)} pictures from {before:.2f} s before the request to {after:.2f} s after it")
        checks.check(len(files(where, "r-*")) == 1, f"clip: {files(where, 'r-*')}")
        code, said = ask(where, "gate", "1s")
        checks.check(until(lambda: len(files(where, "r-*.mp4")) == 2, 10), f"a second clip: {files(where, 'r-*')}")
        for arguments, wanted in (
            (["door", "5s"], "there is no camera door (cameras that have one: gate)"),
            (["gate", "5"], "5: is no duration from 1s to 24h (30s, 5m, 1h)"),
            (["gate"], "DURATION: is missing"),
            (["gate", "5s", "now"], "now: takes no further argument"),
        ):
            code, said = ask(where, *arguments)
            checks.check(code != 0 and wanted in said, f"record {arguments}: {code}, {said}")
        framed.stop()
        offered, emitted, lost = framed.metrics().account(output="clip")
        found = sum(len(samples(path)) for path in files(where, "r-*.mp4"))
        checks.check(found == emitted == offered and not lost, f"clips: {found}, {offered} = {emitted} + {lost}")
    with Camera(clip) as camera, Framed(where, config(where, camera, {"all": outputs["all"]})) as framed:
        until(lambda: os.path.exists(f"{where}/control.sock") and camera.sent, 10)
        code, said = ask(where, "gate", "5s")
        wanted = "camera gate has no output with kernel copy and `before` (no camera has one)"
        checks.check(code == 1 and wanted in said, f"record without before: {code}, {said}")
        framed.stop()


def check_keep(checks, where):
    """`keep` limits by size at the start and by age while recording; files that do not match the pattern stay."""
    clip = NumberedClip(f"{where}/clip.h264")
    empty(where)
    strangers = ["s-notes.mp4", "s-20200101-000000.mp4.part.old", "s-2020010-000000.mp4", "s-20200101-000000.01.mp4",
                 "xs-20200101-000000.mp4", "s-20200101-000000.mkv"]
    ours = ["s-20200101-000000.mp4", "s-20200101-000000.3.mp4", "s-20200102-000000.mp4"]
    for age, name in enumerate(reversed(ours + strangers)):
        with open(f"{where}/to/{name}", "wb") as file:
            file.truncate(600 << 10)
        os.utime(f"{where}/to/{name}", (time.time() - 86400 * (age + 1),) * 2)
    outputs = {"s": "segment: 1s, keep: 1MiB, " + to(where, "s-%Y%m%d-%H%M%S.mp4")}
    with Camera(clip) as camera, Framed(where, config(where, camera, outputs)) as framed:
        def left():
            return [name for name in ours if os.path.exists(f"{where}/to/{name}")]

        until(lambda: len(left()) == 1, 10)
        checks.check(left() == ours[-1:], f"keep: 1MiB: {left()} stay of {ours}")
        framed.stop()
    gone = [name for name in strangers if not os.path.exists(f"{where}/to/{name}")]
    checks.check(not gone, f"keep deleted {gone}")
    outputs = {"s": "segment: 1s, keep: 3s, " + to(where, "s-%Y%m%d-%H%M%S.mp4")}
    with Camera(clip) as camera, Framed(where, config(where, camera, outputs)) as framed:
        until(lambda: len(camera.sent) > 9 * RATE, 20)
        paths = [path for path in files(where, "s-*-*.mp4") if os.path.basename(path) not in strangers]
        ages = [time.time() - os.path.getmtime(path) for path in paths]
        checks.check(2 <= len(paths) <= 4 and max(ages) < 4.6 * PATIENCE, f"keep: 3s: files of the ages {ages}")
        framed.stop()
    gone = [name for name in strangers if not os.path.exists(f"{where}/to/{name}")]
    checks.check(not gone, f"keep deleted {gone}")


def check_full(checks, where):
    """A full disk is reported once per output; packets are lost with reason sink up to the next keyframe; data written before stays."""
    clip = NumberedClip(f"{where}/clip.h264")
    outputs = {"mp4": "segment: 1h, " + to(where, "f-%s.mp4"), "mkv": "segment: 1h, " + to(where, "f-%s.mkv"),
               "one": to(where, "one.mp4")}
    empty(where)
    full = f"{where}/to/full"
    framed_client.BINARY += "-faults"
    with Camera(clip) as camera, Framed(where, config(where, camera, outputs), {"FRAMED_DISK_FULL": full}) as framed:
        until(lambda: len(camera.sent) > 50, 20)
        open(full, "w").close()
        time.sleep(2.5 * PATIENCE)
        lost = framed.live_metrics().losses(camera="gate")
        os.unlink(full)
        again = until(lambda: framed.errors().count("again") == 3, 10)
        checks.check(again, f"full: does not go on\n{framed.errors()}")
        told = framed.errors().count("No space left on device: packets are lost")
        checks.check(told == 3, f"full: told {told} times\n{framed.errors()}")
        checks.check(lost["sink"] > 3 * 25 and lost.keys() <= {"sink", "client"}, f"full: lost {lost}")
        time.sleep(1)
        code = framed.stop()
        checks.check(code == 0 and not files(where, "*.part"), f"full: exit {code}\n{framed.errors()}")
        metrics = framed.metrics()
    framed_client.BINARY = BINARY
    for output, pattern in (("mp4", "f-*.mp4"), ("mkv", "f-*.mkv"), ("one", "one*.mp4")):
        paths = files(where, pattern)
        runs = [numbers_of(checks, f"full, {output}", clip, samples(path)) for path in paths]
        whole = all(numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in runs)
        checks.check(len(runs) == 2 and whole, f"full, {output}: {runs}")
        for path in paths:
            plays(checks, f"full, {output}", path)
        offered, emitted, lost = metrics.account(output=output)
        found = sum(map(len, runs))
        good = found == emitted and offered == emitted + lost
        checks.check(good, f"full, {output}: {found} in files, offered {offered}, emitted {emitted}, lost {lost}")


def check_reload(checks, where):
    """A copy output that stays is not disturbed; a removed one finishes its file; a new one begins at a keyframe."""
    clip = NumberedClip(f"{where}/clip.h264")
    stays, goes, comes = to(where, "stays.mp4"), "segment: 1h, " + to(where, "goes-%s.mp4"), to(where, "comes.mkv")
    empty(where)
    with Camera(clip) as camera, Framed(where, config(where, camera, {"stays": stays, "goes": goes})) as framed:
        until(lambda: len(camera.sent) > 40, 20)
        with open(framed.config, "w") as file:
            file.write(config(where, camera, {"comes": comes, "stays": stays}))
        framed.child.send_signal(signal.SIGHUP)
        checks.check(until(lambda: files(where, "goes-*.mp4"), 10), f"reload: not finished\n{framed.errors()}")
        sent = len(camera.sent)
        until(lambda: len(camera.sent) > sent + 40, 20)
        code = framed.stop()
        checks.check(code == 0, f"reload: exit {code}\n{framed.errors()}")
        checks.check(len(camera.calls) == 1, f"reload: {len(camera.calls)} connections")
    for pattern, least in (("stays.mp4", 80), ("goes-*.mp4", 40), ("comes.mkv", 10)):
        numbers = check_samples(checks, f"reload, {pattern}", clip, files(where, pattern))
        checks.check(len(numbers) >= least, f"reload, {pattern}: {len(numbers)} pictures of {least}")


def check_alone(checks, where):
    """Without another output only keyframes are decoded; an output that a reload adds gets all pictures from a keyframe on."""
    clip = NumberedClip(f"{where}/clip.h264")
    recording = {"all": to(where, "all.mp4")}
    empty(where)
    with Camera(clip) as camera, Framed(where, config(where, camera, recording, tensors=False)) as framed:
        until(lambda: len(camera.sent) > 4 * RATE, 20)
        decoded = framed.live_metrics().sum("framed_pictures_total")
        checks.check(3 <= decoded <= 6, f"alone: {decoded} pictures of {len(camera.sent)} were decoded")
        with open(framed.config, "w") as file:
            file.write(config(where, camera, recording, tensors=False)
                       + f'      planes: {{kernel: yuv, sink: "file:{where}/to/planes.y4m"}}\n')
        framed.child.send_signal(signal.SIGHUP)
        checks.check(until(lambda: framed.live_metrics().account(output="planes")[1] > RATE, 10), "alone: no pictures came")
        framed.stop()
        flagged = framed.metrics().sum("framed_pictures_flagged_total", flag="damaged")
        checks.check(flagged == 0, f"alone: {flagged} damaged pictures behind the reload")
        checks.check(not framed.metrics().losses(), f"alone: lost {framed.metrics().losses()}")
    check_samples(checks, "alone", clip, files(where, "all.mp4"))


class Taker(Process):
    """Runs record_server.py."""

    def __init__(self, where, port, *options):
        program = os.path.join(ROOT, "tests", "e2e", "record_server.py")
        arguments = ["/usr/bin/python3", program, f"{where}/to/taken", "--port", str(port), *options]
        super().__init__(arguments, os.path.join(where, "taker.log"))

    def __enter__(self):
        super().__enter__()
        if not self.child.stdout.readline().startswith(b"READY"):
            self.__exit__()
            raise RuntimeError(f"the server did not start: {self.errors()}")
        return self


def check_published(checks, case, clip, path):
    """Compares the server's NAL units, from an elementary stream; delimiters added by its elements do not count."""
    with open(path, "rb") as file:
        nals = file.read().replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]
    slices = [nal for nal in nals if nal[0] & 31 in (1, 5)]
    known = {nal: number for number, unit in enumerate(clip.units) for nal in unit if nal[0] & 31 in (1, 5)}
    numbers = [known.get(nal) for nal in slices]
    whole = numbers and None not in numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    checks.check(whole and len(numbers) > RATE, f"{case}: the server got {numbers}")


def check_publish(checks, where):
    """Publishes to a server that is missing at first, requires a password, and goes away for a while."""
    clip = NumberedClip(f"{where}/clip.h264")
    port = free_port()
    outputs = {"out": f'sink: "rtsp://cam:pass word@127.0.0.1:{port}/live"'.replace(" w", "%20w"), "all": to(where, "all.mp4")}
    empty(where)
    with Camera(clip) as camera, Framed(where, config(where, camera, outputs)) as framed:
        checks.check(until(lambda: "cannot publish to" in framed.errors(), 10), f"publish: {framed.errors()}")
        with Taker(where, port, "--auth", "cam:pass word"):
            checks.check(until(lambda: "publishing to" in framed.errors(), 20), f"publish: {framed.errors()}")
            until(lambda: os.path.exists(f"{where}/to/taken.1") and os.path.getsize(f"{where}/to/taken.1") > 60000, 20)
        before = framed.live_metrics().account(output="out")
        with Taker(where, port, "--auth", "cam:pass word"):
            again = until(lambda: framed.errors().count("publishing to") == 2, 30)
            checks.check(again, f"publish: not again\n{framed.errors()}")
            time.sleep(2)
            code = framed.stop()
        checks.check(code == 0 and "pass" not in framed.errors(), f"publish: exit {code}\n{framed.errors()}")
        offered, emitted, lost = framed.metrics().account(output="out")
        checks.check(offered == emitted + lost and emitted > before[1] > RATE, f"publish: {before}, {offered} = {emitted} + {lost}")
        reasons = framed.metrics().losses(output="out")
        checks.check(reasons.keys() <= {"sink", "damaged", "stopping"}, f"publish: lost {reasons}")
        checks.check(len(camera.calls) == 1, f"publish: {len(camera.calls)} connections")
    check_published(checks, "publish", clip, f"{where}/to/taken.1")
    check_samples(checks, "beside publishing", clip, files(where, "all.mp4"))


def check_refusal(checks, where):
    """A codec that no container takes here: one error, and the losses have the reason config."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-t", "2", "-c:v", "mpeg4", f"{where}/old.mkv")
    text = CAMERA.format(where=where, url=f"{where}/old.mkv", outputs=(
        f'      c: {{kernel: copy, {to(where, "no.mp4")}}}\n      t: {{kernel: yuv, {to(where, "yes.y4m")}}}\n'))
    empty(where)
    with Framed(where, text) as framed:
        framed.wait(20)
        told = framed.errors().count("the camera sends mpeg4, of which no copy can be made (h264, h265 and mjpeg)")
        checks.check(told == 1, f"mpeg4: told {told} times\n{framed.errors()}")
        checks.check(framed.metrics().losses(output="c").keys() == {"config"}, f"mpeg4: {framed.metrics().losses()}")


def main():
    checks = Checks("record")
    with folder() as where:
        for codec in ("h265", "h264"):
            check_always(checks, where, codec)
        check_kill(checks, where)
        check_clip(checks, where)
        check_keep(checks, where)
        check_reload(checks, where)
        check_alone(checks, where)
        check_publish(checks, where)
        check_refusal(checks, where)
        check_full(checks, where)
    checks.end()


main()
