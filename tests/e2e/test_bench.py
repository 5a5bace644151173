#!/usr/bin/python3
"""framed-bench: its rows, its JSON and drawing, its mistakes, and cameras measured from end to end. Figures are only checked for consistency with
each other."""
import glob
import json
import os
import shutil
import signal
import tempfile
import time
import xml.etree.ElementTree

from framed_client import BENCH, BINARY, Checks, Process, folder, make_clip, run, until

GPU = os.path.exists("/dev/nvidiactl")
LIMIT = 240  # seconds
SVG = "{http://www.w3.org/2000/svg}"

MISTAKES = [
    (["--bogus"], "--bogus: bad option"),
    (["extra"], "extra"),
    (["--cameras", "two", "--clip", BINARY], "--cameras"),
    (["--cameras", "0", "--clip", BINARY], "--cameras"),
    (["--cameras", "2"], "--clip"),
    (["--cameras", "2", "--clip", "/nonexistent.mp4"], "--clip"),
    (["--clip", BINARY, "--live"], "--cameras"),
    (["--clip", BINARY, "--cameras", "4", "--join", "2"], "--join"),
    (["--clip", BINARY, "--cameras", "4", "--live", "--join", "4"], "--join"),
    (["--clip", BINARY, "--cameras", "4", "--rtsp", "tcp"], "--rtsp: is for --live and --try"),
    (["--clip", BINARY, "--cameras", "4", "--live", "--rtsp", "sctp"], "--rtsp: tcp or udp"),
    (["--clip", BINARY, "--cameras", "4", "--live", "--rtsp", "tcp", "--join", "2"], "--rtsp: goes without --join"),
    (["--clip", BINARY, "--cameras", "4", "--live", "--withhold", "50"], "--withhold: is for --rtsp"),
    (["--clip", BINARY, "--cameras", "4", "--live", "--rtsp", "tcp", "--withhold", "1"], "--withhold"),
    (["--clip", BINARY, "--cameras", "4", "--settle", "5"], "--settle: is for --live"),
    (["--clip", BINARY, "--ffmpeg", "/nonexistent"], "--ffmpeg"),
    (["--rows", "copies,speed"], "--rows"),
    (["--rows", "copies", "--svg", "x.svg"], "--svg"),
    (["--svg", "/nonexistent/x.svg"], "--svg"),
    (["--svg", "/"], "--svg"),
    (["--seconds", "-1"], "--seconds"),
    (["--seconds"], "--seconds: wants a value"),
    (["--json", "--svg"], "--svg: wants a value"),
    (["--dtype", "u7"], "--dtype"),
    (["--backend", "gpu"], "--backend"),
    (["--cameras", "2", "--clip", BINARY, "--framed", "/nonexistent"], "--framed"),
    (["--cameras", "2", "--clip", BINARY, "--try", "cuda.streams"], "--try: KEY=VALUE"),
    (["--cameras", "2", "--clip", BINARY, "--try", "slots="], "--try: KEY=VALUE"),
    (["--cameras", "2", "--clip", BINARY, "--try", "slots=4", "--try", "slots=5"], "--try: each key once"),
    (["--cameras", "2", "--clip", BINARY, "--try", "slots=4", "--runs", "0"], "--runs"),
    (["--cameras", "2", "--clip", BINARY, "--try", "slots=4", "--rows", "live"], "--try"),
    (["--cameras", "2", "--clip", BINARY, "--rows", "try"], "--try"),
    (["--clip", BINARY, "--try", "slots=4"], "--cameras"),
    (["--cameras", "2", "--clip", BINARY, "--try", "foo=4"], "--try: foo: unknown key (`framed defaults` prints all keys)"),
    (["--cameras", "2", "--clip", BINARY, "--try", "cuda.stream=4"], "cuda.stream: unknown key (did you mean cuda.streams?)"),
    (["--cameras", "2", "--clip", BINARY, "--try", "cuda.streams=4,99"],
     "cuda.streams: '99' is out of range (auto, or 0 to 32)"),
    (["--cameras", "2", "--clip", BINARY, "--try", "slots=4", "--try", "tensor.dtype=u8,u9"],
     "defaults.tensor.dtype: 'u9' is not one of the choices (u8 | s8 | f16 | f32)"),
    (["--cameras", "2", "--clip", BINARY, "--try", "cuda=4"], "cuda: is not a mapping"),
]


