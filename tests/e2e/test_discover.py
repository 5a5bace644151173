#!/usr/bin/python3
"""framed discover: cameras are found within 3 s with their streams, with either kind of login; a wrong password reaches each camera once; data from
cameras is neither obeyed nor trusted, and a strange camera does not hide the others."""
import contextlib
import http.server
import json
import os
import ssl
import threading
import time

from certificate import make_certificate
from framed_client import PATIENCE, Checks, folder, run
from network_namespace import Namespace, why_no_namespace
from onvif_camera import REFUSAL, ENVELOPE, Handler, OnvifCamera, Server

LONG = '"' * 126  # a token of the largest size that framed accepts; each character takes six in XML
NAME = f"test {os.getpid()}"  # other tests on this box may look for cameras, too
URLS = ["rtsp://10.0.0.5/main", "rtsp://10.0.0.5:8554/sub?channel=1"]


def password_file(where, password):
    path = f"{where}/password{len(password)}"
    with open(path, "w") as file:
        file.write(f"{password}\n")
    return path


def discover(checks, *arguments, limit=3.0):
    """Returns name -> framed's entry for each camera of this test, and all output."""
    began = time.monotonic()
    code, out, errors = run("discover", "--json", *arguments)
    took = time.monotonic() - began
    checks.check(code == 0 and errors == "", f"{arguments}: exit {code}: {errors}")
    checks.check(took < limit * PATIENCE, f"{arguments}: took {took:.2f} s")
    return {camera["name"]: camera for camera in json.loads(out) if camera["name"].startswith(NAME)}, out + errors


def check_good(checks, where):
    cameras = {
        f"{NAME} open": OnvifCamera(URLS[:1], name=f"{NAME} open"),
        f"{NAME} token": OnvifCamera(URLS, name=f"{NAME} token", user="viewer & co", password="geheim", ahead=3600 * 23),
        f"{NAME} digest": OnvifCamera(URLS, name=f"{NAME} digest", user="viewer & co", password="geheim", http_digest=True,
                                       token=LONG),
    }
    right = ["--seconds", "1", "--user", "viewer & co", "--password-file", password_file(where, "geheim"), "127.0.0.1"]
    with cameras[f"{NAME} open"], cameras[f"{NAME} token"], cameras[f"{NAME} digest"]:
        found, out = discover(checks, *right[2:])
        checks.check(found.keys() == cameras.keys(), f"found {found.keys()}")
        for name, camera in found.items():
            urls = [(stream["url"], stream["width"], stream["height"], stream["codec"], stream["fps"]) for stream in camera["streams"]]
            wanted = [(url, 1280 >> i, 720 >> i, "H264", 25) for i, url in enumerate(cameras[name].urls)]
            checks.check(urls == wanted, f"{name}: {urls}")
            checks.check((camera["model"], camera["manufacturer"], camera["error"], camera["wants_login"], camera["address"])
                         == ("Simulated 1", "Tests", "", False, "127.0.0.1"), f"{name}: {camera}")
            checks.check(cameras[name].refusals == 0, f"{name}: {cameras[name].refusals} refusals")
        checks.check("geheim" not in out, out)
        code, out, errors = run("discover", *right)
        lines = [line.split() for line in out.splitlines()]
        checks.check(code == 0 and lines[0] == ["ADDRESS", "NAME", "MODEL", "PICTURE", "URL"], f"{code} {errors}\n{out}")
        checks.check(sum(line[-1] == URLS[0] for line in lines) == 3 and ["640x360", URLS[1]] in lines, out)
        check_refusals(checks, where, cameras)


def check_refusals(checks, where, cameras):
    for camera in cameras.values():
        camera.attempts = camera.refusals = 0
    wrong = ["--seconds", "1", "--user", "viewer & co", "--password-file", password_file(where, "falsch"), "127.0.0.1"]
    found, out = discover(checks, *wrong)
    for kind in ("token", "digest"):
        name = f"{NAME} {kind}"
        tries = (cameras[name].attempts, cameras[name].refusals)
        checks.check(tries == (1, 1), f"{name}: {tries}")
        checks.check(found[name]["wants_login"] and "refused the user name or password" in found[name]["error"]
                     and not found[name]["streams"], f"{found[name]}")
    checks.check(len(found[f"{NAME} open"]["streams"]) == 1 and "falsch" not in out, out)
    found, _ = discover(checks, "--seconds", "1")
    for kind in ("token", "digest"):
        name = f"{NAME} {kind}"
        checks.check(cameras[name].attempts == 1, f"{name}: {cameras[name].attempts} attempts without a user")
        checks.check(found[name]["error"] == "wants a user name and a password", f"{found[name]}")


class GuardedClock(OnvifCamera):
    """Reports its clock only to clients that log in."""

    def answer(self, handler, request):
        if "GetSystemDateAndTime" in request and "UsernameToken" not in request:
            return 401, REFUSAL, {}
        return super().answer(handler, request)


