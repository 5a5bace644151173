#!/usr/bin/python3
"""A password shows nowhere: not in the log at level debug, the counters, argv, what HTTP serves or a message on a wrong
configuration, whatever characters it has and whatever a camera answers."""
import base64
import json
import re
import socket
import threading
import urllib.parse

from framed_client import BENCH, BINARY, Checks, Framed, folder, free_port, run, until
from http_client import Client, port_of

# Words that stand nowhere else, with what has a meaning in a URL between them.
PASSWORDS = (
    "Zorngiebel",
    "Zorn@Giebel",
    "Zorn:Giebel",
    "Zorn/Giebel",
    "Zorn%Giebel",
    "Zorn%41Giebel",
    "Zorn#Giebel",
    "Zorn?Giebel",
    "Zorn Giebel",
    "@:/Zorn%#? &=Giebel;ü",
    "7",
)
CONFIG = """
# before: {url}
log: {{level: debug}}
http: 0
cameras:
  gate:
    url: "{url}"
    {camera}
    outputs:
      o: {{size: 64x64, sink: "tcp:0"}}
"""
BASIC = 'Basic realm="cameras"'
DIGEST = 'Digest realm="cameras", nonce="0a1b2c3d"'


def forms(password):
    """What must not be seen of it: itself, its words, as libav sends it and as a URL has it."""
    pair = base64.b64encode(f"viewer:{password}".encode()).decode()
    whole = [pair, f"viewer:{password}", f"viewer:{urllib.parse.quote(password, safe='')}"]
    return {*whole, *re.findall("(?i)zorn|giebel", password)}


