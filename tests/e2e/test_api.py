#!/usr/bin/python3
"""The API for the page and other programs: the answers of a running daemon."""
import http.client
import json
import signal
import struct
import threading
import time

import consume
from api_schemas import Api
from framed_client import PATIENCE, Checks, Framed, Reader, folder, free_port, make_clip, until
from http_client import Client, port_of

CONFIG = """
http: 0
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    stats: true
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/o.sock"}}
      p: {{size: 64x64, sink: "tcp:0", max_age: 750ms}}
      found: {{size: 64x64, fps: 5, sink: "ring:{where}/found.ring", detections: {{sink: "unix:{where}/found.sock"}}}}
  door:
    url: tcp://127.0.0.1:{port}
    outputs:
      o: {{size: 64x64, sink: "tcp:0"}}
"""


api = Api()


def get(client, page):
    status, headers, text = client.get(page)
    assert status == 200 and headers["Content-Type"] == "application/json", f"{page}: {status} {headers} {text}"
    return json.loads(text)


def check_description(checks, client):
    """Answers of all kinds match the description, which is served too."""
    served = get(client, "/api/v1/openapi.json")
    checks.check(served == api.spec, "another description is served")
    for page in ("/metrics", "/healthz", "/readyz", "/api/v1/status", "/api/v1/status?camera=gate", "/api/v1/cameras", "/api/v1/scenes",
                 "/api/v1/scenes?camera=gate", "/api/v1/summary", "/api/v1/history", "/api/v1/history?samples=150&only=lost",
                 "/api/v1/history?since=7", "/api/v1/history?since=-1", "/api/v1/history?since=7x", "/api/v1/history?only=out",
                 "/api/v1/history?camera=gate&samples=1", "/api/v1/history?camera=none", "/api/v1/history?samples=301",
                 "/api/v1/history?samples=x", "/api/v1/events?types=x", "/api/v1/cameras/none/snapshot.jpg",
                 "/api/v1/cameras/gate/outputs/none/snapshot.jpg", "/api/v1/cameras/gate/snapshot.jpg?width=0",
                 "/api/v1/cameras/none/stream.mjpg", "/api/v1/view?c=gate:320&fps=0"):
        status, headers, text = client.get(page)
        wrong = api.judge("GET", page, status, headers["Content-Type"], text)
        checks.check(not wrong, wrong)


def check_status(checks, client):
    status = get(client, "/api/v1/status")
    names = [camera["name"] for camera in status["cameras"]]
    checks.check(status["schema_version"] == 1 and names == ["gate", "door"], f"{status}")
    checks.check(status["http_write"] is False and abs(status["time_ms"] - 1000 * time.time()) < 2000, f"{status}")


def check_parts(checks, client):
    """Status of one camera; the summary of all cameras for a wall; the history since a sample."""
    for page, names in (("/api/v1/status?camera=gate", ["gate"]), ("/api/v1/status?camera=none", []),
                        ("/api/v1/cameras?camera=door", ["door"]), ("/api/v1/summary", ["gate", "door"])):
        checks.check([camera["name"] for camera in get(client, page)["cameras"]] == names, f"{page}: not {names}")
    scenes = until(lambda: get(client, "/api/v1/scenes?camera=gate")["scenes"], 5)
    checks.check(len(scenes) == 1 and not get(client, "/api/v1/scenes?camera=door")["scenes"], f"scenes: {scenes}")
    gate, door = get(client, "/api/v1/summary")["cameras"]
    checks.check(gate["state"] == "running" and 15 < gate["fps_in"] < 35 and gate["p99_s"] > 0 and gate["max_age_s"] == 0.75, f"{gate}")
    checks.check(door["state"] == "retrying" and "refused" in door["error"] and "max_age_s" not in door, f"{door}")
    before = get(client, "/api/v1/history")["newest"]
    since = f"/api/v1/history?since={before}"
    more = until(lambda: get(client, since)["samples"] and get(client, since), 6)
    checks.check(more["newest"] - more["samples"] == before and len(more["cameras"]["gate"]["in"]) == more["samples"], f"since: {more}")
    lost = get(client, f"{since}&only=lost")["cameras"]
    checks.check(lost["gate"]["outputs"]["p"]["lost"]["client"][0] > 20 and list(lost["door"]["outputs"]["o"]) == ["lost"], f"lost: {lost}")


def check_history(checks, client):
    """Pictures come in at the clip's 25 per second; one output has a reader, the other loses them all."""
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


class Events(threading.Thread):
    """Follows events until closed: (id, kind, data) each."""

    def __init__(self, port, query="", headers=None):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * PATIENCE)
        self.connection.request("GET", "/api/v1/events" + query, headers=headers or {})
        self.response = self.connection.getresponse()
        self.status, self.type = self.response.status, self.response.headers["Content-Type"]
        self.list, self.comments, self.wrong = [], 0, ""
        self.start()

    def run(self):
        fields = {}
        try:
            while line := self.response.readline().decode():
                if line == "\n" and "data" in fields:
                    self.wrong += api.wrong(f"{fields['event'].capitalize()}Event", json.loads(fields["data"]))
                    self.list.append((int(fields.get("id", 0)), fields["event"], json.loads(fields["data"])))
                    fields = {}
                self.comments += line.startswith(":")
                if ": " in line and not line.startswith(":"):
                    name, value = line.rstrip("\n").split(": ", 1)
                    fields[name] = value
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed

    def of(self, kind, **wanted):
        return [data for _, one, data in list(self.list)
                if one == kind and all(data.get(name) == value for name, value in wanted.items())]

    def close(self):
        self.connection.sock.shutdown(2)
        self.join(10)


