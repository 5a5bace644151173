#!/usr/bin/python3
"""The client of etcd with servers that lie, are slow or fall silent: each request ends by its deadline with one sentence, another endpoint answers if
there is one, nothing is sent or reported twice, and no thread spins."""
import json
import os
import random
import time

from etcd_client import Client
from etcd_liar import (CHUNKED, HONEST, Deaf, Liar, answer, answer_late, be_honest, chunk, created, damage, drip, entry, events, flood, header,
                       line, say, say_nothing, send_headers)
from framed_client import SANITIZED, Checks, until

MS = 600  # of a request
LATE = 1.2 if not SANITIZED else 2
CASES = 400


def altered(**members):
    return say(answer({**HONEST["kv/range"], **members}))


ERROR = {"error": "etcdserver: mvcc: no such thing", "message": "etcdserver: mvcc: no such thing", "code": 2}
LIES = {
    "503": (say(answer("no", "503 Service Unavailable")), "EIO", "it answers with HTTP status 503"),
    "404": (say(answer("no", "404 Not Found")), "EPROTO", "it answers with HTTP status 404"),
    "403": (say(answer("no", "403 Forbidden")), "EACCES", "it answers with HTTP status 403"),
    "401": (say(answer("no", "401 Unauthorized")), "EACCES", "it answers with HTTP status 401"),
    "204": (say(b"HTTP/1.1 204 No Content\r\n\r\n"), "EPROTO", "it answers with HTTP status 204"),
    "an error of etcd's": (say(answer(ERROR, "500 Internal Server Error")), "EIO", ERROR["error"]),
    "an error with status 200": (say(answer(ERROR)), "EIO", ERROR["error"]),
    "an error of a stream": (say(answer({"error": {"grpc_code": 2, "message": "lost"}})), "EIO", "lost"),
    "an error with lines and a bell": (say(answer({"error": "a\nb\a" + "x" * 1000})), "EIO", "a b"),
    "no disk": (say(answer({"error": "etcdserver: mvcc: database space exceeded", "code": 8})), "ENOSPC", "space"),
    "text": (say(answer("<html>hello</html>")), "EPROTO", "not etcd's"),
    "nothing": (say(answer("")), "EPROTO", "not etcd's"),
    "cut JSON": (say(answer(json.dumps(HONEST["kv/range"])[:-20])), "EPROTO", "not etcd's"),
    "a list": (say(answer([1])), "EPROTO", "not etcd's"),
    "deep JSON": (say(answer("[" * 100000)), "EPROTO", "not etcd's"),
    "many values": (say(answer("[" + "[]," * 600000 + "0]")), "EPROTO", "not etcd's"),
    "no header": (say(answer({"kvs": []})), "EPROTO", "not etcd's"),
    "a revision of text": (altered(header={"revision": "5x"}), "EPROTO", "not etcd's"),
    "a revision beyond": (altered(header={"revision": "9223372036854775808"}), "EPROTO", "not etcd's"),
    "a revision below 0": (altered(header={"revision": "-1"}), "EPROTO", "not etcd's"),
    "a real revision": (altered(header={"revision": 5.5}), "EPROTO", "not etcd's"),
    "entries of text": (altered(kvs="none"), "EPROTO", "not etcd's"),
    "an entry of text": (altered(kvs=["none"]), "EPROTO", "not etcd's"),
    "no key": (altered(kvs=[{"mod_revision": "3", "version": "1"}]), "EPROTO", "not etcd's"),
    "a key of 5": (altered(kvs=[{**entry("/framed/a", "", 3), "key": 5}]), "EPROTO", "not etcd's"),
    "no base64": (altered(kvs=[{**entry("/framed/a", "", 3), "value": "#?"}]), "EPROTO", "not etcd's"),
    "another key": (altered(kvs=[entry("/else/a", "", 3)]), "EPROTO", "not etcd's"),
    "revision 0": (altered(kvs=[entry("/framed/a", "", 0)]), "EPROTO", "not etcd's"),
    "version -1": (altered(kvs=[entry("/framed/a", "", 3, -1)]), "EPROTO", "not etcd's"),
    "no HTTP": (say(b"hello\r\n\r\n", False), "EIO", ""),
    "a closed connection": (say(b"", False), "EIO", "closed"),
    "a cut answer": (say(answer(HONEST["kv/range"])[:-20], False), "EIO", "closed"),
    "silence": (say_nothing, "ETIMEDOUT", "no answer within 600 ms"),
    "one byte in 50 ms": (drip, "ETIMEDOUT", "no answer within 600 ms"),
    "headers without end": (send_headers, "EPROTO", "too large"),
}


