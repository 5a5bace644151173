#!/usr/bin/python3
"""Metrics, health, readiness and cameras by HTTP: the contents of each page, access to it, and that slow, stuck or nonsensical clients disturb no
other."""
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import time

import prometheus_client.parser
from framed_client import BINARY, PATIENCE, Checks, Framed, Reader, folder, free_port, make_clip, run, until
from http_client import Client, port_of

TOKEN = "Zorngiebel-0123456789"
CONFIG = """
http: {http}
ready: all
{top}
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs:
      read: {{size: 64x64, sink: "unix:{where}/read.sock"}}
      unheard: {{kernel: yuv, sink: "tcp:0"}}
  clip:
    url: {clip}
    outputs:
      o: {{kernel: yuv, overflow: wait, sink: "file:{where}/o.y4m"}}
  door:
    url: tcp://viewer:{token}@127.0.0.1:{port}
    outputs:
      o: {{size: 64x64, sink: "tcp:0"}}
"""


def check_pages(checks, client):
    status, headers, text = client.get("/metrics")
    checks.check(status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), f"{headers}")
    for line in (r'framed_camera_up{camera="gate"} 1', r'framed_camera_up{camera="door"} 0',
                 r'framed_pictures_total{camera="clip"} 50',
                 r'framed_frames_total{camera="clip",output="o",stage="emitted"} 50',
                 r'framed_output_latency_seconds_count{camera="clip",output="o"} 50',
                 r'framed_output_latency_seconds_bucket{camera="clip",output="o",le="\+Inf"} 50',
                 r'framed_frames_lost_total{camera="gate",output="unheard",reason="client"} [1-9]\d*'):
        checks.check(re.search(f"^{line}$", text, re.M), f"no line {line}")
    buckets = [int(n) for n in re.findall(r'latency_seconds_bucket{camera="clip".* (\d+)\n', text)]
    checks.check(len(buckets) == 15 and buckets == sorted(buckets), f"buckets of the latency: {buckets}")
    checks.check(client.get("/healthz")[::2] == (200, "ok\n"), "/healthz")
    checks.check(client.get("/readyz")[::2] == (503, "no picture yet from door\n"), f"{client.get('/readyz')[2]}")
    status, headers, text = client.get("/api/v1/cameras")
    cameras = {camera["name"]: camera for camera in json.loads(text)["cameras"]}
    states = {name: camera["state"] for name, camera in cameras.items()}
    checks.check(headers["Content-Type"] == "application/json" and states["gate"] == "running"
                 and states["clip"] == "ended" and states["door"] in ("retrying", "connecting"), f"cameras: {states}")
    checks.check(TOKEN not in text + client.get("/metrics")[2], "a secret shows")


