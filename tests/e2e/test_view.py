#!/usr/bin/python3
"""Pictures to look at: JPEGs of cameras and of outputs are those that the camera sends, by their numbers and by their
levels; nothing is made while nobody looks; outputs lose nothing by those who do."""
import base64
import os
import subprocess

import numpy
from faulty_camera import Camera
from framed_client import BINARY, Checks, Framed, Reader, folder, run, until
from numbered_clip import NumberedClip, encode, read_numbers

SIZE = (640, 384)
CONFIG = """
control: {where}/control.sock
http: 127.0.0.1:0
cameras:
  gate:
    url: {url}
    outputs:
      net: {{size: 320x320, fit: letterbox, fill: 114, sink: "unix:{where}/net.sock",
            tensor: {{dtype: f32, order: bgr, scale: 0.00392156862745098, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}}}}
      raw: {{size: 320x192, fit: stretch, sink: "unix:{where}/raw.sock", tensor: {{dtype: u8, layout: nhwc}}}}
      planes: {{kernel: yuv, format: yuv24, size: 320x192, fit: stretch, sink: "unix:{where}/planes.sock"}}
"""


def picture_of(jpeg):
    """A JPEG as gray levels of 16 to 235, as numbered_clip reads them."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-f", "mjpeg", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          input=jpeg, capture_output=True, check=True)
    height, width = size_of(jpeg)
    return numpy.frombuffer(done.stdout, "u1").reshape(height, width, 3)


def size_of(jpeg):
    at = jpeg.index(b"\xff\xc0")
    return int.from_bytes(jpeg[at + 5 : at + 7], "big"), int.from_bytes(jpeg[at + 7 : at + 9], "big")


def gray(picture):
    return picture.mean(axis=2)


def snap(where, *arguments):
    done = subprocess.run([BINARY, "snap", "--socket", f"{where}/control.sock", *arguments], capture_output=True, timeout=20)
    return done.returncode, done.stdout, done.stderr.decode()


def check_numbers(checks, case, picture, camera):
    """The picture is one that the camera has sent a moment ago, and of one piece."""
    top, bottom = read_numbers(picture)
    sent = [one.number for one in camera.sent[-50:]]
    checks.check(top == bottom and top in sent, f"{case}: shows {top} and {bottom}, of {sent}")


def check_snaps(checks, where, camera):
    for width, height in ((640, 384), (320, 192), (64, 38)):
        code, jpeg, errors = snap(where, "gate", "--width", str(width))
        good = code == 0 and size_of(jpeg) == (height, width)
        checks.check(good, f"snap of {width}: {code} {errors}")
        if good and width > 64:
            check_numbers(checks, f"snap of {width}", gray(picture_of(jpeg)), camera)
    code, jpeg, errors = snap(where, "gate", "-w", "1920")
    checks.check(code == 0 and size_of(jpeg) == (384, 640), f"a picture is made larger than it is: {errors}")
    for output, rows in (("net", (64, 256)), ("net/1", (64, 256)), ("raw", (0, 192)), ("planes", (0, 192)),
                         ("planes/0", (0, 192))):
        code, jpeg, errors = snap(where, f"gate/{output}")
        checks.check(code == 0, f"snap of {output}: {errors}")
        if code != 0:
            continue
        picture = gray(picture_of(jpeg))
        # What is black and white in the clip is so in the tensor: it is de-normalised.
        check_numbers(checks, output, picture[rows[0] : rows[1]], camera)
        if rows[0]:
            fill = picture[: rows[0] - 2]
            checks.check(abs(fill - 114).max() <= 3, f"{output}: the fill is {fill.min()} to {fill.max()}")
    for target, told in (("door", "there is no camera door"), ("gate/no", "camera gate has no output no"),
                         ("gate/net/3", "gate/net: has no plane 3")):
        code, jpeg, errors = snap(where, target)
        checks.check(code == 1 and not jpeg and told in errors, f"snap of {target}: {code} {errors}")
    for arguments in (("gate", "-w", "63"), ("gate", "-w", "1921"), ("gate", "-w", "x"), ("gate/net/x",), ("a b",), ()):
        code, jpeg, errors = snap(where, *arguments)
        checks.check(code == 2 and not jpeg, f"snap {arguments}: {code} {errors}")


def check_colours(checks, where):
    """Red is red through every conversion, also of a tensor whose channels are the other way round."""
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "color=0xC83214:s=320x192:r=10", "-frames:v", "20",
                    "-pix_fmt", "yuv420p", "-colorspace", "bt709", "-vf", "scale=out_color_matrix=bt709", f"{where}/red.mp4"],
                   check=True)
    config = CONFIG.format(where=where, url=f"{where}/red.mp4") \
        .replace("    outputs:", "    loop: true\n    pace: realtime\n    outputs:")
    with Framed(where, config) as framed:
        until(lambda: snap(where, "gate")[0] == 0, 10)
        for target in ("gate", "gate/net", "gate/raw", "gate/planes"):
            _, jpeg, errors = snap(where, target)
            picture = picture_of(jpeg)
            middle = picture[picture.shape[0] // 2, picture.shape[1] // 2].astype(int)
            checks.check(abs(middle - [0xC8, 0x32, 0x14]).max() <= 6, f"{target}: {middle} {errors}")
        for plane, level in enumerate((0x14, 0x32, 0xC8)):
            _, jpeg, errors = snap(where, f"gate/net/{plane}")
            found = picture_of(jpeg)[160, 160]
            checks.check(abs(found.astype(int) - level).max() <= 4, f"plane {plane} of BGR: {found} {errors}")


def check_nobody(checks, framed):
    metrics = framed.live_metrics()
    checks.check(metrics.sum("framed_previews_total") == metrics.sum("framed_previews") == 0, "a picture was made though nobody looked")


def main():
    checks = Checks("view")
    with folder() as where:
        clip = NumberedClip(encode(f"{where}/clip.h264", 300, size=SIZE))
        with Camera(clip) as camera, Framed(where, CONFIG.format(where=where, url=camera.url())) as framed:
            checks.check(until(lambda: len(camera.sent) > 10, 10), f"no pictures\n{framed.errors()}")
            check_nobody(checks, framed)
            check_snaps(checks, where, camera)
            checks.check(framed.stop() == 0, framed.errors())
        check_colours(checks, where)
    checks.end()


main()
