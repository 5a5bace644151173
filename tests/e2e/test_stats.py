#!/usr/bin/python3
"""Lines of kernel stats: statistics of known pictures match numpy's; a socket reader, a file, batch headers and
/api/v1/scenes get the same values; `fps` and `gate` thin them; status and metrics count the analysed pictures."""
import http.client
import json
import os
import socket

import numpy
from framed_client import PATIENCE, Checks, Framed, consume, folder, free_port, status, until

WIDTH, HEIGHT, FRAMES, RATE = 200, 120, 40, 10
EMPTY, KNOWN, MOVING, LEARNING = 64, 1, 2, 8
CONFIG = """
http: 127.0.0.1:{port}
cameras:
  gate:
    url: {where}/gate.y4m
    pace: {pace}
    loop: {loop}
    grid: 8x5
    outputs:
      every: {{kernel: stats, sink: "file:{where}/every.jsonl"}}
      slow: {{kernel: stats, fps: 1, sink: "file:{where}/slow.jsonl"}}
      news: {{kernel: stats, gate: {{motion: true, hold: 0, every: 0}}, sink: "file:{where}/news.jsonl"}}
      live: {{kernel: stats, sink: "unix:{where}/live.sock"}}
  yard:
    url: {where}/gate.y4m
    pace: {pace}
    loop: {loop}
batches:
  batch: {{cameras: ["*"], size: 64x64, per_camera: 4, sink: "file:{where}/batch.framed"}}
"""


def pictures():
    """Yields luma planes: noise with a bright square that moves from the sixth picture on."""
    random = numpy.random.default_rng(7)
    ground = random.integers(20, 230, (HEIGHT, WIDTH), dtype=numpy.uint8)
    for i in range(FRAMES):
        luma = ground.copy()
        at = max(i - 5, 0) * 3
        luma[30:60, at:at + 30] = 250
        yield luma


