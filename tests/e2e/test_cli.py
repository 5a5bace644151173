#!/usr/bin/python3
"""The command line: mistakes in a configuration, exit codes, the end by SIGTERM and by SIGKILL, and passwords, which must not show up anywhere."""
import json
import os
import re
import signal
import socket
import subprocess
import time

import jsonschema
import yaml
from framed_client import BENCH, BINARY, SANITIZED, Checks, Framed, Reader, Server, ffmpeg, folder, make_clip, run, until

SECRET = "Tr0ub4dor-horse"
MISTAKES = """\
backend: gpu
cameras:
  gate:
    url: rtsp://viewer:Tr0ub4dor-horse@127.0.0.1/stream
    speed: 3
    outputs:
      detector:
        size: 640by640
        slots: 100000
        slots: 4
        sink: unix:/run/framed/detector.sock
"""
MISTAKEN_LINES = [1, 5, 8, 9, 10]  # of MISTAKES: value, unknown key, form, range, duplicate

ONE_CAMERA = """
{top}
cameras:
  gate:
    url: {url}
    {camera}
    outputs:
      tensors:
        size: 64x64
        sink: {sink}
"""


def config(url, sink, top="", camera=""):
    return ONE_CAMERA.format(url=url, sink=sink, top=top, camera=camera)


def check_mistakes(checks, where):
    path = f"{where}/mistakes.yaml"
    with open(path, "w") as file:
        file.write(MISTAKES)
    code, output, errors = run("check", "-c", path)
    checks.check(code == 78, f"mistakes: exit {code}")
    lines = (output + errors).splitlines()
    found = [re.match(re.escape(path) + r":(\d+):(\d+): [^:]+: \S", line) for line in lines]
    checks.check(len(lines) == 5 and all(found), "mistakes: not five lines file:line:column: key: ...\n" + errors)
    numbers = sorted(int(match[1]) for match in found if match)
    checks.check(numbers == MISTAKEN_LINES, f"mistakes: said of lines {numbers}, are in {MISTAKEN_LINES}")
    checks.check(SECRET not in output + errors, "mistakes: the password is printed")
    checks.check(run("run", "-c", path)[0] == 78, "run takes a wrong configuration")


def check_printers(checks):
    code, defaults, _ = run("defaults")
    checks.check(code == 0, f"defaults: exit {code}")
    code, output, errors = run("check", "-c", "-", stdin=defaults)
    checks.check(code == 0, f"defaults | check -c -: exit {code}: {output}{errors}")
    code, schema, _ = run("schema")
    checks.check(code == 0, f"schema: exit {code}")
    schema = json.loads(schema)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    wrong = list(validator.iter_errors(yaml.safe_load(defaults)))
    checks.check(not wrong, f"defaults are not valid by the schema: {wrong[:1]}")
    checks.check(not validator.is_valid({"backend": "gpu"}), "the schema takes `backend: gpu`")
    code, output, _ = run("version")
    checks.check(code == 0 and re.search(r"\d+\.\d+\.\d+", output), f"version: exit {code}, {output!r}")


def check_usage(checks):
    for arguments in ([], ["walk"], ["run", "--bogus"], ["run", "-c"], ["check", "extra", "words"]):
        code, output, errors = run(*arguments)
        checks.check(code == 2, f"{arguments}: exit {code}, not 2")
        checks.check(re.search("usage|--help", output + errors), f"{arguments}: says nothing of usage")
    for arguments, what in ((["run", "--metrics"], "--metrics: wants a value"), (["check", "-c"], "-c: wants a value"),
                            (["check", "extra"], "extra: takes no further argument"), (["keys", "-x"], "-x: bad option")):
        code, _, errors = run(*arguments)
        told = f"framed {arguments[0]}: {what} (framed {arguments[0]} --help lists the options)\n"
        checks.check(code == 2 and errors == told, f"{arguments}: exit {code}, {errors!r}")
    for command in ("run", "check", "status", "reload", "defaults", "schema", "keys", "version"):
        code, output, errors = run(command, "--help")
        helps = code == 0 and output.startswith("usage: framed") and not errors
        checks.check(helps, f"{command} --help: exit {code}, {output[:40]!r}, {errors!r}")
    for word in ("bench", "tune", "runs"):
        code, output, errors = run(word, "-c", "framed.yaml")
        told = f"framed {word}: no such command (framed --help lists the commands)\n"
        checks.check(code == 2 and not output and errors == told, f"{word}: exit {code}, {errors!r}")
    code, _, errors = run("check", "-c", "/nonexistent/framed.yaml")
    checks.check(code != 0 and "/nonexistent/framed.yaml" in errors, f"missing file: exit {code}, {errors!r}")


