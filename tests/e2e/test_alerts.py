#!/usr/bin/python3
"""Alerts: a webhook, a command and an MQTT broker get one event for each outage, in time, and none is lost over a restart. Also checks availability
in status and metrics, and that no password shows up anywhere."""
import base64
import glob
import http.server
import json
import os
import re
import signal
import socket
import threading
import time

from framed_client import PATIENCE, Checks, Framed, ffmpeg, folder, free_port, run, until
from mqtt_client import BROKER, Broker, Subscriber

SECRETS = {"camera": "Zorngiebel1", "webhook": "Hakenlachs2", "mqtt": "Moskitomast3", "token": "Tokentaube4-0123456"}
ENCODED = base64.b64encode(f"hook:{SECRETS['webhook']}".encode()).decode()
MEDIA_TIMEOUT_S = 1
CONFIG = """
control: {where}/own.sock
http: unix:{where}/http.sock
http_token: {token}
notify:
  webhook: "http://hook:{webhook}@127.0.0.1:{hook}/{path}"
  command: [{where}/tell, --all]
  mqtt: {{server: "mqtt://127.0.0.1:{broker}", user: framed, password: {mqtt}, topic: framed/test}}
  calm: 1s
defaults: {{media_timeout: {timeout}s, connect_timeout: 1s, demuxer: mpegts, size: 64x64}}
cameras:
  gate: {{url: "tcp://u:{camera}@127.0.0.1:{gate}", outputs: {{o: {{sink: "unix:{where}/gate.sock"}}}}}}
  yard: {{url: "tcp://127.0.0.1:{yard}?password={camera}", stats: true,
          outputs: {{o: {{sink: "unix:{where}/yard.sock"}}}}}}
"""
COMMAND = """#!/bin/sh
{ echo "$0 $*"; env; cat; } >> "${0%/*}/told"
"""


class Camera(threading.Thread):
    """Sends a clip in real time to each client; sends nothing while `silent`, hangs up at once while `away`."""

    def __init__(self, clip):
        super().__init__(daemon=True)
        with open(clip, "rb") as file:
            self.data = file.read()
        self.silent = self.away = False
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        step = len(self.data) // 600  # of a tenth of a second
        with client:
            for at in range(0, len(self.data), step):
                while self.silent and not self.away:
                    time.sleep(0.02)
                if self.away:
                    return
                try:
                    client.sendall(self.data[at:at + step])
                except OSError:
                    return
                time.sleep(0.1)


class Hook(http.server.ThreadingHTTPServer):
    """A receiver of webhooks: self.events contains (time, path, event). It refuses if `status` is not 200."""

    daemon_threads = True

    def __init__(self):
        self.events, self.refused, self.status, self.logins = [], 0, 200, set()
        super().__init__(("127.0.0.1", free_port()), Receiver)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def of(self, camera, state=None):
        return [event for _, _, event in self.events
                if event["camera"] == camera and state in (None, event["state"])]


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.logins.add(self.headers["Authorization"])
        if self.server.status == 200:
            self.server.events.append((time.time(), self.path, event))
        else:
            self.server.refused += 1
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Scene:
    """Two cameras, three targets of alerts, and the folder of their files."""

    def __init__(self, where):
        self.where = where
        clip = f"{where}/clip.ts"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x64:rate=10", "-t", "60", "-c:v", "libx264", "-preset", "ultrafast",
               "-g", "5", "-f", "mpegts", clip)
        self.gate, self.yard, self.hook = Camera(clip), Camera(clip), Hook()
        self.said = []  # logs of earlier daemons
        os.mkdir(f"{where}/state")
        with open(f"{where}/tell", "w") as file:
            file.write(COMMAND)
        os.chmod(file.name, 0o755)

    def config(self, broker, path="alerts"):
        return CONFIG.format(where=self.where, hook=self.hook.port, broker=broker, gate=self.gate.port, path=path,
                             yard=self.yard.port, timeout=MEDIA_TIMEOUT_S, **SECRETS)

    def framed(self, broker):
        return Framed(self.where, self.config(broker), {"STATE_DIRECTORY": f"{self.where}/state", "HIDDEN": SECRETS["mqtt"]})

    def told(self):
        """Returns the events that the command got."""
        if not os.path.exists(f"{self.where}/told"):
            return []
        with open(f"{self.where}/told") as file:
            return [json.loads(line) for line in file if line.startswith("{")]

    def state_file(self):
        with open(f"{self.where}/state/alerts") as file:
            return file.read()


