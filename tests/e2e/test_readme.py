#!/usr/bin/python3
"""The examples of README.md and the manual pages work unchanged: configurations, Python, C, tables, the map."""
import glob
import os
import re
import subprocess

import blocks_model
from framed_client import ROOT, Checks, Framed, first_lines, folder, framedio_environment, make_clip, run, until

SOCKET = "/run/framed/gate-detector.sock"
RING = "/run/framed/gate.ring"
DOOR = "/run/framed/door.ring"
LOOP = ["demux_read", "decoder_send", "decoder_receive", "work_submit"]
NPY = "/run/framed/gate-npy.sock"
CONFIG = """
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    fps: 5  # few enough that no reader fills a buffer of 4 KiB while it is watched
    outputs:
      detector:
        size: 640x640
        tensor: {{dtype: f32, layout: nchw, order: rgb, scale: 1/255}}
        sink: unix:{where}/t.sock
      {shared}
      {tensors}
      door: {{size: 320x320, tensor: {{dtype: f32, scale: 1/255}}, sink: "ring:{where}/door.ring"}}
"""


def block(readme, language, holding=""):
    """Returns the first fenced block of a language that contains a word."""
    return next(text for text in re.findall(rf"```{language}\n(.*?)```", readme, re.S) if holding in text)


def check_configurations(checks, readme):
    texts = re.findall(r"```yaml\n(.*?)```", readme, re.S)
    checks.check(texts, "there is no configuration")
    for text in texts:
        secrets = {name: "of-16-letters-or-more"
                   for name in ("GATE_PASSWORD", "PAGE_TOKEN", "HOOK_PASSWORD", "MQTT_PASSWORD", "ETCD_PASSWORD",
                                "FRAMED_HTTP_TOKEN")}
        code, _, errors = run("check", "-c", "-", stdin=text, env=secrets)
        checks.check(code == 0, f"a configuration: exit {code}: {errors}\n{text}")


def check_map(checks, readme, way):
    """Every file and folder named in README.md and daemon/README.md exists, all folders of the daemon are listed, and the
    loop is in the named file."""
    named = set(re.findall(r"(?<![\w/.-])((?:daemon|kernels|config|scripts|tests)/[\w./-]*\w)", readme + way))
    checks.check(len(named) > 20, f"the README names {named}")
    for path in named:
        checks.check(os.path.exists(os.path.join(ROOT, path)), f"the README names {path}, which is not there")
    for folder_of in glob.glob(os.path.join(ROOT, "daemon", "*", "")):
        name = os.path.relpath(folder_of, ROOT)
        checks.check(f"\n    {name} " in readme, f"the README's list of folders lacks {name}")
    loop = re.search(r"^\| the loop: .*`(.*)` \|$", way, re.M)[1]
    with open(os.path.join(ROOT, loop)) as file:
        text = file.read()
    calls = [text.find(call + "(") for call in LOOP]
    checks.check(-1 not in calls and calls == sorted(calls), f"{loop} does not call {LOOP} in this order: {calls}")
    for title, page in re.findall(r"^\| ([\w.-]+)\((\d)\) \|", readme, re.M):
        checks.check(os.path.exists(f"{ROOT}/scripts/man/{title}.{page}.md"), f"there is no page {title}({page})")


def check_python(checks, pages, where):
    snippet = block(pages, "python", "dst_to_src")
    lines = [line for line in snippet.splitlines() if line.strip()]
    checks.check(len(lines) <= 12, f"the Python reader has {len(lines)} lines, not twelve")
    lines = first_lines(["/usr/bin/python3", "-c", snippet.replace(SOCKET, f"{where}/t.sock")], 3)
    x, y = 320 / 2, (200 - 80) / 2  # 320x240 doubled, with 80 rows of fill above
    for line in lines:
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
        near = len(numbers) == 2 and abs(numbers[0] - x) < 1e-3 and abs(numbers[1] - y) < 1e-3
        checks.check(near, f"the Python reader prints {line!r}, not {x} {y}")


def output_of(pages, path, to):
    """Returns the keys of the output that a reader is written for, with another path."""
    return re.search(rf"^    \w+: (.*{path}.*)$", pages, re.M)[1].replace(path, to)


def check_ring(checks, pages, where):
    snippet = block(pages, "python", "recv_fds")
    lines = first_lines(["/usr/bin/python3", "-c", snippet.replace(RING, f"{where}/t.ring")], 3)
    for line in lines:
        mean = re.fullmatch(r"mean (\d+\.\d+)\n", line)
        checks.check(mean and 25 < float(mean[1]) < 230, f"the ring's reader prints {line!r}")


