#!/usr/bin/python3
"""framed probe: its report of a file and of a camera matches how the clip was made; the lines that it prints are a
valid configuration; each mistake is one line, without a password."""
import json
import re

from camera_guard import Basic, Digest, Guard
from framed_client import Checks, Server, folder, make_clip, run
from numbered_clip import NumberedClip, encode
from rtsp_camera import Camera


def said(out):
    """Returns the report's lines by their first word, and the configuration's lines."""
    report, _, lines = out.partition("\n\n")
    return dict(line.split(None, 1) for line in report.splitlines()), lines


def check_report(checks, what, out, stream):
    report, lines = said(out)
    checks.check(re.match(stream, report.get("stream", "")), f"{what}: {out}")
    checks.check(report.get("picture") == "320x240" and report.get("keyframes") == "every 1 s", f"{what}: {out}")
    checks.check(re.search(r"\b25 pictures/s", out), f"{what}: {out}")
    checks.check(re.match(r"cpu (h264|hevc): [\d.]+ ms of one core a picture, [\d.]+ % of a core", report.get("decoder", "")),
                 f"{what}: {out}")
    checks.check("0 damaged or lost" in out, f"{what}: {out}")
    return report, lines


def check_file(checks, where):
    clip = make_clip(f"{where}/b.mp4", b_frames=2)
    code, out, errors = run("probe", clip)
    checks.check(code == 0, f"exit {code}: {errors}")
    report, lines = check_report(checks, "file", out, r"h264 320x240 25 fps from a file, profile High")
    checks.check("B-frames       up to 2 in a row" in out and "clock" not in report, out)
    return lines


def check_configuration(checks, where, lines, env=None):
    """The suggested lines pass framed check."""
    path = f"{where}/suggested.yaml"
    with open(path, "w") as file:
        file.write(lines)
    code, _, errors = run("check", "-c", path, env=env)
    checks.check(code == 0, f"exit {code}: {errors}\n{lines}")


def check_camera(checks, where, codec):
    clip = make_clip(f"{where}/{codec}.mkv", codec=codec, frames=100)
    with Server(where, clip, "--auth", "viewer:geheim") as server:
        code, out, errors = run("probe", server.url(user="viewer:geheim@"), "--seconds", "2.5")
        checks.check(code == 0, f"{codec}: exit {code}: {errors}")
        name = {"h264": "h264", "h265": "hevc"}[codec]
        report, lines = check_report(checks, codec, out, name + r" 320x240 25 fps over rtsp/tcp")
        checks.check(re.match(r"\d+, 0 lost, 0 late, 0 foreign", report.get("packets", "")), f"{codec}: {out}")
        checks.check("B-frames       none" in out and "clock" in report, f"{codec}: {out}")
        checks.check("${CAMERA_PASSWORD}@127.0.0.1" in lines and "geheim" not in out + errors, f"{codec}: {out}")
        code, out, errors = run("probe", server.url(user="viewer:falsch@"))
        checks.check(code == 1 and "refused the user name or password" in errors and "falsch" not in errors,
                     f"{codec}: exit {code}: {out}{errors}")


def check_json(checks, where):
    """The same report as one JSON object, with the URL from standard input."""
    clip = make_clip(f"{where}/json.mkv", frames=100)
    with Server(where, clip, "--auth", "viewer:geheim") as server:
        code, out, errors = run("probe", "-", "--json", "--seconds", "1.2", "--name", "gate-2", "--preset", "ultralytics",
                                "--size", "320x192", stdin=server.url(user="viewer:geheim@") + "\n")
    checks.check(code == 0 and errors == "" and "geheim" not in out, f"exit {code}: {errors}{out[:1000]}")
    said = json.loads(out)
    stream, cost = said["stream"], said["cost"]
    checks.check((stream["codec"], stream["width"], stream["height"], round(stream["fps"]), round(stream["keyframe_seconds"], 3),
                  stream["damaged"], stream["network"]["lost"]) == ("h264", 320, 240, 25, 1, 0, 0), f"{stream}")
    checks.check(20 < stream["pictures"] < 50 and 10e3 < stream["bits_per_second"] < 4e6, f"{stream}")
    checks.check(cost["nvdec"] in (None, True) and 0.01 < cost["decode_ms"] < 20 and 1 < cost["memory_mib"] < 100
                 and abs(cost["cores"] - cost["decode_ms"] * stream["fps"] / 1000) < 1e-3, f"{cost}")
    checks.check(cost["fits"] == (cost["why"] == "") and 0 <= cost["cores_free"] <= cost["cores_all"], f"{cost}")
    lines = said["yaml"]
    checks.check("preset: ultralytics" in lines and "size: 320x192" in lines, lines)
    check_configuration(checks, where, lines, {"GATE_2_USER": "viewer", "GATE_2_PASSWORD": "geheim"})
    names = [preset["name"] for preset in said["presets"]]
    checks.check(names[:2] == ["framed", "ultralytics"] and said["presets"][1]["keys"]["tensor.dtype"] == "f32", f"{names}")


