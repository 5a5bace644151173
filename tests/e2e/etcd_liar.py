"""A server that speaks like etcd's gateway, correctly or not, as the test chooses."""
import base64
import contextlib
import json
import re
import socket
import threading
import time


def code(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def entry(key, value, revision, version=1):
    return {"key": code(key), "value": code(value), "create_revision": "1", "mod_revision": str(revision), "version": str(version)}


def header(revision=5):
    return {"cluster_id": "1", "member_id": "2", "revision": str(revision), "raft_term": "2"}


HONEST = {
    "kv/range": {"header": header(), "kvs": [entry("/framed/a", "{}", 3), entry("/framed/b", "", 5)], "count": "2"},
    "kv/txn": {"header": header(6), "succeeded": True, "responses": [{"response_put": {"header": {"revision": "6"}}}]},
    "lease/grant": {"header": header(), "ID": "77", "TTL": "5"},
    "lease/keepalive": {"result": {"header": header(), "ID": "77", "TTL": "5"}},
    "lease/revoke": {"header": header()},
    "auth/authenticate": {"header": header(0), "token": "abc.1"},
}


def answer(body, status="200 OK", more=""):
    """Returns an HTTP answer with that body: text, bytes or JSON."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(body):
    data = body if isinstance(body, bytes) else body.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def line(result):
    """Returns one line of a watch's stream."""
    return json.dumps({"result": result}) + "\n"


def created(revision=5):
    return line({"header": header(revision), "created": True})


def events(*changes):
    """Returns a line with changes, each (key, value, revision)."""
    return line({"header": header(changes[-1][2]), "events": [{"kv": entry(*change)} for change in changes]})


def be_honest(liar, peer, path, body):
    """A behaviour: writes to the peer and returns True if the connection goes on."""
    if path == "watch":
        peer.sendall(CHUNKED + chunk(created()))
        while liar.is_open and liar.behave == be_honest:
            time.sleep(0.02)
        return False
    peer.sendall(answer(HONEST[path]))
    return True


def say(data, goes_on=True):
    """Returns a behaviour that always sends these bytes."""
    def behave(liar, peer, path, body):
        peer.sendall(data)
        return goes_on
    return behave


def say_nothing(liar, peer, path, body):
    while liar.is_open and liar.behave in (say_nothing, drip):
        time.sleep(0.02)
    return False


def answer_late(liar, peer, path, body):
    time.sleep(0.7)
    return be_honest(liar, peer, path, body)


def drip(liar, peer, path, body):
    for byte in answer(HONEST.get(path, {})):
        peer.sendall(bytes([byte]))
        time.sleep(0.05)
    return True


def flood(part):
    def behave(liar, peer, path, body):
        peer.sendall(CHUNKED)
        while liar.is_open and liar.behave == behave:
            peer.sendall(chunk(part * (1 << 16)))
        return False
    return behave


def send_headers(liar, peer, path, body):
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    while liar.is_open and liar.behave == send_headers:
        peer.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    return False


def damage(rng, data):
    """Returns the data with bytes lost, changed, doubled or cut."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at:at + rng.randint(1, 20)]
        elif kind == 2:
            data[at:at] = data[at:at + rng.randint(1, 60)]
        elif kind == 3:
            data[at:at] = rng.choice([b"null", b"-", b"{", b"]", b"9" * 30, b'"', b"\\u0000", b"\0", b"\xff"])
        else:
            del data[at:]
        if not data:
            data = bytearray(b"x")
    return bytes(data)


class Liar:
    """Calls self.behave for each request; self.asked contains (time, path, body, head) of each."""

    def __init__(self, behave=be_honest):
        self.behave, self.asked, self.connections, self.is_open, self.peers = behave, [], 0, True, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while self.is_open:
                peer, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with contextlib.suppress(OSError), peer:
            self.peers.add(peer)
            rest = b""
            while self.is_open:
                while b"\r\n\r\n" not in rest:
                    if not (data := peer.recv(65536)):
                        return
                    rest += data
                head, rest = rest.split(b"\r\n\r\n", 1)
                length = int(re.search(rb"content-length: (\d+)", head, re.I)[1])
                while len(rest) < length:
                    if not (data := peer.recv(65536)):
                        return
                    rest += data
                body, rest = rest[:length], rest[length:]
                path = head.split(b" ")[1].decode().removeprefix("/v3/")
                self.asked.append((time.monotonic(), path, body, head))
                if not self.behave(self, peer, path, body):
                    return

    def turn(self, behave):
        """Changes the behaviour and closes all connections, so that peers have to connect again."""
        self.behave = behave
        for peer in list(self.peers):
            self.peers.discard(peer)
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)

    def counts(self, path=""):
        return sum(path in asked[1] for asked in self.asked)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_open = False
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Deaf:
    """A listener that completes no further connection, like a box whose packets are dropped."""

    def __enter__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.fill = [socket.socket() for _ in range(3)]
        for one in self.fill:
            one.setblocking(False)
            one.connect_ex(self.listener.getsockname())
        time.sleep(0.1)
        return self

    def __exit__(self, *_):
        for one in (*self.fill, self.listener):
            one.close()
