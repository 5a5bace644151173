#!/usr/bin/python3
"""framedio follows a camera of a cluster: through an etcd with users and TLS, only with the right arguments, past nodes that answer wrong, slowly or
never, and never back to frames of an older generation."""
import asyncio
import contextlib
import itertools
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time

from certificate import make_authority
from etcd_server import INSTALLED, Etcd, add_users, code
from framed_client import BINARY, PATIENCE, Checks, Framed, consume, folder, framedio_environment, free_port, make_clip, until

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio
from framedio.etcd import Etcd as Keys
from framedio.etcd import NotThere, context_of, hosts_of

TOKEN, USER, PASSWORD = "Zorngiebel-0123456789", "framed", "s3cret"
BYTES = 3 * 16 * 4


class Server(threading.Thread):
    """Listens, and calls answer(connection) for each connection, in its own thread."""

    def __init__(self, answer, family=socket.AF_INET, at=("127.0.0.1", 0)):
        super().__init__(daemon=True)
        self.answer, self.listener = answer, socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(at)
        self.listener.listen()
        self.port = self.listener.getsockname()[1] if family == socket.AF_INET else None
        self.start()

    def run(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            self.answer(connection)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def page(status, document):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


def said(*texts):
    """Returns an answer that is always the same: these texts, at once."""
    def answer(connection):
        connection.recv(65536)
        for text in texts:
            connection.sendall(text)
    return answer


def dripped(start):
    """Returns an answer that sends `start`, then a byte every 50 ms, for ever."""
    def answer(connection):
        connection.recv(65536)
        connection.sendall(start)
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)
    return answer