def write_clip(path, lumas):
    with open(path, "wb") as file:
        file.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{RATE}:1 Ip C420jpeg\n".encode())
        for luma in lumas:
            file.write(b"FRAME\n" + luma.tobytes() + bytes([128]) * (WIDTH * HEIGHT // 2))


def edges(n, parts):
    return [i * n // parts for i in range(parts + 1)]


def expected(luma):
    wide = numpy.pad(luma.astype(numpy.int64), 1, mode="reflect")
    laplacian = abs(4 * wide[1:-1, 1:-1] - wide[:-2, 1:-1] - wide[2:, 1:-1] - wide[1:-1, :-2] - wide[1:-1, 2:])
    across, down = edges(WIDTH, 8), edges(HEIGHT, 5)
    grid = [luma[down[y]:down[y + 1], across[x]:across[x + 1]].mean() for y in range(5) for x in range(8)]
    return {
        "mean": luma.mean(), "variance": luma.var(), "min": luma.min(), "max": luma.max(), "black": (luma <= 16).mean(),
        "white": (luma >= 235).mean(), "sharpness": laplacian.mean(),
    }, numpy.histogram(luma, 64, (0, 256))[0].tolist(), grid


def check_line(checks, line, luma):
    numbers, histogram, grid = expected(luma)
    for name, value in numbers.items():
        checks.check(abs(line["luma"][name] - float(value)) <= 0.0051, f"{name}: {line['luma'][name]}, not {value}")
    checks.check(line["luma"]["histogram"] == histogram, "histogram")
    checks.check((line["grid"]["columns"], line["grid"]["rows"]) == (8, 5), f"{line['grid']}")
    checks.check(all(abs(a - b) <= 0.5 for a, b in zip(line["grid"]["means"], grid)), f"{line['grid']}")
    checks.check((line["width"], line["height"]) == (WIDTH, HEIGHT), "size")


def read_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def check_batches(checks, where, lines):
    """Element headers have the same values for gate, and none for yard, which has no analysis."""
    with open(f"{where}/batch.framed", "rb") as file:
        elements = [e for batch, _ in consume.read_frames(file) for e in batch.headers if not e["flags"] & EMPTY]
    gate = [e for e in elements if e["camera"] == b"gate"]
    checks.check(len(gate) == FRAMES and len(elements) == 2 * FRAMES, f"{len(gate)} of {len(elements)} elements")
    for element in gate:
        line = lines[int(element["sequence"])]
        says = bool(element["scene"] & MOVING), bool(element["scene"] & LEARNING), f"{element['fingerprint']:016x}"
        checks.check(says == (line["moving"], line.get("learning", False), line["fingerprint"]), f"{says}")
        near = abs(element["luma_mean"] - line["luma"]["mean"]) < 0.01 and abs(element["sharpness"] - line["luma"]["sharpness"]) < 0.001
        checks.check(near and element["scene"] & KNOWN, f"{element['luma_mean']}, {element['sharpness']}")
    checks.check(all(e["scene"] == 0 and e["fingerprint"] == 0 for e in elements if e["camera"] == b"yard"), "yard")


def check_numbers(checks, where):
    """A file to its end."""
    lumas = list(pictures())
    write_clip(f"{where}/gate.y4m", lumas)
    config = CONFIG.format(where=where, port=free_port(), pace="full", loop="false").replace("      live:", "      # live:")
    with Framed(where, config) as framed:
        code = framed.wait(30)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
    lines = read_lines(f"{where}/every.jsonl")
    checks.check([line["seq"] for line in lines] == list(range(FRAMES)), f"{len(lines)} lines")
    for line in lines:
        check_line(checks, line, lumas[line["seq"]])
    slow, news = read_lines(f"{where}/slow.jsonl"), read_lines(f"{where}/news.jsonl")
    checks.check(len(slow) in (FRAMES // RATE, FRAMES // RATE + 1), f"{[line['seq'] for line in slow]}")
    seen = [line["seq"] for line in lines if line["moving"] or line["seq"] == 0]
    checks.check([line["seq"] for line in news] == seen and 1 < len(seen) < FRAMES, f"{[line['seq'] for line in news]} of {seen}")
    check_batches(checks, where, lines)
    metrics = framed.metrics()
    for name, got, reason in (("every", lines, None), ("slow", slow, "thinned"), ("news", news, "still")):
        numbers = [metrics.sum("framed_frames_total", camera="gate", output=name, stage=s) for s in ("offered", "emitted")]
        checks.check(numbers == [FRAMES, len(got)], f"{name}: {numbers}")
        lost = {} if reason is None else {reason: FRAMES - len(got)}
        checks.check(metrics.losses(camera="gate", output=name) == lost, f"{name}: {metrics.losses(camera='gate', output=name)}")
    checks.check(metrics.sum("framed_pictures_analysed_total", camera="gate") == FRAMES, "analysed")


def check_light(checks, where):
    """A lamp switched on is light, not motion; drifting exposure is neither."""
    random = numpy.random.default_rng(8)
    ground = random.integers(30, 90, (HEIGHT, WIDTH))
    gains = [1 + i / 1000 for i in range(100)] + [1.6] * 30
    write_clip(f"{where}/gate.y4m", [(ground * gain + random.integers(0, 3, ground.shape)).astype(numpy.uint8) for gain in gains])
    config = CONFIG.format(where=where, port=free_port(), pace="full", loop="false").replace("      live:", "      # live:")
    with Framed(where, config) as framed:
        code = framed.wait(30)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-3000:]}")
    lines = read_lines(f"{where}/every.jsonl")
    lit = [line["seq"] for line in lines if line.get("light")]
    checks.check(lit and lit[0] == 100 and lit[-1] < 110 and lit == list(range(lit[0], lit[-1] + 1)), f"light in {lit}")
    checks.check(not any(line["moving"] for line in lines), f"moving in {[line['seq'] for line in lines if line['moving']]}")


def check_live(checks, where):
    """A socket reader and the API, while the camera runs."""
    write_clip(f"{where}/gate.y4m", pictures())
    port = free_port()
    with Framed(where, CONFIG.format(where=where, port=port, pace="realtime", loop="true")) as framed:
        until(lambda: os.path.exists(f"{where}/live.sock"), 10)
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(10 * PATIENCE)
        peer.connect(f"{where}/live.sock")
        with peer, peer.makefile() as file:
            lines = [json.loads(file.readline()) for _ in range(15)]
        checks.check([line["seq"] for line in lines] == list(range(lines[0]["seq"], lines[0]["seq"] + 15)), "in a row")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/api/v1/scenes")
        scenes = json.loads(connection.getresponse().read())["scenes"]
        connection.close()
        checks.check(len(scenes) == 1 and scenes[0]["camera"] == "gate" and scenes[0]["pts"] >= lines[-1]["pts"], f"{scenes}"[:300])
        checks.check(set(scenes[0]) >= {"luma", "grid", "fingerprint", "moving", "boxes", "alarms"}, f"{set(scenes[0])}")
        scene = status(where)["gate"]["scene"]
        checks.check(scene["analysed"] >= 15 and scene["alarms"] == [] and 0 <= scene["age_s"] < 5, f"{scene}")
        framed.stop()
        checks.check(framed.wait(10) == 0, "exit")
    live = framed.metrics().losses(camera="gate", output="live")
    checks.check(set(live) <= {"client", "stopping"} and live.get("client", 0) > 0, f"{live}")


def main():
    checks = Checks("stats")
    for check in (check_numbers, check_light, check_live):
        with folder() as where:
            check(checks, where)
    checks.end()


main()
