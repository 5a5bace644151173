#!/usr/bin/python3
"""framed verify --decoders: a decoder with the CPU's pictures is equal, any other is not, and no decoder prevents the end of the report. `decode:
auto` uses a decoder that is equal and faster than the CPU, until libraries or drivers change. The decoder is libavcodec's for the CPU under another
name (tests/faults/decoder.c)."""
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


def record(where, decoder):
    """Returns a decoder's entries in the record, without their speed, which must be there."""
    with open(f"{where}/decoders") as file:
        lines = re.findall(rf"^decoder {re.escape(decoder)} (\w+ \d+) \d+\.\d(.*)\n", file.read(), re.M)
    return [clip + driver for clip, driver in lines]


EVERY = ["h264 8", "h264 10", "hevc 8", "hevc 10"]
# Fault -> exit code, verdicts in the order of ALL, text in the report, the record
FAULTS = {
    "": (0, ["equal"] * 4, "without NVDEC it takes ", EVERY),
    "reopen": (0, ["equal"] * 4, " frames/s", EVERY),
    "wrong10": (1, ["equal", "DIFFERS"] * 2, "from picture 0 on", ["h264 8", "hevc 8"]),
    "fail:9": (1, ["FAILS:"], "v4l2m2m failed (Input/output error)", []),
    "fail:17": (1, ["FAILS:"], "v4l2m2m failed (Input/output error)", []),  # while it is timed
    "hang:9": (1, ["FAILS:"], "v4l2m2m failed (no answer for 0.5 s)", []),
    "stop": (1, ["FAILS:"], "no answer for 10 s", []),
    "crash": (1, ["FAILS:"], "it crashed (Aborted)", []),
    "open": (0, [], "v4l2m2m      does not open: v4l2m2m cannot be opened (No such device)", []),
}


def check_fault(checks, where, fault):
    """Without a fault, all of libavcodec's possible decoders are tried; decoders that do not open do not count."""
    here = os.path.join(where, fault.replace(":", "") or "none")
    code, lines, output = verify(here, fault, *([] if fault else ["--decoders"]))
    wanted, verdicts, said, kept = FAULTS[fault]
    checks.check(code == wanted, f"{fault}: exit {code}:\n{output}")
    checks.check(len(CPU.findall(output)) == 4, f"{fault}: the cpu:\n{output}")
    checks.check([lines.get(clip, ("",))[0] for clip in ALL[:len(verdicts)]] == verdicts and len(lines) == len(verdicts),
                 f"{fault}: {lines}")
    checks.check(said in output and "decoding on the cpu" not in output, f"{fault}: no '{said}' in:\n{output}")
    if fault == "reopen":  # reopening must not count as decoding time: else these would be 16 pictures per 0.2 s
        fps = float(lines["h264", "10"][1].split()[0])
        checks.check(fps * slowness() > 80, f"{fps} frames/s:\n{output}")
    checks.check((record(here, "cpu"), record(here, "v4l2m2m")) == (EVERY, kept), f"{fault}: {record(here, 'v4l2m2m')}")
    checks.check(f"kept in {here}" in output, output)
    for name in () if fault else ("nvdec", "vaapi", "qsv", "rkmpp", "cuda"):
        checks.check(re.search(rf"^{name}(:\S+)? +\S", output, re.M), f"no {name} in:\n{output}")


def check_faults(checks, where):
    checks.check(os.path.exists(SHIM), SHIM)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(check_fault, checks, where, fault) for fault in reversed(FAULTS)]:
            future.result()


def check_vaapi(checks, where):
    """All of VAAPI but the GPU: surfaces of 1920x1088, pictures that are output early and late, and a profile that the driver does not have."""
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
        kept = [f"{clip} VAAPI driver: a driver without a GPU." for clip in ("h264 8", "hevc 8", "hevc 10")]
        checks.check(record(f"{where}/vaapi", decoder) == (kept if code == 0 else []), str(record(f"{where}/vaapi", decoder)))


def decoder_of_run(where, state, fault="", env=None):
    """Returns the exit code, the decoder that `decode: auto` uses, and the log lines about the choice."""
    os.makedirs(f"{where}/run", exist_ok=True)
    env = env or {"LD_PRELOAD": SHIM, "FRAMED_DECODER": fault}
    with Framed(f"{where}/run", CAMERA.format(where=where), {"STATE_DIRECTORY": state, **env}) as framed:
        code = framed.wait(20)
        log = framed.errors()
    said = re.search(r"decoder (\w+) h264", log)
    told = [line for line in log.splitlines() if line.startswith("warning") or "decode: auto" in line]
    return code, said and said[1], told


def libraries_of(state):
    with open(f"{state}/decoders") as file:
        return file.read().splitlines()[1]