def status(scene):
    code, output, _ = run("status", "-c", f"{scene.where}/framed.yaml", "--json")
    return {camera["name"]: camera for camera in json.loads(output)["cameras"]} if code == 0 else {}


def both_run(scene):
    return until(lambda: [camera["state"] for camera in status(scene).values()] == ["running"] * 2, 10)


def in_time(checks, event, arrived, what):
    took = (event["time_ms"] - event["since_ms"]) / 1000
    checks.check(took <= MEDIA_TIMEOUT_S + 1 * PATIENCE, f"{what}: told {took:.2f} s after the last picture: {event}")
    checks.check(arrived - event["time_ms"] / 1000 < 1 * PATIENCE, f"{what}: came late: {arrived}, {event}")


def check_outages(checks, scene, framed):
    """A camera that falls silent and one that hangs up each cause one event, and another one when it is over."""
    checks.check(both_run(scene), framed.errors())
    time.sleep(1.5)
    scene.hook.events.clear()  # of a slow start
    for camera, name, fault in ((scene.gate, "gate", "silent"), (scene.yard, "yard", "away")):
        setattr(camera, fault, True)
        told = until(lambda: scene.hook.of(name, "raised"), 6)
        checks.check(told and told[0]["kind"] == "down", f"{name} {fault}: {scene.hook.events}\n{framed.errors()}")
        if told:
            in_time(checks, told[0], scene.hook.events[-1][0], f"{name} {fault}")
        time.sleep(1)
        checks.check("down" in status(scene)[name]["alerts"], f"{status(scene)[name]}")
        setattr(camera, fault, False)
        over = until(lambda: scene.hook.of(name, "cleared"), 20)
        checks.check(over and over[0]["alert"] == told[0]["alert"], f"{name}: {scene.hook.events}\n{framed.errors()}")
        checks.check(len(scene.hook.of(name)) == 2, f"{name}: {scene.hook.of(name)}")
    checks.check(scene.hook.logins == {f"Basic {ENCODED}"}, f"logins: {scene.hook.logins}")


def check_command(checks, scene):
    count = len(scene.hook.events)
    until(lambda: len(scene.told()) >= count, 5)
    events = [event for _, _, event in scene.hook.events]
    checks.check(scene.told()[-count:] == events, f"the command: {scene.told()}\nthe webhook: {events}")
    with open(f"{scene.where}/told") as file:
        text = file.read()
    checks.check(f"{scene.where}/tell --all\n" in text and "\nFRAMED_CAMERA=gate\n" in text and "HIDDEN" not in text
                 and "\nFRAMED_STATE=cleared\n" in text and "\nFRAMED_KIND=down\n" in text, text)


def check_broker(checks, scene, subscriber):
    told = scene.told()
    until(lambda: len(subscriber.all("framed/test/events")) >= len(told), 5)
    events = [json.loads(event) for event in subscriber.all("framed/test/events")]
    checks.check(events == told and len(events) >= 4, f"{events}")
    checks.check(subscriber.last("framed/test/status") == "online", f"{subscriber.messages}")
    gate = subscriber.all("framed/test/gate/connectivity")
    checks.check(gate[-3:] == ["ON", "OFF", "ON"], f"states of gate: {gate}")
    checks.check(subscriber.all("framed/test/gate/problem")[-3:] == ["OFF", "ON", "OFF"], f"{subscriber.messages}")
    found = [json.loads(payload) for topic, payload in subscriber.messages
             if re.fullmatch(r"homeassistant/binary_sensor/framed_test_\w+/\w+/config", topic)]
    names = {(sensor["device"]["name"], sensor["state_topic"].split("/")[-1]) for sensor in found}
    checks.check({("gate", "connectivity"), ("gate", "problem"), ("yard", "dark")} <= names
                 and ("gate", "dark") not in names and len(found) == len(names), f"{names}")
    checks.check(all(sensor["availability_topic"] == "framed/test/status" for sensor in found), f"{found}")