def check_framedio(checks, readme, where):
    """Readers of one ring and of two with the Python client. On a busy machine numpy may take longer to load than the first
    frame stays valid."""
    for holding, most, pattern in (
        ("frame.to_source", 6, r"gate \d+ \[\[0\.0, 0\.0, 160\.0, 60\.0\]\] (True|False)\n"),
        ("aopen(address", 9, r"gate \d+ mean (0\.[1-8]|[1-9])\d*\.?\d*\n"),
    ):
        snippet = block(readme, "python", holding)
        lines = [line for line in snippet.splitlines() if line.strip()]
        checks.check(len(lines) <= most, f"the reader with {holding} has {len(lines)} lines, not {most}")
        snippet = snippet.replace(RING, f"{where}/t.ring").replace(DOOR, f"{where}/door.ring")
        lines = first_lines(["/usr/bin/python3", "-c", snippet], 6, env=framedio_environment())
        for line in lines:
            checks.check(re.fullmatch(pattern, line), f"the reader with {holding} prints {line!r}")
        if "gather" in snippet:
            large = sum(float(line.split()[-1]) > 1 for line in lines)
            checks.check(0 < large < len(lines), f"{large} of {len(lines)} lines are of the one ring")


def check_detector(checks, readme, where):
    """The detector, with a model in its working folder."""
    snippet = block(readme, "python", "framedio.detect")
    lines = [line for line in snippet.splitlines() if line.strip()]
    checks.check(len(lines) <= 7, f"the detector has {len(lines)} lines, not seven")
    command = ["/usr/bin/python3", "-c", snippet.replace(RING, f"{where}/t.ring")]
    for line in first_lines(command, 3, env=framedio_environment(), cwd=where):
        checks.check(re.fullmatch(r"gate \d+ \[.*\]\n", line), f"the detector prints {line!r}")


def check_npy(checks, pages, where):
    """The second and third records are found too: they begin in the middle of the read-ahead buffer."""
    snippet = block(pages, "python", "read_array")
    lines = first_lines(["/usr/bin/python3", "-c", snippet.replace(NPY, f"{where}/npy.sock")], 3)
    for line in lines:
        mean = re.fullmatch(r"\(3, 640, 640\) float32 mean (\d+\.\d+)\n", line)
        checks.check(mean and 25 < float(mean[1]) < 230, f"the npy reader prints {line!r}")


def check_c(checks, pages, where):
    source = os.path.join(where, "reader.c")
    with open(source, "w") as file:
        file.write(block(pages, "c").replace(SOCKET, f"{where}/t.sock"))
    program = os.path.join(where, "reader")
    flags = ["-Wall", "-Wextra", "-Werror", "-I", os.path.join(ROOT, "daemon")]
    done = subprocess.run(["cc", *flags, "-o", program, source], capture_output=True, text=True)
    if not checks.check(done.returncode == 0, f"the C reader does not build:\n{done.stderr}"):
        return
    lines = first_lines([program], 3)
    numbers = [int(match[1]) for line in lines if (match := re.match(r"frame (\d+), middle .* [01]\.\d+$", line))]
    rising = len(numbers) == 3 and numbers[0] < numbers[1] < numbers[2]
    checks.check(rising, f"the C reader prints {lines}")


def check_reasons(checks, pages, metrics):
    table = re.search(r"\| reason \|.*?\n\n", pages, re.S)[0]
    shown = set(re.findall(r"^\| (\w+) \|", table, re.M)) - {"reason"}
    counted = {labels["reason"] for labels, _ in metrics.all("framed_frames_lost_total")}
    checks.check(shown == counted, f"reasons in the table {shown}, in the counters {counted}")


def main():
    checks = Checks("readme")
    with open(os.path.join(ROOT, "README.md")) as file:
        readme = file.read()
    with open(os.path.join(ROOT, "daemon", "README.md")) as file:
        way = file.read()
    pages = ""
    for path in sorted(glob.glob(os.path.join(ROOT, "scripts", "man", "*.md"))):
        with open(path) as file:
            pages += file.read()
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        blocks_model.write(os.path.join(where, "model.onnx"))
        check_configurations(checks, readme)
        check_configurations(checks, pages)
        check_map(checks, readme, way)
        # On a busy machine a network takes longer than a ring keeps a frame.
        shared = f"shared: {output_of(pages, RING, f'{where}/t.ring').replace('{', '{max_age: 20s, ', 1)}"
        tensors = f"tensors: {output_of(pages, NPY, f'{where}/npy.sock')}"
        with Framed(where, CONFIG.format(where=where, shared=shared, tensors=tensors)) as framed:
            until(lambda: os.path.exists(f"{where}/t.sock"), 10)
            check_python(checks, pages, where)
            check_ring(checks, pages, where)
            check_framedio(checks, readme, where)
            check_detector(checks, readme, where)
            check_npy(checks, pages, where)
            check_c(checks, pages, where)
            framed.stop()
            check_reasons(checks, pages, framed.metrics())
    checks.end()


main()
