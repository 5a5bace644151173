#!/usr/bin/python3
"""A password appears nowhere: not in the log at level debug, the counters, argv, HTTP responses or messages about a wrong
configuration, whatever characters it has and whatever a camera answers."""
import base64
import grp
import json
import os
import re
import socket
import threading
import urllib.parse

from framed_client import BENCH, BINARY, Checks, Framed, folder, free_port, run, until
from http_client import Client, port_of

# Words that occur nowhere else, joined by characters that have a meaning in URLs.
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
    """Returns the forms that must not be seen: the password's words, as libav sends it and as in a URL."""
    pair = base64.b64encode(f"viewer:{password}".encode()).decode()
    whole = [pair, f"viewer:{password}", f"viewer:{urllib.parse.quote(password, safe='')}"]
    return {*whole, *re.findall("(?i)zorn|giebel", password)}


class Gossip(threading.Thread):
    """An RTSP server that refuses every client and repeats the password and all it received in its answers."""

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
    """Returns everything that another user of the machine can see and that HTTP serves."""
    with open(f"/proc/{framed.child.pid}/cmdline") as cmdline:
        seen = cmdline.read()
    client = Client(port_of(framed))
    for page in ("/metrics", "/readyz", "/api/v1/status", "/api/v1/cameras", "/api/v1/scenes", "/api/v1/history",
                 "/api/v1/config"):
        seen += client.get(page)[2]
    return seen + events(client.port)


def events(port):
    """Returns the events so far, including the reason for the camera's failure."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while b'"state":"' not in text and (data := peer.recv(65536)):
            text += data
    return text.decode()


def watch(checks, where, case, url, told, unwanted, env=None):
    """Runs a camera until the log contains `told`, then searches all output."""
    with Framed(where, CONFIG.format(url=url, camera=""), env) as framed:
        checks.check(until(lambda: re.search(told, framed.errors()), 10), f"{case}: not told:\n{framed.errors()}")
        seen = spied(framed)
        framed.live_metrics()
        framed.stop()
        seen += framed.errors() + framed.child.stdout.read().decode()
        with open(framed.counters) as counters:
            seen += counters.read()
    leaked = [word for word in unwanted() if word.lower() in seen.lower()]
    checks.check(not leaked, f"{case}: {leaked} in\n{seen}")


def check_refused(checks, where, password):
    """A camera's port without a listener."""
    env = {"PASSWORD": urllib.parse.quote(password, safe="")}
    url = f"rtsp://viewer:${{PASSWORD}}@127.0.0.1:{free_port()}/stream"
    watch(checks, where, f"refused, {password}", url, "next try", lambda: forms(password), env)


def check_gossip(checks, where, password):
    for challenge in (BASIC, DIGEST):
        with Gossip(challenge, password) as server:
            url = f"rtsp://viewer:{urllib.parse.quote(password, safe='')}@127.0.0.1:{server.port}/stream"
            watch(checks, where, f"{challenge.split()[0]}, {password}", url, "next try",
                  lambda: {*forms(password), *server.responses})
            checks.check(server.served > 0, f"{challenge}, {password}: nobody tried it")


def check_raw(checks, where):
    """Unencoded passwords, as people write them: a part may be taken for the host or the port."""
    for password in ("Zorn@Giebel", "12/Zorn@Giebel", "12#Zorn Giebel", "12?Zorn@Giebel"):
        url = f"rtsp://viewer:{password}@127.0.0.1:{free_port()}/stream"
        code, output, errors = run("check", "-c", "-", stdin=CONFIG.format(url=url, camera=""))
        leaked = re.findall("(?i)zorn|giebel", output + errors)
        checks.check(not leaked, f"check of {url}: {output}{errors}")
        if code == 0:
            watch(checks, where, f"raw {password}", url, "next try|failed", lambda: ["zorn", "giebel", "viewer:12"])