def check_lies(checks):
    """A single endpoint: each lie gives an error and a sentence, and the next request succeeds once the endpoint is honest."""
    with Liar() as liar, Client(liar.url) as client:
        for name, (behave, errno, words) in LIES.items():
            liar.behave = behave
            used = client.used()
            said = client.ask("get", MS, "/framed/")
            used = client.used() - used
            good = said["errno"] == errno and words in said["error"] and said["error"].startswith(f"{liar.url}: ")
            checks.check(good and "\n" not in said["error"] and len(said["error"]) < 256, f"{name}: {said}")
            checks.check(said["ms"] < LATE * MS, f"{name}: {said['ms']} ms")
            checks.check(SANITIZED or used < 0.2, f"{name}: {used} s of a processor")
            liar.behave = be_honest
            said = client.ask("get", 5000, "/framed/")
            checks.check(said["rc"] == 0 and len(said["entries"]) == 2 and said["error"] == "", f"after {name}: {said}")
        checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_redirect(checks):
    with Liar() as honest, Liar() as liar, Client(liar.url) as client:
        liar.behave = say(answer("", "302 Found", f"Location: {honest.url}/v3/kv/range\r\n"))
        said = client.ask("get", MS, "/framed/")
        checks.check(said["errno"] == "EPROTO" and "HTTP status 302" in said["error"], f"a redirect: {said}")
        checks.check(honest.connections == 0, "a redirect was followed")


def check_floods(checks):
    """An endless answer is cut off by its size or by the deadline; memory is bounded."""
    for part in (b" ", b"[],"):
        with Liar(flood(part)) as liar, Client(liar.url) as client:
            said = client.ask("get", 10000, "/framed/")
            checks.check(said["errno"] in ("EPROTO", "ETIMEDOUT"), f"a flood: {said}")
            checks.check(SANITIZED or client.memory() < 300, f"a flood takes {client.memory()} MiB")
            liar.behave = be_honest
            said = client.ask("get", 5000, "/framed/")
            checks.check(said["rc"] == 0 and client.close() == 0, f"after a flood: {said}")
    # Whole JSON, small until it is parsed.
    with Liar(say(answer("[" + "[]," * 8000000 + "0]"))) as liar, Client(liar.url) as client:
        said = client.ask("get", 10000, "/framed/")
        memory = client.memory()
        good = said["errno"] == "EPROTO" and (SANITIZED or memory < 300) and client.close() == 0
        checks.check(good, f"eight million lists: {said}, {memory} MiB")


def check_large(checks):
    """A thousand cameras of 4 kB each."""
    cameras = [entry(f"/framed/site/camera/camera{n:04}", "x" * 4096, 4) for n in range(1000)]
    with Liar(altered(kvs=cameras)) as liar, Client(liar.url) as client:
        said = client.ask("get", 5000, "/framed/")
        good = said["rc"] == 0 and len(said["entries"]) == 1000 and {len(e["value"]) for e in said["entries"]} == {4096}
        checks.check(good and client.close() == 0, f"a thousand cameras: {said['errno']} {said['ms']} ms")


def check_next(checks):
    """A second endpoint answers in place of one that lies, and gets the following requests first."""
    for name, (behave, _, _) in LIES.items():
        if name in ("401", "403", "no disk"):
            continue
        with Liar(behave) as liar, Liar() as honest, Client(liar.url, honest.url) as client:
            said = client.ask("get", 1000, "/framed/")
            checks.check(said["rc"] == 0 and said["ms"] < 1000, f"beside {name}: {said}")
            asked = len(liar.asked)
            kept = client.ask("keepalive", 1000, 77)
            granted = client.ask("grant", 1000, 5)
            wrote = client.ask("commit", 1000, "put /framed/a x 0")
            good = [answer["rc"] for answer in (kept, granted, wrote)] == [0, 0, 0]
            checks.check(good and len(liar.asked) == asked, f"after {name}: {kept} {granted} {wrote}")
            checks.check(client.close() == 0, f"{name}: the client crashed")


