#!/usr/bin/python3
"""The time that a newcomer with a camera and no configuration needs: framed is started, its page opened, the camera found on
the network, tried and added with the page's wizard, and the command shown on the camera's page is pasted into a shell, until
it prints the first tensor.

usage: bench_newcomer.py [--framed BINARY] [--deb FILE [--bare FOLDER]] [--limit 60]

The camera is on this machine: an RTSP server with a password, and ONVIF. With framed's package, apt installs that and the
client's packages beside it on a bare Debian that runs systemd as a container, and the service is configured; a user of the
group framed pastes the command. This requires root, and FOLDER keeps the bare Debian for the next run. The clock starts
after the packages are installed; apt's time is printed before. The times do not include a person's thinking and typing: a
program drives the page. Without chromium-headless-shell the same requests are made without a page. Exits with 1 if it takes
longer than --limit seconds or fails.
"""
import argparse
import glob
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time

from bare_debian import Container, bare_debian

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
# Recommended by FFmpeg's libraries, but useless on a machine without a screen or a GPU.
NEEDLESS = ["libgl1", "libgl1-mesa-dri", "mesa-va-drivers", "libllvm15"]
NAME, USER, PASSWORD = "front door", "viewer", "Ge7/heim"


class Steps:
    """Prints each step with the time since the previous one."""

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
        """Returns True if the total is within the limit."""
        took = self.last - self.began
        print(f"{took:6.2f} s  in all; {self.limit} s are allowed", flush=True)
        return took <= self.limit


class Built:
    """The programs built in this tree."""

    def __init__(self, where):
        self.where, self.sink = where, f"ring:{where}/door.ring"

    def __enter__(self):
        return self

    def __exit__(self, *of):
        self.framed.__exit__(*of)

    def start(self):
        """Starts framed and returns the port of its page."""
        from framed_client import Framed
        from http_client import port_of

        self.framed = Framed(self.where, f"{config_of(0)}control: {self.where}/control.sock\n").__enter__()
        return port_of(self.framed)

    def log(self):
        return self.framed.errors()

    def shell(self, command):
        """Returns the command in a shell that finds Debian's Python and framedio as if installed; and its environment."""
        from framed_client import framedio_environment

        environment = framedio_environment()
        return ["sh", "-c", f"exec {command}"], {**environment, "PATH": f"/usr/bin:{environment['PATH']}"}


