#!/usr/bin/python3
"""Clips with a display matrix, as phones write them, leave warp as if their outputs had that rotation, and leave yuv
as coded; `rotate: ignore` ignores the matrix."""
import os
import struct
import subprocess

from framed_client import Checks, Framed, ffmpeg, folder, make_clip

FRAMES = 6
# (rotate, flip) of an output that does to a plain clip what each clip's display matrix states.
TURNS = [(degrees, flip) for flip in ("none", "horizontal") for degrees in (0, 90, 180, 270)]
SIZES = {"boxed": "size: 64x80", "cut": "size: 50x50, fit: crop, crop: [8, 4, 60, 36]",
         "gray": "size: 48x48, fit: none, tensor: {order: gray, dtype: f32}"}


def turn(degrees, flip):
    """Returns the directions of the picture's right and down: rows of a 2x2 integer matrix."""
    a, b, c, d = 1, 0, 0, 1
    for _ in range(degrees // 90):
        a, b, c, d = -c, -d, a, b
    return (-a, -b, c, d) if flip == "horizontal" else (a, b, c, d)


def say(clip, matrix, to):
    """Writes a copy of an mp4 with this matrix in its track header."""
    with open(clip, "rb") as file:
        data = bytearray(file.read())
    at = data.index(b"tkhd") + 4
    at += 52 if data[at] == 1 else 40
    a, b, c, d = matrix
    assert struct.unpack_from(">9i", data, at) == (65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    struct.pack_into(">9i", data, at, 65536 * a, 65536 * c, 0, 65536 * b, 65536 * d, 0, 0, 0, 1 << 30)
    with open(to, "wb") as file:
        file.write(data)


def gray(clip, filters="null"):
    return ffmpeg("-i", clip, "-vf", filters, "-pix_fmt", "gray", "-f", "rawvideo", "-")


def check_clips(checks, where, clip):
    """The ffmpeg program shows the clips with the intended rotation."""
    filters = {0: "null", 90: "transpose=clock", 180: "hflip,vflip", 270: "transpose=cclock"}
    for i, (degrees, flip) in enumerate(TURNS):
        say(clip, turn(degrees, flip), f"{where}/turned{i}.mp4")
        shown = gray(clip, filters[degrees] + (",hflip" if flip == "horizontal" else ""))
        checks.check(gray(f"{where}/turned{i}.mp4") == shown, f"the clip of {degrees}, {flip} is none")


def output(where, name, keys):
    return f"      {name.split('/')[1]}: {{{keys}, sink: 'file:{where}/{name.replace('/', '-')}.framed'}}\n"


def camera(where, name, clip, outputs, keys=""):
    lines = "".join(output(where, f"{name}/{key}", value) for key, value in outputs.items())
    return f"  {name}:\n    url: {clip}\n    {keys}\n    outputs:\n{lines}"


def frames(where, name):
    """Returns (header, payload) of each frame written by an output."""
    with open(f"{where}/{name}.framed", "rb") as file:
        data = file.read()
    found = []
    while data:
        (size,) = struct.unpack_from("<Q", data, 8)
        found.append((data[:256], data[256 : 256 + size]))
        data = data[256 + size :]
    return found


def matrix_of(header):
    return struct.unpack_from("<6f", header, 168)


def run(checks, where, cameras):
    config = "defaults: {overflow: wait}\ncameras:\n" + "".join(cameras)
    with Framed(where, config) as framed:
        checks.check(framed.wait(60) == 0, f"exit {framed.child.returncode}:\n{framed.errors()}")
        return framed.errors()


def same(checks, where, name, expected, text):
    got, wanted = frames(where, name), frames(where, expected)
    checks.check(len(got) == len(wanted) == FRAMES, f"{text}: {len(got)} and {len(wanted)} frames")
    checks.check([p for _, p in got] == [p for _, p in wanted], f"{text}: other bytes")
    checks.check([matrix_of(h) for h, _ in got] == [matrix_of(h) for h, _ in wanted], f"{text}: another src_to_dst")


def check_turns(checks, where, clip):
    explicit = {f"{key}{i}": f"{size}, rotate: {degrees}, flip: {flip}"
                for key, size in SIZES.items() for i, (degrees, flip) in enumerate(TURNS)}
    halves = [dict(list(explicit.items())[i : i + 12]) for i in (0, 12)]
    cameras = [camera(where, f"plain{n}", clip, half) for n, half in enumerate(halves)]
    for i in range(len(TURNS)):
        cameras.append(camera(where, f"turned{i}", f"{where}/turned{i}.mp4", SIZES))
    errors = run(checks, where, cameras)
    for i, said in enumerate(TURNS):
        for key in SIZES:
            half = next(n for n, half in enumerate(halves) if f"{key}{i}" in half)
            same(checks, where, f"turned{i}-{key}", f"plain{half}-{key}{i}", f"{said}, {key}")
        told = [line for line in errors.splitlines() if f"camera=turned{i} " in line and "as the stream says" in line]
        checks.check(len(told) == (i > 0), f"{said}: told {told}")
    different = {frames(where, f"turned{i}-boxed")[0][1] for i in range(len(TURNS))}
    checks.check(len(different) == len(TURNS), f"only {len(different)} turns differ")


def turn_by_ffmpeg(clip, turned):
    """Rotates by 90 degrees clockwise. ffmpeg 6 replaced the metadata key by an option."""
    known = b"display_rotation" in subprocess.run(["ffmpeg", "-v", "error", "-h", "full"], capture_output=True).stdout
    before, behind = (["-display_rotation", "-90"], []) if known else ([], ["-metadata:s:v", "rotate=-90"])
    ffmpeg(*before, "-i", clip, "-c", "copy", *behind, turned)


def check_rest(checks, where, clip):
    """A rotation in addition to the output's own; ignored; an affine output; yuv; unsupported matrices."""
    boxed = SIZES["boxed"]
    quarter, slanted = f"{where}/turned1.mp4", f"{where}/slanted.mp4"
    turn_by_ffmpeg(clip, f"{where}/ffmpeg.mp4")
    say(clip, (1, 1, -1, 1), slanted)
    yuv = "kernel: yuv, format: yuv420p"
    affine = "size: 40x40, affine: [0.5, 0, 1, 0, 0.5, 2]"
    errors = run(checks, where, [
        camera(where, "plain", clip, {"none": boxed, "half": f"{boxed}, rotate: 180", "yuv": yuv, "affine": affine,
                                      "quarter": f"{boxed}, rotate: 90"}),
        camera(where, "quarter", quarter, {"half": f"{boxed}, rotate: 90", "yuv": yuv, "affine": affine}),
        camera(where, "ignored", quarter, {"none": boxed, "yuv": yuv}, "rotate: ignore"),
        camera(where, "slanted", slanted, {"none": boxed}),
        camera(where, "ffmpeg", f"{where}/ffmpeg.mp4", {"quarter": boxed}),
    ])
    for name in ("quarter-half", "quarter-yuv", "quarter-affine", "ignored-none", "ignored-yuv", "slanted-none",
                 "ffmpeg-quarter"):
        same(checks, where, name, "plain-" + name.split("-")[1], name)
    lines = errors.splitlines()
    for name, word in (("quarter", "in yuv outputs without a geometry they stay as coded"), ("slanted", "other than 90, 180 or 270"),
                       ("ffmpeg", "turned by 90 degrees clockwise")):
        told = [line for line in lines if f"camera={name} " in line and word in line]
        checks.check(len(told) == 1, f"{name}: told {told}")
    checks.check(not any("camera=ignored" in line and "stream says" in line for line in lines), "told what is ignored")


def check_messages(checks, where, clip):
    """H.264 has the rotation in the stream itself, at keyframes, and may change it later."""
    plain, turned = f"{where}/plain.h264", f"{where}/turned.h264"
    ffmpeg("-i", clip, "-c", "copy", "-bsf:v", "h264_mp4toannexb", plain)
    ffmpeg("-i", plain, "-c", "copy", "-bsf:v", "h264_metadata=display_orientation=insert:rotate=-90", turned)
    with open(turned, "ab") as to, open(plain, "rb") as more:
        to.write(more.read())
    boxed = SIZES["boxed"]
    errors = run(checks, where, [
        camera(where, "coded", plain, {"none": boxed, "turned": f"{boxed}, rotate: 90"}),
        camera(where, "message", turned, {"o": boxed}),
    ])
    got = frames(where, "message-o")
    wanted = frames(where, "coded-turned") + frames(where, "coded-none")
    checks.check([p for _, p in got] == [p for _, p in wanted], f"message: other bytes\n{errors}")
    epochs = [struct.unpack_from("<I", header, 40)[0] for header, _ in got]
    checks.check(epochs[: FRAMES] == FRAMES * [0] and len(set(epochs[FRAMES:])) == 1 and epochs[FRAMES] > 0,
                 f"message: epochs {epochs}")


def main():
    checks = Checks("orientation")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"), frames=FRAMES, size="96x56")
        check_clips(checks, where, clip)
        check_turns(checks, where, clip)
        check_rest(checks, where, clip)
        check_messages(checks, where, clip)
    checks.end()


main()