def bench(*arguments, backend="cpu", **how):
    return run("--backend", backend, *arguments, timeout=LIMIT, program=BENCH, **how)


def check_mistakes(checks):
    for arguments, option in MISTAKES:
        code, output, errors = run(*arguments, program=BENCH)
        checks.check(code == 2 and not output, f"{arguments}: exit {code}, {output!r}")
        checks.check(len(errors.splitlines()) == 1 and option in errors, f"{arguments}: says {errors!r}")
    code, output, _ = run("--help", program=BENCH)
    checks.check(code == 0 and "--cameras" in output, f"--help: exit {code}")
    if not GPU:
        code, _, errors = run("--backend", "cuda", program=BENCH)
        checks.check(code == 69 and "cuda" in errors, f"--backend cuda without a GPU: exit {code}, {errors!r}")


def check_rows(checks, rows):
    """Checks the rules for every row."""
    for row in rows:
        name, value, limit, ratio = row["name"], row["value"], row["limit"], row["ratio"]
        checks.check(row["unit"] and name and row["better"] in ("lower", "higher"), f"{row}")
        checks.check(value is not None and (value >= 0 or "more than" in name), f"{name}: value {value}")
        checks.check((limit is None) == (row["limit_is"] == ""), f"{name}: limit {limit} is {row['limit_is']!r}")
        if not limit:
            checks.check(ratio is None, f"{name}: ratio {ratio} of limit {limit}")
        else:
            good = ratio is not None and abs(ratio - value / limit) <= 1e-6 * abs(ratio) + 1e-12
            checks.check(good, f"{name}: {value} of {limit} is not {ratio}")


def check_alone(checks, where):
    """Without a clip: rows of the CPU, as JSON and as a table, and the drawing."""
    drawing = f"{where}/streams.svg"
    with open(drawing, "w") as file:
        file.write("an older one" * 10000)
    code, output, errors = bench("--json", "--svg", drawing)
    if not checks.check(code == 0 and not errors, f"exit {code}: {errors}"):
        return
    said = json.loads(output)
    checks.check(any("no GPU" in note for note in said["notes"]), f"does not say that there is no GPU: {said['notes']}")
    checks.check(said["cpu"] and said["version"] and said["data"], f"headline: {said}")
    check_rows(checks, said["rows"])
    names = {group: [row["name"] for row in said["rows"] if row["group"] == group] for group in ("copies", "yuv", "warp")}
    checks.check(len(names["copies"]) == 2 and all("memcpy" in name for name in names["copies"]), f"{names['copies']}")
    checks.check(any("one frame" in name for name in names["yuv"]), f"{names['yuv']}")
    for source in ("nv12", "yuv420p", "bgra"):
        for dtype in ("u8", "f16", "f32"):
            own = [name for name in names["warp"] if name.startswith(f"{source} to {dtype},")]
            filters = [name.split(", ")[1] for name in own if not name.startswith(f"{source} to {dtype}, cpu")]
            checks.check(len(own) - len(filters) == 2, f"{source} to {dtype}: {own}")
            checks.check(filters == (["area", "triangle"] if dtype == "u8" else []), f"filters of {source} to {dtype}: {own}")
    root = xml.etree.ElementTree.parse(drawing).getroot()
    words = [text.text for text in root.iter(f"{SVG}text")]
    checks.check(root.tag == f"{SVG}svg" and len(list(root.iter(f"{SVG}circle"))) >= 1, "the drawing has no points")
    checks.check(any("ms" in word for word in words) and any("alone" in word for word in words), f"no labels: {words}")

    code, output, _ = bench("--rows", "copies")
    lines = [line for line in output.splitlines() if "memcpy" in line]
    checks.check(code == 0 and len(lines) == 2 and "GB/s" in lines[0], f"table: exit {code}, {output}")
    code, _, errors = bench("--rows", "warp", "--clip", __file__)
    checks.check(code == 1 and len(errors.splitlines()) == 1, f"a clip that is none: exit {code}, {errors!r}")


def rows_of(checks, output):
    said = json.loads(output)
    check_rows(checks, said["rows"])
    return {row["name"]: row for row in said["rows"]}, said["notes"]


