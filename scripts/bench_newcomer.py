#!/usr/bin/python3
"""The way of somebody who has a camera and no configuration, timed: framed is started, its page opened, the camera found
on the network, tried and added by the page's wizard, and the command that the camera's page shows is pasted into a shell,
until it prints the first tensor.

usage: bench_newcomer.py [--framed BINARY] [--deb FILE] [--limit 60]

The camera is on this box: an RTSP server with a password, and ONVIF. With framed's package, that of libframed1 and that of
python3-framedio beside it, what is unpacked from them runs. What a person thinks and types is not in the times: the page
is driven by a program. Without chromium-headless-shell the same requests are made without a page. Exit 1 where it takes
longer than --limit seconds, or does not come to its end.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
NAME, USER, PASSWORD = "front door", "viewer", "Ge7/heim"


class Steps:
    """What was done, and how long it took since the step before."""

    def __init__(self, limit):
        self.limit = limit
        self.begin()

    def begin(self):
        self.began = self.last = time.monotonic()

    def done(self, what):
        now = time.monotonic()
        print(f"{now - self.last:6.2f} s  {what}", flush=True)
        self.last = now

    def end(self):
        took = time.monotonic() - self.began
        print(f"{took:6.2f} s  in all; {self.limit} s are allowed", flush=True)
        return took <= self.limit


class Built:
    """What this tree has built."""

    def shell(self, command):
        """The command in a shell that finds Debian's Python, and framedio as an installed one does; and its environment."""
        from framed_client import framedio_environment

        environment = framedio_environment()
        return ["sh", "-c", f"exec {command}"], {**environment, "PATH": f"/usr/bin:{environment['PATH']}"}


def packages_with(package):
    """framed's package, and those of its client beside it."""
    folder = os.path.dirname(os.path.abspath(package))
    client = [max(glob.glob(f"{folder}/{name}_*.deb")) for name in ("libframed1", "python3-framedio")]
    return [os.path.abspath(package), *client]


