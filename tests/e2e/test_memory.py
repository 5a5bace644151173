#!/usr/bin/python3
"""What `framed check` plans for cameras is what a framed takes with them: never less, and at most 1.3 times as much."""
import glob
import os
import re
import socket
import time

from framed_client import ROOT, SANITIZED, Checks, Framed, ffmpeg, folder, run, until

RATIO = 1.3
SECONDS = 3  # in which all pictures of a decoder and all slots are in use
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
    """MiB that are the process's own: not of programs and libraries."""
    with open(f"/proc/{framed.child.pid}/smaps_rollup") as file:
        return sum(int(size) for size in re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB", file.read(), re.M)) / 1024


def watch(framed, seconds):
    most, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, own_memory(framed))
        time.sleep(0.1)
    return most


def used(where, text, cameras):
    """The most that a framed takes whose clients never read."""
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
    """As many reference pictures as the level of its size allows, some of them B-frames."""
    path = f"{where}/{size}.mp4"
    coder = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-refs", str(references), "-x264-params",
             "b-pyramid=normal:b-adapt=0:keyint=25"]
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=15", "-frames:v", "45", "-pix_fmt", "yuv420p", *coder, path)
    return path


def make_large_packets(where):
    """Noise that is hardly compressed: a packet is about as large as its picture."""
    path = f"{where}/large.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=15,noise=alls=100:allf=t", "-frames:v", "15", "-g", "1",
           "-c:v", "libx264", "-preset", "ultrafast", "-qp", "8", "-pix_fmt", "yuv420p", path)
    return path


def check_ratio(checks, where, alone, name, cameras, url):
    text = "backend: cpu\ncameras:\n" + "".join(CAMERA.format(i=i, url=url, where=where) for i in range(cameras))
    code, output, errors = run("check", "-c", "-", stdin=text)
    planned = re.search(r"^sum +([\d.]+)$", output, re.M)
    if not checks.check(code == 0 and planned, f"{name}: exit {code}, {output!r}, {errors!r}"):
        return
    checks.check("assumed" not in output, f"{name}: nobody looked at it: {output}")
    taken = used(where, text, cameras) - alone
    ratio = float(planned[1]) / taken
    print(f"{name}: {planned[1]} MiB planned, {taken:.1f} MiB used: {ratio:.2f}")
    checks.check(1 <= ratio <= RATIO, f"{name}: {planned[1]} MiB planned, {taken:.1f} MiB used: {ratio:.2f}")


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
    checks.end()


main()
