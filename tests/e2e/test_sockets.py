#!/usr/bin/python3
"""What readers that need no code of ours make of the sockets (ffprobe, OpenCV), and what one bad client does to the
others: nothing."""
import os
import socket
import subprocess
import time

import cv2
import numpy
from framed_client import Checks, Framed, Reader, folder, free_port, make_clip, until

CONFIG = """
cameras:
  clip:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      local:
        kernel: yuv
        format: yuv444p
        protocol: y4m
        sink: unix:{where}/local.sock
      remote:
        kernel: yuv
        format: yuv420p
        protocol: y4m
        sink: tcp:127.0.0.1:{port}
      tensors:
        size: 320x320 # u8: more than a socket's buffer takes, so that who does not read holds a slot
        slots: 16
        sink: unix:{where}/tensors.sock
      few: {{size: 64x64, clients: 2, sink: "unix:{where}/few.sock"}}
"""


def probe(url):
    command = ["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height,pix_fmt,r_frame_rate"]
    done = subprocess.run([*command, "-of", "csv=p=0", url], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() + done.stderr.strip()


def check_ffprobe(checks, where, port):
    said = probe(f"unix:{where}/local.sock")
    checks.check(said == "rawvideo,320,240,yuv444p,25/1", f"ffprobe unix: {said}")
    said = probe(f"tcp://127.0.0.1:{port}")
    checks.check(said == "rawvideo,320,240,yuv420p,25/1", f"ffprobe tcp: {said}")


def check_videocapture(checks, clip, port):
    reference = cv2.VideoCapture(clip)
    pictures = []
    while (read := reference.read())[0]:
        pictures.append(read[1].astype(int))
    capture = cv2.VideoCapture(f"tcp://127.0.0.1:{port}")
    checks.check(capture.isOpened(), "VideoCapture does not open tcp://")
    for _ in range(5):
        ok, frame = capture.read()
        if not checks.check(ok and frame.shape == (240, 320, 3), "VideoCapture reads no frame"):
            break
        apart = min(numpy.abs(picture - frame).mean() for picture in pictures)
        checks.check(apart < 1, f"VideoCapture's frame is {apart} levels from every picture of the clip")
    capture.release()


def check_bad_clients(checks, where, framed):
    """One client stalls, one leaves within a frame; a third must get all that comes meanwhile."""
    good = Reader(f"unix:{where}/tensors.sock", limit=40, keep=False)
    until(lambda: good.count > 0, 10)
    stalled, leaver = (socket.socket(socket.AF_UNIX) for _ in range(2))
    for peer in (stalled, leaver):
        peer.connect(f"{where}/tensors.sock")
    leaver.recv(1000)
    leaver.close()
    start = time.monotonic()
    good.join(20)
    took = time.monotonic() - start
    checks.check(good.count == 40 and took < 10, f"beside bad clients {good.count} frames in {took:.1f} s")
    lost = good.frames[-1][0].lost if good.frames else -1
    checks.check(lost == 0, f"the good client lost {lost} frames to the bad ones")
    clients = framed.live_metrics().sum("framed_sink_clients", output="tensors")
    checks.check(clients == 1, f"{clients} clients counted where only the stalled one is left")
    late = Reader(f"unix:{where}/tensors.sock", limit=3, keep=False)
    late.join(10)
    checks.check(late.count == 3, "a late client gets no frames")
    stalled.close()


def check_limit(checks, where, framed):
    """The third client of two is refused, and the line names the key."""
    peers = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for peer in peers:
        peer.settimeout(10)
        peer.connect(f"{where}/few.sock")
        last = peer.recv(1)
    checks.check(last == b"", f"the third client reads {last!r}")
    told = "output=few a client was refused: there are 2 already (key clients)"
    checks.check(until(lambda: told in framed.errors(), 5), framed.errors())
    for peer in peers:
        peer.close()


def main():
    checks = Checks("sockets")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"))
        port = free_port()
        with Framed(where, CONFIG.format(where=where, port=port)) as framed:
            until(lambda: os.path.exists(f"{where}/local.sock"), 10)
            check_ffprobe(checks, where, port)
            check_videocapture(checks, clip, port)
            check_bad_clients(checks, where, framed)
            check_limit(checks, where, framed)
            code = framed.stop()
            checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
            for output in ("local", "remote", "tensors"):
                offered, emitted, lost = framed.metrics().account(output=output)
                checks.check(offered == emitted + lost, f"{output}: {offered} offered, {emitted} + {lost}")
                checks.check(emitted > 0, f"{output}: nothing emitted")
    checks.end()


main()
