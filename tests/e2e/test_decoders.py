#!/usr/bin/python3
"""framed verify --decoders: a decoder that gives the cpu's pictures is equal, any other is not, and none keeps the report
from its end. `decode: auto` takes what is equal, for as long as drivers and libraries stay. The decoder is libavcodec's for
the cpu under another name (tests/faults/decoder.c)."""
import concurrent.futures
import os
import re

import va_pictures
from framed_client import BINARY, ROOT, SANITIZED, Checks, Framed, folder, make_clip, run
from pace import slowness

SHIM = os.path.join(os.path.dirname(BINARY), "faults", "decoder.so")
CPU = re.compile(r"^cpu +(h264|hevc) +(8|10) bits +\d+x\d+ +equal +[\d.]+ frames/s$", re.M)
LINE = re.compile(r"^v4l2m2m +(h264|hevc) +(8|10) bits +\d+x\d+ +(\S+) *(.*)$", re.M)
ALL = [("h264", "8"), ("h264", "10"), ("hevc", "8"), ("hevc", "10")]
OTHER_DRIVER = {"LIBVA_DRIVER_NAME": "another"}

CAMERA = """
cameras:
  gate:
    url: {where}/clip.mp4
    outputs:
      planes: {{kernel: yuv, sink: "file:{where}/planes.raw"}}
"""


def verify(where, fault, *arguments, env=None):
    env = {"STATE_DIRECTORY": where, "LD_PRELOAD": SHIM, "FRAMED_DECODER": fault, **(env or {})}
    code, output, errors = run("verify", *(arguments or ("--decoder", "v4l2m2m")), env=env, timeout=60)
    lines = {(codec, bits): (verdict, rest) for codec, bits, verdict, rest in LINE.findall(output)}
    return code, lines, output + errors


def record(where):
    with open(f"{where}/decoders") as file:
        return [line.rstrip("\n") for line in file if line.startswith("decoder ")]


# Fault -> exit code, verdicts in the order of ALL, what the report says, the record
FAULTS = {
    "": (0, ["equal"] * 4, " frames/s", ["h264 equal", "hevc equal"]),
    "reopen": (0, ["equal"] * 4, " frames/s", ["h264 equal", "hevc equal"]),
    "wrong10": (1, ["equal", "DIFFERS"] * 2, "from picture 0 on", ["h264 differs", "hevc differs"]),
    "fail:9": (1, ["FAILS:"], "v4l2m2m failed (Input/output error)", ["h264 differs"]),
    "hang:9": (1, ["FAILS:"], "v4l2m2m failed (no answer for 3 s)", ["h264 differs"]),
    "stop": (1, ["FAILS:"], "no answer for 10 s", ["h264 differs"]),
    "crash": (1, ["FAILS:"], "it crashed (Aborted)", ["h264 differs"]),
    "open": (0, [], "v4l2m2m      does not open: v4l2m2m cannot be opened (No such device)", []),
}


def check_fault(checks, where, fault):
    """Without a fault by all names that libavcodec may have, of which only those that open count."""
    here = os.path.join(where, fault.replace(":", "") or "none")
    code, lines, output = verify(here, fault, *([] if fault else ["--decoders"]))
    wanted, verdicts, said, kept = FAULTS[fault]
    checks.check(code == wanted, f"{fault}: exit {code}:\n{output}")
    checks.check(len(CPU.findall(output)) == 4, f"{fault}: the cpu:\n{output}")
    checks.check([lines.get(clip, ("",))[0] for clip in ALL[:len(verdicts)]] == verdicts and len(lines) == len(verdicts),
                 f"{fault}: {lines}")
    checks.check(said in output and "decoding on the cpu" not in output, f"{fault}: no '{said}' in:\n{output}")
    if fault == "reopen":  # is not what decoding takes, else these would be 16 pictures in each 0.2 s
        fps = float(lines["h264", "10"][1].split()[0])
        checks.check(fps * slowness() > 80, f"{fps} frames/s:\n{output}")
    checks.check(record(here) == [f"decoder v4l2m2m {line}" for line in kept], f"{fault}: {record(here)}")
    checks.check(f"kept in {here}" in output, output)
    for name in () if fault else ("nvdec", "vaapi", "qsv", "rkmpp", "cuda"):
        checks.check(re.search(rf"^{name}(:\S+)? +\S", output, re.M), f"no {name} in:\n{output}")


def check_faults(checks, where):
    checks.check(os.path.exists(SHIM), SHIM)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(check_fault, checks, where, fault) for fault in reversed(FAULTS)]:
            future.result()


