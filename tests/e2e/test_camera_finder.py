#!/usr/bin/python3
"""POST api/v1/discover and api/v1/probe: adding a camera over HTTP, from the search to lines that `framed check` accepts. One probe runs at a time;
its child ends when the result is no longer needed; no password is kept; running cameras lose nothing."""
import concurrent.futures
import http.client
import json
import os
import signal
import time

from camera_guard import Digest, Guard
from framed_client import PATIENCE, Checks, Framed, folder, make_clip, run, until
from http_client import Client, port_of
from numbered_clip import NumberedClip, encode
from onvif_camera import OnvifCamera
from rtsp_camera import Camera

NAME, PASSWORD = f"finder {os.getpid()}", "gehe/im@7"
CONFIG = """http: 127.0.0.1:0
http_write: true
cameras:
  old: {{url: "{clip}", loop: true, pace: realtime, outputs: {{o: {{size: 64x64, sink: "unix:{where}/old.sock"}}}}}}
"""


def post(client, path, **body):
    """Returns (status, the answer's JSON)."""
    status, _, text = client.get(path, "POST", json.dumps(body), {"Content-Type": "application/json"})
    return status, json.loads(text)


def children(framed):
    with open(f"/proc/{framed.child.pid}/task/{framed.child.pid}/children") as file:
        return [int(pid) for pid in file.read().split()]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode().split("\0")
    except OSError:
        return []


def check_found(checks, client, camera, onvif):
    status, found = post(client, "/api/v1/discover", seconds=1)
    mine = [each for each in found if each["name"] == NAME] if status == 200 else []
    checks.check(len(mine) == 1 and mine[0]["wants_login"] and not mine[0]["streams"], f"{status} {found}")
    for body, text in (({}, "goes to named cameras"), ({"addresses": []}, "goes to named cameras"), ({"addresses": "127.0.0.1"}, "is a list"),
                       ({"addresses": ["--json"]}, "is a list"), ({"addresses": ["a\nb"]}, "is a list"), ({"addresses": [""]}, "is a list"),
                       ({"addresses": [1]}, "is a list"), ({"addresses": ["127.0.0.1"] * 17}, "is a list")):
        status, said = post(client, "/api/v1/discover", seconds=0.5, user="viewer", password=PASSWORD, **body)
        checks.check(status == 400 and text in said["error"], f"{body}: {status} {said}")
    checks.check(onvif.attempts == 0, "a password went to a camera that nobody named")
    status, found = post(client, "/api/v1/discover", seconds=1, user="viewer", password=PASSWORD, addresses=["127.0.0.5"])
    mine = [each for each in found if each["name"] == NAME] if status == 200 else []
    urls = [stream["url"] for each in mine for stream in each["streams"]]
    checks.check((status, urls) == (200, [camera.url()]), f"{status} {found}")
    return urls[0] if urls else camera.url()


def check_probe(checks, where, client, framed, url):
    seen = []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(post, client, "/api/v1/probe", url=url, user="viewer", password=PASSWORD, name="gate", seconds=1)
        until(lambda: (pids := children(framed)) and seen.extend(map(command_line, pids)) or seen and "probe" in seen[-1], 5)
        busy, why = post(client, "/api/v1/probe", url=url)
        status, said = first.result()
    checks.check((busy, why) == (503, {"error": "another probe is under way: ask again when it is done"}), f"{busy} {why}")
    checks.check(seen and "probe" in seen[-1] and not any(PASSWORD[:4] in word for line in seen for word in line), f"{seen}")
    checks.check(status == 200 and "stream" in said, f"{status} {said}")
    stream, cost = said["stream"], said["cost"]
    checks.check((stream["codec"], stream["width"], stream["height"], stream["damaged"]) == ("h264", 320, 192, 0), f"{stream}")
    checks.check(cost["fits"] in (True, False) and said["room"]["leg"] and said["presets"], f"{said}")
    checks.check("${GATE_USER}:${GATE_PASSWORD}@127.0.0.1" in said["yaml"] and f"unix:{where}/gate-detector.sock" in said["yaml"], said["yaml"])
    with open(f"{where}/new.yaml", "w") as file:
        file.write(said["yaml"])
    code, _, errors = run("check", "-c", f"{where}/new.yaml", env={"GATE_USER": "viewer", "GATE_PASSWORD": "gehe%2Fim%407"})
    checks.check(code == 0, f"{errors}{said['yaml']}")