def check_cameras(checks, clip, temporary):
    arguments = ["--clip", clip, "--cameras", "1,2", "--rows", "cameras", "--seconds", "1", "--dtype", "u8,f32"]
    code, output, errors = bench("--json", *arguments, env={"TMPDIR": temporary})
    if not checks.check(code == 0 and not errors, f"cameras: exit {code}: {errors}{output[-500:]}"):
        return
    rows, _ = rows_of(checks, output)
    for n, cameras in ((1, "1 camera"), (2, "2 cameras")):
        alone = rows[f"{cameras}, decode alone: rate"]
        checks.check(alone["value"] > 0, f"{n}: {alone}")
        for dtype in ("u8", "f32"):
            own = {name.split(": ")[1]: row for name, row in rows.items() if name.startswith(f"{cameras}, {dtype}:")}
            checks.check(own["rate"]["value"] > 0 and own["rate"]["limit"] == alone["value"], f"{own['rate']}")
            checks.check(own["CPU"]["value"] > 0, f"{own['CPU']}")
            checks.check(own["resident memory"]["value"] > 1, f"{own['resident memory']}")
            checks.check(own["lost"]["value"] == 0 == own["slots taken back while read"]["value"], f"{own['lost']}")
            checks.check(own["first frames as the reference"]["value"] == n, f"{own['first frames as the reference']}")
            times = [own[f"received to finished {which}"]["value"] for which in ("p50", "p99", "max")]
            checks.check(0 < times[0] <= times[1] <= times[2], f"latencies {times}")
    checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_live(checks, clip, temporary):
    arguments = ["--clip", clip, "--cameras", "3", "--live", "--rows", "live", "--seconds", "1", "--join", "1"]
    code, output, errors = bench("--json", *arguments, env={"TMPDIR": temporary})
    if not checks.check(code == 0 and not errors, f"live: exit {code}: {errors}{output[-500:]}"):
        return
    rows, _ = rows_of(checks, output)
    for which, cameras in (("3 cameras", 3), ("2 while 1 join", 2)):
        checks.check(rows[f"{which}: received to finished p99"]["value"] > 0, f"{which}: no latency")
        same = rows[f"{which}: first frames as the reference"]
        checks.check(same["value"] == cameras == same["limit"], f"{which}: {same}")
    checks.check(rows["3 cameras: rate"]["value"] > 0, "live: no frames")
    checks.check(rows["2 while 1 join: all joined after"]["value"] > 0, "nobody joined")
    checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_rtsp(checks, clip, temporary, way):
    """Live cameras from framed-bench's own server: every frame was sent, at a known time."""
    arguments = ["--clip", clip, "--cameras", "3", "--live", "--rows", "live", "--seconds", "2", "--rtsp", way]
    code, output, errors = bench("--json", *arguments, env={"TMPDIR": temporary})
    if not checks.check(code == 0 and not errors, f"--rtsp {way}: exit {code}: {errors}{output[-500:]}"):
        return
    rows = {name.removeprefix("3 cameras: "): row for name, row in rows_of(checks, output)[0].items()}
    same, known = rows["first frames as the reference"], rows["frames whose sending is known"]
    checks.check(same["value"] == 3, f"{way}: {same}")
    checks.check(0 < known["limit"] * 0.9 <= known["value"] <= known["limit"], f"{way}: {known}")
    checks.check(abs(rows["rate"]["value"] - 75) < 15, f"{way}: {rows['rate']}")
    times = [rows[f"sent to finished {which}"]["value"] for which in ("p50", "p99", "max")]
    checks.check(0 < times[0] <= times[1] <= times[2] < 3000, f"{way}: latencies {times}")
    received = rows["received to finished p50"]["value"]
    checks.check(times[0] > received / 2, f"{way}: sent to finished {times[0]} ms, received to finished {received}")
    checks.check(rows["packets withheld"]["value"] == 0 == rows["sent, and no frame"]["value"], f"{way}: lost some")
    checks.check(rows["packets sent"]["value"] > known["value"], f"{way}: {rows['packets sent']}")
    checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_withheld(checks, clip):
    arguments = ["--clip", clip, "--cameras", "1", "--live", "--seconds", "3", "--rtsp", "tcp", "--withhold", "40"]
    code, output, errors = bench("--json", *arguments, "--rows", "live")
    if checks.check(code == 0 and not errors, f"--withhold: exit {code}: {errors}{output[-500:]}"):
        rows, _ = rows_of(checks, output)
        sent, withheld = (rows[f"1 camera: packets {what}"]["value"] for what in ("sent", "withheld"))
        checks.check(0 < withheld <= (sent + withheld) / 40 + 1, f"{withheld} packets withheld of {sent + withheld}")
        missed = rows["1 camera: packets that framed missed"]["value"]  # counted a moment later
        checks.check(abs(missed - withheld) <= 2, f"{missed} packets missed of {withheld} withheld")


