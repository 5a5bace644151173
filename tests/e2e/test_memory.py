#!/usr/bin/python3
"""The plan of `framed check --probe` is the memory that framed uses with these cameras: never less, and at most 1.3 times as much. A camera with
larger pictures gets more while there is memory, and otherwise harms no other camera. No file is refused for an assumed size."""
import contextlib
import glob
import os
import re
import socket
import time

import framed_client
from framed_client import ROOT, SANITIZED, Checks, Framed, Reader, ffmpeg, folder, run, until
from numbered_clip import NumberedClip
from rtsp_camera import Camera

RATIO = 1.3
SECONDS = 3  # in which all pictures of a decoder and all slots get used
CAMERA = """
  camera{i}:
    url: {url}
    loop: true
    pace: realtime
    outputs: {{o: {{overflow: drop_oldest, sink: "unix:{where}/{i}.sock"}}}}
"""
ALONE = """
  gate:
    url: tcp://127.0.0.1:1
    outputs: {{o: {{sink: "unix:{where}/alone.sock"}}}}
"""


def own_memory(framed):
    """Returns the process's own memory in MiB, without programs and libraries."""
    with open(f"/proc/{framed.child.pid}/smaps_rollup") as file:
        return sum(int(size) for size in re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB", file.read(), re.M)) / 1024


def watch(framed, seconds):
    most, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, own_memory(framed))
        time.sleep(0.1)
    return most


def used(where, text, cameras):
    """Returns the most memory that framed uses with clients that never read."""
    with Framed(where, text) as framed:
        clients = [socket.socket(socket.AF_UNIX) for _ in range(cameras)]
        for i, client in enumerate(clients):
            until(lambda i=i: os.path.exists(f"{where}/{i}.sock"), 10)
            client.connect(f"{where}/{i}.sock")
        most = watch(framed, SECONDS)
        for client in clients:
            client.close()
        framed.stop()
    return most


def make_clip(where, size, references):
    """Makes a clip with as many reference pictures as the level of its size allows, some of them B-frames."""
    path = f"{where}/{size}.mp4"
    coder = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-refs", str(references), "-x264-params",
             "b-pyramid=normal:b-adapt=0:keyint=25"]
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=15", "-frames:v", "45", "-pix_fmt", "yuv420p", *coder, path)
    return path


def make_large_packets(where):
    """Makes a clip of noise that hardly compresses: a packet is about as large as its picture."""
    path = f"{where}/large.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=15,noise=alls=100:allf=t", "-frames:v", "15", "-g", "1",
           "-c:v", "libx264", "-preset", "ultrafast", "-qp", "8", "-pix_fmt", "yuv420p", path)
    return path


def check_ratio(checks, where, alone, name, cameras, url):
    text = "backend: cpu\ncameras:\n" + "".join(CAMERA.format(i=i, url=url, where=where) for i in range(cameras))
    code, output, errors = run("check", "--probe", "-c", "-", stdin=text)
    planned = re.search(r"^sum +([\d.]+)$", output, re.M)
    if not checks.check(code == 0 and planned, f"{name}: exit {code}, {output!r}, {errors!r}"):
        return
    checks.check("assumed" not in output, f"{name}: nobody looked at it: {output}")
    taken = used(where, text, cameras) - alone
    ratio = float(planned[1]) / taken
    print(f"{name}: {planned[1]} MiB planned, {taken:.1f} MiB used: {ratio:.2f}")
    checks.check(1 <= ratio <= RATIO, f"{name}: {planned[1]} MiB planned, {taken:.1f} MiB used: {ratio:.2f}")


# --- a control group

LIMIT = 1 << 30
FILES = 16  # at 1920x1080 they would use more
STREAM = """
  {name}:
    url: {url}
    outputs: {{o: {{size: 64x64, sink: "unix:{where}/{name}.sock"}}}}
"""


@contextlib.contextmanager
def control_group():
    """Yields the folder of a control group with LIMIT bytes of memory; None if this process may not make one."""
    for root, limit in ("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"):
        path = f"{root}/framed-test-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        if usable := os.path.exists(f"{path}/{limit}"):  # not in a folder of another file system
            with open(f"{path}/{limit}", "w") as file:
                file.write(str(LIMIT))
        try:
            if usable:
                yield path
        finally:
            os.rmdir(path)
        if usable:
            return
    yield None