def check_half_open(checks):
    """Two of three endpoints no longer answer: requests succeed all the same, and a lease is kept."""
    for place in range(3):
        with Deaf() as deaf, Liar(say_nothing) as silent, Liar() as honest:
            urls = [deaf.url, silent.url]
            urls.insert(place, honest.url)
            with Client(*urls) as client:
                answers = [client.ask(name, 1000, *words) for name, *words in
                           (("keepalive", 77), ("keepalive", 77), ("get", "/framed/"), ("keepalive", 77))]
                checks.check([said["rc"] for said in answers] == [0] * 4, f"half-open, the honest one at {place}: {answers}")
                late = [said["ms"] < (50 if place == 0 or n else 700) * (4 if SANITIZED else 1) for n, said in enumerate(answers)]
                checks.check(all(late), f"{place}: {[said['ms'] for said in answers]}")
                checks.check(all(said["sent_ms"] <= said["ms"] for said in answers), f"sent: {answers}")
            for name, *words in (("grant", 5), ("commit", "put /framed/a x 0"), ("revoke", 77)):
                with Client(deaf.url, honest.url) as client:
                    said = client.ask(name, 1000, *words)
                    checks.check(said["rc"] == 0 and said["ms"] < 1000, f"{name} beside a deaf endpoint: {said}")
    with Liar() as one, Liar() as other, Client(one.url, other.url) as client:
        first = client.ask("keepalive", 1000, 77)
        one.behave = say_nothing  # on the existing connection
        said = [client.ask("keepalive", 1000, 77) for _ in range(3)]
        checks.check(first["rc"] == 0 and [s["rc"] for s in said] == [0, 0, 0], f"falls silent: {said}")
    with Liar(answer_late) as one, Deaf() as other, Client(one.url, other.url) as client:
        said = client.ask("keepalive", 1000, 77)  # the first endpoint's answer still counts, beside the second
        checks.check(said["rc"] == 0 and said["sent_ms"] < 100, f"a late answer: {said}")
    with Liar(say_nothing) as one, Deaf() as other, Client(one.url, other.url) as client:
        for name, *words in (("keepalive", 77), ("get", "/framed/"), ("grant", 5), ("commit", "put /framed/a x 0")):
            said = client.ask(name, MS, *words)
            good = said["errno"] == "ETIMEDOUT" and MS <= said["ms"] < LATE * MS and "no answer" in said["error"]
            checks.check(good, f"nobody answers {name}: {said}")


def check_commits(checks):
    """A commit that may have arrived is not sent again, nor to another endpoint."""
    for name, behave, errno, limit in (("closes", say(b"", False), "EIO", 500), ("is silent", say_nothing, "ETIMEDOUT", MS),
                                       ("lies", say(answer("no")), "EPROTO", 500), ("has a 503", say(answer("", "503 No")), "EIO", 500)):
        with Liar() as one, Liar() as other, Client(one.url, other.url) as client:
            client.ask("get", 1000, "/framed/")  # leaves a connection that may be used again
            one.behave = other.behave = behave
            said = client.ask("commit", MS, "version /framed/a 0 put /framed/a x 0")
            checks.check(said["errno"] == errno and said["ms"] < LATE * limit, f"a commit to one that {name}: {said}")
            checks.check(one.counts("txn") + other.counts("txn") == 1, f"{name}: sent {one.counts('txn')}+{other.counts('txn')} times")
    # An endpoint does not get a grant twice at once, either.
    with Liar(say_nothing) as one, Liar() as other, Client(one.url, other.url) as client:
        said = client.ask("grant", 1000, 5)
        checks.check(said["rc"] == 0 and one.counts("grant") == 1 and other.counts("grant") == 1, f"a grant: {said}")


class Watched:
    """A behaviour: keeps a history of changes and serves watches of it through `serve`."""

    def __init__(self, serve):
        self.history, self.serve, self.starts = [], serve, []

    def __call__(self, liar, peer, path, body):
        if path != "watch":
            return be_honest(liar, peer, path, body)
        start = int(json.loads(body)["create_request"]["start_revision"])
        self.starts.append(start)
        peer.sendall(CHUNKED)
        return self.serve(peer, start, [change for change in self.history if change[2] >= start])


