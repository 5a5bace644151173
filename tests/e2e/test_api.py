#!/usr/bin/python3
"""The API that the page and other programs use: the answers of a running daemon."""
import json
import time

from framed_client import Checks, Framed, Reader, folder, free_port, make_clip, until
from http_client import Client, port_of

CONFIG = """
http: 0
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/o.sock"}}
      p: {{size: 64x64, sink: "tcp:0"}}
  door:
    url: tcp://127.0.0.1:{port}
    outputs:
      o: {{size: 64x64, sink: "tcp:0"}}
"""


def get(client, page):
    status, headers, text = client.get(page)
    assert status == 200 and headers["Content-Type"] == "application/json", f"{page}: {status} {headers} {text}"
    return json.loads(text)


def check_status(checks, client):
    status = get(client, "/api/v1/status")
    names = [camera["name"] for camera in status["cameras"]]
    checks.check(status["schema_version"] == 1 and names == ["gate", "door"], f"{status}")
    checks.check(status["http_write"] is False and abs(status["time_ms"] - 1000 * time.time()) < 2000, f"{status}")


def check_history(checks, client):
    """Pictures come in at the clip's 25 a second; one output has a reader, the other loses them all."""
    def gate():
        return get(client, "/api/v1/history")["cameras"]["gate"]

    history = until(lambda: gate()["outputs"]["o"]["out"][-1] > 30 and get(client, "/api/v1/history"), 15)
    if not checks.check(history, "no history"):
        return
    gate, door = (history["cameras"][name] for name in ("gate", "door"))
    output, lossy = gate["outputs"]["o"], gate["outputs"]["p"]
    lists = [gate["in"], gate["decoded"], output["out"], lossy["lost"]["client"], output["latency"]["decode"],
             output["latency"]["process"], output["p99"], door["in"], door["outputs"]["o"]["p99"]]
    checks.check({len(one) for one in lists} == {history["samples"]}, f"lists of several lengths: {history}")
    checks.check(30 <= gate["in"][-1] <= 70 and 30 <= gate["decoded"][-1] <= 70, f"pictures in 2 s: {gate}")
    checks.check(lossy["out"][-1] == 0 and lossy["lost"]["client"][-1] > 30, f"who reads? {lossy}")
    stages = output["latency"]["decode"][-1], output["latency"]["process"][-1], output["p99"][-1]
    checks.check(all(ms is not None and 0 < ms < 2000 for ms in stages), f"latencies {stages}")
    checks.check(door["in"][-1] == 0 and door["outputs"]["o"]["p99"][-1] is None, f"a camera that is not there: {door}")
    age = time.time() - history["newest_ms"] / 1000
    checks.check(-0.1 < age < 2 + 2, f"the newest sample is {age:.1f} s old")


def main():
    checks = Checks("api")
    with folder() as where:
        clip = make_clip(f"{where}/clip.mp4")
        with Framed(where, CONFIG.format(clip=clip, where=where, port=free_port())) as framed:
            client = Client(port_of(framed))
            reader = Reader(f"unix:{where}/o.sock", keep=False)
            check_status(checks, client)
            check_history(checks, client)
            checks.check(reader.count > 0, "nothing was read")
    checks.end()


main()
