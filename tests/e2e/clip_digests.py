#!/usr/bin/env python3
"""Runs clips through framed and prints a digest of every output, which another box, backend or decoder must reproduce to the byte.

    clip_digests.py [--framed PATH] [--backend cpu|cuda] [--decode cpu|nvdec] [--expect FILE] CLIP...

Each line: clip, output, sha256, frames. With --expect the lines are compared with FILE, which an earlier run elsewhere wrote, and the last line is
`clip_digests: N passed, N failed`."""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile

OUTPUTS = {
    "letterbox": "{kernel: warp, size: 640x640, tensor: {dtype: u8, layout: nhwc}, %s.raw}",
    "f32": "{kernel: warp, size: 320x256, fit: stretch, tensor: {dtype: f32, scale: 1/255, order: bgr, "
    "mean: [0.4, 0.5, 0.6], std: [0.2, 0.3, 0.4]}, %s.raw}",
    "f16": "{kernel: warp, size: 224x224, fit: crop, tensor: {dtype: f16}, %s.raw}",
    "rotated": "{kernel: warp, size: 301x203, rotate: 10, flip: horizontal, tensor: {dtype: s8, mean: 128}, %s.raw}",
    "gray": "{kernel: warp, size: 160x120, tensor: {order: gray}, %s.raw}",
    "yuv420p": "{kernel: yuv, format: yuv420p, %s.raw}",
    "yuv24": "{kernel: yuv, format: yuv24, colour: {matrix: bt601, range: full}, %s.raw}",
    "nv12": "{kernel: yuv, format: nv12, colour: {matrix: bt601-8bit}, %s.raw}",
}


def configuration(clip, folder, backend, decode):
    lines = [f"backend: {backend}", "control: off", "cameras:", "  clip:", f"    url: {os.path.abspath(clip)}"]
    lines += [f"    decode: {decode}", "    outputs:"]
    for name, text in OUTPUTS.items():
        sink = f"overflow: wait, sink: file:{folder}/{name}"
        lines.append(f"      {name}: {text % sink}")
    return "\n".join(lines) + "\n"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def run(framed, clip, backend, decode):
    """Runs one clip; returns the lines of its outputs, and framed's log lines about its decoder."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "framed.yaml")
        with open(path, "w") as file:
            file.write(configuration(clip, folder, backend, decode))
        done = subprocess.run([framed, "run", "-c", path], stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{clip}: framed exited {done.returncode}\n{done.stderr}")
        lines = []
        for name in OUTPUTS:
            account = re.search(rf"output={name} offered=(\d+) emitted=(\d+) lost=(\d+)", done.stderr)
            if not account or account[1] != account[2] or account[3] != "0":
                sys.exit(f"{clip}: {name}: frames are missing\n{done.stderr}")
            digest = sha256(f"{folder}/{name}.raw")
            lines.append(f"{os.path.basename(clip)} {name} {digest} {account[2]}")
        said = [line for line in done.stderr.splitlines() if "output=" not in line]
        return lines, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framed", default="build/framed")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--decode", default="cpu")
    parser.add_argument("--expect")
    parser.add_argument("clips", nargs="+")
    args = parser.parse_args()
    expected = open(args.expect).read().splitlines() if args.expect else []
    passed = failed = 0
    for clip in args.clips:
        lines, said = run(args.framed, clip, args.backend, args.decode)
        print("\n".join(said), file=sys.stderr)
        for line in lines:
            good = not args.expect or line in expected
            print(line if good else f"{line}  DIFFERS")
            passed, failed = passed + good, failed + (not good)
    if args.expect:
        print(f"clip_digests: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