class Installed:
    """Packages installed in a container as the README describes."""

    sink = None  # the wizard's proposal

    def __init__(self, package, where, bare):
        self.box = Container(bare_debian([], bare), where, private=False)
        folder = os.path.dirname(os.path.abspath(package))
        client = [max(glob.glob(f"{folder}/{name}_*.deb")) for name in ("libframed1", "python3-framedio")]
        for path in (package, *client):
            shutil.copy(path, f"{self.box.root}/root")

    def __enter__(self):
        self.box.__enter__()
        try:
            self.install()
        except BaseException:
            self.box.__exit__()
            raise
        return self

    def __exit__(self, *of):
        self.box.__exit__(*of)

    def do(self, command):
        code, said = self.box("sh", "-c", command)
        if code:
            raise RuntimeError(f"{command}: exit {code}\n{said}")
        return said

    def install(self):
        self.do("apt-get -q update && useradd -m you")
        began = time.monotonic()
        said = self.do("DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends /root/*.deb")
        facts = re.findall(r"\d+ newly installed|[\d.]+ [kM]B of additional disk space", said)
        print(f"apt: {time.monotonic() - began:.0f} s, {', '.join(facts)}", flush=True)
        needless = [name for name in NEEDLESS if self.box("dpkg-query", "-s", name)[0] == 0]
        if needless:
            raise RuntimeError(f"apt installed {needless}, too")

    def start(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.box.write("/etc/framed/framed.yaml", config_of(port))
        self.do("adduser you framed && framed check && systemctl restart framed")
        return port

    def log(self):
        return self.box.journal()

    def shell(self, command):
        user = ["setpriv", "--reuid=you", "--regid=you", "--init-groups", "--reset-env"]
        return self.box.inside(*user, "sh", "-c", f"cd && exec {command}"), None


def config_of(port):
    """Returns the newcomer's whole configuration: the page's address, and permission to write."""
    return f"http: 127.0.0.1:{port}\nhttp_write: true\n"


def by_page(steps, origin, sink):
    """Clicks through the wizard; returns the command shown on the camera's page."""
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
        if sink:
            write("Sink", sink)
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


def by_requests(steps, port, sink):
    """Does the same without a page."""
    from http_client import Client

    client = Client(port)

    def ask(method, path, **body):
        status, _, text = client.get(path, method, json.dumps(body), {"Content-Type": "application/json"})
        if status not in (200, 201) or isinstance(json.loads(text), dict) and json.loads(text).get("error"):
            raise RuntimeError(f"{method} {path}: {status} {text}")
        return json.loads(text)

    found = [camera for camera in ask("POST", "/api/v1/discover", user=USER, password=PASSWORD) if camera["name"] == NAME]
    url = found[0]["streams"][0]["url"]
    sink = sink or "ring:/run/framed/door.ring"
    steps.done("camera found on the network")
    ask("POST", "/api/v1/probe", url=url, user=USER, password=PASSWORD)
    steps.done("camera tried")
    url = url.replace("://", f"://{USER}:{PASSWORD.replace('/', '%2F')}@")
    ask("PUT", "/api/v1/cameras/door", url=url, outputs={"detector": {"size": "640x640", "sink": sink}})
    steps.done("camera added")
    return f"python3 -c '\nimport framedio\nfor frame in framedio.open(\"{sink}\"):\n    print(frame.camera, frame.sequence, frame.numpy().shape, flush=True)'"


def first_tensor(source, command):
    """Returns the command's first line."""
    from framed_client import first_lines

    arguments, environment = source.shell(command)
    return first_lines(arguments, 1, 30, env=environment)[0]


def run(steps, where, source):
    from framed_client import Server, make_clip
    from onvif_camera import OnvifCamera

    clip = make_clip(f"{where}/clip.mkv", frames=250, size="1280x720")
    with Server(where, clip, "--auth", f"{USER}:{PASSWORD}") as server, \
            OnvifCamera([server.url()], name=NAME, user=USER, password=PASSWORD), source:
        steps.begin()
        port = source.start()
        if not port:
            raise RuntimeError(f"framed serves no HTTP: {source.log()}")
        steps.done("framed configured and started")
        if shutil.which("chromium-headless-shell"):
            command = by_page(steps, f"http://127.0.0.1:{port}", source.sink)
        else:
            command = by_requests(steps, port, source.sink)
        line = first_tensor(source, command)
        if not re.match(r"\S+ \d+ \(3, 640, 640\)$", line):
            raise RuntimeError(f"the command printed {line!r}: {command}\n{source.log()}")
        steps.done(f"first tensor: {line.strip()}")
        if PASSWORD in source.log():
            raise RuntimeError("the log has the password")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framed", default=os.path.join(ROOT, "build", "framed"))
    parser.add_argument("--deb", help="install this package and those of its client beside it")
    parser.add_argument("--bare", default=os.path.join(ROOT, "build", "bookworm", "newcomer"), help="where the bare Debian is kept")
    parser.add_argument("--limit", type=float, default=60)
    options = parser.parse_args()
    os.environ["FRAMED"] = os.path.abspath(options.framed)
    steps = Steps(options.limit)
    with tempfile.TemporaryDirectory(prefix="framed-new-") as where:
        run(steps, where, Installed(options.deb, where, options.bare) if options.deb else Built(where))
    sys.exit(0 if steps.end() else 1)


if __name__ == "__main__":
    main()
