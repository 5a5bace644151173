#!/usr/bin/python3
"""scripts/lut_fit.py recovers a known change of colours, in a generated picture and, if the sample clips are present, in a frame of one; ffmpeg makes
the same picture with its .cube; user errors give clear messages."""
import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys

import cv2
import numpy
from framed_client import MEDIA, ROOT, Checks, folder, framedio_environment

SCRIPT, CLIP = os.path.join(ROOT, "scripts", "lut_fit.py"), os.path.join(MEDIA, "car-detection.mp4")
FFMPEG = shutil.which("ffmpeg")
MIX = numpy.array([[0.86, 0.08, 0.02], [0.03, 0.9, 0.05], [-0.02, 0.06, 0.8]])
if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())


def changed(picture):
    """Returns the picture of the other camera: another gamma for each colour, mixed, and brighter blacks."""
    mixed = (picture / 255) ** numpy.array([0.9, 1, 1.15]) @ MIX.T + numpy.array([0.03, 0.02, 0.05])
    return numpy.rint(mixed.clip(0, 1) * 255).astype("u1")


def generated():
    """Returns soft blocks of dull colours with some noise: all colours are near gray."""
    random = numpy.random.default_rng(3)
    blocks = random.integers(40, 210, (9, 16, 1)) + random.integers(-30, 31, (9, 16, 3))
    picture = cv2.resize(blocks.astype("f4"), (320, 180), interpolation=cv2.INTER_LINEAR)
    return numpy.rint(picture + random.normal(0, 2, picture.shape)).clip(0, 255).astype("u1")


def frame(where):
    """Returns the first frame of a sample clip, or None if it is missing."""
    if not FFMPEG or not os.path.exists(CLIP):
        return None
    subprocess.run([FFMPEG, "-loglevel", "error", "-ss", "3", "-i", CLIP, "-frames:v", "1", f"{where}/frame.png"], check=True)
    return cv2.imread(f"{where}/frame.png")[:, :, ::-1]


def save(path, picture):
    cv2.imwrite(path, picture[:, :, ::-1])


def fit(script, *arguments):
    """Returns (True if it succeeded, its output). Runs in this process, as OpenCV takes long to load."""
    said = io.StringIO()
    sys.argv = [SCRIPT, *arguments]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            script.main()
    except SystemExit as end:
        return False, f"{said.getvalue()}{end.code}"
    return True, said.getvalue()


def table_of(path):
    """Returns the nodes of a .cube by red, green, blue, and its other lines."""
    with open(path) as file:
        lines = file.read().splitlines()
    rows = [line for line in lines if re.match(r"[-\d]", line)]
    size = round(len(rows) ** (1 / 3))
    nodes = numpy.array([row.split() for row in rows], "f4").reshape(size, size, size, 3).transpose(2, 1, 0, 3)
    return numpy.ascontiguousarray(nodes), lines[: -len(rows)]


def check_picture(checks, where, name, picture, script):
    one, other, cube = f"{where}/{name}-a.png", f"{where}/{name}-b.png", f"{where}/{name}.cube"
    wanted = changed(picture)
    save(one, picture)
    save(other, wanted)
    good, said = fit(script, one, other, "-o", cube)
    if not checks.check(good, f"{name}: {said}"):
        return
    (before, poor), (after, rich) = (map(float, re.search(rf"{when}: (\S+) levels .* PSNR (\S+) dB", said).groups())
                                     for when in ("before", "after"))
    checks.check(before > 5 and poor < 35, f"{name}: the pictures are too alike to tell: {said}")
    checks.check(after < 0.3 and rich > 52, f"{name}: {said}")
    table, lines = table_of(cube)
    checks.check(table.shape == (17, 17, 17, 3) and 0 <= table.min() and table.max() <= 1, f"{name}: {table.shape}")
    text = "\n".join(lines)
    checks.check(lines[-2:] == [f'TITLE "{name}"', "LUT_3D_SIZE 17"] and one in text and said.splitlines()[-1] in text, text)
    made = numpy.rint(script.look_up(table, picture.reshape(-1, 3) / 255) * 255).reshape(picture.shape)
    off = numpy.abs(made - wanted)
    checks.check(off.mean() < 0.3 and (off <= 2).mean() > 0.9995, f"{name}: {off.mean():.3f} levels, {off.max()} at most")
    if FFMPEG:
        check_ffmpeg(checks, where, name, made)