def check_try(checks, clip, temporary):
    """Each combination of the values is listed with its spread; a value reaches the daemon."""
    arguments = ["--clip", clip, "--cameras", "1", "--live", "--try", "fps=0,5", "--try", "cpu.workers=1,2"]
    arguments += ["--runs", "2", "--seconds", "1"]
    code, output, errors = bench("--json", *arguments, env={"TMPDIR": temporary})
    if not checks.check(code == 0 and not errors, f"--try: exit {code}: {errors}{output[-500:]}"):
        return
    rows, _ = rows_of(checks, output)
    checks.check({row["group"] for row in rows.values()} == {"try"}, f"rows of other groups: {list(rows)}")
    for fps, rate in ((0, 25), (5, 5)):
        for workers in (1, 2):
            own = rows[f"1 camera, defaults.fps={fps}, cpu.workers={workers}: rate"]
            checks.check(own["least"] <= own["value"] <= own["most"], f"{own}")
            checks.check(abs(own["value"] - rate) <= 0.3 * rate, f"{own} is not about {rate}")
            checks.check(own["better"] == "higher" and own["limit"] is None, f"{own}")
    checks.check(len(rows) % 4 == 0, f"{list(rows)}")
    arguments[arguments.index("--runs") + 1] = "1"
    code, output, errors = bench(*arguments, env={"TMPDIR": temporary})
    lines = [line for line in output.splitlines() if line.startswith("  defaults.fps=")]
    checks.check(code == 0 and len(lines) == 4, f"table: exit {code}, {output}{errors}")
    checks.check(all(len(line.split("(")) == len(lines[0].split("(")) > 5 for line in lines), f"table: {output}")
    checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_try_copy(checks, where, clip):
    """copy=on records the packets of every camera; the folder is removed afterwards."""
    temporary = f"{where}/copies"
    os.mkdir(temporary)
    arguments = [BENCH, "--json", "--backend", "cpu", "--clip", clip, "--cameras", "2", "--live", "--rtsp", "tcp", "--runs", "1"]
    seen = set()
    with Process([*arguments, "--try", "copy=off,on", "--seconds", "2"], f"{where}/bench.log", {"TMPDIR": temporary}) as process:
        while process.child.poll() is None:
            seen |= {os.path.basename(path).split("-")[0] for path in glob.glob(f"{temporary}/*/*.mp4*")}
            time.sleep(0.05)
        output = process.child.stdout.read().decode()
    checks.check(process.child.returncode == 0 and seen == {"0", "1"}, f"recordings of cameras {seen}: {output}")
    rows = {row["name"].removeprefix("2 cameras, "): row["value"] for row in json.loads(output)["rows"]}
    for copy in ("off", "on"):
        cores, more = (rows[f"copy={copy}: {what}"] for what in ("CPU", "CPU of each camera more than in the first line"))
        wanted = 100 * (cores - rows["copy=off: CPU"]) / 2
        checks.check(abs(more - wanted) < 1e-6, f"copy={copy}: {more} % of a core more, not {wanted}")
    checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")
    code, _, errors = bench(*arguments[4:], "--try", "copy=maybe")
    checks.check(code == 2 and "--try" in errors, f"copy=maybe: exit {code}, {errors}")