def check_refusals(checks, where):
    """check refuses what a protocol cannot carry."""
    for protocol, kernel in (("y4m", "kernel: warp"), ("y4m", "kernel: yuv, format: nv12")):
        output = f"{{{kernel}, protocol: {protocol}, sink: 'unix:{where}/s'}}"
        text = f"cameras: {{gate: {{url: x.mp4, outputs: {{o: {output}}}}}}}"
        code, _, errors = run("check", "-c", "-", stdin=text)
        checks.check(code == 78 and protocol in errors, f"{kernel} as {protocol}: exit {code}, {errors!r}")


def check_ring_refusals(checks):
    for keys, word in (("protocol: npy", "protocol"), ("memory: cuda", "memory")):
        text = f"backend: cpu\ncameras: {{gate: {{url: x.mp4, outputs: {{o: {{sink: 'ring:/r', {keys}}}}}}}}}"
        code, _, errors = run("check", "-c", "-", stdin=text)
        one = len(errors.splitlines()) == 1
        checks.check(code == 78 and one and f"outputs.o.{word}: " in errors, f"ring, {keys}: exit {code}, {errors!r}")


def check_cpu(checks, where, clip):
    """FRAMED_CPU names a version of the kernels; one that does not run on this CPU is refused in one line."""
    text = config(clip, f"file:{where}/t.raw", top="backend: cpu")
    path = f"{where}/cpu.yaml"
    with open(path, "w") as file:
        file.write(text)
    for name, program, arguments in (("framed run", BINARY, ["run", "-c", path]),
                                     ("framed check", BINARY, ["check", "-c", path]),
                                     ("framed-bench", BENCH, ["--rows", "copies"])):
        code, output, errors = run(*arguments, program=program, env={"FRAMED_CPU": "abacus"})
        said = re.fullmatch(rf"{name}: FRAMED_CPU=abacus: is not among the versions for this CPU: (.*)\n", errors)
        checks.check(code == 2 and said and not output, f"{name}, FRAMED_CPU=abacus: exit {code}, {errors!r}")
    versions = said[1].split(", ") if said else []
    checks.check(versions[-1:] == ["scalar"], f"FRAMED_CPU: the versions are {versions}")
    for name, expected in [("", versions[:1]), *((version, [version]) for version in versions)]:
        code, _, errors = run("run", "-c", path, env={"FRAMED_CPU": name})
        chosen = re.findall(r"backend cpu: \d+ workers?, (\w+)", errors)
        checks.check(code == 0 and chosen == expected, f"FRAMED_CPU={name}: exit {code}, {errors!r}")


def check_pin(checks, where, clip):
    """A cpu.pin without any allowed CPU is refused in one line; CPUs left out of a list are reported once."""
    allowed, path = sorted(os.sched_getaffinity(0)), f"{where}/pin.yaml"
    good, bad = allowed[0], max(allowed[-1] + 1, 1000)

    def write(pin):
        with open(path, "w") as file:
            file.write(config(clip, f"file:{where}/t.raw", top=f"backend: cpu\ncpu: {{pin: '{pin}'}}"))

    write(f"{bad}-1023")
    for command in "check", "run":
        code, output, errors = run(command, "-c", path)
        what = rf"this process may use none of {bad}-1023 \(auto \| none \| some of {good}\b.*\)"
        said = re.fullmatch(rf"{re.escape(path)}:3:12: cpu\.pin: {what}\n", errors)
        checks.check(code == 78 and said and not output, f"{command}, wrong pin: exit {code}, {errors!r}")
    write(f"{good},{bad}-1023")
    told = re.compile(rf"cpu\.pin: this process may not use {bad}-1023, which is left out \(only {good}\b.*\)$", re.M)
    code, output, errors = run("check", "-c", path)
    once = len(told.findall(output)) == 1
    checks.check(code == 0 and once and not errors, f"check, pin in part: exit {code}, {output!r}, {errors!r}")
    code, output, errors = run("run", "-c", path)
    checks.check(code == 0 and len(told.findall(errors)) == 1, f"run, pin in part: exit {code}, {errors!r}")
    checks.check("backend cpu: 1 worker pinned, " in errors, f"run, pin in part: {errors!r}")
    write(good)
    for command in "check", "run":
        code, output, errors = run(command, "-c", path)
        checks.check(code == 0 and "cpu.pin" not in output + errors, f"{command}, good pin: exit {code}, {errors!r}")


