#!/usr/bin/python3
"""The .y4m of a resized yuv output plays from a file, a unix socket and a tcp socket: every frame, scaled as ffmpeg does."""
import os
import re
import socket
import subprocess
import threading

from framed_client import Checks, Framed, folder, free_port, make_clip, until

FRAMES, RATE = 25, 25
CONFIG = """
backend: cpu
cameras:
  a:
    url: {where}/clip.mp4
    outputs:
      file: {{kernel: yuv, size: 640x360, filter: triangle, sink: "file:{where}/file.y4m"}}
      unix: {{kernel: yuv, size: 640x360, filter: triangle, protocol: y4m, overflow: wait, sink: "unix:{where}/u.sock"}}
      tcp: {{kernel: yuv, size: 640x360, filter: triangle, protocol: y4m, overflow: wait, sink: "tcp:127.0.0.1:{port}"}}
      turned: {{kernel: yuv, crop: [100, 50, 300, 201], rotate: 90, sink: "file:{where}/turned.y4m"}}
"""
# dB. ffmpeg's bilinear antialiases; its chroma position differs slightly.
LEAST = {"y": 60, "u": 40, "v": 36}


def probe(path):
    text = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-of", "default=nokey=1:noprint_wrappers=1",
                           "-show_entries", "stream=width,height,nb_read_frames", path],
                          capture_output=True, text=True, check=True).stdout
    return [int(word) for word in text.split()]


def save(family, address, path):
    """Writes all data from a socket to a file."""
    with socket.socket(family) as peer, open(path, "wb") as file:
        peer.connect(address)
        while data := peer.recv(1 << 20):
            file.write(data)


def psnr(path, clip):
    text = subprocess.run(["ffmpeg", "-v", "info", "-i", path, "-i", clip, "-lavfi",
                           "[1:v]scale=640:360:flags=bilinear[r];[0:v][r]psnr", "-f", "null", "-"],
                          capture_output=True, text=True, check=True).stderr
    return {plane: float(db) for plane, db in re.findall(r"\b([yuv]):([0-9.]+|inf)", text.split("PSNR")[-1])}


def main():
    checks = Checks("y4m_resized")
    with folder() as where:
        clip = os.path.join(where, "clip.mp4")
        port = free_port()
        make_clip(clip, frames=FRAMES, rate=RATE, size="1920x1080")
        with Framed(where, CONFIG.format(where=where, port=port)) as framed:
            checks.check(until(lambda: os.path.exists(f"{where}/u.sock"), 10), framed.errors())
            readers = [(socket.AF_UNIX, f"{where}/u.sock", f"{where}/unix.y4m"),
                       (socket.AF_INET, ("127.0.0.1", port), f"{where}/tcp.y4m")]
            threads = [threading.Thread(target=save, args=reader) for reader in readers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            checks.check(framed.wait(60) == 0, framed.errors())
        for name in ("file", "unix", "tcp"):
            path = f"{where}/{name}.y4m"
            checks.check(probe(path) == [640, 360, FRAMES], f"{name}: {probe(path)}")
            for plane, db in psnr(path, clip).items():
                checks.check(db >= LEAST[plane], f"{name}: {plane} {db} dB")
        turned = probe(f"{where}/turned.y4m")
        checks.check(turned == [201, 300, FRAMES], f"turned: {turned}")
    checks.end()


main()
