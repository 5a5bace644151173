#!/usr/bin/python3
"""JPEGs of cameras and of outputs show pictures that the camera sent, checked by numbers and levels; no picture is
made without a viewer; viewers cost outputs no frames."""
import http.client
import json
import subprocess
import time

import numpy
from faulty_camera import Camera
from framed_client import BINARY, PATIENCE, Checks, Framed, Reader, ffmpeg, folder, until
from http_client import port_of
from numbered_clip import NumberedClip, encode, read_numbers
from view_client import View

PICTURES = 300  # of the clip, which repeats
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


def pictures_of(jpegs):
    """Returns JPEGs of one size as RGB arrays."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-f", "mjpeg", "-i", "-", "-fps_mode", "passthrough", "-f", "rawvideo",
                           "-pix_fmt", "rgb24", "-"], input=b"".join(jpegs), capture_output=True, check=True)
    return numpy.frombuffer(done.stdout, "u1").reshape(-1, *size_of(jpegs[0]), 3)


def picture_of(jpeg):
    return pictures_of([jpeg])[0]


def size_of(jpeg):
    at = jpeg.index(b"\xff\xc0")
    return int.from_bytes(jpeg[at + 5 : at + 7], "big"), int.from_bytes(jpeg[at + 7 : at + 9], "big")


def gray(picture):
    return picture.mean(axis=2)


def snap(where, *arguments):
    done = subprocess.run([BINARY, "snap", "--socket", f"{where}/control.sock", *arguments], capture_output=True, timeout=20)
    return done.returncode, done.stdout, done.stderr.decode()


def check_numbers(checks, case, picture, camera):
    """The picture is whole and one that the camera has just sent."""
    top, bottom = read_numbers(picture)
    sent = [one.number % PICTURES for one in camera.sent[-50:]]
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
        # The clip's black and white are black and white in the picture: the tensor is de-normalised.
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
    """Red stays red through every conversion, also from a BGR tensor."""
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


def check_nobody(checks, framed, case):
    """No preview is made or requested."""
    before = framed.live_metrics().sum("framed_previews_total")
    time.sleep(0.5)
    metrics = framed.live_metrics()
    made = metrics.sum("framed_previews_total") - before
    kinds, viewers = metrics.sum("framed_previews"), metrics.sum("framed_viewers")
    checks.check(made == kinds == viewers == 0, f"{case}: {made} pictures, {kinds} kinds, {viewers} viewers")
    return before


def fetch(port, page):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", page)
    response = connection.getresponse()
    return response.status, response.headers["Content-Type"], response.read()


def comment_of(jpeg):
    """Returns the facts in a JPEG's comment, or None."""
    checks_mark = jpeg[2:4]
    return json.loads(jpeg[6 : 4 + int.from_bytes(jpeg[4:6], "big")]) if checks_mark == b"\xff\xfe" else None