HINT = "(`picture`, `slots` and `decode_threads` make it less; `framed check` lists each camera)"
CAMERAS = """
backend: {backend}
cuda: {{memory: {memory}}}
cameras:
  gate: {{url: "{url}", decode: {decode}, decode_threads: 1, outputs: {{o: {{sink: "tcp:0"}}}}}}
  a_camera_of_long_name_1: {{url: x.mp4, picture: 64x64, decode: cpu, outputs: {{o: {{sink: "tcp:0", slots: 3}}}}}}
"""


def check_memory(checks):
    """check lists the memory of each camera, and the sum."""
    text = CAMERAS.format(url="x.mp4", backend="cpu", memory="auto", decode="auto")
    code, output, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 0 and not errors, f"memory: exit {code}, {errors!r}")
    lines = output.splitlines()
    checks.check(lines[0] == "-: good: 2 cameras, 2 outputs", f"memory: {lines[0]}")
    checks.check(lines[1] == "memory in MiB with backend cpu:", f"memory: {lines[1]}")
    # Slots of 640x640x3 bytes after one page, 19 padded pictures of 1920x1080 and of 64x64 in whole pages, a decoder's data per macroblock of 18
    # pictures, and 2.5 MiB for each camera.
    gate = 4096 * (1 + 6 * 300 + 19 * 767) + 18 * 120 * 68 * 200 + (5 << 19) + 5 * (1920 * 1080 // 80)
    small = 4096 * (1 + 3 * 300 + 19 * 4) + 18 * 4 * 4 * 200 + (5 << 19) + 5 * (64 * 64 // 80)
    mib = [f"{need / 2**20:.1f}" for need in (gate, small, gate + small)]
    expected = [["camera", "picture", "host"], ["gate", "1920x1080*", mib[0]],
                ["a_camera_of_long_name_1", "64x64*", mib[1]], ["sum", mib[2]]]
    checks.check([line.split() for line in lines[2:6]] == expected, f"memory: {output}")
    checks.check(lines[6].startswith("* assumed") and "files without `picture`" in lines[6] and len(lines) == 7, f"memory: {output}")


def check_overcommitment(checks, where):
    """A need of more memory than available is refused with the figures, before anything starts."""
    text = CAMERAS.format(url="rtsp://127.0.0.1/x", backend="cpu", memory="64MiB", decode="nvdec")
    code, output, errors = run("check", "-c", "-", stdin=text)
    expected = f"-: cameras need 236.8 MiB of device memory, cuda.memory allows 64.0 MiB {HINT}\n"
    checks.check(code == 78 and errors == expected, f"cuda.memory: exit {code}, {errors!r}")
    checks.check(re.search(r"^gate +1920x1080\* +236\.8 +\d", output, re.M), f"cuda.memory: {output}")
    checks.check("good" not in output, f"cuda.memory: {output}")
    code, _, errors = run("check", "-c", "-", stdin=text.replace("64MiB", "237MiB"))
    checks.check(code == 0 and not errors, f"cuda.memory that is enough: exit {code}, {errors!r}")
    text = CAMERAS.format(url="x.mp4", backend="cpu", memory="64MiB", decode="nvdec")
    code, output, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 0 and not errors and re.search(r"^gate +1920x1080\* +236\.8 ", output, re.M),
                 f"a file's assumed size: exit {code}, {output}{errors}")
    outputs = "\n".join(
        f"      o{i}: {{size: 16384x16384, tensor: {{dtype: f32}}, slots: 256, sink: 'tcp:0'}}" for i in range(16)
    )
    path = f"{where}/memory.yaml"
    with open(path, "w") as file:
        file.write(f"backend: cpu\ncameras:\n  gate:\n    url: x.mp4\n    outputs:\n{outputs}\n")
    for command in "check", "run":
        code, _, errors = run(command, "-c", path)
        said = re.search(r"cameras need 12288\.0 GiB of memory, (this box has|its .* allows) [\d.]+ [GM]iB ", errors, re.M)
        checks.check(code == 78 and said and HINT in errors, f"{command} with 12 TiB: exit {code}, {errors!r}")


def check_missing_device(checks, where, clip):
    if os.path.exists("/dev/nvidiactl"):
        return
    text = config(clip, f"unix:{where}/t.sock", top="backend: cuda")
    code, output, errors = run("check", "-c", "-", stdin=text)
    if "cuda" in run("version")[1]:
        told = code == 0 and "does not answer here" in output and not errors
    else:
        told = code == 69 and errors == "-: backend: cuda: this framed was built without CUDA\n" and not output
    checks.check(told, f"check of backend: cuda without a device: exit {code}, {output!r}, {errors!r}")
    demanding = config(clip, f"unix:{where}/t.sock", camera="decode: nvdec")
    code, output, errors = run("check", "-c", "-", stdin=demanding)
    told = code == 0 and "camera gate needs NVDEC, which does not work here\n" in output and not errors
    checks.check(told, f"check of decode: nvdec without a device: exit {code}, {output!r}, {errors!r}")
    with Framed(where, text) as framed:
        code = framed.wait(10)
        checks.check(code == 69, f"backend: cuda without a device: exit {code}")
        checks.check("cuda" in framed.errors().lower(), f"no word of cuda: {framed.errors()!r}")


def check_sigterm(checks, where, clip):
    """Ends within 2 s, with exit 0: from a camera that streams, and from one that never answers."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        silent = f"rtsp://127.0.0.1:{mute.getsockname()[1]}/silent"
        for url, camera in ((clip, "loop: true\n    pace: realtime"), (silent, "")):
            text = config(url, f"unix:{where}/t.sock", camera=camera)
            with Framed(where, text) as framed:
                until(lambda: os.path.exists(f"{where}/t.sock"), 10)
                time.sleep(0.5)
                start = time.monotonic()
                code = framed.stop()
                took = time.monotonic() - start
                checks.check(code == 0, f"SIGTERM with {url}: exit {code}\n{framed.errors()}")
                checks.check(took < (6 if SANITIZED else 2), f"SIGTERM with {url}: took {took:.1f} s")


def check_metrics_file(checks, where, clip):
    """A file that cannot be written ends the start, and no part of it is left behind."""
    path, folder_of = f"{where}/metrics.yaml", f"{where}/metrics.folder"
    with open(path, "w") as file:
        file.write(config(clip, f"unix:{where}/m.sock"))
    os.mkdir(folder_of)
    code, _, errors = run("run", "-c", path, "--metrics", folder_of)
    checks.check(code == 1 and f"metrics file {folder_of}: Is a directory" in errors, f"a folder: exit {code}: {errors}")
    left = [name for name in os.listdir(where) if name.startswith("metrics.folder.")]
    checks.check(not left, f"left behind: {left}")


def check_sigkill(checks, where, clip):
    """A file written before a kill plays up to the last whole frame."""
    path = f"{where}/killed.y4m"
    text = config(clip, f"file:{path}", camera="loop: true")
    text = text.replace("size: 64x64", "kernel: yuv\n        format: yuv420p")
    with Framed(where, text) as framed:
        until(lambda: os.path.exists(path) and os.path.getsize(path) > 3_000_000, 20)
        framed.child.send_signal(signal.SIGKILL)
        framed.wait(5)
    whole = os.path.getsize(path) // (320 * 240 * 3 // 2 + len("FRAME\n"))
    digests = ffmpeg("-i", path, "-f", "framemd5", "-").decode().splitlines()
    read = len([line for line in digests if not line.startswith("#")])
    checks.check(read >= whole - 1 > 0, f"killed y4m: {read} of {whole} frames are read")


def spied(framed):
    """Returns all that others can see of a running framed: its argv and its children's."""
    seen = ""
    for process in os.listdir("/proc"):
        if process.isdigit():
            try:
                with open(f"/proc/{process}/stat") as stat, open(f"/proc/{process}/cmdline") as cmdline:
                    if framed.child.pid in (int(process), int(stat.read().rsplit(")", 1)[1].split()[1])):
                        seen += cmdline.read()
            except OSError:
                pass  # gone meanwhile
    return seen


def try_password(checks, where, server, password, welcome):
    case = "right password" if welcome else "wrong password"
    url = server.url(user="viewer:${GATE_PASSWORD}@")
    text = config(url, f"unix:{where}/t.sock", top="log: {level: debug}")
    with Framed(where, text, env={"GATE_PASSWORD": password}) as framed:
        reader = Reader(f"unix:{where}/t.sock", keep=False)
        if welcome:
            checks.check(until(lambda: reader.count >= 5, 15), f"{case}: no frames:\n{framed.errors()}")
        else:
            told = until(lambda: re.search(r"password|auth|401", framed.errors(), re.I), 10)
            checks.check(told, f"{case}: the log says nothing of it:\n{framed.errors()}")
            time.sleep(1)
            checks.check(reader.count == 0, f"{case}: frames all the same")
        seen = spied(framed)
        checks.check("framed" in seen and password not in seen, f"{case}: visible in argv")
        framed.stop()
        printed = framed.errors() + framed.child.stdout.read().decode()
        checks.check(password not in printed, f"{case}: it is in the log:\n{printed}")
        with open(framed.counters) as counters:
            checks.check(password not in counters.read(), f"{case}: it is in the counters")


def check_passwords(checks, where, clip):
    with Server(where, clip, "--auth", f"viewer:{SECRET}") as server:
        try_password(checks, where, server, SECRET, True)
        try_password(checks, where, server, "n0t-" + SECRET, False)
    for url in (f"rtsp://viewer:{SECRET}@127.0.0.1:99999/x", f"htp://viewer:{SECRET}@127.0.0.1/x",
                f"rtsp://viewer:{SECRET}@127.0.0.1:1/x"):
        text = config(url, f"unix:{where}/t.sock", top="log: {level: debug}")
        code, output, errors = run("check", "-c", "-", stdin=text)
        checks.check(SECRET not in output + errors, f"check prints the password: {output}{errors}")
        if code == 0:
            with Framed(where, text) as framed:
                until(lambda: "gate" in framed.errors(), 5)
                time.sleep(0.5)
                framed.stop()
                checks.check(SECRET not in framed.errors(), f"run prints the password:\n{framed.errors()}")


CLOSED = """
control: off
cameras:
  gate:
    url: {clip}
    loop: true
    outputs: {{o: {{kernel: yuv, format: yuv420p, sink: "file:{where}/closed.y4m"}}}}
"""


def check_closed_descriptors(checks, where, clip):
    """Started without standard input, output and error, framed opens /dev/null there: no log line gets into a file."""
    with open(f"{where}/closed.yaml", "w") as file:
        file.write(CLOSED.format(where=where, clip=clip))
    for closing in ("<&- >&- 2>&-", "2>&-", "<&-"):
        command = ["sh", "-c", f'exec "$@" {closing}', "sh", BINARY, "run", "-c", f"{where}/closed.yaml"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        made = f"{where}/closed.y4m"
        until(lambda: os.path.exists(made) and os.path.getsize(made) > 500000, 20)
        for fd, sign in enumerate(("<&-", " >&-", "2>&-")):
            at, modes = f"/proc/{child.pid}/fd/{fd}", ("r", "w", "w")
            is_closed = sign in f" {closing}"
            null = os.path.exists(at) and os.readlink(at) == "/dev/null"
            checks.check(null == is_closed, f"{closing}: descriptor {fd} is {os.path.exists(at) and os.readlink(at)}")
            flags = os.path.exists(at) and open(at.replace("/fd/", "/fdinfo/")).read()
            mode = int(re.search(r"^flags:\s+(\d+)", flags, re.M)[1], 8) & 3 if flags else None
            checks.check(not null or mode == ("r", "w").index(modes[fd]), f"{closing}: descriptor {fd}: mode {mode}")
        child.terminate()
        child.communicate(timeout=20)
        with open(made, "rb") as file:
            checks.check(not re.search(rb"camera=gate |framed \d", file.read()), f"{closing}: log lines in the file")
        os.remove(made)


def main():
    checks = Checks("cli")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"))
        check_mistakes(checks, where)
        check_printers(checks)
        check_usage(checks)
        check_refusals(checks, where)
        check_ring_refusals(checks)
        check_memory(checks)
        check_overcommitment(checks, where)
        check_cpu(checks, where, clip)
        check_pin(checks, where, clip)
        check_missing_device(checks, where, clip)
        check_sigterm(checks, where, clip)
        check_metrics_file(checks, where, clip)
        check_sigkill(checks, where, clip)
        check_passwords(checks, where, clip)
        check_closed_descriptors(checks, where, clip)
    checks.end()


main()