def check_auto(checks, where):
    make_clip(f"{where}/clip.mp4", frames=30)
    state = f"{where}/state"
    libraries = libraries_of(f"{where}/none")  # of check_faults
    os.mkdir(state)
    # Record's version, libraries and decoders, fault, then the expected decoder and log lines
    equal = "decoder cpu h264 8 100.0\ndecoder v4l2m2m h264 8 {}"
    without = "info without NVDEC `decode: auto` takes "
    faster = without + "v4l2m2m for h264 of 8 bits (200 pictures/s, the CPU 100)"
    stale = "warning `framed verify` ran with other libraries: `decode: auto` takes no hardware decoder but NVDEC until framed verify --decoders has run again"
    failed = "warning camera=gate v4l2m2m failed (Input/output error): decoding on the cpu"
    other = "warning camera=gate v4l2m2m is not used (framed verify found another driver): decoding on the cpu"
    for title, made_with, lines, fault, decoder, said in (
        (2, libraries, equal.format("200.0"), "", "v4l2m2m", [faster]),
        (2, libraries, equal.format("200.0"), "fail:1", "cpu", [faster, failed]),
        (2, libraries, equal.format("200.0 VAAPI driver: 1"), "", "cpu", [faster, other]),
        (2, libraries, equal.format("50.0"), "", "cpu", [without + "the CPU for h264 of 8 bits (100 pictures/s, v4l2m2m 50)"]),
        (2, libraries, equal.replace(" 8 ", " 10 ").format("200.0"), "", "cpu", [faster.replace("8 bits", "10 bits")]),
        (2, libraries + "1", equal.format("200.0"), "", "cpu", [stale]),
        (1, "key 00ff", "decoder v4l2m2m h264 equal", "", "cpu", [stale]),
        (2, libraries + "1", "decoder cpu h264 8 100.0", "", "cpu", [stale]),
    ):
        with open(f"{state}/decoders", "w") as file:
            file.write(f"framed decoders {title}\n{made_with}\n{lines}\n")
        got = decoder_of_run(where, state, fault)
        checks.check(got == (0, decoder, said), f"{made_with}, {lines}, {fault}: {got}")
    checks.check(decoder_of_run(where, where) == (0, "cpu", []), "without a record")
    with open(f"{state}/decoders", "w") as file:
        file.write("framed login pauses 1\n")
    got = decoder_of_run(where, state)
    checks.check(got == (0, "cpu", ["warning the record of `framed verify` cannot be read: Bad message"]), f"{got}")


def check_again(checks, where):
    """--again verifies only after a change of libraries, once."""
    state = f"{where}/none"  # of check_faults
    code, lines, output = verify(state, "wrong:1", "--again")
    checks.check((code, lines, output) == (0, {}, ""), f"{code}:\n{output}")
    with open(f"{state}/decoders") as file:
        text = file.read()
    with open(f"{state}/decoders", "w") as file:
        file.write(text.replace("FFmpeg ", "FFmpeg 0."))
    code, lines, output = verify(state, "wrong:1", "--again")
    checks.check((code, len(lines)) == (1, 4) and libraries_of(state) == text.splitlines()[1], f"{code}:\n{output}")
    checks.check((record(state, "cpu"), record(state, "v4l2m2m")) == (EVERY, []), str(record(state, "v4l2m2m")))


def check_driver(checks, where):
    """A VAAPI driver of another version than the verified one is not used."""
    if not os.path.exists(va_pictures.DRIVER):
        checks.skip("libva-dev is not installed: no VAAPI")
        return
    state, pictures = f"{where}/driver", f"{where}/driver-pictures"
    os.mkdir(state)
    va_pictures.write(pictures, "h264-8", f"{where}/clip.mp4", 320, 240)
    name = f"vaapi:{va_pictures.DEVICE}"
    with open(f"{state}/decoders", "w") as file:
        file.write(f"framed decoders 2\n{libraries_of(f'{where}/none')}\ndecoder cpu h264 8 100.0\n"
                   f"decoder {name} h264 8 200.0 VAAPI driver: a driver without a GPU.\n")
    for fault, decoder, said in (
        ("", "vaapi", []),
        ("vendor:0", "cpu", [f"warning camera=gate {name} is not used (framed verify found another driver): decoding on the cpu"]),
    ):
        code, got, told = decoder_of_run(where, state, env=va_pictures.environment(pictures, fault))
        checks.check((code, got, told[1:]) == (0, decoder, said) and name in told[0], f"{fault}: {code}, {got}, {told}")


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
        check_driver(checks, where)
        check_again(checks, where)
        check_refusals(checks, where)
    checks.end()


if SANITIZED:
    checks = Checks("decoders")
    checks.skip("a library with a sanitizer wants to be loaded first")
    checks.end()
else:
    main()
