#!/usr/bin/python3
"""framed probe: what it says of a file and of a camera is what the clip was made with; the lines that it prints are a
configuration; mistakes are one line each, without a password."""
import re

from framed_client import Checks, Server, folder, make_clip, run


def said(out):
    """The lines of the report by their first word, and the configuration's lines."""
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


def check_configuration(checks, where, lines):
    """What it suggests is taken, but for the folder of the socket, which the unit makes."""
    path = f"{where}/suggested.yaml"
    with open(path, "w") as file:
        file.write(lines)
    code, _, errors = run("check", "-c", path)
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


def check_mistakes(checks, where):
    for arguments, code, text in (
        ([], 2, "names no input"),
        (["gopher://x"], 2, "names no input"),
        ([f"{where}/none.mp4"], 1, "No such file"),
        (["rtsp://viewer:geheim@127.0.0.1:1/x"], 1, "refused"),
        (["x.mp4", "--seconds", "0"], 2, "takes a number from 0.1 to 3600"),
        (["x.mp4", "y.mp4"], 2, "y.mp4"),
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
        check_mistakes(checks, where)
    checks.end()


main()