def check_try_failure(checks, clip):
    """A combination that does not run is left out, with a note; the others are measured."""
    arguments = ["--clip", clip, "--cameras", "1", "--try", "cpu.pin=none,900", "--runs", "2", "--seconds", "0.2"]
    code, output, _ = bench("--json", *arguments)
    said = json.loads(output)
    names = [row["name"] for row in said["rows"]]
    checks.check(code == 1 and names and all("cpu.pin=none" in name for name in names), f"exit {code}: {names}")
    left = [note for note in said["notes"] if "cpu.pin=900 is left out" in note]
    checks.check(len(left) == 1, f"notes: {said['notes']}")


def check_ffmpeg(checks, clip):
    program = shutil.which("ffmpeg")
    arguments = ["--clip", clip, "--cameras", "1", "--rows", "cameras,ffmpeg", "--seconds", "1", "--ffmpeg", program]
    code, output, errors = bench("--json", *arguments)
    if not checks.check(code == 0 and not errors, f"ffmpeg: exit {code}: {errors}"):
        return
    rows, _ = rows_of(checks, output)
    rates = [row["value"] for name, row in rows.items() if "pad" in name and name.endswith("rate per core")]
    checks.check(rates and min(rates) > 0, f"no rate of ffmpeg: {list(rows)}")
    own = rows["framed, 1 camera: rate per core"]
    checks.check(rates and own["limit"] == max(rates), f"{own} is not held against {rates}")
    arguments[-1] = "/bin/false"
    code, output, _ = bench("--json", *arguments)
    checks.check(code == 0 and any("pad" in note for note in json.loads(output)["notes"]), "says nothing of /bin/false")


def running():
    """Returns process -> parent, of all running processes."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                state, parent = file.read().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(path.split("/")[2])] = int(parent)
    return found


def children(pid):
    return [child for child, parent in running().items() if parent == pid]


def check_stopped(checks, where, clip, temporary):
    """A signal ends it and its child early, and nothing is left behind. SIGKILL ends the child, too."""
    arguments = [BENCH, "--backend", "cpu", "--clip", clip, "--cameras", "2", "--live", "--rows", "live"]
    for which in (signal.SIGTERM, signal.SIGKILL):
        with Process(arguments, f"{where}/bench.log", {"TMPDIR": temporary}) as process:
            pid = process.child.pid
            checks.check(until(lambda: len(children(pid)) == 1, 20), f"{which}: started nothing")
            own = children(pid)
            process.child.send_signal(which)
            checks.check(process.wait(20) == (1 if which == signal.SIGTERM else -which), f"{which}: exit code")
            checks.check(until(lambda: not running().keys() & set(own), 10), f"{which}: {own} still run")
        if which == signal.SIGTERM:
            checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def check_stopped_alone(checks, where, clip, temporary):
    """While decoding alone, a signal ends it at once: at its start and in the middle of its window."""
    arguments = [BENCH, "--backend", "cpu", "--clip", clip, "--cameras", "2", "--rows", "cameras"]
    for after in (0, 1.5):
        with Process([*arguments, "--seconds", "30"], f"{where}/bench.log", {"TMPDIR": temporary}) as process:
            own = until(lambda: children(process.child.pid), 20)
            checks.check(own, "started nothing")
            time.sleep(after)
            process.child.send_signal(signal.SIGTERM)
            code = process.wait(2)
            checks.check(code == 1, f"after {after} s of decoding alone: exit {code} within 2 s")
            checks.check(not running().keys() & set(own), f"{own} still run")
        checks.check(not os.listdir(temporary), f"left behind: {os.listdir(temporary)}")


def main():
    checks = Checks("bench")
    check_mistakes(checks)
    with folder() as where, tempfile.TemporaryDirectory(prefix="t-") as temporary:
        clip = make_clip(f"{where}/clip.mp4", size="320x180", b_frames=2)
        check_alone(checks, where)
        check_cameras(checks, clip, temporary)
        check_live(checks, clip, temporary)
        plain = make_clip(f"{where}/plain.mp4", size="320x180")
        for way in ("tcp", "udp"):
            check_rtsp(checks, plain, temporary, way)
        check_withheld(checks, plain)
        check_try(checks, clip, temporary)
        check_try_copy(checks, where, plain)
        check_try_failure(checks, clip)
        check_ffmpeg(checks, clip)
        check_stopped_alone(checks, where, clip, temporary)
        check_stopped(checks, where, clip, temporary)
    checks.end()


main()