def check_options(checks, where):
    """Secrets in `options`, in a key with a telling name or in a URL: libav reports an error about them."""
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
    """The same mistakes in the file of a running daemon that shows it, and in texts that it checks."""
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
    """A URL in the wrong place of a command line."""
    url = "rtsp://viewer:Zorn@Giebel@h/s"
    calls = (["run", url], [url], ["run", f"--url={url}"], ["run", "-c", url], ["check", "-c", url],
             ["run", "-c", "/dev/null", "--metrics", url], ["bench", url])
    of_bench = ([f"--url={url}"], ["--clip", url], [url])
    for program, call in [(BINARY, call) for call in calls] + [(BENCH, call) for call in of_bench]:
        code, output, errors = run(*call, program=program)
        checks.check(code not in (0, None) and errors, f"{call}: exit {code}")
        checks.check(not re.search("(?i)zorn|giebel", output + errors), f"{call}: {output}{errors}")


MARK = "Zorngiebel15"
FORMS = {  # by the last word of a key: values with a reference that the key accepts; other keys get the reference alone
    "url": ("{mark}", "file:{where}/{mark}", "rtsp://u:{mark}@127.0.0.1:1/x", "rtsp://127.0.0.1:1/{mark}/x?jwt={mark}"),
    "sink": ("unix:{where}/{mark}", "ring:{where}/{mark}", "file:{where}/{mark}.raw", "rtsp://u:{mark}@127.0.0.1:1/{mark}"),
    "http": ("unix:{where}/{mark}",), "control": ("{where}/{mark}",), "lut": ("{where}/{mark}",), "shared": ("/{mark}",),
    "decode": ("vaapi:{mark}",), "etcd": (["http://{mark}:1"],), "server": ("mqtt://{mark}:1",),
    "webhook": ("http://127.0.0.1:1/{mark}?k={mark}",), "command": (["/bin/true", "-H", "Bearer {mark}"], "echo {mark}"),
    "options": ({"video_size": "64x64", "pixel_format": "{mark}"},), "labels": (["{mark}"], {"name": "{mark}"}),
    "classes": (["{mark}"],), "on": ({"name": "{mark}"},), "cameras": (["{mark}"],), "paused": (["{mark}"],),
}


def rows(schema, defaults=False):
    """Yields (path of a key, its schema) for all keys that hold a value."""
    for key, one in schema["properties"].items():
        inner = one.get("anyOf", [one])[-1] if "anyOf" in one else one
        if "patternProperties" in one and "properties" in (items := list(one["patternProperties"].values())[0]):
            yield from (((key, "*", *path), row) for path, row in rows(items))
        elif "properties" in inner:
            yield from (((key, *path), row) for path, row in rows(inner) if key != "defaults")
        elif key != "defaults":
            yield (key,), one


def filled(form, values):
    if isinstance(form, str):
        return form.format(**values)
    return [filled(one, values) for one in form] if isinstance(form, list) else {key: filled(one, values) for key, one in form.items()}


def with_key(where, path, value):
    """Returns a valid configuration with this value at this key."""
    camera = {"url": f"{where}/zeros", "demuxer": "rawvideo", "options": {"video_size": "64x64", "pixel_format": "gray"}, "loop": True,
              "pace": "realtime", "outputs": {"o": {"size": "32x32", "sink": "tcp:0"}}}
    config = {"log": {"level": "debug"}, "http": 0, "control": f"{where}/own.sock", "cameras": {"gate": camera}}
    if path[0] == "batches":
        config["batches"] = {"o2": {"cameras": ["gate"], "size": "32x32", "sink": f"ring:{where}/o2.ring"}}
    if path[0] == "cluster":
        config["cluster"] = {"etcd": "http://127.0.0.1:1", "site": "yard", "node": "box"}
    if path[-2:] == ("crops", "of") or path[-1] == "labels":
        camera["outputs"]["o"]["sink"] = f"ring:{where}/o.ring"
    if path[0] == "http_token":
        value = f"{value}{value}"
    names = iter(("gate", "o")) if path[0] == "cameras" else iter(("o2",))
    at = config
    for word in path[:-1]:
        at = at.setdefault(next(names) if word == "*" else word, {})
    at[path[-1]] = value
    if path[:1] == ("cameras",) and "detections" in path and "sink" not in path:
        camera["outputs"]["o"].setdefault("detections", {}).setdefault("sink", "tcp:0")
        camera["outputs"]["o"]["sink"] = f"ring:{where}/o.ring"
    return json.dumps(config)


