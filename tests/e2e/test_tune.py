#!/usr/bin/python3
"""framed tune: its mistakes, a short real run, what it prints and writes, and what it leaves alone. No figure of it is
judged: which values win is this box's affair."""
import json
import os
import re
import signal
import stat
import subprocess
import time

import yaml
from framed_client import BINARY, Checks, Framed, Process, Reader, folder, free_port, make_clip, run, until

SECRET = "Tr0ub4dor-horse"
LIMIT = 280  # seconds
TRIED = {"cpu.workers", "defaults.decode_threads", "defaults.slots"}  # on a box without a GPU

CONFIG = """\
# of the gate
backend: cpu       # no GPU here
control: {where}/control.sock
http: unix:{where}/http.sock
cameras:
  gate:
    url: rtsp://viewer:{secret}@127.0.0.1:9/stream
    outputs:
      tensors: {{size: 64x64, sink: "unix:{where}/t.sock"}}
      archive:
        kernel: yuv
        sink: "file:{where}/gate.y4m"   # mine
  door:
    url: nothing.mp4
    demuxer: rawvideo
    options: {{pixel_format: bgra, video_size: 64x48}}
    outputs: {{player: {{size: 64x64, sink: "tcp:127.0.0.1:{port}"}}}}
# the end
"""
# All say themselves what a default could change: only cpu.workers is left to try.
DECIDED = """\
backend: cpu       # no GPU here
cameras:
  gate:
    url: {where}/gate.mp4   # that is not there
    decode_threads: 1
    outputs: {{tensors: {{size: 64x64, slots: 4, sink: "unix:{where}/t.sock"}}}}
# the end"""


def write_config(where, name, text, **more):
    path = os.path.join(where, name)
    with open(path, "w") as file:
        file.write(text.format(where=where, **more))
    return path


def tune(path, clip, *arguments, **how):
    return run("tune", "-c", path, "--clip", clip, "--seconds", "0.2", *arguments, timeout=LIMIT, **how)


def read(path):
    with open(path) as file:
        return file.read()


def check_mistakes(checks, where, path, clip):
    anchored = write_config(where, "anchored.yaml", DECIDED + "\ncpu: {{workers: &n 3}}\ndefaults: {{slots: *n}}\n")
    pipe = write_config(where, "pipe.yaml", "cameras: {{a: {{url: 'pipe:0', outputs: {{o: {{sink: 'tcp:0'}}}}}}}}")
    mistakes = [
        (["--bogus"], 2, "--bogus: bad option"),
        (["extra"], 2, "extra"),
        (["-c", "-"], 2, "--config"),
        (["-c", path, "--live"], 2, "--live"),
        (["-c", path, "--grid", "--write"], 2, "--grid"),
        (["-c", path, "--clip", "/nonexistent.mp4"], 2, "--clip: /nonexistent.mp4: No such file"),
        (["-c", path, "--seconds", "0"], 2, "--seconds"),
        (["-c", path, "--seconds"], 2, "--seconds: wants a value"),
        (["-c", "/nonexistent.yaml"], 78, "/nonexistent.yaml: No such file"),
        (["-c", where], 78, "is not a file"),
        (["-c", pipe], 78, "pipe"),
        (["-c", anchored, "--clip", clip], 78, f"{anchored}:8:7: "),
    ]
    for arguments, expected, word in mistakes:
        code, output, errors = run("tune", *arguments)
        checks.check(code == expected and not output, f"{arguments}: exit {code}, {output!r}")
        checks.check(len(errors.splitlines()) == 1 and word in errors, f"{arguments}: says {errors!r}")
    code, output, _ = run("tune", "--help")
    checks.check(code == 0 and "--clip" in output, f"--help: exit {code}")


