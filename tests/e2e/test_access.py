#!/usr/bin/python3
"""Permissions: a daemon's control socket, used by processes with various users and groups, and its HTTP, used with the tokens."""
import http.client
import json
import os
import socket
import subprocess

from framed_client import BINARY, Checks, Framed, folder, free_port, make_clip, status, until

# Ids without a name on this machine.
SERVICE, READERS, ADMINS, OTHER = 31871, 31872, 31873, 31874
CONFIG = """
cameras:
  gate: {{url: {where}/clip.mp4, loop: true, pace: realtime, outputs: {{o: {{size: 64x64, sink: "unix:{where}/o.sock"}}}}}}
"""
READS = ("status", "metrics", "snap gate 64")
CHANGES = ("pause gate", "resume gate", "reload", "record gate 1000")
# peer: (user, first group, further groups, True if it may change things)
PEERS = {
    "root": (0, 0, [], True),
    "the daemon's user": (SERVICE, OTHER, [], True),
    "a reader": (OTHER, READERS, [], False),
    "a reader by a further group": (OTHER, OTHER, [OTHER + 1, READERS], False),
    "an admin by the first group": (OTHER, ADMINS, [READERS], True),
    "an admin by a further group": (OTHER, READERS, [OTHER + 1, ADMINS], True),
    "an admin with many groups": (OTHER, READERS, [*range(40000, 43000), ADMINS], True),
    "a user with the group's number": (ADMINS, READERS, [], False),
}


class AsService(Framed):
    """`framed run` as a user and a group of its own, on a machine whose /etc/group has framed-admin."""

    def __init__(self, where, config):
        super().__init__(where, config)
        with open("/etc/group") as groups, open(f"{where}/group", "w") as file:
            file.write(f"{groups.read()}framed-admin:x:{ADMINS}:\n")
        for path in (where, self.config):
            os.chown(path, SERVICE, READERS)
        os.chmod(where, 0o755)
        self.arguments = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/group && shift && exec "$@"', "sh",
                          f"{where}/group", "setpriv", f"--reuid={SERVICE}", f"--regid={READERS}", "--clear-groups",
                          *self.arguments]


def ask(path, line, peer):
    """Returns the reply to a request from a process with these ids, as JSON, or the error of connecting."""
    return json.loads(asked(path, line, peer))


