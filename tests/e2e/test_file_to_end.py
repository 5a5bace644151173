#!/usr/bin/python3
"""A file with default keys, read to its end: every picture arrives, on a socket whose client comes late and in a file, and framed ends by itself."""
import os
import time

from framed_client import Checks, Framed, Metrics, Reader, consume, folder, make_clip, until

FRAMES = 150
LATE = 1  # seconds until the client connects: the file would have ended by then
CONFIG = """
cameras:
  to_socket:
    url: {where}/clip.mp4
    outputs:
      o: {{kernel: yuv, sink: "unix:{where}/o.sock"}}
  to_file:
    url: {where}/clip.mp4
    outputs:
      o: {{kernel: yuv, sink: "file:{where}/o.framed"}}
"""


def main():
    checks = Checks("file_to_end")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"), frames=FRAMES)
        with Framed(where, CONFIG.format(where=where)) as framed:
            until(lambda: os.path.exists(f"{where}/o.sock"), 10)
            time.sleep(LATE)
            reader = Reader(f"unix:{where}/o.sock", keep=False)
            code = framed.wait(60)
            checks.check(code == 0, f"exit {code}:\n{framed.errors()}")
            reader.join(5)
            log = framed.errors()
        with open(f"{where}/o.framed", "rb") as file:
            written = [header for header, _ in consume.read_frames(file)]
        metrics = Metrics(framed.counters)
        for camera, headers in (("to_socket", [h for h, _ in reader.frames]), ("to_file", written)):
            checks.check(
                [h.sequence for h in headers] == list(range(FRAMES)), f"{camera}: {len(headers)} of {FRAMES} pictures"
            )
            account = metrics.account(camera=camera)
            checks.check(account == (FRAMES, FRAMES, 0), f"{camera}: (offered, emitted, lost) = {account}")
            said = [line for line in log.splitlines() if f"camera={camera} " in line and "overflow: wait (by auto" in line]
            checks.check(len(said) == 1, f"{camera}: the policy is said {len(said)} times:\n{log}")
    print(f"file_to_end: {len(reader.frames)} of {FRAMES} to a socket, {len(written)} of {FRAMES} to a file")
    checks.end()


main()
