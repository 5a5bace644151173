#!/usr/bin/python3
"""Readers without code of ours (ffprobe, OpenCV) read the sockets, and one bad client does not affect the others."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import cv2
import numpy
from framed_client import PATIENCE, Checks, Framed, Reader, folder, free_port, make_clip, until

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
      ring: {{size: 64x64, sink: "ring:{where}/r.ring"}}
      deep: {{size: 64x64, sink: "unix:{where}/deep/d.sock"}}
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
    """One client stalls, one leaves within a frame; a third must get all frames meanwhile."""
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
    """The third client of two is refused, and the message names the key."""
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


def told(framed, output, path):
    """Returns the log's messages about a socket missing from its path."""
    return re.findall(rf"^warning .*output={output} (?:the socket {path} was removed: |(?=listens on {path} again))(.*)$",
                      framed.errors(), re.M)


def check_comes_back(checks, framed, output, address, remove=os.unlink, restore=None):
    """A new client finds the socket after its removal, and an existing client misses no frame."""
    path = address.partition(":")[2]
    old = Reader(address, keep=False)
    until(lambda: old.count > 0, 10)
    remove(path)
    if restore:
        restore()
    new = Reader(address, limit=5, keep=False)
    new.join(10 * PATIENCE)
    checks.check(new.count == 5, f"{output}: a new client gets {new.count} frames: {new.error}")
    before = old.count
    checks.check(until(lambda: old.count > before + 5, 10), f"{output}: the old client gets no more: {old.error}")
    numbers = [header.sequence for header, _ in old.frames]
    apart = {b - a for a, b in zip(numbers, numbers[1:])}
    checks.check(apart == {1} and old.frames[-1][0].lost == 0, f"{output}: steps {apart}, {old.frames[-1][0].lost} lost")
    checks.check(os.path.exists(path) and os.stat(path).st_mode & 0o777 == 0o660, f"{output}: the socket's mode")
    return told(framed, output, path)


def check_removed(checks, where, framed):
    for output, address in (("tensors", f"unix:{where}/tensors.sock"), ("ring", f"ring:{where}/r.ring")):
        said = check_comes_back(checks, framed, output, address)
        checks.check(said == ["listens there again"], f"{output}: {said}")


def check_folder_removed(checks, where, framed):
    def restore():
        until(lambda: told(framed, "deep", f"{where}/deep/d.sock"), 5)
        time.sleep(1.5)  # for more attempts, which are not logged
        os.mkdir(f"{where}/deep")

    said = check_comes_back(checks, framed, "deep", f"unix:{where}/deep/d.sock",
                            lambda path: shutil.rmtree(os.path.dirname(path)), restore)
    checks.check(len(said) == 2 and "No such file" in said[0] and "listens on" in said[1], f"deep: {said}")


def check_taken(checks, where, framed):
    """Another program takes the path and is left alone as long as it is there."""
    path = f"{where}/tensors.sock"
    lines = len(told(framed, "tensors", path))
    with socket.socket(socket.AF_UNIX) as other:
        def take(_):
            other.bind(f"{where}/other.sock")
            other.listen()
            os.rename(f"{where}/other.sock", path)

        def leave():
            until(lambda: len(told(framed, "tensors", path)) > lines, 5)
            time.sleep(2.5)
            other.settimeout(0)
            try:
                other.accept()
                checks.check(False, "the other program is troubled")
            except BlockingIOError:
                pass
            os.unlink(path)

        said = check_comes_back(checks, framed, "tensors", f"unix:{path}", take, leave)[lines:]
    checks.check(len(said) == 2 and "another program listens" in said[0] and "listens on" in said[1], f"taken: {said}")


def check_not_wanted(checks, where, framed):
    """A socket that framed removes itself is not restored."""
    with open(framed.config) as file:
        text = file.read()
    with open(framed.config, "w") as file:
        file.write("".join(line for line in text.splitlines(True) if "deep:" not in line))
    framed.child.send_signal(signal.SIGHUP)
    gone = until(lambda: not os.path.exists(f"{where}/deep/d.sock"), 5)
    time.sleep(1.5)
    checks.check(gone and not os.listdir(f"{where}/deep"), "the socket of an output that is gone comes back")


def main():
    checks = Checks("sockets")
    with folder() as where:
        os.mkdir(f"{where}/deep")
        clip = make_clip(os.path.join(where, "clip.mp4"))
        port = free_port()
        with Framed(where, CONFIG.format(where=where, port=port)) as framed:
            until(lambda: os.path.exists(f"{where}/local.sock"), 10)
            check_ffprobe(checks, where, port)
            check_videocapture(checks, clip, port)
            check_bad_clients(checks, where, framed)
            check_limit(checks, where, framed)
            check_removed(checks, where, framed)
            check_folder_removed(checks, where, framed)
            check_taken(checks, where, framed)
            check_not_wanted(checks, where, framed)
            code = framed.stop()
            left = [name for name in os.listdir(where) if ".sock" in name or ".ring" in name]
            checks.check(not left, f"left behind: {left}")
            checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
            for output in ("local", "remote", "tensors"):
                offered, emitted, lost = framed.metrics().account(output=output)
                checks.check(offered == emitted + lost, f"{output}: {offered} offered, {emitted} + {lost}")
                checks.check(emitted > 0, f"{output}: nothing emitted")
    checks.end()


main()