def joined(where, taken, at_once=16):
    """Yields (case, text) of configurations that have all these keys, several camera keys at once with one camera for each."""
    single = [one for one in taken if one[0][0] != "cameras" or one[0][-1] == "sink"]
    others = [one for one in taken if one not in single]
    for path, form, text in single:
        yield f"{path}: {form}", text
    for some in (others[i : i + at_once] for i in range(0, len(others), at_once)):
        whole = json.loads(some[0][2])
        texts = [text.replace(f"{where}/o.ring", f"{where}/o{i}.ring") for i, (_, _, text) in enumerate(some)]
        whole["cameras"] = {f"gate{i}": json.loads(text)["cameras"]["gate"] for i, text in enumerate(texts)}
        yield "; ".join(f"{path}: {form}" for path, form, _ in some), json.dumps(whole)


def check_every_key(checks, where):
    """The value of a reference appears nowhere, whatever key it is in: not in mistakes, the log, status, events, metrics,
    HTTP responses and the effective configuration."""
    with open(f"{where}/zeros", "wb") as file:
        file.write(bytes(64 * 64 * 50))
    credentials = f"{where}/credentials"
    os.mkdir(credentials)
    with open(f"{credentials}/A_SECRET", "w") as file:
        file.write(f"{MARK}\n")
    by_variable, by_credential = {"A_SECRET": MARK}, {"CREDENTIALS_DIRECTORY": credentials}
    keys = list(rows(json.loads(run("schema")[1])))
    checks.check(len(keys) > 120, f"{len(keys)} keys")
    taken, texts = [], []
    values = {"where": where, "mark": "${A_SECRET}"}
    for path, _ in keys:
        for form in FORMS.get(path[-1], ("{mark}",)):
            texts.append((path, form, with_key(where, path, filled(form, values))))
    for path, form, text in texts:
        code, output, errors = run("check", "-c", "-", stdin=text, env=by_variable)
        checks.check(code in (0, 78) and MARK not in output + errors, f"check, {path}: {form}: exit {code}\n{output}{errors}")
        if code == 0:
            taken.append((path, form, text))
    checks.check({path[-1] for path, _, _ in taken} >= {"url", "sink", "http_token", "webhook", "command", "labels", "sink", "decode"}, f"{taken}")
    # Other nodes and clients use these names for a node and its site: they are not secret.
    taken = [one for one in taken if one[0] not in (("cluster", "site"), ("cluster", "node"))]
    for i, (case, text) in enumerate(joined(where, taken)):
        check_key_runs(checks, where, case, text, (by_variable, by_credential)[i % 2])
    with Framed(where, with_key(where, ("log", "level"), "debug"), by_variable) as framed:
        client = Client(port_of(framed))
        for path, form, text in texts:
            status, _, found = client.get("/api/v1/check", "POST", json.dumps({"text": text}), {"Content-Type": "application/json"})
            checks.check(status == 200 and MARK not in found and "is not set" not in found, f"HTTP, {path}: {form}: {status} {found}")
        checks.check(MARK not in framed.errors(), framed.errors())


