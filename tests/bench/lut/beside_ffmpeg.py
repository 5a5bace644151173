#!/usr/bin/python3
"""Colour look-up tables beside ffmpeg's lut3d, in one run on one core: milliseconds a frame of 1080p rgb24 of real footage,
and the largest difference of a level.

usage: beside_ffmpeg.py BENCH_LUT FOOTAGE... [--points 17,33,65] [--frames 24]

ffmpeg's share is the CPU time of `-vf lut3d` on one thread less that of `-vf null`, over the same raw frames; both run
three times, and the least counts. In turns, so that a busy machine is busy for all.
"""
import argparse
import os
import resource
import subprocess
import tempfile

import numpy

WIDTH, HEIGHT = 1920, 1080
TURNS = 3


def write_cube(path, points):
    """A grade that mixes channels and bends each."""
    axis = numpy.linspace(0, 1, points)
    b, g, r = (x.ravel() for x in numpy.meshgrid(axis, axis, axis, indexing="ij"))
    nodes = numpy.stack([0.8 * r ** 0.7 + 0.2 * g, 0.9 * g ** 1.4 + 0.1 * b, 0.3 + 0.5 * b + 0.2 * r * g], -1)
    with open(path, "w") as file:
        file.write(f"LUT_3D_SIZE {points}\n")
        numpy.savetxt(file, nodes, "%.7f")


def footage(paths, frames, to):
    with open(to, "wb") as file:
        for path in paths:
            subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-vf", f"fps=2,scale={WIDTH}:{HEIGHT}", "-frames:v",
                            str(frames // len(paths)), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], stdout=file, check=True)
    return os.path.getsize(to) // (WIDTH * HEIGHT * 3)


def ffmpeg(raw, filters, output=subprocess.DEVNULL):
    """CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["ffmpeg", "-v", "error", "-threads", "1", "-filter_threads", "1", "-f", "rawvideo", "-pix_fmt", "rgb24",
                    "-s", f"{WIDTH}x{HEIGHT}", "-i", raw, "-vf", filters, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                   stdout=output, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(bench, cube, how, raw, result):
    with open(raw) as frames:
        text = subprocess.run([bench, cube, how, str(WIDTH), str(HEIGHT), result], stdin=frames, check=True,
                              capture_output=True, text=True).stdout
    return {name: float(ms) for name, ms in (line.split() for line in text.splitlines())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("footage", nargs="+")
    parser.add_argument("--points", default="17,33,65")
    parser.add_argument("--frames", type=int, default=24)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        raw, cube = f"{where}/frames.rgb", f"{where}/grade.cube"
        frames = footage(options.footage, options.frames, raw)
        print(f"{frames} frames of {WIDTH}x{HEIGHT} rgb24; ms a frame on one core")
        print(f"{'points':>6} {'interpolation':14} {'ffmpeg':>7} {'avx512':>14} {'avx2':>14} {'scalar':>14}  largest difference")
        for points in (int(text) for text in options.points.split(",")):
            write_cube(cube, points)
            for how in ("trilinear", "tetrahedral"):
                lut, plain, times = [], [], {}
                for _ in range(TURNS):
                    plain.append(ffmpeg(raw, "null"))
                    lut.append(ffmpeg(raw, f"lut3d=file={cube}:interp={how}"))
                    for name, ms in ours(options.bench, cube, how, raw, f"{where}/ours.rgb").items():
                        times[name] = min(ms, times.get(name, ms))
                theirs = (min(lut) - min(plain)) * 1000 / frames
                with open(f"{where}/theirs.rgb", "wb") as file:
                    ffmpeg(raw, f"lut3d=file={cube}:interp={how}", file)
                a, b = (numpy.fromfile(f"{where}/{name}.rgb", "u1") for name in ("ours", "theirs"))
                apart = max(int(numpy.abs(a[i:i + (1 << 22)].astype("i2") - b[i:i + (1 << 22)]).max())
                            for i in range(0, a.size, 1 << 22))
                cells = "".join(f"{times[name]:7.2f} {times[name] / theirs:5.3f}x" if name in times else f"{'-':>14}"
                                for name in ("avx512", "avx2", "scalar"))
                print(f"{points:6} {how:14} {theirs:7.1f} {cells}  {apart} of 255", flush=True)


if __name__ == "__main__":
    main()
