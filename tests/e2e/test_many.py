#!/usr/bin/python3
"""Twenty cameras at once from the RTSP server: every frame accounted for, memory flat. FRAMED_MANY_SECONDS: duration (15)."""
import os
import statistics
import time

from framed_client import SANITIZED, Checks, Framed, Reader, Server, folder, make_clip, until

CAMERAS = 20
SECONDS = float(os.environ.get("FRAMED_MANY_SECONDS", "15"))
GROWTH_KIB = 4096  # of resident memory, from the first half of the time to the second

CAMERA = """
  camera{i}:
    url: {url}
    transport: {transport}
    outputs:
      tensors:
        size: 224x224
        fps: 10
        tensor: {{dtype: u8, layout: nhwc, order: rgb}}
        sink: unix:{where}/{i}.sock
      unheard:
        kernel: yuv
        format: nv12
        sink: unix:{where}/{i}-unheard.sock
"""


def watch_memory(framed):
    """Returns samples of resident KiB until the time is over; the first fifth, where everything starts, is left out."""
    samples = []
    start = time.monotonic()
    while (passed := time.monotonic() - start) < SECONDS and framed.child.poll() is None:
        if passed > SECONDS / 5:
            samples.append(framed.resident_kib())
        time.sleep(0.2)
    return samples


def check_memory(checks, samples):
    half = len(samples) // 2
    first, second = statistics.median(samples[:half]), statistics.median(samples[half:])
    print(f"resident memory {first / 1024:.1f} MiB in the first half, {second / 1024:.1f} MiB in the second")
    if SANITIZED:
        checks.skip("the growth of memory: a sanitizer keeps what is freed")
    else:
        checks.check(second - first <= GROWTH_KIB, f"memory grows: {first} KiB, then {second} KiB")


def check_account(checks, metrics, readers):
    thinned = 0
    for i, reader in enumerate(readers):
        camera = f"camera{i}"
        offered, emitted, lost = metrics.account(camera=camera, output="tensors")
        checks.check(offered == emitted + lost, f"{camera}: {offered} offered, {emitted} emitted, {lost} lost")
        checks.check(emitted == reader.count, f"{camera}: {emitted} emitted, {reader.count} received")
        losses = metrics.losses(camera=camera, output="tensors")
        thinned += losses["thinned"]
        # 10 of 25 frames per second stay, and some seconds pass until all have started. A sanitizer is too slow for any such number.
        enough = 1 if SANITIZED else 10 * SECONDS * 0.6
        checks.check(emitted >= enough, f"{camera}: only {emitted} frames in {SECONDS:.0f} s, {losses}")
        offered, emitted, lost = metrics.account(camera=camera, output="unheard")
        nobody = metrics.losses(camera=camera, output="unheard")["client"]
        checks.check((emitted, lost) == (0, offered) and nobody > 0, f"{camera} unheard: {offered}, {emitted}, {lost}")
    checks.check(thinned > 0, "`fps: 10` thinned nothing of 25 frames a second")


def main():
    checks = Checks("many")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"), frames=100)
        with Server(where, clip, "--mounts", str(CAMERAS)) as server:
            cameras = [
                CAMERA.format(i=i, url=server.url(i), transport=("tcp", "udp")[i % 2], where=where)
                for i in range(CAMERAS)
            ]
            with Framed(where, "cameras:" + "".join(cameras)) as framed:
                readers = [Reader(f"unix:{where}/{i}.sock", keep=False) for i in range(CAMERAS)]
                until(lambda: all(reader.count for reader in readers), 30)
                samples = watch_memory(framed)
                up = framed.live_metrics().sum("framed_camera_up")
                checks.check(up == CAMERAS, f"{up} of {CAMERAS} cameras are up")
                code = framed.stop()
                checks.check(code == 0, f"exit {code}:\n{framed.errors()[-2000:]}")
                for reader in readers:
                    reader.join(5)
                check_memory(checks, samples)
                check_account(checks, framed.metrics(), readers)
    checks.end()


main()