def check_restart(checks, scene, broker):
    """framed is killed while the webhook refuses: the next daemon delivers the event, and no event comes twice."""
    subscriber = Subscriber(broker.port, "framed", SECRETS["mqtt"]) if broker else None
    with scene.framed(broker.port if broker else 1) as framed:
        both_run(scene)
        time.sleep(1.2)
        scene.hook.events.clear()
        scene.hook.status, scene.hook.refused = 503, 0
        before = len(scene.told())
        scene.yard.away = True
        checks.check(until(lambda: scene.hook.refused, 10), framed.errors())
        checks.check(until(lambda: '"yard"' in scene.state_file(), 5), f"{scene.state_file()}\n{framed.errors()}")
        told = until(lambda: scene.told()[before:], 5)
        checks.check(len(told) == 1 and told[0]["camera"] == "yard", f"{told}\n{framed.errors()}")
        time.sleep(0.5)  # until the file records the delivery to the command
        framed.child.kill()
        scene.said.append(framed.errors())
    if subscriber:
        checks.check(until(lambda: subscriber.last("framed/test/status") == "offline", 10), f"{subscriber.messages}")
    scene.hook.status = 200
    with scene.framed(broker.port if broker else 1) as framed:
        raised = until(lambda: scene.hook.of("yard", "raised"), 10)
        checks.check(raised and raised[0] == told[-1], f"{raised}, {told}\n{framed.errors()}")
        time.sleep(3)  # enough for a new evaluation to find a camera down
        checks.check(len(scene.hook.of("yard")) == 1, f"twice: {scene.hook.of('yard')}")
        scene.yard.away = False
        over = until(lambda: scene.hook.of("yard", "cleared"), 30)
        checks.check(over and over[0]["alert"] == told[-1]["alert"], f"{over}\n{framed.errors()}")
        check_reload(checks, scene, framed, broker, subscriber)
        framed.stop()
        scene.said.append(framed.errors())


def check_reload(checks, scene, framed, broker, subscriber):
    """Reloads with another webhook and one camera less: the next event goes there, and the broker drops the camera's topics."""
    text = scene.config(broker.port if broker else 1, "elsewhere")
    with open(framed.config, "w") as file:
        file.write(text[:text.index("  yard:")])
    code, output, errors = run("reload", "-c", framed.config)
    checks.check(code == 0, f"{output}{errors}")
    scene.gate.away = True
    moved = until(lambda: [path for _, path, event in scene.hook.events if path == "/elsewhere"], 10)
    checks.check(moved, f"{scene.hook.events}\n{framed.errors()}")
    if subscriber:
        topics = ["homeassistant/binary_sensor/framed_test_yard/dark/config", "framed/test/yard/problem"]
        checks.check(until(lambda: [subscriber.last(topic) for topic in topics] == ["", ""], 5), f"{subscriber.messages}")


def check_availability(checks, scene, framed):
    until(lambda: status(scene)["gate"]["availability"]["known_s"] > 5, 20)
    gate = status(scene)["gate"]["availability"]
    checks.check(0.05 < gate["share"] < 1 and gate["days"][:6] == [None] * 6, f"{gate}")
    code, table, _ = run("status", "-c", framed.config)
    checks.check(code == 0 and re.search(r"^gate .*\n +(alert: \w+; )?available \d\d?\.\d\d % of \d", table, re.M), table)
    metrics = framed.live_metrics()
    ratio = metrics.all("framed_camera_availability_ratio", camera="gate")
    checks.check(ratio and 0.05 < ratio[0][1] < 1, f"{ratio}")
    checks.check(metrics.sum("framed_alert_events_total", target="webhook", result="delivered") >= 4, f"{metrics.rows}")
    checks.check(metrics.sum("framed_alert_events_total", result="lost") == 0, f"{metrics.rows}")