def check_watch_pieces(checks):
    """Lines come in pieces of one byte, many in one piece, and twice."""
    def serve(peer, start, changes):
        data = created() + "".join(events(change) for change in changes[:3])
        if start < 100:
            for byte in data.encode():
                peer.sendall(chunk(bytes([byte])))
        else:
            peer.sendall(chunk(data + events(("/framed/x", "old", 3)) + data))
        return False
    watched = Watched(serve)
    watched.history = [(f"/framed/{n}", str(n), n) for n in range(97, 120)]
    with Liar(watched) as one, Liar(watched) as other, Client(one.url, other.url) as client:
        client.watch("/framed/", 97)
        client.wait_for(lambda: len(client.events()) >= 23, 20)
        checks.check(client.events() == watched.history, f"changes: {client.events()}")
        checks.check(one.counts() > 1 and other.counts() > 1, "the watch stays at one endpoint")
        checks.check(client.close() == 0, "the client crashed")


def check_watch_lies(checks):
    """A lying server ends a watch's connection, not the watch, and costs little."""
    lies = {
        "closes": b"",
        "says created and closes": chunk(created()),
        "no JSON": chunk(created()) + chunk("hello\n"),
        "changes before created": chunk(events(("/framed/a", "x", 9))),
        "revisions that fall": chunk(created()) + chunk(events(("/framed/a", "x", 9), ("/framed/a", "y", 8))),
        "another key": chunk(created()) + chunk(events(("/else", "x", 9))),
        "canceled": chunk(line({"created": True, "canceled": True, "cancel_reason": "no leader"})),
        "an error": chunk(json.dumps({"error": {"grpc_code": 14, "message": "no leader"}})),
        "the last of all revisions": chunk(created()) + chunk(events(("/framed/a", "x", 2**63 - 1))),
        "a deletion with a version": chunk(created()) + chunk(line({"header": header(9), "events": [
            {"type": "DELETE", "kv": entry("/framed/a", "", 9)}]})),
        "another type": chunk(created()) + chunk(line({"header": header(9), "events": [{"type": 5, "kv": entry("/framed/a", "", 9)}]})),
    }
    for name, data in lies.items():
        with Liar(say(CHUNKED + data, False)) as liar, Client(liar.url) as client:
            client.watch("/framed/", 6)
            time.sleep(0.2)
            used, before = client.used(), liar.counts()
            time.sleep(1)
            used = client.used() - used
            checks.check(not client.told, f"{name}: {client.told}")
            checks.check(SANITIZED or used < 0.1, f"{name}: {used} s of a processor in a second")
            checks.check(1 <= liar.counts() and liar.counts() - before < 10, f"{name}: {liar.counts() - before} tries in a second")
            watched = Watched(lambda peer, start, changes: peer.sendall(chunk(created() + events(changes[0]))) or say_nothing(liar, peer, "", b""))
            watched.history = [("/framed/a", "true", 6)]
            liar.behave = watched
            client.wait_for(lambda: client.told, 5)
            checks.check(client.events() == watched.history, f"after {name}: {client.told}")
            checks.check(client.close() == 0, f"{name}: the client crashed")


def check_watch_flood(checks):
    """After a line without end, the next endpoint reports the changes."""
    def serve(peer, start, changes):
        peer.sendall(chunk(created() + events(changes[0])))
        time.sleep(1)
        return False
    watched = Watched(serve)
    watched.history = [("/framed/a", "x", 6)]
    with Liar(flood(b"x")) as one, Liar(watched) as other, Client(one.url, other.url) as client:
        client.watch("/framed/", 6)
        client.wait_for(lambda: client.told, 20)
        checks.check(client.events() == watched.history, f"after a flood: {client.told}")
        checks.check(SANITIZED or client.memory() < 300, f"a flood takes {client.memory()} MiB")
        checks.check(client.close() == 0, "the client crashed")