def check_ffmpeg(checks, where, name, made):
    """ffmpeg rounds down to whole levels, this script to the nearest."""
    command = [FFMPEG, "-loglevel", "error", "-i", f"{name}-a.png", "-vf", f"format=rgb24,lut3d={name}.cube:interp=trilinear",
               "-pix_fmt", "rgb24", f"{name}-f.png"]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    if checks.check(done.returncode == 0, f"{name}: ffmpeg: {done.stderr}"):
        off = numpy.abs(cv2.imread(f"{where}/{name}-f.png")[:, :, ::-1] - made)
        checks.check(off.max() <= 1, f"{name}: ffmpeg makes another picture, by {off.max()} levels")


def check_unseen(checks, where, script):
    """A table stays the identity far from the colours of the generated picture, which are near gray."""
    table, _ = table_of(f"{where}/generated.cube")
    change = numpy.abs(table - script.identity(17)).max(-1) * 255
    for corner in ((0, 0, -1), (0, -1, 0), (-1, 0, 0), (-1, 0, -1), (0, -1, -1), (-1, -1, 0)):
        checks.check(change[corner] < 1, f"{corner} was not seen, and is changed by {change[corner]:.1f} levels")
    checks.check(change[8, 8, 8] > 5, f"gray, which was seen, is changed by {change[8, 8, 8]:.1f} levels alone")


def check_folders(checks, where, script):
    """Files of the same name are pairs; the same pictures give the same table."""
    for side in "ab":
        os.makedirs(f"{where}/{side}")
        shutil.copy(f"{where}/generated-{side}.png", f"{where}/{side}/one.png")
        shutil.copy(f"{where}/generated-{side}.png", f"{where}/{side}/two.png")
    shutil.copy(f"{where}/generated-a.png", f"{where}/a/lonely.png")
    common = ("--points", "5", "--steps", "20", "--title", "colours")
    for name in ("first", "second"):
        good, said = fit(script, f"{where}/a", f"{where}/b", "-o", f"{where}/{name}.cube", *common)
        checks.check(good and "of 2 pairs" in said, said)
    with open(f"{where}/first.cube") as first, open(f"{where}/second.cube") as second:
        checks.check(first.read() == second.read(), "the same pictures gave another table")
    table, lines = table_of(f"{where}/first.cube")
    checks.check(len(table) == 5 and 'TITLE "colours"' in lines, f"{lines}")


def check_mistakes(checks, where, script):
    save(f"{where}/small.png", generated()[:90])
    with open(f"{where}/text.png", "w") as file:
        file.write("no picture")
    os.makedirs(f"{where}/empty")
    one, other = f"{where}/generated-a.png", f"{where}/generated-b.png"
    output = ("-o", f"{where}/none.cube")
    for arguments, text in (
        ((one, *output), "1 pictures: pairs are wanted"),
        ((one, f"{where}/missing.png", *output), "missing.png: there is no such file"),
        ((one, f"{where}/text.png", *output), "text.png: not a picture"),
        ((one, f"{where}/small.png", *output), "have 320x180 and 320x90 pixels"),
        ((f"{where}/a", f"{where}/empty", *output), "have no file of the same name"),
        ((f"{where}/a", one, *output), "two folders are wanted"),
        ((one, other, "-o", f"{where}/nowhere/x.cube"), "x.cube: a file in a folder that can be written to"),
        ((one, other, *output, "--points", "66"), "--points: 2 to 65, not 66"),
        ((one, other, *output, "--smooth", "-1"), "--smooth: 0 or more, not -1"),
        ((one, other, *output, "--steps", "0"), "--steps: 1 or more, not 0"),
        ((one, other, *output, "--title", 'a"b'), "--title: one line without quotes"),
    ):
        good, said = fit(script, *arguments)
        checks.check(not good and text in said, f"not {text}: {said}")
    checks.check(not os.path.exists(f"{where}/none.cube"), "a table in spite of a mistake")


def check_program(checks):
    done = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, timeout=60)
    checks.check(done.returncode == 0 and "--points" in done.stdout, f"--help: {done.stdout}{done.stderr}")


def main():
    checks = Checks("lut_fit")
    specification = importlib.util.spec_from_file_location("lut_fit", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    with folder() as where:
        for name, picture in (("generated", generated()), ("frame", frame(where))):
            if picture is None:
                checks.skip("no ffmpeg, or no sample clip")
            else:
                check_picture(checks, where, name, picture, script)
        check_unseen(checks, where, script)
        check_program(checks)
        check_folders(checks, where, script)
        check_mistakes(checks, where, script)
    checks.end()


main()