def check_refusals(checks, client, camera, url):
    camera.guard.refused.clear()
    status, said = post(client, "/api/v1/probe", url=url, user="viewer", password="falsch", seconds=0.5)
    checks.check(status == 200 and said["wants_login"] and "refused the user name or password" in said["error"], f"{status} {said}")
    checks.check(len(camera.guard.refused) == 1, f"{len(camera.guard.refused)} refusals")
    status, said = post(client, "/api/v1/probe", url="rtsp://127.0.0.1:1/x", seconds=0.5)
    checks.check(status == 200 and "refused" in said["error"] and not said["wants_login"], f"{status} {said}")
    for body, text in (
        ({}, "url has to be a camera's"), ({"url": "/etc/passwd"}, "url has to be a camera's"), ({"url": "unix:/x"}, "url has to be"),
        ({"url": 5}, "are strings"), ({"url": url, "more": 1}, "there are no others"), ({"url": url, "password": "a"}, "comes with a user"),
        ({"url": url, "seconds": 100}, "from 0.1 to 10"), ({"url": url, "name": "a b"}, "letters, digits"),
        ({"url": url + "\n--x"}, "are lines"), ({"url": "rtsp://h/" + "x" * 2000}, "are lines"),
    ):
        status, said = post(client, "/api/v1/probe", **body)
        checks.check(status == 400 and text in said["error"], f"{body}: {status} {said}")
    status, _, text = client.get("/api/v1/probe", "POST", "[", {"Content-Type": "application/json"})
    checks.check(status == 400 and "object of JSON" in text, f"{status} {text}")


def check_left_alone(checks, client, framed, camera):
    """The death of a child is reported; a client that disconnects ends its child; a probe of a silent camera ends in time."""
    camera.mute.add("DESCRIBE")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(post, Client(client.port), "/api/v1/probe", url=camera.url())
        checks.check(until(lambda: any("probe" in command_line(pid) for pid in children(framed)), 5), "no child")
        for pid in children(framed):
            os.kill(pid, signal.SIGKILL)
        checks.check(waiting.result() == (503, {"error": "the probe failed"}), f"{waiting.result()}")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(post, Client(client.port), "/api/v1/probe", url=camera.url(), seconds=0.5)
        began = time.monotonic()
        checks.check(until(lambda: children(framed), 5), "no child")
        status, said = waiting.result()
        checks.check(status == 200 and "error" in said and time.monotonic() - began < 15 * PATIENCE, f"{status} {said}")
    connection = http.client.HTTPConnection("127.0.0.1", client.port)
    connection.request("POST", "/api/v1/probe", json.dumps({"url": camera.url()}), {"Content-Type": "application/json"})
    checks.check(until(lambda: children(framed), 5), "no child")
    connection.close()
    checks.check(until(lambda: not children(framed), 5), f"children {children(framed)}")
    camera.mute.clear()


def main():
    checks = Checks("camera_finder")
    with folder() as where:
        clip = NumberedClip(encode(f"{where}/clip.h264", 50))
        old = make_clip(f"{where}/old.mkv", frames=100)
        with Camera(clip, guard=Guard(f"viewer:{PASSWORD}", [Digest()])) as camera, \
                OnvifCamera([camera.url()], address="127.0.0.5", name=NAME, user="viewer", password=PASSWORD) as onvif, \
                Framed(where, CONFIG.format(where=where, clip=old)) as framed:
            client = Client(port_of(framed))
            url = check_found(checks, client, camera, onvif)
            check_probe(checks, where, client, framed, url)
            check_refusals(checks, client, camera, url)
            check_left_alone(checks, client, framed, camera)
            checks.check(framed.stop() == 0, framed.errors()[-2000:])
            offered, lost = framed.metrics().account(camera="old")[0], framed.metrics().losses(camera="old")
            checks.check(offered > 25 and lost.keys() == {"client"}, f"{offered} offered, {lost} lost")
            checks.check(PASSWORD not in framed.errors() and "gehe%2Fim" not in framed.errors() and "falsch" not in framed.errors(),
                         framed.errors())
    checks.end()


main()