def check_put_is_literal(checks, where):
    """A dollar sign in a camera added by HTTP is literal unless the client requests expansion."""
    camera = {"url": "rtsp://127.0.0.1:1/${A_SECRET}/x", "outputs": {"o": {"size": "8x8", "sink": "tcp:0"}}}
    headers = {"Content-Type": "application/json"}
    config = json.dumps({**json.loads(with_key(where, ("log", "level"), "debug")), "http_write": True})
    with Framed(where, config, {"A_SECRET": MARK}) as framed:
        client = Client(port_of(framed))
        for query, wanted, refused in (("", "/$${A_SECRET}/x", None), ("?expand=false", "/$${A_SECRET}/x", None),
                                       ("?expand=true", "/${A_SECRET}/x", None), ("?expand=yes", None, 400)):
            status, _, said = client.get(f"/api/v1/cameras/new{query}", "PUT", json.dumps(camera), headers)
            with open(f"{where}/framed.d/api-new.yaml") as file:
                text = file.read()
            checks.check(status == (refused or 200) and MARK not in said and (not wanted or wanted in text), f"{query}: {status} {said} {text}")
        status = json.loads(client.get("/api/v1/status")[2])
        checks.check([one["url"] for one in status["cameras"] if one["name"] == "new"] == [camera["url"]], f"{status['cameras']}")
        client.get("/api/v1/cameras/new", "DELETE")


LONG = MARK * 30  # longer than one message


def check_refused_changes(checks, where):
    """The error of a refused reload or PUT contains no value of a reference, even if the message is truncated."""
    headers = {"Content-Type": "application/json"}
    env = {"A_SECRET": MARK, "LONG": LONG, "SINK": f"unix:/nowhere/{MARK}/x"}
    start = {**json.loads(with_key(where, ("log", "level"), "debug")), "http_write": True}
    taken = f"/dev/shm/{MARK}"
    with open(taken, "w") as file:
        file.write("another's")
    outputs = [{"group": "${A_SECRET}", "sink": f"unix:{where}/group.sock"}, {"shared": "/${A_SECRET}", "sink": f"ring:{where}/shared.ring"}]
    outputs += [{"sink": f"{kind}:/nowhere/${{A_SECRET}}/x.raw"} for kind in ("file", "unix", "ring")]
    outputs += [{"sink": "${SINK}"}, {"sink": "file:/nowhere/${LONG}/x.raw"}, {"sink": f"file:/{'n' * 130}/{'n' * 70}/${{LONG}}/x.raw"}]
    outputs += [{"sink": "tcp:0", "lut": value} for value in ("${A_SECRET}", "/nowhere/${LONG}", f"{where}/zeros/${{A_SECRET}}")]
    roots = [{"http": "unix:/nowhere/${A_SECRET}"}, {"control": "/nowhere/${A_SECRET}"}]
    try:
        with Framed(where, json.dumps(start), env) as framed:
            client = Client(port_of(framed))
            for i, change in enumerate(outputs + roots):
                text = json.loads(json.dumps({**start, **(change if change in roots else {})}))
                if change not in roots:
                    text["cameras"]["gate"]["outputs"]["new"] = {"size": "8x8", **change}
                with open(framed.config, "w") as file:
                    file.write(json.dumps(text))
                said = [client.get("/api/v1/reload", "POST", "{}", headers)]
                if i == 0:
                    said.append((409, {}, "".join(run("reload", "--socket", f"{where}/own.sock")[1:])))
                with open(framed.config, "w") as file:
                    file.write(json.dumps(start))
                if change not in roots:
                    said.append(client.get("/api/v1/cameras/put?expand=true", "PUT", json.dumps({**text["cameras"]["gate"], "outputs": {"new": {"size": "8x8", **change}}}), headers))
                for status, _, answer in said:
                    checks.check(status in (400, 409, 422) and "Zorngi" not in answer, f"{change}: {status} {answer}")
                    checks.check("${" in answer, f"{change}: no reference in {answer}")
            checks.check("Zorngi" not in framed.errors(), framed.errors())
    finally:
        os.remove(taken)