def endless(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 X\r\n\r\n[")
    while True:
        connection.sendall(b"0," * 65536)


def frames(*epochs):
    """Returns an output's socket: sends frames of these epochs, one after another, and then nothing more."""
    def answer(connection):
        for sequence, epoch in enumerate(epochs):
            header = consume.WIRE.pack(
                b"FRMD", 1, 256, BYTES, sequence, 0, sequence, epoch, 0, 0, 0, 0, 0, 16, 4, 16, 4, b"rgb", b"u8", b"nchw", 3, 0,
                0, 64, 128, 0, 16, 16, 16, 0, *[1.0, 0, 0, 0, 1, 0] * 2, b"gate", b"o")
            connection.sendall(header.ljust(256, b"\0") + bytes(BYTES))
            time.sleep(0.05)
        connection.recv(1)
    return answer


def put(etcd, key, document):
    etcd.ask("kv/put", {"key": code(f"/framed/yard/{key}"), "value": code(json.dumps({"schema": 1, **document}))})


def refused(call):
    """Returns the text of the ValueError that the call raises, a note of another exception, or "nothing"."""
    try:
        call().close()
    except ValueError as error:
        return str(error)
    except Exception as error:
        return f"not a ValueError: {error!r}"
    return "nothing"


def check_arguments(checks, where):
    """Each wrong argument gives one clear error, before any connection, without the password."""
    plain, tls = "cluster:etcd://h/yard/gate/o", "cluster:etcds://h/yard/gate/o"
    with open(f"{where}/empty.pem", "w"):
        pass
    for address, options, words in (
            (plain, {"password": PASSWORD}, "has no user beside it"), (plain, {"user": USER}, "has no password beside it"),
            (plain, {"ca": "/x"}, "ca is only for an etcd with TLS (cluster:etcds://)"), (plain, {"keyfile": "/x"}, "keyfile is only"),
            (tls, {"certificate": "/x"}, "certificate and keyfile of etcd go together"), (tls, {"keyfile": "/x"}, "go together"),
            (tls, {"ca": "/nowhere.pem"}, "ca: /nowhere.pem: No such file"), (tls, {"ca": f"{where}/empty.pem"}, "empty.pem: "),
            (tls, {"certificate": "/no.pem", "keyfile": "/no.key"}, "certificate /no.pem, keyfile /no.key: No such file"),
            ("unix:/tmp/x", {"user": USER, "password": PASSWORD}, "user, password: only for the address of a cluster"),
            (f"cluster:etcd://{USER}:{PASSWORD}@h/yard/gate/o", {}, "cluster:etcd://***@h/yard/gate/o: is not cluster:etcd://HOST"),
            ("cluster:etcd://h:port/yard/gate/o", {}, "is not"), ("cluster:etcd://h/yard/gate", {}, "is not"),
            ("cluster:redis://h/yard/gate/o", {}, "is not"), ("cluster:etcd://h//gate/o", {}, "is not")):
        for call in (framedio.open, framedio.aopen):
            told = refused(lambda: call(address, **options))
            checks.check(words in told and PASSWORD not in told and "\n" not in told, f"{address}, {list(options)}: {told}")
    checks.check(hosts_of("a,[::1],b:1,[::1]:2") == ["a:2379", "[::1]:2379", "b:1", "[::1]:2"], f"{hosts_of('a,[::1],b:1,[::1]:2')}")
    os.environ["FRAMED_ETCD_PASSWORD"] = PASSWORD
    checks.check("FRAMED_ETCD_USER" in refused(lambda: framedio.open(plain)), "a password alone in the environment")
    checks.check(refused(lambda: framedio.open(plain, user=USER)) == "nothing", "half of the environment, half given")
    del os.environ["FRAMED_ETCD_PASSWORD"]


def message_of(address, seconds=1, **options):
    """Returns (text of the Timeout, after how many seconds)."""
    begun = time.monotonic()
    with framedio.open(address, **options) as reader:
        try:
            return f"a frame: {reader.next(seconds)}", 0
        except framedio.Timeout as error:
            return str(error), time.monotonic() - begun


async def first_of(reader, count):
    async with reader:
        found = []
        async for frame in reader:
            found.append((frame.camera, frame.epoch))
            if len(found) == count:
                return found


def check_real(checks, where):
    """A daemon whose etcd has users and TLS: login by arguments, and by the environment."""
    files, data = make_authority(where), "secure"
    server = ["--cert-file", files["server.pem"], "--key-file", files["server.key"]]
    with Etcd(where, data, options=["--bcrypt-cost", "4"]) as etcd:
        etcd.wait()
        add_users(etcd)
    own, login = {"ca": files["ca.pem"]}, {"user": USER, "password": PASSWORD}
    with Etcd(where, data, "https", [*server, "--auth-token", "simple", "--auth-token-ttl", "1", "--bcrypt-cost", "4"]) as etcd:
        host = etcd.url.removeprefix("https://")
        keys = "".join(f", {name}: '{value}'" for name, value in (own | login).items())
        config = (f"backend: cpu\nhttp: {free_port()}\nhttp_token: {TOKEN}\n"
                  f"cluster: {{etcd: ['{etcd.url}'], site: yard, node: box, lease: 2s, room: 8{keys}}}\n")
        with Framed(where, config) as box:
            until(lambda: "this box is box of site yard" in box.errors(), 15)
            with open(f"{where}/cameras.yaml", "w") as file:
                file.write(f"defaults: {{pace: realtime, loop: true}}\ncameras: {{gate: {{url: '{where}/clip.mp4', outputs: "
                           f"{{o: {{size: 64x64, sink: 'unix:{where}/gate.sock'}}}}}}}}\n")
            done = subprocess.run([BINARY, "cluster", "apply", "-f", f"{where}/cameras.yaml", "-c", box.config], capture_output=True, text=True)
            checks.check(done.returncode == 0, done.stderr)
            address = f"cluster:etcds://{host}/yard/gate/o"
            with framedio.open(address, token=TOKEN, timeout=15 * PATIENCE, **own, **login) as reader:
                checks.check([frame.camera for frame in itertools.islice(reader, 5)] == ["gate"] * 5, "other frames")
                epoch = reader.next(5).epoch
            checks.check(epoch >= 65536, f"an epoch without a generation: {epoch}")
            wrong = address[:-1] + "nix"
            for found in (refused(lambda: framedio.open(wrong, token=TOKEN, **own, **login).next(9)),
                          refused(lambda: asyncio.run(first_of(framedio.aopen(wrong, token=TOKEN, timeout=9, **own, **login), 1)))):
                checks.check(found == f"{wrong}: gate has no output nix (o)", found)
            os.environ |= {"FRAMED_ETCD_USER": USER, "FRAMED_ETCD_PASSWORD": PASSWORD, "FRAMED_HTTP_TOKEN": TOKEN}
            found = asyncio.run(first_of(framedio.aopen(address, timeout=15 * PATIENCE, **own), 5))
            checks.check(found == [("gate", epoch)] * 5, f"in asyncio: {found}")
            for name in ("FRAMED_ETCD_USER", "FRAMED_ETCD_PASSWORD", "FRAMED_HTTP_TOKEN"):
                del os.environ[name]
            for options, words in (
                    (own | login | {"password": "wr0ng"}, "authentication failed"), (own, "user name is empty (user= and password=, or"),
                    (login, "certificate verify failed"), (login | {"ca": files["other.pem"]}, "certificate verify failed"),
                    (own | login, "box: wants another token")):
                told, took = message_of(address, 1.5 * PATIENCE, **options)
                checks.check(words in told and "wr0ng" not in told and PASSWORD not in told and took < 3 * PATIENCE, f"{words}: {told}, {took:.1f} s")
        check_tokens(checks, host, own)
    check_certificates(checks, where, files, server)


def check_tokens(checks, host, own):
    """An expired token is replaced; etcd reports it as unknown."""
    keys = Keys([host], (USER, PASSWORD), context_of(True, **own))
    read = lambda: keys.value("/framed/yard/plan", time.monotonic() + 10 * PATIENCE)
    checks.check(read()["schema"] == 1, "the plan")
    before = keys._token
    time.sleep(3)
    checks.check(read()["schema"] == 1 and keys._token != before, f"{before}, and {keys._token}")
    try:
        checks.check(False, f"outside of its keys: {keys.value('/else', time.monotonic() + 5)}")
    except NotThere as error:
        checks.check("permission denied" in str(error), f"{error}")


def check_certificates(checks, where, files, server):
    """An etcd that requires client certificates. If it has users, it rejects certificates with a CommonName, and says so."""
    own = {"ca": files["ca.pem"], "certificate": files["client.pem"], "keyfile": files["client.key"]}
    for data, wanted in (("own", "no box of yard"), ("secure", "CommonName of client")):
        with Etcd(where, data, "https", [*server, "--trusted-ca-file", files["ca.pem"], "--client-cert-auth"]) as etcd:
            address = f"cluster:{etcd.url.replace('https', 'etcds')}/yard/gate/o"
            told = until(lambda: wanted in (said := message_of(address, **own, user=USER, password=PASSWORD)[0]) and said, 15)
            checks.check(told, f"{data}: {message_of(address, **own)}")
            told, _ = message_of(address, ca=files["ca.pem"])
            checks.check(f"etcd at {etcd.url[8:]}: " in told and "no frame in time" in told, f"{data}, without a certificate: {told}")


def check_refusals(checks):
    """A refused login is not repeated at once: each try costs etcd a comparison of passwords."""
    asked = []

    def answer(connection):
        asked.append(connection.recv(65536).split(b" ")[1])
        connection.sendall(page(400, {"code": 3, "message": "etcdserver: authentication failed" if b"auth" in asked[-1] else "etcdserver: user name is empty"}))
    server = Server(answer)
    told, _ = message_of(f"cluster:etcd://127.0.0.1:{server.port}/yard/gate/o", 2, user=USER, password=PASSWORD)
    server.close()
    checks.check("authentication failed" in told and asked.count(b"/v3/auth/authenticate") == 1 and len(asked) > 3, f"{told}, {asked}")


def check_nodes(checks, etcd):
    """With any answer of a node, however slow, the reader returns in time and reports what was wrong."""
    put(etcd, "plan", {"version": 1, "cameras": {"gate": {"node": "box", "bound": 1, "generation": 1}}})
    address = f"cluster:etcd://{etcd.url.removeprefix('http://')}/yard/gate/o"
    for name, answer, words in (
            ("silent", lambda connection: time.sleep(30), "no answer in time|timed out"), ("drips its head", dripped(b"HTTP/1.1 200 X\r\nA: "), "in time"),
            ("drips its body", dripped(b"HTTP/1.1 200 X\r\nContent-Length: 99999\r\n\r\n"), "in time"), ("is endless", endless, "too long|in time"),
            ("is no HTTP", said(b"SSH-2.0-x\r\n"), "no HTTP"), ("hangs up", said(), "box: http"), ("is a text", said(page(200, b"hello")), "is no framed"),
            ("has another shape", said(page(200, {"outputs": 5})), "is no framed"), ("nests", said(page(200, b"[" * 100000)), "is no framed"),
            ("moved", said(b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), "does not show the camera any more"),
            ("wants a token", said(page(401, {"error": "no"})), "wants another token"), ("is full", said(page(503, {"error": "no"})), "HTTP 503")):
        server = Server(answer)
        put(etcd, "node/box", {"incarnation": 1, "http": f"http://127.0.0.1:{server.port}"})
        told, took = message_of(address)
        checks.check(any(word in told for word in words.split("|")) and took < 1.6 * PATIENCE, f"a node that {name}: {told}, {took:.2f} s")
        server.close()
    for http, words in (("http://h:x", "wrong address"), ("file:///etc/passwd", "wrong address"), ("http://[", "wrong address"), ("", "serves no HTTP"),
                        (f"http://127.0.0.1:{free_port()}", "refused")):
        put(etcd, "node/box", {"incarnation": 1, "http": http})
        told, took = message_of(address)
        checks.check(words in told and took < 1.6 * PATIENCE, f"{http}: {told}, {took:.2f} s")
    for plan in ({"cameras": [1]}, {"cameras": {"gate": 5}}, {"cameras": {"gate": {"node": ["box"]}}}):
        put(etcd, "plan", plan)
        told, _ = message_of(address)
        checks.check("no box of yard shows gate" in told, f"{plan}: {told}")
    dead = f"cluster:etcd://127.0.0.1:{free_port()},{etcd.url.removeprefix('http://')}/yard/gate/o"
    checks.check("no box of yard shows gate" in message_of(dead)[0], "a member that is dead is passed over")


def check_generations(checks, where, etcd):
    """Frames of an older epoch are left out; when the camera moves to another box, its reader follows."""
    put(etcd, "plan", {"version": 1, "cameras": {"gate": {"node": "box", "bound": 1, "generation": 2}}})
    address = f"cluster:etcd://{etcd.url.removeprefix('http://')}/yard/gate/o"
    first, second = 2 * 65536, 3 * 65536
    wanted = [first + 1, first + 2, first + 3, second, second + 1]
    for kind in ("open", "aopen"):
        sinks = [f"{where}/{kind}{i}.sock" for i in range(2)]
        boxes = [Server(frames(first + 1, first + 2, 65536 + 9, first + 3), socket.AF_UNIX, sinks[0]),
                 Server(frames(65536 + 10, second, first + 4, second + 1), socket.AF_UNIX, sinks[1])]
        begun = time.monotonic()
        place = lambda: sinks[time.monotonic() > begun + 0.7]
        node = Server(lambda connection: said(page(200, {"outputs": [{"name": "o", "sink": f"unix:{place()}"}]}))(connection))
        put(etcd, "node/box", {"incarnation": 1, "http": f"http://127.0.0.1:{node.port}"})
        if kind == "open":
            with framedio.open(address, newest=False, timeout=5 * PATIENCE) as reader:
                found = [frame.epoch for frame in itertools.islice(reader, 5)]
        else:
            found = [epoch for _, epoch in asyncio.run(first_of(framedio.aopen(address, newest=False, timeout=5 * PATIENCE), 5))]
        checks.check(found == wanted, f"{kind}: epochs {found}, not {wanted}")
        for server in (node, *boxes):
            server.close()


def main():
    checks = Checks("framedio_cluster")
    logging.getLogger("framedio").setLevel(logging.ERROR)
    with folder() as where:
        check_arguments(checks, where)
        check_refusals(checks)
        if not INSTALLED:
            checks.skip("etcd-server is not installed")
            checks.end()
        make_clip(f"{where}/clip.mp4")
        with Etcd(where) as etcd:
            etcd.wait()
            check_nodes(checks, etcd)
            check_generations(checks, where, etcd)
        check_real(checks, where)
    checks.end()


main()