class Unpacked:
    """What is unpacked from packages."""

    def __init__(self, package, where):
        self.root = f"{where}/package"
        for path in packages_with(package):
            subprocess.run(["dpkg", "-x", path, self.root], check=True)
        self.binary = f"{self.root}/usr/bin/framed"

    def shell(self, command):
        library = os.path.dirname(glob.glob(f"{self.root}/usr/lib/*/libframed.so.1")[0])
        environment = {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": library}
        return ["sh", "-c", f"exec {command}"], {**environment, "PYTHONPATH": f"{self.root}/usr/lib/python3/dist-packages"}


def config_of(where):
    """All that the newcomer writes: who may open the page, and that it may change something."""
    return f"http: 127.0.0.1:0\nhttp_write: true\ncontrol: {where}/control.sock\n"


def by_page(steps, origin, where):
    """The wizard, as somebody clicks it; returns the command that the camera's page shows."""
    from browser import Browser

    named = "[...document.querySelectorAll('button')].find((button) => button.textContent.startsWith('{}') && !button.disabled)"
    field = "[...document.querySelectorAll('.field')].find((field) => field.innerText.startsWith('{}')).querySelector('input')"

    with Browser() as browser:
        page = browser.page(f"{origin}/#/new")

        def click(name):
            if not page.until(named.format(name), 10):
                raise RuntimeError(f"the page has no button {name}: {page.run('document.body.innerText')[:2000]}")
            page.run(f"{named.format(name)}.click()")

        def write(name, text):
            page.run(f"((input) => {{ input.value = {json.dumps(text)}; input.dispatchEvent(new Event('input')); }})({field.format(name)})")

        if not page.until("document.querySelector('.steps')", 10):
            raise RuntimeError("the page does not open")
        steps.done("page opened")
        write("User", USER)
        write("Password", PASSWORD)
        click("Look for cameras")
        found = f"[...document.querySelectorAll('.found li')].find((item) => item.innerText.startsWith('{NAME}'))"
        if not page.until(found, 10):
            raise RuntimeError(f"the page finds no camera: {page.run('document.body.innerText')[:2000]}")
        page.run(f"{found}.querySelector('button').click()")
        steps.done("camera found on the network")
        write("Sink", f"ring:{where}/door.ring")
        click("Try it")
        if not page.until("document.querySelector('.steps .facts')", 20):
            raise RuntimeError(f"the camera cannot be tried: {page.run('document.body.innerText')[:2000]}")
        steps.done("camera tried")
        click("Add it now")
        if not page.until("document.querySelector('.steps .good a')", 20):
            raise RuntimeError(f"the camera is not added: {page.run('document.body.innerText')[:2000]}")
        steps.done("camera added")
        page.run("location.hash = document.querySelector('.steps .good a').getAttribute('href')")
        command = "[...document.querySelectorAll('pre')].map((pre) => pre.textContent).find((text) => text.includes('framedio.open'))"
        text = page.until(command, 10)
        if not text:
            raise RuntimeError(f"the camera's page shows no command: {page.run('document.body.innerText')[:2000]}")
        steps.done("its command shown")
        return text


def by_requests(steps, port, where):
    """The same without a page."""
    from http_client import Client

    client = Client(port)

    def ask(method, path, **body):
        status, _, text = client.get(path, method, json.dumps(body), {"Content-Type": "application/json"})
        if status not in (200, 201) or isinstance(json.loads(text), dict) and json.loads(text).get("error"):
            raise RuntimeError(f"{method} {path}: {status} {text}")
        return json.loads(text)

    found = [camera for camera in ask("POST", "/api/v1/discover", user=USER, password=PASSWORD) if camera["name"] == NAME]
    url = found[0]["streams"][0]["url"]
    steps.done("camera found on the network")
    ask("POST", "/api/v1/probe", url=url, user=USER, password=PASSWORD)
    steps.done("camera tried")
    url = url.replace("://", f"://{USER}:{PASSWORD.replace('/', '%2F')}@")
    ask("PUT", "/api/v1/cameras/door", url=url, outputs={"detector": {"size": "640x640", "sink": f"ring:{where}/door.ring"}})
    steps.done("camera added")
    return f"python3 -c '\nimport framedio\nfor frame in framedio.open(\"ring:{where}/door.ring\"):\n    print(frame.camera, frame.sequence, frame.numpy().shape, flush=True)'"


def first_tensor(source, command):
    """What the command prints first."""
    from framed_client import first_lines

    arguments, environment = source.shell(command)
    return first_lines(arguments, 1, 30, env=environment)[0]


def take(steps, where, package):
    """Where framed and framedio come from. The clock starts here: the camera was there before."""
    import framed_client

    steps.begin()
    if not package:
        return Built()
    source = Unpacked(package, where)
    steps.done(f"{os.path.basename(package)} unpacked")
    framed_client.BINARY = source.binary
    return source


def run(steps, where, package):
    from framed_client import Framed, Server, make_clip
    from http_client import port_of
    from onvif_camera import OnvifCamera

    clip = make_clip(f"{where}/clip.mkv", frames=250, size="1280x720")
    with Server(where, clip, "--auth", f"{USER}:{PASSWORD}") as server, \
            OnvifCamera([server.url()], name=NAME, user=USER, password=PASSWORD):
        source = take(steps, where, package)
        with Framed(where, config_of(where)) as framed:
            port = port_of(framed)
            if not port:
                raise RuntimeError(f"framed serves no HTTP: {framed.errors()}")
            steps.done("framed started")
            if shutil.which("chromium-headless-shell"):
                command = by_page(steps, f"http://127.0.0.1:{port}", where)
            else:
                command = by_requests(steps, port, where)
            line = first_tensor(source, command)
            if not re.match(r"\S+ \d+ \(3, 640, 640\)$", line):
                raise RuntimeError(f"the command printed {line!r}: {command}")
            steps.done(f"first tensor: {line.strip()}")
            if PASSWORD in framed.errors():
                raise RuntimeError("the log has the password")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framed", default=os.path.join(ROOT, "build", "framed"))
    parser.add_argument("--deb", help="run what is in this package and those of its client beside it")
    parser.add_argument("--limit", type=float, default=60)
    options = parser.parse_args()
    os.environ["FRAMED"] = os.path.abspath(options.framed)
    steps = Steps(options.limit)
    with tempfile.TemporaryDirectory(prefix="framed-new-") as where:
        run(steps, where, options.deb)
    sys.exit(0 if steps.end() else 1)


if __name__ == "__main__":
    main()