def page(where, name):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(f"{where}/http.sock")
        peer.sendall(f"GET {name} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRETS['token']}\r\n"
                     "Connection: close\r\n\r\n".encode())
        with peer.makefile("rb") as answer:
            return answer.read().decode(errors="replace")


def check_pages(checks, scene):
    for name in ("/metrics", "/api/v1/cameras", "/api/v1/scenes", "/healthz", "/readyz"):
        answer = page(scene.where, name)
        checks.check(answer.startswith("HTTP/1.1 200") or name == "/readyz", f"{name}: {answer[:200]}")
        check_no_secret(checks, answer, name)


def check_no_secret(checks, text, where):
    found = [name for name, secret in [*SECRETS.items(), ("webhook in base64", ENCODED)] if secret in text]
    checks.check(text and not found, f"{where} has the secret of {found}: {text[-2000:]}")


def check_secrets(checks, scene, subscriber):
    checks.check(json.dumps(scene.hook.events), "events")
    check_no_secret(checks, json.dumps(scene.hook.events), "an event")
    check_no_secret(checks, scene.state_file(), "the state file")
    check_no_secret(checks, "".join(scene.said), "the log")
    with open(f"{scene.where}/told") as file:
        check_no_secret(checks, file.read(), "the command's input")
    if subscriber:
        check_no_secret(checks, json.dumps(subscriber.messages), "a message of the broker")
    checks.check(not glob.glob(f"{scene.where}/state/*.part"), "a part of a file is left")


class RudeBroker(threading.Thread):
    """Accepts every client, then hangs up on its first message, as some brokers do to clients without permission. Records the times."""

    def __init__(self):
        super().__init__(daemon=True)
        self.times = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            with client:
                self.times.append(time.monotonic())
                client.recv(4096)
                client.sendall(b"\x20\x02\0\0")
                client.recv(4096)


def check_rude_broker(checks, where):
    """The pauses between connections grow, and the log names the broker once."""
    broker = RudeBroker()
    address = f"mqtt://127.0.0.1:{broker.listener.getsockname()[1]}"
    camera = f'{{url: "tcp://127.0.0.1:9", outputs: {{o: {{sink: "unix:{where}/gate.sock"}}}}}}'
    with Framed(where, f'notify: {{mqtt: {{server: "{address}"}}}}\ncameras: {{gate: {camera}}}\n') as framed:
        until(lambda: len(broker.times) == 4, 20)
        checks.check(broker.times[3] - broker.times[2] > 1.5, f"asked at {broker.times}")
        checks.check(framed.stop() == 0, framed.errors())
        said = [line for line in framed.errors().splitlines() if "connect" in line and "MQTT broker" in line]
        checks.check(len(said) == 1, f"said: {said}")


def main():
    checks = Checks("alerts")
    with folder() as where:
        check_rude_broker(checks, where)
        scene = Scene(where)
        broker = Broker(where, "framed", SECRETS["mqtt"]) if BROKER else None
        if broker:
            broker.__enter__()
        else:
            checks.skip("mosquitto is not installed")
        try:
            subscriber = Subscriber(broker.port, "framed", SECRETS["mqtt"]) if broker else None
            with scene.framed(broker.port if broker else 1) as framed:
                check_outages(checks, scene, framed)
                check_command(checks, scene)
                if broker:
                    check_broker(checks, scene, subscriber)
                check_availability(checks, scene, framed)
                check_pages(checks, scene)
                checks.check(framed.stop() == 0, framed.errors())
                scene.said.append(framed.errors())
            check_restart(checks, scene, broker)
            check_secrets(checks, scene, subscriber)
        finally:
            if broker:
                broker.__exit__()
    checks.end()


main()