def check_silent_watch(checks):
    """A watch that is never created moves on; one that is replaced goes to another endpoint."""
    def serve(peer, start, changes):
        peer.sendall(chunk(created() + events(changes[0])))
        return say_nothing(other, peer, "", b"")
    watched = Watched(serve)
    watched.history = [("/framed/a", "x", 6)]
    with Liar(say_nothing) as one, Liar(watched) as other, Client(one.url, other.url) as client:
        begun = time.monotonic()
        client.watch("/framed/", 6)
        client.wait_for(lambda: client.told, 10)
        took = time.monotonic() - begun
        checks.check(client.events() == watched.history and took < 6 * LATE, f"a silent watch after {took:.1f} s: {client.told}")
        used = client.used()
        time.sleep(2)
        used = client.used() - used
        checks.check(SANITIZED or used < 0.02, f"a watch that waits takes {used} s in 2 s")
    with Liar(say_nothing) as one, Liar(watched) as other, Client(one.url, other.url) as client:
        client.watch("/framed/", 6)
        until(lambda: one.counts() == 1, 5)
        client.watch("/framed/", 6)
        client.wait_for(lambda: client.told, 2)
        checks.check(client.events() == watched.history, f"a watch that is replaced: {client.told}")
        # This header makes a member without a leader end the watch; etcd 3.4 takes 4 s.
        checks.check(b"\r\ngrpc-metadata-hasleader: true" in other.asked[0][3].lower(), f"{other.asked[0][3]}")


def check_watch_of_dead_endpoint(checks):
    """An endpoint that dies silently reports nothing to a watch: the watch moves once other endpoints answer in its place."""
    def die(liar, peer, path, body):
        if path == "watch":
            peer.sendall(CHUNKED + chunk(created()))
        while liar.is_open:
            time.sleep(0.02)
        return False

    def serve(peer, start, changes):
        peer.sendall(chunk(created() + "".join(events(change) for change in changes)))
        while other.is_open:
            time.sleep(0.02)
        return False
    watched = Watched(serve)
    watched.history = [("/framed/a", "x", 6)]
    with Liar(die) as one, Liar(watched) as other, Client(one.url, other.url) as client:
        client.watch("/framed/", 6)
        until(lambda: one.counts("watch") == 1, 5)
        time.sleep(0.2)
        begun = time.monotonic()
        said = client.ask("keepalive", 1000, 77)
        client.wait_for(lambda: client.told, 3)
        took = time.monotonic() - begun
        checks.check(said["rc"] == 0 and client.events() == watched.history, f"a watch of a dead endpoint: {said}, {client.told}")
        checks.check(took < LATE and other.counts("watch") == 1, f"it moves after {took:.1f} s, {other.counts('watch')} times")
        client.ask("keepalive", 1000, 77)
        time.sleep(0.2)
        checks.check(other.counts("watch") == 1, "it moves again, from an endpoint that answers")


class Guarded:
    """A behaviour: requires a token; counts tokens and logins."""

    def __init__(self):
        self.token, self.password, self.logins = 0, "s3cret", 0

    def __call__(self, liar, peer, path, body):
        head = liar.asked[-1][3]
        if path == "auth/authenticate":
            self.logins += 1
            if json.loads(body) != {"name": "framed", "password": self.password}:
                peer.sendall(answer({"error": "etcdserver: authentication failed, invalid user ID or password", "code": 3}, "400 Bad Request"))
                return True
            self.token += 1
            peer.sendall(answer({"header": header(0), "token": f"token.{self.token}"}))
            return True
        if f"\r\nauthorization: token.{self.token}\r\n".encode() not in head.lower() + b"\r\n":
            peer.sendall(answer({"error": "etcdserver: invalid auth token", "code": 16}, "401 Unauthorized"))
            return True
        return be_honest(liar, peer, path, body)


def check_tokens(checks):
    guarded = Guarded()
    with Liar(guarded) as liar, Client(liar.url, user="framed", password="s3cret") as client:
        numbers = [client.begin("get", 2000, "/framed/") for _ in range(10)]
        answers = [client.end(number)["rc"] for number in numbers]
        checks.check(answers == [0] * 10 and guarded.logins == 1, f"ten at once: {answers}, {guarded.logins} logins")
        guarded.token += 1  # the old one is no longer valid
        numbers = [client.begin(*words) for words in (("get", 2000, "/framed/"), ("commit", 2000, "put /framed/a x 0"), ("keepalive", 2000, 77))]
        answers = [client.end(number)["rc"] for number in numbers]
        checks.check(answers == [0] * 3 and guarded.logins == 2, f"a token that ends: {answers}, {guarded.logins} logins")
        guarded.token, guarded.password = 99, "new"
        begun, refused = time.monotonic(), []
        while time.monotonic() < begun + 1.8:
            refused.append(client.ask("keepalive", 1000, 77))
            time.sleep(0.05)
        good = all(said["errno"] == "EACCES" and "authentication failed" in said["error"] for said in refused)
        checks.check(good and guarded.logins <= 4, f"a password that was changed: {refused[-1]}, {guarded.logins} logins")
        checks.check("s3cret" not in json.dumps(refused), "the password is in an error")
        checks.check(client.close() == 0, "the client crashed")
    # A server that refuses each token that it issues.
    with Liar(lambda liar, peer, path, body: be_honest(liar, peer, path, body) if "auth" in path else
              peer.sendall(answer({"error": "etcdserver: invalid auth token", "code": 16}, "401 No")) or True) as liar, \
            Client(liar.url, user="framed", password="s3cret") as client:
        said = client.ask("get", 1000, "/framed/")
        checks.check(said["errno"] == "EACCES" and liar.counts("auth") == 2, f"no token is good: {said}, {liar.counts('auth')}")
        client.watch("/framed/", 6)
        before = liar.counts()
        time.sleep(2)
        checks.check(liar.counts() - before < 30, f"{liar.counts() - before} requests in 2 s for a watch")


