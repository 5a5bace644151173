#!/usr/bin/python3
"""Sixteen live cameras start together on a GPU: their decoders open one after another and incoming data waits for
them. Clients connected from the start get every picture.

CLIP names an MPEG-TS with one track of 25 pictures per second, for a machine without the ffmpeg program:
ffmpeg -i IN -map 0:v -c copy OUT.ts"""
import multiprocessing
import os
import socket
import threading
import time

from cuda_client import GPU
from framed_client import PATIENCE, Checks, Framed, Reader, ffmpeg, folder, make_clip, until

CAMERAS = 16
RATE = 25
HELD = 20  # last pictures that the parser, the decoder and its surfaces may keep
PACKET = 188  # bytes, of MPEG-TS
VIDEO = 0x100  # the program id that ffmpeg gives the first track

CAMERA = """
  camera{i}:
    url: tcp://127.0.0.1:{port}
    outputs: {{tensors: {{sink: "unix:{where}/{i}.sock"}}}}
"""


def begins_picture(packet):
    return packet[1] & 0x40 and (packet[1] & 0x1F) << 8 | packet[2] == VIDEO


def make_units(where):
    """Returns the clip split into one piece per picture."""
    path = os.environ.get("CLIP")
    if not path:
        source = make_clip(os.path.join(where, "clip.mp4"), frames=8 * RATE)
        path = os.path.join(where, "clip.ts")
        ffmpeg("-i", source, "-c", "copy", path)
    with open(path, "rb") as file:
        packets = list(iter(lambda: file.read(PACKET), b""))
    starts = [i for i, packet in enumerate(packets) if begins_picture(packet)]
    starts = [0, *starts[1:], len(packets)]
    return [b"".join(packets[begin:end]) for begin, end in zip(starts, starts[1:])]


def play(peer, units, start):
    """Sends in real time, whether or not the client reads, until the kernel's buffers are full. Leaves the connection open."""
    for i, unit in enumerate(units):
        time.sleep(max(0.0, start + i / RATE - time.monotonic()))
        try:
            peer.sendall(unit)
        except BrokenPipeError:
            return  # the camera has been stopped


def serve(listener, units):
    """Sends each camera the clip from the beginning, all at the same time."""
    peers = [listener.accept()[0] for _ in range(CAMERAS)]
    start = time.monotonic()
    for peer in peers:
        threading.Thread(target=play, args=(peer, units, start), daemon=True).start()
    time.sleep(1000)


def check_reader(checks, i, reader, pictures):
    numbers = [header.sequence for header, _ in reader.frames]
    gaps = [(a, b) for a, b in zip(numbers, numbers[1:]) if b != a + 1]
    checks.check(not gaps, f"camera{i}: frames are missing between {gaps}")
    checks.check(numbers[:1] == [0], f"camera{i}: begins with frame {numbers[:1]}")
    checks.check(len(numbers) >= pictures - HELD, f"camera{i}: {len(numbers)} of {pictures} frames, {reader.error}")


def check_start(checks, where, port, pictures):
    cameras = "".join(CAMERA.format(i=i, port=port, where=where) for i in range(CAMERAS))
    with Framed(where, f"cameras:{cameras}") as framed:
        readers = [Reader(f"unix:{where}/{i}.sock", keep=False) for i in range(CAMERAS)]
        until(lambda: all(reader.count >= pictures - HELD for reader in readers), (pictures / RATE + 20) * PATIENCE)
        metrics = framed.live_metrics()
        decoders = framed.errors().count("nvdec h264")
        code = framed.stop(20)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
    for reader in readers:
        reader.join(5)
    for i, reader in enumerate(readers):
        check_reader(checks, i, reader, pictures)
    lost = metrics.losses()
    print(f"{CAMERAS} cameras, {decoders} on NVDEC, {pictures} pictures each: lost {dict(lost)}", flush=True)
    checks.check(not lost, f"lost {dict(lost)}")


def main():
    checks = Checks("nvdec_start")
    if not GPU:
        checks.skip("the start of decoders: no GPU")
        checks.end()
        return
    with folder() as where, socket.create_server(("127.0.0.1", 0), backlog=CAMERAS) as listener:
        units = make_units(where)
        feeder = multiprocessing.Process(target=serve, args=(listener, units), daemon=True)
        feeder.start()
        check_start(checks, where, listener.getsockname()[1], len(units))
        feeder.terminate()
    checks.end()


main()