def check_vaapi(checks, where):
    """All of VAAPI but the GPU: pictures of surfaces of 1920x1088, given out early and late, and a profile that the driver
    does not have."""
    if not os.path.exists(va_pictures.DRIVER):
        checks.skip("libva-dev is not installed: no VAAPI")
        return
    clips = os.path.join(ROOT, "daemon", "cli", "clips")
    for name, clip, *size in (("h264-8", "h264-8", 1920, 1080), ("hevc-8", "h265-8", 1920, 1080), ("hevc-10", "h265-10", 640, 360)):
        va_pictures.write(f"{where}/pictures", name, f"{clips}/{clip}.mp4", *size)
    decoder = f"vaapi:{va_pictures.DEVICE}"
    for fault, verdict in (("", "equal"), ("wrong:7", "DIFFERS")):
        env = {"STATE_DIRECTORY": f"{where}/vaapi", **va_pictures.environment(f"{where}/pictures", fault)}
        code, output, errors = run("verify", "--decoder", decoder, env=env, timeout=60)
        lines = [line for line in output.splitlines() if line.startswith(decoder)]
        checks.check(code == (verdict != "equal") and len(lines) == 4, f"{fault}: exit {code}:\n{output}{errors}")
        checks.check("not decoded: h264 High 10 is not decoded by vaapi" in lines[1], lines[1])
        for line in lines[:1] + lines[2:]:
            checks.check(f" {verdict} " in line and line.endswith("VAAPI driver: a driver without a GPU."), line)
        checks.check(record(f"{where}/vaapi") == [f"decoder {decoder} {codec} {'equal' if code == 0 else 'differs'}"
                                                  for codec in ("h264", "hevc")], str(record(f"{where}/vaapi")))


def decoder_of_run(where, state, fault="", env=None):
    """What `decode: auto` takes, and the warnings."""
    os.makedirs(f"{where}/run", exist_ok=True)
    env = {"STATE_DIRECTORY": state, "LD_PRELOAD": SHIM, "FRAMED_DECODER": fault, **(env or {})}
    with Framed(f"{where}/run", CAMERA.format(where=where), env) as framed:
        code = framed.wait(20)
        log = framed.errors()
    said = re.search(r"decoder (\w+) h264", log)
    return code, said and said[1], [line for line in log.splitlines() if line.startswith("warning")]


def check_auto(checks, where):
    make_clip(f"{where}/clip.mp4", frames=30)
    state = f"{where}/none"  # of check_faults
    checks.check(decoder_of_run(where, where) == (0, "cpu", []), "without a record")
    checks.check(decoder_of_run(where, state) == (0, "v4l2m2m", []), "equal")
    code, decoder, warnings = decoder_of_run(where, state, "fail:1")
    checks.check((code, decoder, len(warnings)) == (0, "cpu", 1) and "failed" in warnings[0], f"{decoder}: {warnings}")
    code, decoder, warnings = decoder_of_run(where, state, env=OTHER_DRIVER)
    checks.check((code, decoder, len(warnings)) == (0, "cpu", 1) and "verified with other drivers" in warnings[0],
                 f"{decoder}: {warnings}")
    # Verified again once, with the other driver, which gives other pictures.
    for env, fault, code, lines in (({}, "wrong:1", 0, 0), (OTHER_DRIVER, "wrong:1", 1, 4), (OTHER_DRIVER, "", 0, 0)):
        got, verdicts, output = verify(state, fault, "--again", env=env)
        checks.check((got, len(verdicts)) == (code, lines), f"--again, {env}: {got}:\n{output}")
    checks.check(decoder_of_run(where, state, env=OTHER_DRIVER) == (0, "cpu", []), "differs")


def check_refusals(checks, where):
    for arguments, said in (
        (["--decoder", "cpu"], "cpu: is no name of a hardware decoder"),
        (["--decoder", "VAAPI"], "VAAPI: is no name of a hardware decoder"),
        (["--preset", "yolox", "--decoders"], "yolox: is a preset"),
    ):
        code, output, errors = run("verify", *arguments)
        checks.check(code == 2 and said in errors and len(errors.splitlines()) == 1, f"{arguments}: {code} {errors}")
    with open(f"{where}/wrong.yaml", "w") as file:
        file.write("cameras: {gate: {url: x.mp4, decode: vapi, outputs: {a: {sink: 'tcp:0'}}}}")
    code, output, errors = run("check", "-c", f"{where}/wrong.yaml")
    checks.check(code != 0 and "cameras.gate.decode: libavcodec has no hardware decoder 'vapi' (auto | cpu" in output + errors,
                 output + errors)


def main():
    checks = Checks("decoders")
    with folder() as where:
        check_faults(checks, where)
        check_vaapi(checks, where)
        check_auto(checks, where)
        check_refusals(checks, where)
    checks.end()


if SANITIZED:
    checks = Checks("decoders")
    checks.skip("a library with a sanitizer wants to be loaded first")
    checks.end()
else:
    main()