def check_failure(checks, where, clip):
    """What does not run as it is cannot be tuned: the daemon's own last words are said."""
    text = "backend: cuda\ncameras: {{a: {{url: x, outputs: {{o: {{sink: 'tcp:0'}}}}}}}}\n"
    path = write_config(where, "fails.yaml", text)
    code, output, errors = tune(path, clip, env={"CUDA_VISIBLE_DEVICES": ""})
    checks.check(code == 69 and not output, f"a GPU that is missing: exit {code}, {output!r}")
    checks.check("cuda is demanded" in errors, f"a GPU that is missing: {errors!r}")


def dotted(tree, above=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def check_run(checks, where, path, clip, temporary):
    """Prints a fragment that fits, and touches no sink, no file and no port of the configuration."""
    before = read(path)
    code, output, errors = tune(path, clip, env={"TMPDIR": temporary})
    if not checks.check(code == 0, f"exit {code}: {errors[-2000:]}"):
        return
    keys = dict(dotted(yaml.safe_load(output)))
    tuned = keys.pop("tuned", "")
    checks.check(re.fullmatch(r"cpu=.+, \d+ processors?; gpu=.+; driver=.+", tuned), f"fingerprint {tuned!r}")
    checks.check(keys.keys() <= TRIED, f"sets {keys}")
    checks.check("as it is" in output and "frames/s" in output, f"says nothing of what it measured: {output}")
    trials = [line for line in errors.splitlines() if re.match(r"trial \d+: .* frames/s", line)]
    checks.check(len(trials) > 3 and len(trials) == len(errors.splitlines()), f"progress:\n{errors}")
    for key in TRIED:
        possible = key != "cpu.workers" or len(os.sched_getaffinity(0)) > 1
        threads = key != "defaults.decode_threads" or len(os.sched_getaffinity(0)) > 1
        if possible and threads:
            checks.check(any(f" {key}: " in line for line in trials), f"did not try {key}:\n{errors}")
    checks.check(SECRET not in output + errors, "the password is printed")
    checks.check(read(path) == before, "the configuration was changed")
    left = sorted(os.listdir(where))
    checks.check(not {"t.sock", "gate.y4m", "control.sock", "http.sock"} & set(left), f"sinks were touched: {left}")
    checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_json(checks, path, clip):
    code, output, errors = tune(path, clip, "--json", "--live")
    if not checks.check(code == 0, f"--json: exit {code}: {errors[-2000:]}"):
        return
    said, decided = json.loads(output), {"cpu.workers"}
    checks.check(said["trials"] == len(errors.splitlines()), f"--json: {said['trials']} trials")
    for which in ("before", "after"):
        figures = said[which]
        checks.check(figures["rate"] > 0 and figures["cores"] >= 0 and figures["p99_ms"] > 0, f"{which}: {figures}")
        # A clip of 25 frames/s to one output: at its own pace, not at full speed.
        checks.check(figures["rate"] < 60, f"--live: {figures}")
    checks.check({change["key"] for change in said["changes"]} <= decided, f"{said['changes']}")
    checks.check(said["noise"] >= 0, f"noise {said['noise']}")


def check_grid(checks, path, clip):
    code, output, errors = tune(path, clip, "--grid", "--live")
    found = re.search(r"# the best of a grid of (\d+): .*\n#   (.*)\n# as it is, that is ([0-9.]+) %", output)
    if not checks.check(code == 0 and found, f"--grid: exit {code}: {errors[-2000:]}{output}"):
        return
    keys = {key.split(":")[0] for key in found[2].split(", ")}
    checks.check(int(found[1]) >= 1 and 80 < float(found[3]) < 120 and keys <= {"cpu.workers"}, f"--grid: {output}")
    checks.check(yaml.safe_load(output) is None, f"--grid is no fragment: {output}")


def check_write(checks, where, path, clip):
    before = read(path)
    os.chmod(path, 0o640)
    code, output, errors = tune(path, clip, "--write")
    if not checks.check(code == 0, f"--write: exit {code}: {errors[-2000:]}"):
        return
    after = read(path)
    checks.check(read(path + ".bak") == before, "--write: FILE.bak is not the old text")
    kept = [line for line in before.splitlines() if line not in after.splitlines()]
    checks.check(not kept, f"--write: lost {kept}")
    fragment = dict(dotted(yaml.safe_load(output)))
    written = dict(dotted(yaml.safe_load(after)))
    checks.check(fragment.items() <= written.items(), f"--write: {fragment} is not in {after}")
    for name in (path, path + ".bak"):
        checks.check(stat.S_IMODE(os.stat(name).st_mode) == 0o640, f"{name}: mode {os.stat(name).st_mode:o}")
    code, _, errors = run("check", "-c", path)
    checks.check(code == 0, f"what was written is wrong: {errors}")
    again, identity = read(path), os.stat(path).st_ino
    code, output, errors = tune(path, clip, "--write")
    checks.check(code == 0, f"--write again: exit {code}: {errors[-2000:]}")
    if dict(dotted(yaml.safe_load(output))) == {"tuned": fragment["tuned"]}:
        checks.check(read(path) == again, "--write again changed what it had nothing to say of")
        checks.check(os.stat(path).st_ino == identity, "--write again wrote the same anew")
    other = os.path.join(where, "other.yaml")
    os.link(path, other)
    code, _, errors = tune(path, clip, "--write")
    one = len(errors.splitlines()) == 1
    checks.check(code == 1 and one and "several names" in errors, f"--write, two names: exit {code}, {errors!r}")
    os.unlink(other)


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(child) for child in found.split()]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_stopped(checks, where, path, clip, temporary):
    """SIGINT ends it at once, SIGKILL too, and its child with it."""
    arguments = [BINARY, "tune", "-c", path, "--clip", clip, "--seconds", "60"]
    for which in (signal.SIGINT, signal.SIGKILL):
        with Process(arguments, os.path.join(where, "tune.log"), {"TMPDIR": temporary}) as process:
            started = until(lambda: children(process.child.pid), 20)
            checks.check(len(started) == 1, f"{which.name}: {len(started)} children")
            time.sleep(0.5)
            begun = time.monotonic()
            process.child.send_signal(which)
            code = process.wait(10)
            took = time.monotonic() - begun
            expected = 1 if which == signal.SIGINT else -signal.SIGKILL
            checks.check(code == expected and took < 5, f"{which.name}: exit {code} after {took:.1f} s")
            gone = until(lambda: not any(map(is_running, started)), 5)
            checks.check(gone, f"{which.name}: a child is left")
        if which == signal.SIGINT:
            checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_warning(checks, where, clip):
    """At start, once, where the fingerprint is another box's, with what differs."""
    cameras = f"cameras: {{a: {{url: {clip}, outputs: {{o: {{sink: 'file:{where}/w.raw'}}}}}}}}\n"
    for tuned, expected in (("", 0), ('tuned: "cpu=abacus, 1 processor; gpu=none; driver=none"', 1)):
        with Framed(where, f"{tuned}\n{cameras}") as framed:
            checks.check(framed.wait(20) == 0, f"{tuned}: does not end")
            lines = [line for line in framed.errors().splitlines() if "tuned for another box" in line]
        checks.check(len(lines) == expected, f"{tuned!r}: {len(lines)} warnings")
        checks.check(all("was abacus, 1 processor" in line and "warning" in line for line in lines), f"says {lines}")


def main():
    checks = Checks("tune")
    with folder() as where, folder() as temporary:
        clip = make_clip(os.path.join(where, "clip.mp4"), frames=25)
        path = write_config(where, "framed.yaml", CONFIG, secret=SECRET, port=free_port())
        decided = write_config(where, "decided.yaml", DECIDED)
        check_mistakes(checks, where, path, clip)
        check_failure(checks, where, clip)
        check_run(checks, where, path, clip, temporary)
        check_json(checks, decided, clip)
        check_grid(checks, decided, clip)
        check_stopped(checks, where, path, clip, temporary)
        check_write(checks, where, decided, clip)
        check_warning(checks, where, clip)
    checks.end()


main()