def check_snapshots(checks, port, camera):
    status, kind, jpeg = fetch(port, "/api/v1/cameras/gate/snapshot.jpg?width=320")
    checks.check(status == 200 and kind == "image/jpeg" and size_of(jpeg) == (192, 320), f"snapshot: {status} {jpeg[:99]}")
    check_numbers(checks, "snapshot", gray(picture_of(jpeg)), camera)
    facts = comment_of(jpeg)
    checks.check(facts["camera"] == "gate" and facts["source"] == [640, 384] and (facts["width"], facts["height"]) == (320, 192),
                 f"snapshot: {facts}")
    status, kind, jpeg = fetch(port, "/api/v1/cameras/gate/outputs/net/snapshot.jpg")
    facts = comment_of(jpeg)
    check_numbers(checks, "snapshot of net", gray(picture_of(jpeg))[64:256], camera)
    # Letterboxed by one half: the centre maps to the centre, at pixel centres.
    a, b, c, d, e, f = facts["dst_to_src"]
    middle = (a * 159.5 + b * 159.5 + c, d * 159.5 + e * 159.5 + f)
    checks.check(abs(middle[0] - 319.5) < 0.01 and abs(middle[1] - 191.5) < 0.01, f"{middle} of {facts}")
    names = [channel["name"] for channel in facts["channels"]]
    checks.check(names == ["b", "g", "r"] and facts["dtype"] == "f32" and facts["layout"] == "nchw", f"{facts}")
    for channel, mean, std in zip(facts["channels"], (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)):
        least, most = -mean / std, (1 - mean) / std  # for black and for white
        good = abs(channel["min"] - least) < 0.2 and abs(channel["max"] - most) < 0.2 and least < channel["mean"] < most
        checks.check(good, f"{channel}: not {least} to {most}")
    status, _, jpeg = fetch(port, "/api/v1/cameras/gate/outputs/net/snapshot.jpg?plane=2")
    checks.check(status == 200 and comment_of(jpeg)["plane"] == 2, f"plane: {status}")
    for page, status in (("cameras/door/snapshot.jpg", 404), ("cameras/gate/outputs/no/snapshot.jpg", 404),
                         ("cameras/gate/snapshot.jpg?width=63", 400), ("cameras/gate/snapshot.jpg?width=1921", 400),
                         ("cameras/gate/outputs/net/snapshot.jpg?plane=3", 400), ("view", 400), ("view?c=gate", 400),
                         ("view?c=gate:20", 400), ("view?c=gate:320&fps=0.1", 400), ("view?c=gate:320&fps=31", 400),
                         ("view?c=" + ",".join(["gate:320"] * 65), 400), ("cameras/door/stream.mjpg", 404),
                         ("cameras/gate/stream.mjpg?fps=x", 400)):
        found, _, body = fetch(port, "/api/v1/" + page)
        checks.check(found == status and json.loads(body)["error"], f"{page[:60]}: {found} {body}")