def asked(path, line, peer):
    user, group, further = peer
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(further)
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(30)
                peer.connect(path)
                peer.sendall(line.encode() + b"\n")
                os.set_blocking(writing, True)
                with os.fdopen(writing, "wb") as to:
                    to.write(peer.makefile("rb").read())
        except OSError as error:
            os.write(writing, json.dumps({"error": error.strerror}).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read()
    os.waitpid(child, 0)
    return text.decode()


def check_control(checks, where):
    path = f"{where}/control.sock"
    for name, (*peer, may_change) in PEERS.items():
        for line in READS:
            said = ask(path, line, peer)
            checks.check("cameras" in said or said.get("ok"), f"{name}, {line}: {str(said)[:200]}")
        for line in CHANGES:
            said = ask(path, line, peer)
            refused = "framed-admin" in str(said)
            checks.check(refused != may_change and "ok" in said, f"{name}, {line}: {str(said)[:200]}")
            checks.check(may_change or (said.get("ok"), said.get("exit_code")) == (False, 1), f"{name}, {line}: {said}")


def check_http(checks, where):
    """On the socket of HTTP, without a token: readers look, admins change things."""
    for name, (*peer, may_change) in PEERS.items():
        for method, path, changes in (("GET", "/api/v1/status", False), ("POST", "/api/v1/cameras/gate/pause", True),
                                      ("POST", "/api/v1/cameras/gate/resume", True), ("POST", "/api/v1/reload", True)):
            said = asked(f"{where}/http.sock", f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r", peer)
            good = said.startswith("HTTP/1.1 200") if may_change or not changes else "framed-admin" in said and " 403 " in said[:20]
            checks.check(good, f"{name}, {method} {path}: {said[:300]}")
        may = f'"http_write":{str(may_change).lower()}' in asked(f"{where}/http.sock", "GET /api/v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r", peer).replace(" ", "")
        checks.check(may, f"{name}: http_write of the status")


def check_strangers(checks, where):
    said = ask(f"{where}/control.sock", "status", (OTHER, OTHER, [ADMINS]))
    checks.check(said == {"error": "Permission denied"}, f"a stranger: {said}")


def check_command(checks, where):
    """The commands print the refusal, and nothing is done."""
    peer = ["setpriv", f"--reuid={OTHER}", f"--regid={READERS}", "--clear-groups"]
    for command in (["reload"], ["pause", "gate"], ["resume", "gate"]):
        done = subprocess.run([*peer, BINARY, *command, "--socket", f"{where}/control.sock"], capture_output=True, text=True)
        checks.check(done.returncode == 1 and "framed-admin" in done.stderr, f"{command}: {done}")
    done = subprocess.run([*peer, BINARY, "status", "--socket", f"{where}/control.sock"], capture_output=True, text=True)
    checks.check(done.returncode == 0 and "gate" in done.stdout, f"status: {done}")


FULL, READS_ONLY = "Zorngiebel-all-0123456789", "Zorngiebel-reads-0123456789"
HTTP = f"""
http: 127.0.0.1:{{port}}
http_token: {FULL}
http_read_token: {READS_ONLY}
http_write: true
"""


def request(port, method, path, token, body=None):
    """Returns (status, headers, body; of an endless body its first block)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        said = answer.read() if answer.headers["Content-Length"] else answer.read1(1 << 20)
        return answer.status, answer.headers, said.decode(errors="replace")
    finally:
        connection.close()


def routes_of(port):
    """Yields (method, path) of all that the daemon serves."""
    for path, methods in json.loads(request(port, "GET", "/api/v1/openapi.json", None)[2])["paths"].items():
        path = path.replace("{camera}", "gate").replace("{output}", "o").replace("{file}", "app.js")
        for method in methods:
            if method in ("get", "put", "post", "delete"):
                yield method.upper(), path


def check_tokens(checks, where):
    """With the token that only reads, each GET is served, and nothing else."""
    port = free_port()
    config = HTTP.format(port=port) + CONFIG.format(where=where)
    with Framed(where, config) as framed:
        until(lambda: status(where).get("gate", {}).get("state") == "running", 20)
        routes = list(routes_of(port))
        checks.check({"GET", "PUT", "POST", "DELETE"} == {method for method, _ in routes}, f"routes {routes}")
        for method, path in routes:
            code, _, said = request(port, method, path, READS_ONLY, "{}" if method in ("PUT", "POST") else None)
            good = code not in (401, 403) if method == "GET" else code == 403 and "http_read_token" in said
            checks.check(good, f"{method} {path} by the token that reads: {code} {said[:200]}")
            code, _, said = request(port, method, path, f"{READS_ONLY}x", "{}" if method in ("PUT", "POST") else None)
            checks.check(code == 401 or path in ("/", "/page/app.js", "/api/v1/openapi.json"), f"{method} {path}: {code}")
        for path in ("/api/v1/status", "/api/v1/summary"):
            may = [json.loads(request(port, "GET", path, token)[2])["http_write"] for token in (FULL, READS_ONLY)]
            checks.check(may == [True, False], f"{path}: http_write {may}")
        checks.check(READS_ONLY not in request(port, "GET", "/api/v1/config", READS_ONLY)[2], "the configuration shows a token")
        checks.check(request(port, "POST", "/api/v1/cameras/gate/pause", FULL)[0] == 200, "the other token does all")
        with open(framed.config, "w") as file:
            file.write(config.replace(f"http_read_token: {READS_ONLY}", ""))
        checks.check(request(port, "POST", "/api/v1/reload", FULL)[0] == 200, "a reload")
        checks.check(request(port, "GET", "/api/v1/status", READS_ONLY)[0] == 401, "a token that is gone reads on")


def main():
    checks = Checks("access")
    with folder() as where:
        make_clip(f"{where}/clip.mp4", frames=25)
        check_tokens(checks, where)
    with folder() as where:
        make_clip(f"{where}/clip.mp4", frames=25)
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
            checks.skip("only root may take other users' ids and mount")
            checks.end()
        with AsService(where, f"http: unix:{where}/http.sock\nhttp_write: true\n" + CONFIG.format(where=where)) as framed:
            until(lambda: os.path.exists(f"{where}/control.sock"), 20)
            check_control(checks, where)
            check_http(checks, where)
            check_strangers(checks, where)
            check_command(checks, where)
            checks.check(framed.stop() == 0, "the daemon ends")
    checks.end()


main()