@contextlib.contextmanager
def framed_in(group, where, text):
    """Yields a framed that is in the group from its start."""
    with open(f"{where}/framed", "w") as file:
        file.write(f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {framed_client.BINARY} "$@"\n')
    os.chmod(f"{where}/framed", 0o755)
    binary, framed_client.BINARY = framed_client.BINARY, f"{where}/framed"
    try:
        with Framed(where, text) as framed:
            yield framed
    finally:
        framed_client.BINARY = binary


def make_large(where, codec, size):
    """Makes a clip with as many references as H.264 allows, or H.265's level."""
    path = f"{where}/{codec}-{size}"
    coder = {"h264": ["libx264", "-preset", "ultrafast", "-refs", "16", "-x264-params",
                      "ref=16:scenecut=0:keyint=5:level=6.2:repeat-headers=1:sliced-threads=0:threads=1", "-f", "h264"],
             "h265": ["libx265", "-preset", "ultrafast", "-x265-params",
                      "ref=4:scenecut=0:keyint=5:bframes=0:repeat-headers=1:log-level=error", "-f", "hevc"]}[codec]
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=5", "-frames:v", "10", "-pix_fmt", "yuv420p", "-bf", "0",
           "-c:v", *coder, path)
    return NumberedClip(path, codec)


def check_enforced(checks, where, group, codec, size, fits):
    """A camera with pictures of that size beside a good one."""
    clip = make_large(where, "h264", "320x192")
    with Camera(make_large(where, codec, size)) as large, Camera(clip) as good:
        large.rate = good.rate = 5
        text = "backend: cpu\ncameras:" + "".join(
            STREAM.format(name=name, url=camera.url(""), where=where) for name, camera in (("large", large), ("good", good)))
        with framed_in(group, where, text) as framed:
            readers = {name: Reader(f"unix:{where}/{name}.sock", keep=False) for name in ("large", "good")}
            until(lambda: min(reader.count for name, reader in readers.items() if fits or name == "good") > 0, 30)
            lost = lambda: framed.live_metrics().losses(camera="large", output="o")["config"]
            what = f"{codec} {size}"
            if fits:
                checks.check(until(lambda: readers["large"].count >= 10, 30), f"{what}: {readers['large'].count} pictures")
            else:
                checks.check(until(lambda: lost() >= 10, 30), f"{what}: lost {lost()}:\n{framed.errors()}")
                checks.check(readers["large"].count == 0, f"{what}: {readers['large'].count} pictures")
            before = readers["good"].count
            checks.check(until(lambda: readers["good"].count > before + 10, 20), f"{what}: the good camera stands")
            said = len(re.findall(rf"camera=large .*pictures of {size} need \d+ MiB of memory", framed.errors()))
            checks.check(said == (not fits), f"{what}: said {said} times:\n{framed.errors()}")
            checks.check(framed.resident_kib() < LIMIT // 1024, f"{what}: {framed.resident_kib()} KiB are resident")
            checks.check(framed.stop() == 0, f"{what}: exit:\n{framed.errors()}")


def check_files(checks, where, group, clip):
    """Small files that the assumed size would exclude."""
    text = "backend: cpu\ncameras:" + "".join(CAMERA.format(i=i, url=clip, where=where) for i in range(FILES))
    with framed_in(group, where, text) as framed:
        readers = [Reader(f"unix:{where}/{i}.sock", keep=False) for i in range(FILES)]
        checks.check(until(lambda: min(reader.count for reader in readers) > 0, 30), f"files: {framed.errors()}")
        checks.check(framed.stop() == 0, f"files: {framed.errors()}")


def check_group(checks):
    with control_group() as group:
        if not group:
            checks.skip("memory of a control group: none can be made here")
            return
        for codec, size, fits in ("h264", "8192x8192", False), ("h264", "2560x1440", True), ("h265", "2560x1440", True):
            with folder() as where:
                check_enforced(checks, where, group, codec, size, fits)
        with folder() as where:
            check_files(checks, where, group, make_clip(where, "320x180", 16))


def main():
    checks = Checks("e2e/test_memory")
    if SANITIZED:
        checks.skip("the memory of cameras: a sanitizer has memory of its own")
        checks.end()
    with folder() as where:
        alone = used(where, "backend: cpu\ncameras:" + ALONE.format(where=where), 0)
        for size, cameras, references in ("320x180", 4, 16), ("768x432", 4, 6), ("1920x1080", 1, 4):
            check_ratio(checks, where, alone, f"{cameras} x {size}", cameras, make_clip(where, size, references))
        check_ratio(checks, where, alone, "large packets", 2, make_large_packets(where))
        for path in sorted(glob.glob(os.path.join(ROOT, "../shared/media/*.mp4"))):
            check_ratio(checks, where, alone, f"2 x {os.path.basename(path)}", 2, os.path.realpath(path))
    check_group(checks)
    checks.end()


main()