def check_login(checks, where):
    """A wrong password is tried once, whatever login methods the camera has. The right one may have any characters."""
    clip = NumberedClip(encode(f"{where}/login.h264", 30))
    for ways in ([Digest()], [Digest(), Basic()], [Basic()]):
        with Camera(clip, guard=Guard("viewer:g:e/h@e i%m", ways)) as camera:
            url = camera.url()
            for password in ("falsch", "g:e/h@e i%m"):
                with open(f"{where}/password", "w") as file:
                    file.write(password + "\n")
                code, out, errors = run("probe", url, "--seconds", "0.3", "--json", "--user", "viewer", "--password-file", f"{where}/password")
                refused = len(camera.guard.refused)
                checks.check(refused == 1 and errors == "" and password not in out, f"{refused} refusals: {errors} {out[:500]}")
                if password == "falsch":
                    said = json.loads(out)
                    checks.check(code == 1 and said["wants_login"] and "refused the user name or password" in said["error"], out)
            checks.check(code == 0 and "${CAMERA_USER}:${CAMERA_PASSWORD}@127.0.0.1" in out, out[:1000])
            code, out, errors = run("probe", url, "--seconds", "0.3", "--user", "viewer", "--password-file", f"{where}/password", "--clear")
            lines = out.partition("\n\n")[2]
            checks.check(code == 0 and "viewer:g%3Ae%2Fh%40e%20i%25m@" in lines, f"{errors} {out}")
            check_configuration(checks, where, lines)


def check_mistakes(checks, where):
    for arguments, code, text in (
        ([], 2, "the URL is missing"),
        (["gopher://x"], 2, "the URL is not an input"),
        (["rtsp://viewer:geheim/x@127.0.0.1/x"], 2, "write / ? # @ : % as %2F %3F %23 %40 %3A %25"),
        (["rtsp://viewer:12#geheim@127.0.0.1/x"], 2, "has an @ behind its host"),
        (["viewer:geheim@127.0.0.1/x"], 2, "the URL has no scheme"),
        ([f"{where}/none.mp4"], 1, "No such file"),
        (["rtsp://viewer:geheim@127.0.0.1:1/x"], 1, "refused"),
        (["x.mp4", "--seconds", "0"], 2, "takes a number from 0.1 to 3600"),
        (["x.mp4", "y.mp4"], 2, "y.mp4"),
        (["x.mp4", "--name", "a b"], 2, "takes letters, digits"),
        (["x.mp4", "--size", "big"], 2, "takes WIDTHxHEIGHT"),
        (["x.mp4", "--preset", "none"], 2, "takes framed | ultralytics"),
        (["x.mp4", "--user", "u"], 2, "wants --password-file"),
    ):
        got, out, errors = run("probe", *arguments)
        checks.check((got, out) == (code, "") and text in errors and errors.count("\n") == 1 and "geheim" not in errors,
                     f"{arguments}: exit {got}: {errors}")


def main():
    checks = Checks("probe")
    with folder() as where:
        lines = check_file(checks, where)
        check_configuration(checks, where, lines)
        for codec in ("h264", "h265"):
            check_camera(checks, where, codec)
        check_json(checks, where)
        check_login(checks, where)
        check_mistakes(checks, where)
    checks.end()


main()