def check_named(checks, where):
    """A login goes to the named cameras, not to others that answer, and never with a time chosen by the camera."""
    login = ["--user", "viewer", "--password-file", password_file(where, "geheim")]
    named = OnvifCamera(URLS, address="127.0.0.2", name=f"{NAME} named", user="viewer", password="geheim")
    others = [OnvifCamera(URLS, name=f"{NAME} other {i}", user="viewer", password="geheim", http_digest=i) for i in range(2)]
    clocks = [OnvifCamera(URLS, address="127.0.0.3", name=f"{NAME} {days} days", user="viewer", password="geheim", ahead=86400 * days)
              for days in (2, 400, 20000, -2, -400, -18000)]
    clocks.append(GuardedClock(URLS, address="127.0.0.3", name=f"{NAME} guarded", user="viewer", password="geheim", ahead=86400 * 3000))
    with contextlib.ExitStack() as stack:
        for camera in (named, *others, *clocks):
            stack.enter_context(camera)
        found, _ = discover(checks, *login, "127.0.0.2")
        checks.check(found.keys() == {f"{NAME} named"} and len(found[f"{NAME} named"]["streams"]) == 2, f"{found}")
        found, _ = discover(checks, "127.0.0.2")
        checks.check(found.keys() == {f"{NAME} named"} and found[f"{NAME} named"]["wants_login"], f"{found}")
        found, _ = discover(checks, *login, "127.0.0.3")
        checks.check(len(found) == len(clocks), f"{found.keys()}")
        for name, camera in found.items():
            checks.check("clock" in camera["error"] and camera["wants_login"] and not camera["streams"], f"{name}: {camera}")
        checks.check(named.attempts > 0 and not any(camera.requests for camera in others), "other cameras were asked")
        checks.check(not any(camera.attempts for camera in clocks), f"digests went to {[c.name for c in clocks if c.attempts]}")


class Garbage(OnvifCamera):
    """Answers every probe with the datagrams that `make` derives from a good camera's."""

    def __init__(self, name, make):
        super().__init__(URLS[:1], name=f"{NAME} {name}")
        self.make = make

    def matches(self, question):
        return [made for good in super().matches(question) for made in self.make(good)]


class Strange(OnvifCamera):
    """Answers every request with the result of `say`: (status, body, headers)."""

    def __init__(self, name, say):
        super().__init__(URLS[:1], name=f"{NAME} {name}")
        self.say = say

    def answer(self, handler, request):
        self.requests += 1
        return self.say(request)


class Victim(http.server.ThreadingHTTPServer):
    """Counts the requests that cameras redirect to it."""

    def __init__(self):
        victim = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                victim.requests += 1
                self.send_error(404)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.2", 0), Handler)
        self.requests = 0
        threading.Thread(target=self.serve_forever).start()


DOCTYPE = (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
           b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d SYSTEM "file:///etc/passwd">]>')