def check_events(checks, client, framed):
    """Past events come first, then new ones: a camera without an answer, one that runs, and reloads."""
    every = Events(client.port)
    checks.check(every.status == 200 and every.type == "text/event-stream", f"{every.status} {every.type}")
    refused = until(lambda: every.of("state", camera="door", state="retrying"), 10)
    checks.check(refused and "refused" in refused[0]["why"] and "outage_s" not in refused[0], f"door: {refused}")
    running = until(lambda: every.of("state", camera="gate", state="running"), 10)
    checks.check(running and running[0]["why"] is None and abs(running[0]["t"] - time.time()) < 60, f"gate: {running}")
    gate = Events(client.port, "?camera=gate&types=state,reload")
    reloads = Events(client.port, "?types=reload")
    with open(framed.config) as file:
        text = file.read()
    with open(framed.config, "w") as file:
        file.write(text.replace("door:", "yard:"))
    framed.child.send_signal(signal.SIGHUP)
    done = until(lambda: reloads.of("reload", ok=True), 10)
    checks.check(done and done[0]["text"] == "1 camera kept, 1 camera added, 1 camera removed", f"a reload: {done}")
    with open(framed.config, "w") as file:
        file.write(text.replace("size:", "sise:", 1))
    framed.child.send_signal(signal.SIGHUP)
    failed = until(lambda: reloads.of("reload", ok=False), 10)
    checks.check(failed and "sise: unknown key" in failed[0]["text"], f"a reload that is refused: {failed}")
    checks.check(until(lambda: every.of("state", camera="door", state="ended", why="stopped"), 10), "door ends")
    checks.check({data["camera"] for data in gate.of("state")} == {"gate"} and not gate.of("reload"), f"{gate.list}")
    checks.check({kind for _, kind, _ in reloads.list} == {"reload"}, f"{reloads.list}")
    with open(framed.config, "w") as file:
        file.write(text)
    framed.child.send_signal(signal.SIGHUP)
    until(lambda: len(every.of("reload")) == 3, 10)
    numbers = [number for number, _, _ in every.list]
    checks.check(numbers == sorted(set(numbers)), f"numbers rise: {numbers}")
    for query, headers in ((f"?after={numbers[-3]}", None), ("", {"Last-Event-ID": str(numbers[-3])})):
        back = Events(client.port, query, headers)
        until(lambda: len(back.list) >= 2, 5)
        checks.check([number for number, _, _ in back.list][:2] == numbers[-2:], f"behind {numbers[-3]}: {back.list}")
        back.close()
    for query in ("?types=states", "?types=", "?after=x", "?after=-1", f"?camera={'x' * 24}"):
        checks.check(client.get("/api/v1/events" + query)[0] == 400, f"{query} is taken")
    for one in every, gate, reloads:
        checks.check(not one.wrong, one.wrong)
        one.close()


def check_detections(checks, client, where):
    """Detections are sent to clients that request them."""
    lines = Events(client.port, "?types=detections&camera=gate")
    others = Events(client.port, "?types=detections&camera=yard")
    ring = consume.Ring(consume.connect(f"ring:{where}/found.ring", 10))
    frames = ring.frames()
    for _ in range(3):
        next(frames)
        slot, ticket = ring.held
        found = struct.pack("<4sHHIIQII", b"FRRS", 1, 0, slot, 0, ticket, 1, 0)
        ring.peer.send(found + struct.pack("<4ff2Hq", 10, 20, 30, 40, 0.5, 2, 0, 7))
    got = until(lambda: len(lines.of("detections")) >= 3 and lines.of("detections"), 10)
    checks.check(got and got[0]["output"] == "found" and len(got[0]["objects"]) == 1, f"lines: {lines.list}")
    checks.check(not others.list, f"another camera's: {others.list}")
    ring.peer.close()
    checks.check(not lines.wrong, lines.wrong)
    lines.close()
    others.close()


def main():
    checks = Checks("api")
    with folder() as where:
        clip = make_clip(f"{where}/clip.mp4")
        with Framed(where, CONFIG.format(clip=clip, where=where, port=free_port())) as framed:
            client = Client(port_of(framed))
            reader = Reader(f"unix:{where}/o.sock", keep=False)
            check_status(checks, client)
            check_events(checks, client, framed)
            check_detections(checks, client, where)
            check_history(checks, client)
            check_parts(checks, client)
            check_description(checks, client)
            checks.check(reader.count > 0, "nothing was read")
    checks.end()


main()