class Gossip(threading.Thread):
    """An RTSP server that refuses everybody and says in its answers all that it knows and was told."""

    def __init__(self, challenge, password):
        super().__init__(daemon=True)
        encoded = urllib.parse.quote(password, safe="")
        self.challenge, self.gossip = challenge, f"{password} viewer:{encoded} viewer:{password} {encoded.lower()}"
        self.responses, self.served = [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def answer(self, request):
        sequence = re.search(r"CSeq: *(\d+)", request)
        sent = re.search(r"Authorization: *(.*)\r\n", request)
        if sent:
            self.served += 1
            self.responses += re.findall(r'response="(\w+)"', sent[1])
        told = f"you sent {sent[1]}" if sent else "you sent nothing"
        lines = [f"RTSP/1.0 {407 if self.served > 1 else 401} {self.gossip} {told}", f"CSeq: {sequence[1]}",
                 f"WWW-Authenticate: {self.challenge}", f"Server: {self.gossip}"]
        return "\r\n".join([*lines, "", ""]).encode()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
                with client:
                    while request := client.recv(65536).decode():
                        client.sendall(self.answer(request))
            except OSError:
                if self.listener.fileno() < 0:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def spied(framed):
    """What a neighbour on the machine sees, and what HTTP serves."""
    with open(f"/proc/{framed.child.pid}/cmdline") as cmdline:
        seen = cmdline.read()
    client = Client(port_of(framed))
    for page in ("/metrics", "/readyz", "/api/v1/status", "/api/v1/cameras", "/api/v1/scenes", "/api/v1/history",
                 "/api/v1/config"):
        seen += client.get(page)[2]
    return seen + events(client.port)


def events(port):
    """The events up to now, the reason for the camera's failure among them."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while b'"state":"' not in text and (data := peer.recv(65536)):
            text += data
    return text.decode()


def watch(checks, where, case, url, told, unwanted, env=None):
    """Runs a camera by framed's own client and by libavformat's until the log says `told`, and looks through all that
    came out."""
    for client in "", "demuxer: rtsp":
        watch_client(checks, where, f"{case} {client}", CONFIG.format(url=url, camera=client), told, unwanted, env)


def watch_client(checks, where, case, config, told, unwanted, env):
    with Framed(where, config, env) as framed:
        checks.check(until(lambda: re.search(told, framed.errors()), 10), f"{case}: not told:\n{framed.errors()}")
        seen = spied(framed)
        framed.live_metrics()
        framed.stop()
        seen += framed.errors() + framed.child.stdout.read().decode()
        with open(framed.counters) as counters:
            seen += counters.read()
    leaked = [word for word in unwanted() if word.lower() in seen.lower()]
    checks.check(not leaked, f"{case}: {leaked} in\n{seen}")
    if "demuxer" in config:
        checks.check("libav: " in seen, f"{case}: libav's lines are not looked at:\n{seen}")


def check_refused(checks, where, password):
    """Nobody listens."""
    env = {"PASSWORD": urllib.parse.quote(password, safe="")}
    url = f"rtsp://viewer:${{PASSWORD}}@127.0.0.1:{free_port()}/stream"
    watch(checks, where, f"refused, {password}", url, "next try", lambda: forms(password), env)


def check_gossip(checks, where, password):
    for challenge in (BASIC, DIGEST):
        with Gossip(challenge, password) as server:
            url = f"rtsp://viewer:{urllib.parse.quote(password, safe='')}@127.0.0.1:{server.port}/stream"
            watch(checks, where, f"{challenge.split()[0]}, {password}", url, "next try",
                  lambda: {*forms(password), *server.responses})
            checks.check(server.served > 1, f"{challenge}, {password}: not both tried it")


def check_raw(checks, where):
    """Not encoded, as people write it: libav then takes a part of it for the host's name or the port."""
    for password in ("Zorn@Giebel", "12/Zorn@Giebel", "12#Zorn Giebel", "12?Zorn@Giebel"):
        url = f"rtsp://viewer:{password}@127.0.0.1:{free_port()}/stream"
        code, output, errors = run("check", "-c", "-", stdin=CONFIG.format(url=url, camera=""))
        leaked = re.findall("(?i)zorn|giebel", output + errors)
        checks.check(not leaked, f"check of {url}: {output}{errors}")
        if code == 0:
            watch(checks, where, f"raw {password}", url, "next try|failed", lambda: ["zorn", "giebel", "viewer:12"])


def check_options(checks, where):
    """What stands in `options` under a name that says what it is, or in a URL: libav says what it does not like."""
    path = f"{where}/zeros"
    with open(path, "wb") as file:
        file.write(bytes(1000))
    for demuxer, option in (("rawvideo", "video_size: 'http://viewer:Zorngiebel@h/'"),
                            ("mov", "decryption_key: Zorngiebel")):
        config = CONFIG.format(url=path, camera=f"demuxer: {demuxer}\n    options: {{{option}}}")
        with Framed(where, config) as framed:
            checks.check(framed.wait(10) == 1, f"{option}: not refused")
            errors = framed.errors()
        checks.check(option.split(":")[0] in errors, f"{option}: not told:\n{errors}")
        checks.check("zorn" not in errors.lower(), f"{option}:\n{errors}")


MISTAKES = (
    'cameras: {{gate: {{url: "{url}", speed: 3}}}}',
    'cameras: {{gate: {{transport: "{url}", url: [1, 2]}}}}',
    'cameras: {{gate: {{url: "{url}\\t"}}}}',
    'cameras: {{gate: {{url: "viewer:{password}\\t"}}}}',
    'cameras: {{"{url}": {{url: x}}}}',
    'cameras: {{gate: "{url}"}}',
    'cameras: {{gate: {{url: ["{url}", "{url}"]}}}}',
    'cameras: {{gate: {{"{url}": x}}}}',
    'cameras: {{gate: {{options: {{"{url}": x, "{url}": y}}, url: x}}}}',
    'cameras: {{gate: {{url: "x", outputs: {{o: {{sink: "{url}"}}}}}}}}',
    'cameras: {{gate: {{url: "${{A:?{url}}}"}}}}',
    'cameras: {{gate: {{url: "{url}${{"}}}}',
    'cameras: {{gate: {{url: "htp{url}"}}}}',
    'cameras: {{gate: {{url: !secret "{url}"}}}}',
    "cameras: {{gate: {{" + 200 * "k" + ": {{}}, '" + 200 * "k" + "{url}" + 200 * "k" + "': x}}}}",
    "? {url}\n- x",
    "cameras:\n  gate:\n    url: {url}: x",
    "cameras:\n  gate:\n    url: {url}\n   outputs: x",
    "cameras:\n  gate:\n\turl: {url}",
    "cameras: *{url}",
)


def check_mistakes(checks):
    for mistake in MISTAKES:
        for password in ("Zorngiebel", "Zorn@Giebel", "Zorn/Giebel", "Zorn Giebel", "Zorn%Giebel"):
            text = mistake.format(url=f"rtsp://viewer:{password}@127.0.0.1:1/x", password=password)
            code, output, errors = run("check", "-c", "-", stdin=text)
            checks.check(code == 78, f"{text}: exit {code}")
            checks.check(not re.search("(?i)zorn|giebel", output + errors), f"{text}: {output}{errors}")


def check_shown(checks, where):
    """The same mistakes in the file of a daemon that shows it, and in texts that it checks."""
    with Framed(where, CONFIG.format(url="/nothing", camera="loop: true")) as framed:
        client = Client(port_of(framed))
        for mistake in MISTAKES:
            for password in ("Zorngiebel", "Zorn@Giebel", "Zorn/Giebel", "Zorn Giebel", "Zorn%Giebel", "Zorn #Giebel"):
                text = mistake.format(url=f"rtsp://viewer:{password}@127.0.0.1:1/x", password=password)
                with open(framed.config, "w") as file:
                    file.write(text)
                status, _, shown = client.get("/api/v1/config")
                checks.check(status == 200 and not re.search("(?i)zorn|giebel", shown), f"{text}: {status} {shown}")
                body = json.dumps({"text": text})
                status, _, found = client.get("/api/v1/check", "POST", body, {"Content-Type": "application/json"})
                checks.check(status == 200 and not re.search("(?i)zorn|giebel", found), f"{text}: {status} {found}")


def check_usage(checks):
    """A URL where none belongs."""
    url = "rtsp://viewer:Zorn@Giebel@h/s"
    calls = (["run", url], [url], ["run", f"--url={url}"], ["run", "-c", url], ["check", "-c", url],
             ["run", "-c", "/dev/null", "--metrics", url], ["bench", url])
    of_bench = ([f"--url={url}"], ["--clip", url], [url])
    for program, call in [(BINARY, call) for call in calls] + [(BENCH, call) for call in of_bench]:
        code, output, errors = run(*call, program=program)
        checks.check(code not in (0, None) and errors, f"{call}: exit {code}")
        checks.check(not re.search("(?i)zorn|giebel", output + errors), f"{call}: {output}{errors}")


def main():
    checks = Checks("secrets")
    check_usage(checks)
    check_mistakes(checks)
    with folder() as where:
        for password in PASSWORDS[::5]:
            check_refused(checks, where, password)
        for password in PASSWORDS:
            check_gossip(checks, where, password)
        check_shown(checks, where)
        check_raw(checks, where)
        check_options(checks, where)
    checks.end()


main()
