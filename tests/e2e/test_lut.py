#!/usr/bin/python3
"""`lut` of an output: tables of the identity and of the inverse, a graded one against ffmpeg's lut3d, and reloads after a change of the file."""
import os
import shutil
import socket
import subprocess

import numpy
from framed_client import Checks, Framed, folder, run, until

WIDTH, HEIGHT = 256, 144
CONFIG = """
backend: cpu
control: {where}/control.sock
cameras:
  raw:
    url: {where}/frame.rgb
    demuxer: rawvideo
    options: {{pixel_format: rgb24, video_size: {width}x{height}}}
    loop: {loop}
    outputs:
"""
WARP = "      {name}: {{size: {size}, {more}overflow: wait, tensor: {{layout: nhwc}}, sink: 'file:{where}/{name}.npy'}}\n"
YUV = "      {name}: {{kernel: yuv, format: yuv24, {more}overflow: wait, sink: 'file:{where}/{name}.npy'}}\n"
SOCKET = "      live: {{size: {size}, lut: {where}/live.cube, tensor: {{layout: nhwc}}, protocol: raw, sink: 'unix:{where}/live.sock'}}\n"


def picture():
    random = numpy.random.default_rng(11)
    frame = random.integers(0, 256, (HEIGHT, WIDTH, 3), "u1")
    frame[:HEIGHT // 2] = numpy.arange(WIDTH, dtype="u1")[None, :, None]
    return frame


def write_cube(path, points, colour):
    """Writes the table of `colour`, a function of R, G and B, each 0 to 1; red changes fastest."""
    axis = numpy.linspace(0, 1, points)
    b, g, r = numpy.meshgrid(axis, axis, axis, indexing="ij")
    nodes = numpy.stack(colour(r.ravel(), g.ravel(), b.ravel()), -1)
    with open(path, "w") as file:
        file.write(f"TITLE \"test\"\nLUT_3D_SIZE {points}\n")
        numpy.savetxt(file, nodes, "%.7f")


def identity(r, g, b):
    return r, g, b


def inverse(r, g, b):
    return 1 - r, 1 - g, 1 - b


def graded(r, g, b):
    return 0.8 * r ** 0.7 + 0.2 * g, g ** 1.4 * 0.9 + 0.1 * b, 0.3 + 0.5 * b + 0.2 * r * g


def check_files(checks, frame):
    with folder() as where:
        frame.tofile(f"{where}/frame.rgb")
        write_cube(f"{where}/same.cube", 17, identity)
        write_cube(f"{where}/inverse.cube", 2, inverse)
        write_cube(f"{where}/graded.cube", 33, graded)
        with open(f"{where}/curve.cube", "w") as file:
            file.write("LUT_1D_SIZE 2\n1 1 1\n0 0 0\n")
        size, box = f"{WIDTH}x{HEIGHT}", f"{WIDTH}x{WIDTH}"
        config = CONFIG.format(where=where, width=WIDTH, height=HEIGHT, loop="false")
        for name, size_of, more in (("plain", size, ""), ("same", size, f"lut: {where}/same.cube, "),
                                    ("inverse", box, f"fill: 9, lut: {where}/inverse.cube, "),
                                    ("curve", size, f"lut: {where}/curve.cube, "),
                                    ("trilinear", size, f"lut: {where}/graded.cube, "),
                                    ("tetrahedral", size, f"lut: {where}/graded.cube, interpolation: tetrahedral, ")):
            config += WARP.format(where=where, name=name, size=size_of, more=more)
        config += YUV.format(where=where, name="yuv", more="")
        config += YUV.format(where=where, name="yuvsame", more=f"lut: {where}/same.cube, ")
        with Framed(where, config) as framed:
            checks.check(framed.wait(60) == 0, f"exit {framed.child.returncode}:\n{framed.errors()}")
        made = {name: numpy.load(f"{where}/{name}.npy").squeeze()
                for name in ("plain", "same", "inverse", "curve", "trilinear", "tetrahedral", "yuv", "yuvsame")}
        checks.check((made["plain"] == frame).all(), "without a table the frame is another one")
        checks.check((made["same"] == frame).all(), "the identity changes levels")
        bar = (WIDTH - HEIGHT) // 2
        checks.check((made["inverse"][bar:-bar] == 255 - frame).all(), "the inverse gives other levels")
        checks.check((made["inverse"][:bar] == 9).all() and (made["inverse"][-bar:] == 9).all(), "the table changes fill")
        checks.check((made["curve"] == 255 - frame).all(), "the 1D inverse gives other levels")
        checks.check((made["yuv"] == made["yuvsame"]).all(), "the identity changes YUV")
        beside_ffmpeg(checks, where, made)


def beside_ffmpeg(checks, where, made):
    if not shutil.which("ffmpeg"):
        checks.skip("ffmpeg's lut3d: no ffmpeg here")
        return
    for how in ("trilinear", "tetrahedral"):
        raw = subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-i",
                              f"{where}/frame.rgb", "-vf", f"lut3d=file={where}/graded.cube:interp={how}", "-f", "rawvideo",
                              "-pix_fmt", "rgb24", "-"], check=True, capture_output=True).stdout
        apart = numpy.abs(numpy.frombuffer(raw, "u1").astype(int) - made[how].ravel())
        checks.check(apart.max() <= 1, f"{how}: {apart.max()} levels from ffmpeg's")
        checks.check((made["plain"] != made[how]).any(), f"{how}: the graded table changes nothing")


def first_frame(where):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(f"{where}/live.sock")
        data = b""
        while len(data) < WIDTH * HEIGHT * 3:
            data += peer.recv(1 << 20)
    return numpy.frombuffer(data[:WIDTH * HEIGHT * 3], "u1").reshape(HEIGHT, WIDTH, 3)


def check_reload(checks, frame):
    with folder() as where:
        frame.tofile(f"{where}/frame.rgb")
        write_cube(f"{where}/live.cube", 2, identity)
        config = CONFIG.format(where=where, width=WIDTH, height=HEIGHT, loop="true") + \
            SOCKET.format(where=where, size=f"{WIDTH}x{HEIGHT}")
        with Framed(where, config) as framed:
            checks.check(until(lambda: os.path.exists(f"{where}/live.sock"), 10), framed.errors())
            checks.check((first_frame(where) == frame).all(), "the identity changes levels")
            reload = ("reload", "-c", f"{where}/framed.yaml")
            write_cube(f"{where}/live.cube", 2, inverse)
            code, _, said = run(*reload)
            checks.check(code == 0, f"reload: {code} {said}")
            checks.check(until(lambda: (first_frame(where) == 255 - frame).all(), 10), "a changed file is not read again")
            with open(f"{where}/live.cube", "a") as file:
                file.write("1 1 1\n")
            code, _, said = run(*reload)
            checks.check(code != 0 and "live.cube:11: is an entry too many (8" in said + framed.errors(),
                         f"reload of a broken file: {code} {said}{framed.errors()}")
            checks.check((first_frame(where) == 255 - frame).all(), "a refused reload changes levels")
            text = run("check", "-c", f"{where}/framed.yaml")[2]
            checks.check("live.cube:11: is an entry too many (8, by the size)" in text, text)
            write_cube(f"{where}/live.cube", 2, inverse)
            text = run("check", "-c", f"{where}/framed.yaml")[1]
            checks.check(f"output live of raw: colours through {where}/live.cube, 3D of 2 points, trilinear" in text, text)


def main():
    checks = Checks("lut")
    frame = picture()
    check_files(checks, frame)
    check_reload(checks, frame)
    checks.end()


if __name__ == "__main__":
    main()