def hostile(victim):
    away = f"http://127.0.0.2:{victim.server_address[1]}/onvif/device_service"
    moved = {"Location": away}
    deep = b"<a>" * 20000
    return [
        Garbage("noise", lambda good: [b"", b"\0\xff" * 700, good[: len(good) // 2], good.replace(b"ProbeMatch>", b"Probe>"), deep]),
        Garbage("entities", lambda good: [DOCTYPE + good.partition(b"?>")[2].replace(b"entities", b"&c;&d;")]),
        Garbage("many", lambda good: [good.replace(b"urn:uuid:", b"urn:uuid:%d" % i).replace(b"many", b"many%d" % i) for i in range(3)]),
        Garbage("elsewhere", lambda good: [good.replace(b"http://127.0.0.1:", b"http://127.0.0.2:").replace(
            b"</d:XAddrs>", b" " + away.encode() + b"</d:XAddrs>")]),
        Garbage("escape", lambda good: [good.replace(b"escape", b"escape%1b%5b2J\xc2\x9b2J&#xe2;\xe2\x80\xae")]),
        Strange("no soap", lambda request: (200, "<html>hello</html>", {})),
        Strange("no xml", lambda request: (200, b"\0\1\2" * 1000, {})),
        Strange("long", lambda request: (200, b" " * 2000000, {})),
        Strange("moved", lambda request: (302, "", moved)),
        Strange("entity soap", lambda request: (200, DOCTYPE + (ENVELOPE % ("", "&c;")).partition("?>")[2].encode(), {})),
        Strange("hangs", lambda request: time.sleep(3) or (200, "", {})),
        Strange("fault", lambda request: (500, ENVELOPE % ("", "<env:Fault><env:Reason><env:Text>no\x7f way</env:Text></env:Reason></env:Fault>"), {})),
        Hider("hider"),
    ]


class Hider(OnvifCamera):
    """Lists streams that framed must not play."""

    def __init__(self, name):
        super().__init__(["http://10.0.0.5/x", "file:///etc/passwd", "rtsp://", 'rtsp://a:sesam@10.0.0.5/x?user=a&amp;password=sesam',
                          "rtsp://10.0.0.5/" + "x" * 600, 'rtsp://10.0.0.5/a b"c'], name=f"{NAME} {name}")


def check_garbage(checks, where):
    victim, good = Victim(), OnvifCamera(URLS[:1], name=f"{NAME} good")
    cameras = hostile(victim)
    try:
        for camera in cameras:
            camera.__enter__()
        with good:
            found, out = discover(checks, "--seconds", "1", limit=5)
    finally:
        for camera in cameras:
            camera.__exit__()
        victim.shutdown()
        victim.server_close()
    said = {name.removeprefix(f"{NAME} "): camera for name, camera in found.items()}
    errors = {name: camera["error"] for name, camera in said.items()}
    checks.check([stream["url"] for stream in said["good"]["streams"]] == URLS[:1], f"the good one: {said.get('good')}")
    checks.check(victim.requests == 0, f"{victim.requests} requests went where a camera sent them")
    checks.check("noise" not in said and "entities" not in said, f"{said.keys()}")
    checks.check(len(said["elsewhere"]["streams"]) == 1, f"{said['elsewhere']}")
    for name, text in (("no soap", "answered no SOAP"), ("no xml", "answered no SOAP"), ("long", "more than 256 KiB"),
                       ("moved", "answered no SOAP"), ("entity soap", "answered no SOAP"), ("hangs", "took too long"),
                       ("fault", "refused the request: no way")):
        checks.check(text in errors[name], f"{name}: {errors[name]}")
    checks.check([stream["url"] for stream in said["hider"]["streams"]] == ["rtsp://10.0.0.5/x?user=***&password=***"], f"{said['hider']}")
    escaped = [name for name in said if name.startswith("escape")]
    checks.check(escaped == ["escape?[2J"] and not any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in out), f"{escaped} {out!r}")
    checks.check("sesam" not in out and "root:" not in out, out)


class Https(OnvifCamera):
    """Offers its service by http and, on another port, by https; `counts` holds the requests with a user on each."""

    def __init__(self, where):
        super().__init__(URLS[:1], address="127.0.0.4", name=f"{NAME} https", user="viewer", password="geheim")
        self.counts = {"open": 0, "secure": 0}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(make_certificate(where, "camera")[0])
        self.secure = Server((self.address, 0), Handler)
        self.secure.camera = self
        self.secure.socket = context.wrap_socket(self.secure.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.secure.serve_forever).start()

    def matches(self, question):
        return [good.replace(b"</d:XAddrs>", b" https://%s:%d/onvif/device_service</d:XAddrs>" % (self.address.encode(), self.secure.server_address[1]))
                for good in super().matches(question)]

    def may(self, handler, request):
        self.counts["secure" if handler.server is self.secure else "open"] += "UsernameToken" in request
        return super().may(handler, request)

    def __exit__(self, *_):
        self.secure.shutdown()
        self.secure.server_close()
        super().__exit__()


def check_https(checks, where):
    """With a login, framed uses https where the camera offers it; without one, http."""
    with Https(where) as camera:
        found, _ = discover(checks, "--seconds", "1", limit=5)
        checks.check(found[camera.name]["wants_login"] and camera.counts == {"open": 0, "secure": 0}, f"{found} {camera.counts}")
        found, _ = discover(checks, "--user", "viewer", "--password-file", password_file(where, "geheim"), "127.0.0.4", limit=5)
        checks.check(len(found[camera.name]["streams"]) == 1, f"{found}")
        checks.check(camera.counts["open"] == 0 and camera.counts["secure"] > 0, f"{camera.counts}")


def check_network(checks):
    """A camera on another host, which receives the probe by multicast on one of this box's interfaces."""
    if why := why_no_namespace():
        checks.skip(why)
        return
    with Namespace() as network:
        with network.entered():
            camera = OnvifCamera(URLS[:1], address=network.inner, name=f"{NAME} far")
            camera.__enter__()
        try:
            found, _ = discover(checks, "--seconds", "1")
        finally:
            camera.__exit__()
        far = found.get(f"{NAME} far", {})
        checks.check(far.get("address") == network.inner and len(far.get("streams", [])) == 1, f"{found}")


def check_mistakes(checks, where):
    for arguments, text in (
        (["--seconds", "0"], "takes a number from 0.1 to 60"),
        (["--user", "x"], "wants --password-file"),
        (["--password-file", "x"], "wants --user"),
        (["--user", "x", "--password-file", f"{where}/none"], "No such file"),
        (["--user", "x", "--password-file", password_file(where, "")], "without a password"),
        (["--user", "x", "--password-file", password_file(where, "x" * 5000)], "longer than 4094"),
        (["x"], "x: is not an address"),
        (["10.0.0.5:80"], "is not an address"),
        (["-u"], "-u"),
        (["10.0.0.5"] * 17, "one address too many"),
        (["--user", "x", "--password-file", password_file(where, "y")], "needs the ADDRESS of each camera"),
    ):
        code, out, errors = run("discover", *arguments)
        checks.check((code, out) == (2, "") and text in errors and errors.count("\n") == 1, f"{arguments}: exit {code}: {errors}")


def main():
    checks = Checks("discover")
    with folder() as where:
        check_mistakes(checks, where)
        check_good(checks, where)
        check_named(checks, where)
        check_https(checks, where)
        check_garbage(checks, where)
        check_network(checks)
    checks.end()


main()