def check_parser(checks, client):
    """Prometheus' own parser accepts /metrics, and `promtool check metrics` would find no fault in it."""
    try:
        families = list(prometheus_client.parser.text_string_to_metric_families(client.get("/metrics")[2]))
    except ValueError as error:
        return checks.check(False, f"the parser: {error}")
    checks.check(len(families) > 10, f"the parser finds {[family.name for family in families]}")
    for family in families:
        name, kind = family.name, family.type
        checks.check(family.documentation and kind in ("counter", "gauge", "histogram"), f"{name}: no HELP or TYPE")
        checks.check(kind != "gauge" or not name.endswith("_total"), f"{name}: the name of a counter, but a {kind}")
        told = [(sample.name, *sorted(sample.labels.items())) for sample in family.samples]
        checks.check(told and len(told) == len(set(told)), f"{name}: no sample, or one twice")
        ends = {"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_sum", "_count"}}.get(kind)
        checks.check({sample.name.removeprefix(name) for sample in family.samples} == ends, f"{name}: {told}")
        last = {sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")}
        checks.check(kind != "histogram" or "+Inf" in last, f"{name}: no bucket without an end")


def check_refusals(checks, client):
    for page in ("/metrics/", "/metricsx", "/../metrics", "/api/v1/camera", "//healthz"):
        checks.check(client.get(page)[0] == 404, f"{page}: {client.get(page)}")
    checks.check(client.get("/healthz?a=b")[0] == 200, "a query is no part of the path")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = client.get("/metrics", method, "x" * 1000)
        checks.check(status == 405 and headers["Allow"] == "GET, HEAD", f"{method}: {status}")
    status, headers, text = client.get("/metrics", "HEAD")
    checks.check(status == 200 and not text and int(headers["Content-Length"]) > 1000, f"HEAD: {status}, {headers}")
    try:
        status = client.get("/" + "x" * 100000)[0]
    except (OSError, http.client.HTTPException):
        status = 0  # hung up
    checks.check(status in (0, 400, 414, 431), f"a long path: {status}")


def check_stuck(checks, client, reader, framed):
    """Opens more clients than framed accepts: garbage, half requests, no request, and clients that do not read."""
    stuck, descriptors = [], len(os.listdir(f"/proc/{framed.child.pid}/fd"))
    for said in (b"", b"GET /met", b"\0\xff\r\n\r\n" * 100, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n"):
        for _ in range(40):
            peer = socket.create_connection(("127.0.0.1", client.port))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            peer.sendall(said)
            stuck.append(peer)
    before, start = reader.count, time.monotonic()
    time.sleep(1)
    rate = (reader.count - before) / (time.monotonic() - start)
    checks.check(rate > 20, f"{rate:.1f} frames/s beside stuck clients")
    checks.check(client.get("/healthz")[0] == 200, "nobody is answered any more")
    checks.check(until(lambda: len(os.listdir(f"/proc/{framed.child.pid}/fd")) < descriptors + 10, 25),
                 "stuck clients are never let go")
    for peer in stuck:
        peer.close()
    checks.check(client.get("/readyz")[0] == 503, "not the same as before")


def check_head(checks, client):
    """HEAD of every page, streams too, ends with its header: the data that follow answer the next request."""
    paths = [path.replace("{camera}", "gate").replace("{output}", "read") for path, methods in
             json.loads(client.get("/api/v1/openapi.json")[2])["paths"].items() if "get" in methods]
    checks.check(len(paths) > 12 and any("stream.mjpg" in path for path in paths), f"{paths}")
    for path in (*paths, "/api/v1/view?c=gate:320", "/api/v1/events?since=0", "/metrics", "/healthz", "/none"):
        with socket.create_connection(("127.0.0.1", client.port), 20) as peer, peer.makefile("rb") as answers:
            peer.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = list(iter(lambda: answers.readline().rstrip(), b""))
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            said = answers.read()
        checks.check(head and head[0].startswith(b"HTTP/1.1 ") and (path == "/none" and not said or said.startswith(b"HTTP/1.1 200 OK\r\n")), f"HEAD {path}: {head[:1]}, then {said[:60]}")


def is_open(peer):
    """Returns True if the other side has not closed; it has sent nothing."""
    peer.settimeout(0)
    try:
        return peer.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def hold_half_open(connect, said, count=500):
    """Opens `count` connections that send these bytes and no more; connecting does not wait."""
    peers = []
    for _ in range(count):
        peer = connect()
        try:
            peer.sendall(said)
        except OSError:
            pass  # pushed out already
        peers.append(peer)
    return peers


def check_half_open(checks, client, framed):
    """Requests that never end do not delay other answers, by HTTP or by the control socket."""
    def connect():
        return socket.create_connection(("127.0.0.1", client.port), timeout=20)

    def connect_control():
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(os.path.join(os.path.dirname(framed.config), "control.sock"))
        return peer

    stuck = hold_half_open(connect, b"GET /healthz HTTP/1.1\r\nHost")
    for _ in range(20):
        start = time.monotonic()
        status = client.get("/healthz")[0]
        took = time.monotonic() - start
        if not checks.check(status == 200 and took < 1, f"/healthz took {took:.3f} s beside half-open requests"):
            break
    checks.check(not is_open(stuck[0]) and is_open(stuck[-1]), "it is not the oldest that are pushed out")
    checks.check(until(lambda: not is_open(stuck[-1]), 3), "a half-open request has no end")
    stuck += hold_half_open(connect_control, b"stat")
    start = time.monotonic()
    code = subprocess.run([BINARY, "status", "--json", "--socket", os.path.join(os.path.dirname(framed.config), "control.sock")],
                          capture_output=True).returncode
    took = time.monotonic() - start
    checks.check(code == 0 and took < 2, f"status: exit {code} in {took:.3f} s beside half-open requests")
    for peer in stuck:
        peer.close()


def check_request_time(checks, client):
    """A request has 2 s from its first byte, at any pace; a client that has sent nothing has longer."""
    idle = socket.create_connection(("127.0.0.1", client.port))
    trickling = socket.create_connection(("127.0.0.1", client.port))
    start = time.monotonic()
    try:
        for byte in b"GET /healthz HTTP/1.1\r\nHost: one-byte-at-a-time\r\n":
            trickling.send(bytes([byte]))
            time.sleep(0.25)
            if not is_open(trickling):
                break
    except OSError:
        pass
    took = time.monotonic() - start
    checks.check(1.5 < took < 4 * PATIENCE, f"a request that comes byte by byte was cut after {took:.2f} s")
    checks.check(is_open(idle), "who has sent no byte is let go with the others")
    idle.settimeout(5)
    idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    checks.check(idle.recv(1000).startswith(b"HTTP/1.1 200"), "who was idle for a while gets no answer")
    idle.close()
    trickling.close()


def check_scraping(checks, client, reader, framed):
    """A thousand scrapes cost no descriptor and no frame."""
    client.get("/metrics")
    lost = framed.live_metrics().losses(camera="gate", output="read")
    descriptors, took = len(os.listdir(f"/proc/{framed.child.pid}/fd")), []
    for _ in range(1000):
        start = time.perf_counter()
        client.get("/metrics")
        took.append(time.perf_counter() - start)
    print(f"scraped 1000 times, median {1e3 * statistics.median(took):.2f} ms")
    checks.check(until(lambda: len(os.listdir(f"/proc/{framed.child.pid}/fd")) <= descriptors, 5), "descriptors leak")
    after = framed.live_metrics().losses(camera="gate", output="read")
    checks.check(after == lost and reader.count > 0, f"frames are lost: {lost}, then {after}")


def check_token(checks, where, clip):
    text = CONFIG.format(http="0.0.0.0:0", top="http_token: ${TOKEN}\nlog: {level: debug}", clip=clip, where=where,
                         token=TOKEN, port=free_port())
    with Framed(where, text, {"TOKEN": TOKEN}) as framed:
        client = Client(port_of(framed), token=TOKEN)
        checks.check(client.get("/healthz")[0] == 200, "the token is refused")
        checks.check(client.get("/healthz", headers={"Authorization": f"bearer {TOKEN}"})[0] == 200, "bearer")
        wrong = (None, "", TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}",
                 f"Bearer x{TOKEN[1:]}")
        for page in ("/healthz", "/metrics", "/nothing"):
            for header in wrong:
                sent = {"Authorization": header} if header is not None else {}
                status, headers, body = client.get(page, headers=sent)
                checks.check(status == 401 and headers["WWW-Authenticate"] == "Bearer" and TOKEN not in body,
                             f"{page} with {header}: {status}")
        checks.check(client.get("/healthz", "POST", headers={})[0] == 401, "who has no token is told nothing else")
        framed.stop()
        checks.check(TOKEN not in framed.errors(), "the token is in the log")
    code, _, errors = run("check", "-c", "-", stdin=text.replace("http_token: ${TOKEN}", ""))
    checks.check(code == 78 and "needs an http_token" in errors, f"no token: exit {code}: {errors}")


def check_removed(checks, client, framed):
    """The socket's file is deleted: it comes back, and a connected client gets an answer."""
    with socket.socket(socket.AF_UNIX) as before:
        before.settimeout(10)
        before.connect(client.path)
        os.unlink(client.path)
        checks.check(until(lambda: os.path.exists(client.path), 5), "the socket does not come back")
        before.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        checks.check(before.recv(1000).startswith(b"HTTP/1.1 200"), "who was connected gets no answer")
    checks.check(client.get("/healthz")[::2] == (200, "ok\n"), "/healthz by the socket that came back")
    checks.check(os.stat(client.path).st_mode & 0o777 == 0o660, "its mode")
    line = f"http: the socket {client.path} was removed: listens there again"
    checks.check(framed.errors().count(line) == 1, framed.errors())


def check_unix(checks, where, clip):
    text = CONFIG.format(http=f"unix:{where}/http.sock", top="", clip=clip, where=where, token=TOKEN, port=free_port())
    with Framed(where, text) as framed:
        client = Client(path=f"{where}/http.sock")
        checks.check(until(lambda: os.path.exists(client.path), 10), "no socket")
        checks.check(client.get("/healthz")[::2] == (200, "ok\n"), "/healthz by a unix socket")
        checks.check(os.stat(client.path).st_mode & 0o777 == 0o660, "the socket's mode")
        check_removed(checks, client, framed)
        checks.check(framed.stop() == 0 and not os.path.exists(client.path), "the socket is left")


def check_taken(checks, where, clip):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        text = CONFIG.format(http=port, top="", clip=clip, where=where, token=TOKEN, port=free_port())
        with Framed(where, text) as framed:
            code = framed.wait(10)
            checks.check(code == 1 and f"no http: cannot listen on 127.0.0.1 port {port}" in framed.errors(),
                         f"a port that is taken: exit {code}: {framed.errors()}")


MOVING = """
{top}
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs: {{read: {{size: 64x64, sink: "unix:{where}/read.sock"}}}}
"""


def check_reload(checks, where, clip):
    """The daemon's own sockets follow a reload without losing a frame; a refused reload moves none."""
    first, second, third = f"{where}/a.sock", f"{where}/b.sock", f"{where}/c.sock"
    ports = free_port(), free_port()

    def text(top):
        return MOVING.format(top=top, clip=clip, where=where)

    def reload(top, control):
        with open(framed.config, "w") as file:
            file.write(text(top))
        return run("reload", "--socket", control)

    def status(page, port, token=None):
        try:
            return Client(port, token=token).get(page)[0]
        except OSError:
            return 0

    with Framed(where, text(f"control: {first}\nhttp: {ports[0]}")) as framed, socket.socket() as taken:
        reader = Reader(f"unix:{where}/read.sock")
        until(lambda: status("/readyz", ports[0]) == 200, 10)
        moved = f"control: {second}\nhttp: {ports[1]}"
        done = reload(moved, first)
        checks.check(done == (0, "1 camera kept\n", ""), f"who asked at the old place: {done}")
        checks.check(status("/healthz", ports[0]) == 0 and status("/healthz", ports[1]) == 200, "http did not move")
        checks.check(not os.path.exists(first), "the old control socket is left")
        done = reload(f"{moved}\nhttp_token: {TOKEN}", second)
        seen = [status("/healthz", ports[1], token) for token in (None, TOKEN, TOKEN[1:])]
        checks.check(done[0] == 0 and seen == [401, 200, 401], f"a token comes: {done}, {seen}")
        done = reload(f"{moved}\nhttp_token: {TOKEN[1:]}", second)
        seen = [status("/healthz", ports[1], token) for token in (None, TOKEN, TOKEN[1:])]
        checks.check(done[0] == 0 and seen == [401, 401, 200], f"another token: {done}, {seen}")
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, output, errors = reload(f"control: {third}\nhttp: {port}", second)
        checks.check(code == 78 and f":3:7: http: cannot listen on 127.0.0.1 port {port}" in errors,
                     f"a port that is taken: {code} {output}{errors}")
        code, output, errors = reload(f"control: {where}\nhttp: {ports[0]}", second)
        checks.check(code == 78 and f":2:10: control: {where} exists and is not a socket" in errors,
                     f"no place for a socket: {code} {output}{errors}")
        checks.check(status("/healthz", ports[0]) == 0 and not os.path.exists(third), "a refused reload has moved")
        code, output, errors = reload(f"control: {second}\nhttp: 0.0.0.0:{ports[1]}\nhttp_token: {TOKEN}", second)
        checks.check(code == 78 and "whose host no reload can change" in errors, f"another host: {code} {errors}")
        checks.check(status("/healthz", ports[1], TOKEN[1:]) == 200, "a refused reload has an effect")
        done = reload("control: off\nhttp: off", second)
        checks.check(done[0] == 0 and status("/healthz", ports[1], TOKEN[1:]) == 0 and not os.path.exists(second),
                     f"off: {done}")
        with open(framed.config, "w") as file:
            file.write(text(f"control: {third}\nhttp: unix:{where}/http.sock"))
        framed.child.send_signal(signal.SIGHUP)
        until(lambda: os.path.exists(f"{where}/http.sock"), 5)
        checks.check(run("status", "--socket", third)[0] == 0, "the control socket does not come back")
        checks.check(Client(path=f"{where}/http.sock").get("/healthz")[0] == 200, "HTTP does not come back")
        before = reader.count
        until(lambda: reader.count >= before + 25, 10)
        numbers = [frame.sequence for frame, _ in list(reader.frames)]
        checks.check(len(numbers) > 25 and numbers == list(range(numbers[0], numbers[0] + len(numbers))),
                     f"frames are lost: {numbers}")
        checks.check(framed.stop() == 0 and TOKEN[1:] not in framed.errors(), f"the end: {framed.errors()}")
        checks.check(not os.path.exists(third) and not os.path.exists(f"{where}/http.sock"), "sockets are left")


def main():
    checks = Checks("http")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"))
        text = CONFIG.format(http=0, top="", clip=clip, where=where, token=TOKEN, port=free_port())
        with Framed(where, text) as framed:
            client = Client(port_of(framed))
            reader = Reader(f"unix:{where}/read.sock", keep=False)
            until(lambda: 'framed_camera_up{camera="gate"} 1' in client.get("/metrics")[2]
                  and 'output="o",stage="emitted"} 50' in client.get("/metrics")[2], 20)
            check_pages(checks, client)
            check_parser(checks, client)
            check_refusals(checks, client)
            check_head(checks, client)
            check_scraping(checks, client, reader, framed)
            check_stuck(checks, client, reader, framed)
            check_half_open(checks, client, framed)
            check_request_time(checks, client)
            start = time.monotonic()
            held = socket.create_connection(("127.0.0.1", client.port))
            code = framed.stop()
            checks.check(code == 0 and time.monotonic() - start < 3, f"exit {code}: {framed.errors()}")
            held.close()
        check_token(checks, where, clip)
        check_unix(checks, where, clip)
        check_taken(checks, where, clip)
        check_reload(checks, where, clip)
    checks.end()


main()