def check_shown_paths(checks, where):
    """Commands and the status show paths as written in the configuration."""
    os.mkdir(f"{where}/{MARK}")
    with open(f"{where}/{MARK}/old.y4m.part", "w") as file:
        file.write("x")
    os.utime(file.name, (1, 1))
    with open(f"{where}/{MARK}/night.cube", "w") as file:
        file.write("LUT_1D_SIZE 2\n0 0 0\n1 1 1\n")
    config = json.loads(with_key(where, ("control",), f"{where}/${{A_SECRET}}/own.sock"))
    camera = config["cameras"]["gate"]
    own = grp.getgrgid(os.getgid()).gr_name
    camera["outputs"] = {"o": {"size": "8x8", "sink": f"file:{where}/${{A_SECRET}}/x.y4m", "kernel": "yuv"},
                         "p": {"size": "8x8", "sink": f"ring:{where}/p.ring", "lut": f"{where}/${{A_SECRET}}/night.cube"},
                         "q": {"size": "8x8", "sink": f"ring:{where}/q.ring", "shared": "/framed-test-secrets", "group": "${A_GROUP}"},
                         "r": {"size": "8x8", "sink": "tcp:${AN_ADDRESS}:0"}}
    env = {"A_SECRET": MARK, "A_GROUP": own, "AN_ADDRESS": "127.0.0.1"}
    code, output, errors = run("check", "-c", "-", stdin=json.dumps(config), env=env)
    checks.check(code == 0 and MARK not in output + errors and "${A_SECRET}/night.cube" in output and "group ${A_GROUP}" in output, f"{code}: {output}{errors}")
    env["SINK"] = f"file:{where}/none/{MARK}/%Y.raw"
    for sink in ("${SINK}", "ring:/${A_SECRET}/${A_SECRET}"):
        code, output, errors = run("check", "-c", "-", stdin=with_key(where, ("cameras", "*", "outputs", "*", "sink"), sink), env=env)
        checks.check(code == 78 and MARK not in output + errors and "its folder" in errors, f"{sink}: {code}: {output}{errors}")
    with Framed(where, json.dumps(config), env) as framed:
        client = Client(port_of(framed))
        until(lambda: json.loads(client.get("/api/v1/status")[2])["unfinished"]["files"], 10)
        seen = client.get("/api/v1/status")[2]
        checks.check(MARK not in seen and f"{where}/${{A_SECRET}}/old.y4m.part" in seen, seen)
        found = {one["name"]: one["sink"] for one in json.loads(client.get("/api/v1/where/gate")[2])["outputs"]}
        checks.check(re.fullmatch(r"tcp:127\.0\.0\.1:[1-9]\d+", found["r"]) and found["p"] == f"ring:{where}/p.ring", f"{found}")
        framed.stop()
        code, output, errors = run("status", "-c", framed.config, env=env)
    checks.check(code != 0 and MARK not in output + errors and "does not answer on" in errors, f"{output}{errors}")


def check_key_runs(checks, where, case, text, env):
    env = {**env, "RUNTIME_DIRECTORY": where}
    seen = ""
    with Framed(where, text, env) as framed:
        until(lambda: "http on" in framed.errors() or framed.child.poll() is not None, 10)
        if "http on" in framed.errors() and framed.child.poll() is None:
            headers = {"Authorization": f"Bearer {MARK}{MARK}"}
            client = Client(port_of(framed)) if re.search(r"http on \S+ port", framed.errors()) else Client(path=f"{where}/{MARK}")
            for page in ("/metrics", "/api/v1/status", "/api/v1/summary", "/api/v1/cameras", "/api/v1/cluster", "/api/v1/config"):
                seen += client.get(page, headers=headers)[2]
        seen += "".join(run("status", "-c", framed.config, env=env)[1:])
        framed.stop()
        seen += framed.errors()
    lines = [line for line in seen.splitlines() if MARK in line]
    checks.check(not lines, f"{case}: " + "\n".join(lines)[:2000])


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
        check_every_key(checks, where)
        check_put_is_literal(checks, where)
        check_refused_changes(checks, where)
        check_shown_paths(checks, where)
        check_raw(checks, where)
        check_options(checks, where)
    checks.end()


main()