def check_view(checks, port, camera, framed):
    """Two viewers of the same and of another kind: each picture is the camera's, and is made once for both."""
    with View(port, "gate:320,gate/net:320,door:320", 5) as one, View(port, "gate:320", 5) as two:
        checks.check(one.status == two.status == 200, f"{one.status} {one.error}")
        before = framed.live_metrics().sum("framed_previews_total")
        found, facts = one.pictures(12)
        made = framed.live_metrics().sum("framed_previews_total") - before
        others, _ = two.pictures(5)
    checks.check("there is no camera door" in facts[2]["error"], f"{facts}")
    checks.check(facts[0]["width"] == 320 and facts[1]["output"] == "net" and len(facts[1]["channels"]) == 3, f"{facts}")
    checks.check(made <= 12 + 4 * PATIENCE, f"{made} pictures were made for 12 that two viewers share")
    for index, rows in ((0, slice(None)), (1, slice(64, 256))):
        mine = [message for message in found if message.index == index]
        checks.check(4 <= len(mine) <= 8, f"view: {len(mine)} pictures of index {index}")
        sequences = [message.sequence for message in mine]
        steps = sorted(b - a for a, b in zip(sequences, sequences[1:]))
        checks.check(steps[len(steps) // 2] == 5 and steps[0] > 0, f"view: {sequences} at 5 of 25 a second")
        numbers = [read_numbers(gray(picture)[rows]) for picture in pictures_of([message.body for message in mine])]
        good = all(top == bottom != -1 for top, bottom in numbers) and len(set(numbers)) == len(numbers)
        checks.check(good, f"view: index {index} shows {numbers}")
        late = max(message.at - message.capture_ns / 1e9 for message in mine[1:])
        checks.check(late < 0.5 * PATIENCE, f"view: a picture came {late:.3f} s after it was taken")
    same = {message.sequence: message.body for message in found if message.index == 0}
    shared = [message for message in others if message.sequence in same]
    checks.check(shared and all(message.body == same[message.sequence] for message in shared), "two viewers, two JPEGs")


def check_parts(checks, where, port, camera):
    """stream.mjpg, read as a browser does and with ffmpeg."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/api/v1/cameras/gate/stream.mjpg?width=320&fps=10")
    response = connection.getresponse()
    boundary = response.headers["Content-Type"].partition("boundary=")[2].encode()
    data = b""
    while data.count(b"--" + boundary) < 6:
        data += response.read1(65536)
    response.close()
    connection.close()
    parts = data.split(b"--" + boundary + b"\r\nContent-Type: image/jpeg\r\n\r\n")
    checks.check(not parts[0], f"stream.mjpg: begins with {parts[0][:40]}")
    whole = [part[:-2] for part in parts[1:-1]]
    checks.check(all(part.endswith(b"\xff\xd9") for part in whole), "stream.mjpg: a part is not a JPEG")
    for picture in pictures_of(whole):
        check_numbers(checks, "stream.mjpg", gray(picture), camera)
    url = f"http://127.0.0.1:{port}/api/v1/cameras/gate/stream.mjpg?width=320&fps=10"
    lines = ffmpeg("-i", url, "-frames:v", "3", "-f", "framemd5", "-").decode().splitlines()
    checks.check(sum(not line.startswith("#") for line in lines) == 3, f"ffmpeg reads {lines}")


def check_viewers(checks, port):
    """The 33rd viewer is refused with a message, and gets in when one of the 32 leaves."""
    viewers = [View(port, "gate:320", 1) for _ in range(32)]
    checks.check(all(viewer.status == 200 for viewer in viewers), f"{[viewer.status for viewer in viewers]}")
    with View(port, "gate:320") as late:
        checks.check(late.status == 503 and "32 viewers" in late.error, f"the 33rd: {late.status} {late.error}")
    viewers[7].__exit__()

    def comes():
        with View(port, "gate:320") as viewer:
            return viewer.status == 200

    checks.check(until(comes, 5), "a place that became free is not given")
    for viewer in viewers:
        viewer.__exit__()


def check_slow(checks, port):
    """A viewer that paused sees new pictures, not the missed ones."""
    with View(port, "gate:640", 25) as viewer:
        viewer.pictures(3)
        time.sleep(2)
        found, _ = viewer.pictures(40)
        late = [message.at - message.capture_ns / 1e9 for message in found]
        checks.check(min(late[-10:]) < 0.3 * PATIENCE, f"a viewer that slept stays {min(late[-10:]):.2f} s behind")
        gap = max(b.sequence - a.sequence for a, b in zip(found, found[1:]))
        checks.check(gap > 5, f"a viewer that slept got every picture: {gap}")


def main():
    checks = Checks("view")
    with folder() as where:
        clip = NumberedClip(encode(f"{where}/clip.h264", PICTURES, size=SIZE))
        with Camera(clip) as camera, Framed(where, CONFIG.format(where=where, url=camera.url())) as framed:
            checks.check(until(lambda: len(camera.sent) > 10, 10), f"no pictures\n{framed.errors()}")
            port = port_of(framed)
            made = check_nobody(checks, framed, "at first")
            checks.check(made == 0, f"{made} pictures were made before anybody looked")
            Reader(f"unix:{where}/raw.sock", keep=False)
            check_snaps(checks, where, camera)
            check_snapshots(checks, port, camera)
            check_view(checks, port, camera, framed)
            check_parts(checks, where, port, camera)
            check_viewers(checks, port)
            check_slow(checks, port)
            until(lambda: framed.live_metrics().sum("framed_previews") == 0, 5)
            check_nobody(checks, framed, "at last")
            checks.check(framed.stop() == 0, framed.errors())
            offered, emitted, lost = framed.metrics().account(camera="gate", output="raw")
            losses = framed.metrics().losses(camera="gate", output="raw")
            client = losses.get("client", 0) + losses.get("stopping", 0)
            checks.check(lost == client and emitted > 100, f"raw: {offered} {emitted} {losses}")
        check_colours(checks, where)
    checks.end()


main()