def check_fuzzed(checks):
    """Damaged answers, and damaged HTTP: each request ends once, by its deadline, and the watch goes on."""
    rng = random.Random(7)

    def behave(liar, peer, path, body):
        if path == "watch":
            whole = chunk(created()) + chunk(events(("/framed/a", "x", 9), ("/framed/b", "y", 10)))
            peer.sendall(CHUNKED + whole if rng.random() < 0.2 else CHUNKED + chunk(damage(rng, (created() + events(("/framed/a", "x", 9))).encode())))
            return False
        good = json.dumps(HONEST[path]).encode()
        peer.sendall(damage(rng, answer(good)) if rng.random() < 0.3 else answer(damage(rng, good)))
        return rng.random() < 0.5
    with Liar(behave) as one, Liar(behave) as other, Client(one.url, other.url) as client:
        client.watch("/framed/", 6)
        for _ in range(CASES // 8):
            numbers = [client.begin(name, 300, *words) for name, *words in (
                ("get", "/framed/"), ("keepalive", 77), ("grant", 5), ("revoke", 77), ("commit", "put /framed/a x 0")) * 2]
            answers = [client.end(number) for number in numbers]
            late = [said for said in answers if said["ms"] > 300 * LATE + 50]
            checks.check(not late, f"damaged answers: {late}")
        one.behave = other.behave = be_honest
        said = client.ask("get", 5000, "/framed/")
        told, files = client.events(), len(os.listdir(f"/proc/{client.child.pid}/fd"))
        checks.check(files < 40, f"{files} open files")
        checks.check(said["rc"] == 0, f"after damaged answers: {said}")
        checks.check([change[2] for change in told] == sorted({change[2] for change in told}), f"the watch told: {told}")
        checks.check((status := client.close()) == 0, f"the client ends with {status}")


def check_names(checks):
    """Endpoints by name; one that no longer resolves does not delay the others."""
    with Liar() as liar:
        with Client(f"http://localhost:{liar.url.rsplit(':', 1)[1]}/") as client:
            said = client.ask("get", 2000, "/framed/")
            checks.check(said["rc"] == 0, f"localhost: {said}")
        with Client("http://user:s3cret@framed.invalid:2379", liar.url) as client:
            said = client.ask("get", 2000, "/framed/")
            checks.check(said["rc"] == 0, f"beside a name that does not resolve: {said}")
        with Client("http://user:s3cret@framed.invalid:2379") as client:
            said = client.ask("get", 2000, "/framed/")
            checks.check(said["rc"] < 0 and said["error"] and "s3cret" not in said["error"], f"no such name: {said}")
        with Client("http://127.0.0.1:1") as client:
            said = client.ask("get", 2000, "/framed/")
            good = said["errno"] == "ECONNREFUSED" and said["error"] == "http://127.0.0.1:1: Connection refused" and said["ms"] < 500
            checks.check(good, f"nobody there: {said}")


def main():
    checks = Checks("etcd_lies")
    check_lies(checks)
    check_redirect(checks)
    check_floods(checks)
    check_large(checks)
    check_next(checks)
    check_half_open(checks)
    check_commits(checks)
    check_watch_pieces(checks)
    check_watch_lies(checks)
    check_watch_flood(checks)
    check_silent_watch(checks)
    check_watch_of_dead_endpoint(checks)
    check_tokens(checks)
    check_fuzzed(checks)
    check_names(checks)
    checks.end()


main()
