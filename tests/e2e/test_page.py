#!/usr/bin/python3
"""The web page in a browser. It shows the pictures that the cameras send, checked by their numbers; it reports failures and
recovers; it requests nothing from other hosts, under any path of a proxy; it is usable without a mouse or a wide screen."""
import base64
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import consume
import numpy
from browser import PACKAGE, PROGRAM, Browser
from faulty_camera import Camera
from framed_client import ROOT, Checks, Framed, folder, until
from http_client import Client, Editor, port_of
from numbered_clip import NumberedClip, encode, read_numbers
from stripping_proxy import StrippingProxy
from view_client import View

SIZE, COUNT = (320, 192), 100
TOKEN = "Zorngiebel-0123456789"
SECRET = "Wackelpeter"
CONFIG = """
http: 0
http_write: true{token}
cameras:
  gate:
    url: {gate}
    outputs:
      net: {{size: 160x160, fit: letterbox, fill: 114, max_age: 300ms, sink: "ring:{where}/gate.ring"}}
      flat: {{size: 320x192, fit: stretch, sink: "unix:{where}/gate.sock", tensor: {{dtype: f32, scale: 1/255}}}}
      found: {{size: 160x160, sink: "ring:{where}/found.ring", detections: {{sink: "unix:{where}/found.sock", labels: [code]}}}}
  yard:
    url: {yard}
    outputs:
      o: {{size: 64x64, max_age: 20s, sink: "unix:{where}/yard.sock"}}
      part: {{size: 64x64, crop: [32, 16, 160, 96], tensor: {{order: bgr}}, sink: "unix:{where}/part.sock"}}
"""
PAGE = os.path.join(ROOT, "daemon", "service", "page")
POLICY = "default-src 'none'; script-src 'self'"
STAY_SECONDS = 300 if os.environ.get("LONG") else 0  # time during which memory is watched
TYPES = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2021", "--module", "es2020", "--lib",
         "es2021,dom,dom.iterable"]
# A canvas as gray bytes in base64, with its size.
GRAY = """((canvas) => {
    if (!canvas?.dataset.sequence) return null;
    const {width, height} = canvas, copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, width, height);
    let text = '';
    for (let i = 0; i < data.length; i += 4) text += String.fromCharCode((data[i] + data[i + 1] + data[i + 2]) / 3);
    return [width, height, btoa(text)];
})(%s)"""
TILE = "[...document.querySelectorAll('.wall li')].find((tile) => tile.querySelector('b').textContent === '%s')"


def check_types(checks):
    """The types named in the page's comments match."""
    if not shutil.which("tsc"):
        return checks.skip("node-typescript is not installed")
    done = subprocess.run(["tsc", *TYPES, f"{PAGE}/app.js"], capture_output=True, text=True)
    checks.check(done.returncode == 0, done.stdout)


def check_files(checks, port):
    """The binary serves all files of the page and no others: small, with the headers that keep foreign scripts out, and cached by ETag."""
    client, sent, plain = Client(port), 0, 0
    for name in ["/", *(f"/page/{name}" for name in os.listdir(PAGE) if name != "index.html")]:
        status, headers, body = client.get_bytes(name)
        told = [headers["Content-Encoding"], headers["Cache-Control"], headers["X-Content-Type-Options"]]
        checks.check((status, told) == (200, ["gzip", "no-cache", "nosniff"]), f"{name}: {status} {headers}")
        checks.check(headers["Content-Security-Policy"].startswith(POLICY), f"{name}: {headers}")
        again, _, _ = client.get_bytes(name, headers={"If-None-Match": headers["ETag"]})
        checks.check(again == 304, f"{name} is sent again: {again}")
        sent, plain = sent + len(body), plain + len(gzip.decompress(body))
    checks.check(sent <= 40000 and plain <= 120000, f"the page is {plain} bytes, {sent} compressed")


def check_folder(checks, where):
    """FRAMED_WEB serves the page from a folder during development, unchanged."""
    os.makedirs(f"{where}/web")
    shutil.copy(f"{PAGE}/app.js", f"{where}/web")
    config = f'http: 0\ncameras: {{x: {{url: "unix:{where}/x", outputs: {{o: {{size: 64x64, sink: "tcp:0"}}}}}}}}\n'
    with Framed(f"{where}/web", config, env={"FRAMED_WEB": f"{where}/web"}) as framed:
        client = Client(port_of(framed))
        with open(f"{PAGE}/app.js") as file:
            checks.check(client.get("/page/app.js")[::2] == (200, file.read()), "the file is not the folder's")
        checks.check(client.get("/page/dom.js")[0] == 404 == client.get("/page/framed.yaml")[0], "there is more than the page")


def check_quiet(checks, page, origin, but=None):
    """Checks for no console error, no policy violation and no request to another origin."""
    foreign = [url for url in page.requests if not re.match(rf"{re.escape(origin)}/|blob:|data:", url)]
    console = [line for line in page.console if not but or but not in line]
    checks.check(not console and not page.failures and not foreign,
                 f"{page.run('location.href')}: console {console}, failed {page.failures}, foreign {foreign}")


def gray_of(page, canvas):
    """Returns the canvas's gray picture, or None."""
    told = page.run(GRAY % canvas)
    return told and numpy.frombuffer(base64.b64decode(told[2]), "u1").reshape(told[1], told[0])


def numbers_of(page, canvas):
    gray = gray_of(page, canvas)
    return read_numbers(gray) if gray is not None and gray.shape[1] > gray.shape[0] > 90 else (-1, -1)


def shows_now(page, canvas, camera):
    """Returns the number of the picture if the canvas shows it whole and the camera sent it within the last second."""
    top, bottom = numbers_of(page, canvas)
    return top >= 0 and top == bottom and top in [sent.number % COUNT for sent in camera.sent[-30:]] and top


def shows_some_of(page, canvas, camera):
    """Waits for two different pictures, one after another."""
    first = until(lambda: shows_now(page, canvas, camera), 10)
    return first and until(lambda: shows_now(page, canvas, camera) not in (None, False, first), 5)


def check_wall(checks, browser, origin, cameras):
    """Each tile shows its own camera, also if the browser's fast decoding path fails."""
    broken = "window.createImageBitmap = () => Promise.reject(new Error('not here'))"
    for case, before in (("wall", None), ("no createImageBitmap", broken)):
        page = browser.page(f"{origin}/", before=before)
        for name, camera in cameras.items():
            shown = shows_some_of(page, f"{TILE % name}?.querySelector('canvas')", camera)
            checks.check(shown, f"{case}: the tile of {name} does not show what the camera sends")
        checks.check(page.until("document.querySelector('.sentence').textContent.startsWith('2 of 2 show pictures.')"),
                     f"{case}: {page.run('document.querySelector(`.sentence`).textContent')}")
        check_quiet(checks, page, origin)
        page.close()


# The age at which each tile turned red, within three seconds.
RED = """new Promise((done) => {
    const red = {};
    const timer = setInterval(() => {
        for (const tile of document.querySelectorAll('.wall li')) {
            const age = tile.querySelector('.age'), name = tile.querySelector('b').textContent;
            red[name] = red[name] ?? (age.classList.contains('bad') ? parseFloat(age.textContent) : undefined);
        }
    }, 20);
    setTimeout(() => (clearInterval(timer), done(red)), 3000);
})"""


def check_age(checks, browser, origin, cameras):
    """A picture older than max_age is marked at any frame rate."""
    page = browser.page(f"{origin}/")
    for name, camera in cameras.items():
        checks.check(shows_some_of(page, f"{TILE % name}?.querySelector('canvas')", camera), f"{name} shows nothing")
    for camera in cameras.values():
        camera.delay = 3  # also applies to a second connection that framed opens
    red = page.run(RED)
    for camera in cameras.values():
        camera.delay = 0
    checks.check(0.4 < red.get("gate", 0) < 1 and "yard" not in red, f"ages above 0.3 s of gate, 20 s of yard: {red}")
    page.close()


# Losses shown after a full answer, after increments and after another daemon's answer.
LOSSES = """import('./page/history.js').then(({Losses}) => {
    const losses = new Losses(4), told = [losses.query()];
    const answer = (newest, samples, lost) => ({newest, samples, cameras: lost && {a: {outputs: {o: {lost}, p: {lost}}}, b: {outputs: {}}}});
    for (const [newest, samples, lost] of [[7, 2, {late: [1, 2], client: [5, null]}], [10, 3, {sink: [0, 0, 4]}], [10, 0, {}], [20, 3, {late: [1, 1, 1]}]]) {
        losses.take(answer(newest, samples, lost));
        told.push(losses.byReason(), losses.bars('a', 2), losses.bars('b', 2));
    }
    return [...told, losses.query()];
})"""


def check_losses(checks, browser, origin):
    page = browser.page(f"{origin}/")
    told = page.run(LOSSES)
    wanted = ["api/v1/history?only=lost&samples=4", [["client", 10], ["late", 6]], [0, 6], [0, 0], [["sink", 8], ["late", 4]], [4, 8], [0, 0],
              [["sink", 8], ["late", 4]], [4, 8], [0, 0], [["late", 6]], [2, 4], [0, 0], "api/v1/history?only=lost&samples=4&since=20"]
    checks.check(told == wanted, f"losses: {told}")
    page.close()


def check_outage(checks, browser, origin, camera):
    """A camera that is gone is marked within two seconds, listed first, and recovers."""
    page = browser.page(f"{origin}/")
    state = f"{TILE % 'yard'}?.querySelector('.state').textContent"
    checks.check(page.until(f"{state} === 'running'", 10), "yard does not run")
    camera.refuse()
    for peer in camera.peers:
        peer.close()
    start = time.monotonic()
    told = page.until(f"({state} ?? '').startsWith('retrying')", 6)
    took = time.monotonic() - start
    checks.check(told and took < 2.2, f"yard is gone: {page.run(state)} after {took:.1f} s")
    first = page.run("document.querySelector('.wall b').textContent")
    checks.check(first == "yard", f"the camera with a problem is not the first: {first}")
    camera.listen()
    checks.check(page.until(f"{state} === 'running'", 15), "yard does not come back")
    checks.check(shows_some_of(page, f"{TILE % 'yard'}.querySelector('canvas')", camera), "yard shows nothing new")
    check_quiet(checks, page, origin)
    page.close()


def has_border(gray):
    return gray is not None and gray.shape == (160, 160) and abs(gray[:30].astype(int) - 114).max() <= 4


def check_camera(checks, browser, origin, camera):
    """Source and tensor show the same picture; a point in one is marked at its position in the other; figures and events are shown."""
    page = browser.page(f"{origin}/#/camera/gate")
    source, tensor = "document.querySelector('.frame canvas')", "document.querySelectorAll('.frame')[1]?.querySelector('canvas')"
    checks.check(shows_some_of(page, source, camera), "the source does not show what the camera sends")
    # 320x192 in 160x160: half as large, rows 32 to 128.
    checks.check(until(lambda: has_border(gray_of(page, tensor)), 10), "the tensor is not 160x160 with a border of 114")
    page.run("document.querySelectorAll('.frame')[0].focus()")
    page.press("ArrowRight")
    told = page.until("document.querySelector('.where').textContent.includes('↔') && document.querySelector('.where').textContent")
    found = re.findall(r"(-?[\d.]+), (-?[\d.]+)", told or "")
    checks.check(found and numpy.allclose(numpy.array(found, float), [(161, 96), (80.25, 79.75)], atol=0.1), f"the mark: {told}")
    page.run("document.querySelector('input[name=output]:not(:checked)').click()")
    checks.check(shows_some_of(page, tensor, camera), "the other tensor does not show what the camera sends")
    channels = page.until("document.querySelectorAll('.channels tbody tr').length === 3 && document.querySelector('.channels').innerText", 5)
    figures = [float(word) for word in re.findall(r"\t([\d.]+)", channels or "")]
    checks.check(len(figures) == 9 and all(0 <= a <= b <= c <= 1.01 for a, b, c in zip(*[iter(figures)] * 3)), f"channels {channels}")
    checks.check(page.until("document.querySelector('.events li')?.innerText.includes('running')"), "no events")
    checks.check(page.until("document.querySelector('.chart canvas').getAttribute('aria-label').includes('in 2')", 8), "no frames in the chart")
    told = page.run("document.querySelector('main').innerText")
    checks.check("framedio.open(\"ring:" in told and "h264 320x192" in told, "no command or no facts")
    facts = dict(re.findall(r"^(\S[^\n]*)\n+(\S[^\n]*)", page.run("document.querySelector('.facts').innerText"), re.M))
    checks.check(facts["Codec"].startswith("h264 ") and len(facts["Codec"]) > 7 and "bit/s" in facts["Bit rate"]
                 and facts["Keyframes"] == "every 1.0 s" and re.search("(behind|ahead of) this machine's", facts["Clock"]), f"{facts}")
    checks.check(SECRET not in page.run("document.documentElement.outerHTML"), "a password shows")
    check_quiet(checks, page, origin)
    page.close()


class Detector(threading.Thread):
    """A consumer that finds the number's blocks at the bottom of gate's pictures (half as large, from row 32 on) and returns
    their box."""

    BOX = (0, 120, 128, 128)

    def __init__(self, where):
        super().__init__(daemon=True)
        self.ring = consume.Ring(consume.connect(f"ring:{where}/found.ring", 10))
        self.sent = 0
        self.start()

    def run(self):
        try:
            for _, payload in self.ring.frames():
                row = numpy.frombuffer(payload, "u1").reshape(3, 160, 160).mean(axis=0)[122:126]
                if row[:, 2:6].mean() > 70 or row[:, 10:14].mean() < 180:
                    continue
                slot, ticket = self.ring.held
                self.ring.peer.send(struct.pack("<4sHHIIQII", b"FRRS", 1, 0, slot, 0, ticket, 1, 0) + struct.pack("<4ff2Hq", *self.BOX, 0.75, 0, 0, 7))
                self.sent += 1
        except OSError:
            pass  # closed

    def close(self):
        self.ring.peer.shutdown(socket.SHUT_RDWR)
        self.join(10)


# True for each point of a picture of the given size that has the box colour within two pixels in its overlay.
MARKED = """((frame, [width, height], points) => {
    const canvas = frame.querySelector('.overlay');
    const context = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    return points.map(([x, y]) => {
        const at = [x * canvas.width / width, y * canvas.height / height].map(Math.round);
        const {data} = context.getImageData(at[0] - 2, at[1] - 2, 5, 5);
        return Array.from({length: 25}, (_, i) => [0, 1, 2, 3].map((k) => data[4 * i + k]).join()).includes('217,44,28,255');
    });
})(document.querySelectorAll('.frame')[%d], %s, %s)"""


def check_boxes(checks, browser, origin, where):
    """A box that a consumer returns is drawn at its position in the source and in each tensor, and disappears with the consumer."""
    page = browser.page(f"{origin}/#/camera/gate")
    page.until("document.querySelectorAll('input[name=output]').length === 3")
    page.run("document.querySelectorAll('input[name=output]')[2].click()")
    detector = Detector(where)
    edges, others = [[200, 176], [256, 184], [100, 176]], [[200, 184], [300, 100], [100, 40]]
    half = [[x / 2, 32 + y / 2] for x, y in edges + others]
    wanted = [True] * 3 + [False] * 3
    marked = until(lambda: page.run(MARKED % (0, [320, 192], edges + others)) == wanted, 10)
    checks.check(marked, f"{detector.sent} boxes sent; at edges of it, and elsewhere: {page.run(MARKED % (0, [320, 192], edges + others))}")
    told = page.run(MARKED % (1, [160, 160], half))
    checks.check(told == wanted, f"in the tensor: {told}")
    detector.close()
    gone = until(lambda: not any(page.run(MARKED % (0, [320, 192], edges))), 5)
    checks.check(gone, "the box stays when nobody sends any")
    check_quiet(checks, page, origin)
    page.close()


def check_part(checks, browser, origin, port):
    """An output of a part of the picture: its crop, and its channels in their order, also after another output's."""
    with View(port, "yard/part:64", fps=5) as view:
        _, facts = view.pictures(1)
    checks.check(facts[0].get("crop") == [32, 16, 160, 96], f"{facts}")
    page = browser.page(f"{origin}/#/camera/yard")
    planes = "[...document.querySelectorAll('.pane .choice label')].map((label) => label.textContent).join()"
    checks.check(page.until(f"{planes} === 'All,R,G,B'", 8), f"planes {page.run(planes)}")
    page.run("document.querySelector('input[name=output]:not(:checked)').click()")
    checks.check(page.until(f"{planes} === 'All,B,G,R'", 8), f"planes {page.run(planes)}")
    page.close()


def click(page, text):
    """Clicks the button with that text."""
    page.run(f"[...document.querySelectorAll('button')].find((button) => button.textContent === '{text}').click()")


def write(page, selector, text):
    page.run(f"((input) => {{ input.value = {json.dumps(text)}; input.dispatchEvent(new Event('input')); }})({selector})")


def check_config(checks, browser, origin, framed):
    """Mistakes in the file and in a pasted text are shown by line; a reload applies a correct file."""
    with open(framed.config) as file:
        good = file.read()
    bad = good.replace("64x64", "64by64")
    line = bad[: bad.index("64by64")].count("\n") + 1
    with open(framed.config, "w") as file:
        file.write(bad)
    page = browser.page(f"{origin}/#/config")
    told = page.until("document.querySelector('.mistakes button')?.innerText", 8)
    checks.check(told and told.startswith(f"Line {line}, ") and "64by64" in told, f"a mistake: {told}")
    checks.check("64by64" not in page.run("document.querySelector('.code').textContent"), "a file with mistakes is shown")
    told = page.run("document.querySelectorAll('.code')[1].innerText")
    checks.check("size: 64x64" in told and "protocol: framed" in told, f"what runs: {told}")
    checks.check(SECRET not in page.run("document.documentElement.outerHTML"), "a password shows")
    write(page, "document.querySelector('textarea')", "cameras:\n  gate: {urrl: x}\n")
    told = page.until("document.querySelector('.verdict').textContent && [...document.querySelectorAll('section')].at(-1).innerText", 8)
    checks.check(told and "Line 2, " in told and "urrl" in told, f"a pasted text: {told}")
    with open(framed.config, "w") as file:
        file.write(good.replace("64x64", "96x64"))
    click(page, "Read again")
    checks.check(page.until("document.querySelector('main').innerText.includes('cameras.yard.outputs.o: size changes')"), "the change")
    click(page, "Reload")
    checks.check(page.until("document.querySelector('.notice').textContent.startsWith('Reloaded: 2 cameras kept')", 8),
                 f"reload: {page.run('document.querySelector(`.notice`).textContent')}")
    check_quiet(checks, page, origin)
    page.close()


def check_wizard(checks, browser, origin, where, camera):
    """Adds a camera by its address, sees its picture, then removes it."""
    page = browser.page(f"{origin}/#/new", before="window.confirm = () => true")
    page.until("document.querySelector('.steps')")
    write(page, "document.querySelector('form input')", "rtsp://127.0.0.1/${X}/y")
    lines = page.run("document.querySelector('.steps pre').textContent")
    checks.check("/$${X}/y" in lines, f"a dollar sign of the address: {lines}")
    for index, text in enumerate((camera.url(), "viewer", SECRET)):
        write(page, f"document.querySelectorAll('form input')[{index}]", text)
    fields = "[...document.querySelectorAll('.field')].find((field) => field.innerText.startsWith('%s')).querySelector('input')"
    write(page, fields % "Name", "new-1")
    write(page, fields % "Sink", f"ring:{where}/new.ring")
    click(page, "Try it")
    told = page.until("document.querySelectorAll('.steps li')[1].querySelector('.facts')?.innerText", 20)
    checks.check(told and "320×192" in told and "h264" in told, f"what the camera sends: {told}")
    lines = page.run("document.querySelector('.steps pre').textContent")
    checks.check("new-1:" in lines and "${NEW_1_PASSWORD}" in lines and SECRET not in lines, f"the lines: {lines}")
    click(page, "Add it now")
    shown = shows_some_of(page, "document.querySelector('.frame canvas')", camera)
    checks.check(shown, f"the new camera: {page.run('document.querySelectorAll(`.steps > li`)[3].innerText')}")
    page.run("location.hash = '#/camera/new-1'")
    page.until("document.querySelector('.actions:not([hidden])')")
    click(page, "Pause")
    checks.check(page.until("document.querySelector('.state').textContent === 'paused'", 8), "it does not pause")
    click(page, "Remove")
    checks.check(page.until("document.querySelectorAll('.wall li').length === 2", 8), "it is not removed")
    check_quiet(checks, page, origin)
    page.close()


def check_missing(checks, browser, origin, where, port, camera):
    """A camera that does not exist, with any name; one that is removed and added while its page is open; an error message
    that stays visible."""
    page = browser.page(f"{origin}/#/camera/nobody")
    state = "document.querySelector('.title .state')?.textContent"
    for name in ("nobody", "%", "%25", "a%2Fb/%3Cimg%20src%3Dx%3E%26c%3D1%23"):
        page.run(f"location.hash = '#/camera/{name}'")
        checks.check(page.until(f"{state} === 'there is no camera of this name'", 5), f"{name}: {page.run(state)}")
    checks.check(page.run("document.querySelector('h1').textContent") == "a/b/<img src=x>&c=1#", "its name")
    checks.check(not page.run("document.querySelector('.pair').checkVisibility()"), "pictures of a camera that is not there")
    editor = Editor(port)
    keys = {"url": camera.url(), "outputs": {"o": {"size": "64x64", "sink": f"unix:{where}/guest.sock"}}}
    page.run("location.hash = '#/camera/guest'")
    for _ in range(2):
        page.until(f"{state} === 'there is no camera of this name'", 5)
        editor.put("guest", keys)
        checks.check(page.until(f"{state} === 'running'", 8), f"it comes: {page.run(state)}")
        checks.check(page.until("document.querySelector('.pair').checkVisibility()"), "no pictures of a camera that came")
        editor.delete("guest")
    checks.check(page.until(f"{state} === 'there is no camera of this name'", 5), f"it goes: {page.run(state)}")
    check_quiet(checks, page, origin, but="404")
    page.close()
    page = browser.page(f"{origin}/#/camera/gate", before="window.confirm = () => true")
    page.until("document.querySelector('.actions:not([hidden])')")
    click(page, "Remove")
    told = page.until("document.querySelector('.notice:not([hidden])')?.textContent", 5)
    time.sleep(2.5)
    still = page.run("document.querySelector('.notice:not([hidden])')?.textContent")
    checks.check(told and told.startswith("Remove: ") and still == told, f"why it is not removed: {told}, then {still}")
    page.close()


def check_proxy(checks, browser, port, cameras):
    with StrippingProxy(port, "/a/b") as proxy:
        origin = f"http://127.0.0.1:{proxy.port}/a/b"
        page = browser.page(f"{origin}/")
        for name, camera in cameras.items():
            shown = shows_some_of(page, f"{TILE % name}?.querySelector('canvas')", camera)
            checks.check(shown, f"behind a proxy the tile of {name} does not show what the camera sends")
        for route in ("camera/gate", "config", "new"):
            page.run(f"location.hash = '#/{route}'")
            checks.check(page.until("document.querySelector('h1')", 3), f"{route} behind a proxy")
        time.sleep(0.3)
        check_quiet(checks, page, origin)
        page.close()


def check_hidden(checks, browser, origin, port):
    """A hidden tab causes no previews."""
    client = Client(port)

    def made():
        return sum(float(n) for n in re.findall(r"^framed_previews_total\S* (\S+)$", client.get("/metrics")[2], re.M))

    page = browser.page(f"{origin}/")
    before = made()
    checks.check(until(lambda: made() > before + 3, 8), "no preview is made for the wall")
    page.hide()
    time.sleep(1)
    before = made()
    time.sleep(0.6)
    checks.check(made() == before, f"{made() - before} previews are made for a hidden tab")
    page.hide(False)
    checks.check(until(lambda: made() > before, 5), "a tab that is seen again gets no previews")
    page.close()


def check_heap(checks, browser, origin):
    """Page changes and pictures leak no memory."""
    page = browser.page(f"{origin}/")

    def around(times):
        for _ in range(times):
            for route in ("camera/gate", "config", "new", ""):
                page.run(f"location.hash = '#/{route}'")
                page.until("document.querySelector('h1')")
        return min(later_heap() for _ in range(3))

    def later_heap():
        """Waits first: responses to a page that was left still arrive for a while."""
        time.sleep(0.3)
        return page.heap()

    around(5)  # the browser compiles frequently used code
    before = around(2)
    around(8)
    until(lambda: later_heap() < 1.2 * before, 10)
    after = page.heap()
    checks.check(after < 1.2 * before, f"the heap grows from {before} to {after} bytes")
    if STAY_SECONDS:
        check_stay(checks, page, around)
    page.close()


def check_stay(checks, page, around):
    """A page open for a long time, on the wall and on a camera in turns, leaks no memory."""
    before, end = around(2), time.monotonic() + STAY_SECONDS
    while time.monotonic() < end:
        for route in ("", "camera/gate"):
            page.run(f"location.hash = '#/{route}'")
            time.sleep(STAY_SECONDS / 10)
    after = around(2)
    print(f"the heap after {STAY_SECONDS} s: {after} bytes, {after / before:.2f} times that before")
    checks.check(after < 1.2 * before, f"the heap grows from {before} to {after} bytes in {STAY_SECONDS} s")


# Fields wider than their parent.
OVERLAPS = """[...document.querySelectorAll('input, select, textarea')].filter((field) => {
    const own = field.getBoundingClientRect(), place = field.parentElement.getBoundingClientRect();
    return own.width > 0 && (own.right > place.right + 1 || own.left < place.left - 1);
}).length"""


def check_narrow(checks, browser, origin):
    """Each page at a phone's width; all controls have names; arrow keys move from tile to tile."""
    page = browser.page(f"{origin}/", width=390, height=800, dark=True)
    for route, there in (("", ".wall li"), ("camera/gate", ".channels tr"), ("config", ".code li"), ("new", ".steps pre")):
        page.run(f"location.hash = '#/{route}'")
        checks.check(page.until(f"document.querySelector('{there}')", 8), f"{route}: no {there}")
        time.sleep(0.2)
        width = page.run("document.documentElement.scrollWidth")
        checks.check(width <= 390, f"{route}: {width} pixels wide")
        over = page.run(OVERLAPS)
        checks.check(not over, f"{route}: {over} fields lie over others or beyond their place")
        controls = page.controls()
        nameless = [role for role, name in controls if not name]
        checks.check(len(controls) > 5 and not nameless, f"{route}: no names of {nameless}")
    page.run("location.hash = '#/'")
    page.until("document.querySelectorAll('.wall li').length === 2")
    page.run("document.querySelector('.wall a').focus()")
    page.press("ArrowDown")
    checks.check(page.run("document.activeElement === document.querySelectorAll('.wall a')[1]"), "the arrow goes nowhere")
    check_quiet(checks, page, origin)
    page.close()


def check_viewers(checks, browser, origin, port):
    """A viewer beyond the limit gets a message."""
    held = []
    try:
        for _ in range(64):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/api/v1/view?c=gate:160&fps=1")
            held.append(connection)
            if connection.getresponse().status != 200:
                break
        checks.check(len(held) == 33, f"the viewer of number {len(held)} is refused")
        page = browser.page(f"{origin}/")
        told = page.until("document.querySelector('.notice:not([hidden])')?.textContent", 8)
        checks.check(told and told.startswith("No pictures: "), f"who is one too many is told: {told}")
        check_quiet(checks, page, origin, but="503")
        page.close()
    finally:
        for connection in held:
            connection.close()


def check_token(checks, browser, origin, framed, port, config):
    """The page requests a token if it has none, a wrong one, or one that is no longer valid."""
    page = browser.page(f"{origin}/")

    def give(token):
        page.run(f"document.querySelector('#ask-token').value = '{token}'")
        page.run("document.querySelector('#ask button').click()")

    checks.check(page.until("document.querySelector('#ask')?.open", 8), "it does not ask for a token")
    checks.check(not page.run("document.querySelector('.wall li')"), "it shows cameras without a token")
    give("wrong")
    told = page.until("document.querySelector('#ask').open && document.querySelector('#ask-why').textContent.includes('wrong')")
    checks.check(told, "it does not say that the token is wrong")
    give(TOKEN)
    checks.check(page.until("document.querySelectorAll('.wall li').length === 2", 8), "the right token shows nothing")
    other = TOKEN[::-1]
    ask_for_token(framed, port, config.replace(TOKEN, other), TOKEN)
    told = page.until("document.querySelector('#ask').open && document.querySelector('#ask-why').textContent.includes('wrong')", 8)
    checks.check(told, "it does not ask again when the token is another one")
    give(other)
    sequence = "document.querySelector('.wall canvas').dataset.sequence"
    before = page.run(sequence)
    checks.check(page.until(f"{sequence} !== '{before}' && document.querySelector('#link').textContent === 'connected'", 8), "it does not go on")
    checks.check(not any(TOKEN in url for url in page.requests), "the token is in an address")
    check_quiet(checks, page, origin, but="401")
    page.close()


def check_read_token(checks, browser, origin, framed, port, config):
    """With the read-only token the page shows cameras and hides forbidden actions."""
    reads = "reads-0123456789"
    ask_for_token(framed, port, config.replace(f"http_token: {TOKEN}", f"http_token: {TOKEN}\nhttp_read_token: {reads}"), TOKEN[::-1])
    until(lambda: Client(port, token=reads).get("/api/v1/summary")[0] == 200, 5)
    page = browser.page(origin)
    page.until("document.querySelector('#ask')?.open", 8)
    page.run(f"document.querySelector('#ask-token').value = '{reads}'")
    page.run("document.querySelector('#ask button').click()")
    checks.check(page.until("document.querySelectorAll('.wall li').length === 2", 8), "the token shows nothing")
    visible = "[...document.querySelectorAll('main button, main h2')].filter((each) => each.checkVisibility()).map((each) => each.innerText).join()"
    for hash, shown, hidden in (("config", "Read again", ("Reload", "Check a text")), ("new", "Where is it?", ("Try it", "Look for cameras", "Add it now")),
                                ("camera/gate", "", ("Pause", "Remove"))):
        page.run(f"location.hash = '#/{hash}'")
        good = page.until(f"((text) => text.includes('{shown}') && !{list(hidden)}.some((word) => text.split(',').includes(word)))({visible})", 8)
        checks.check(good, f"{hash}: {page.run(visible)}")
    page.close()


def ask_for_token(framed, port, config, before=None):
    """Reloads with a configuration that has a token; `before` is the old token."""
    with open(framed.config, "w") as file:
        file.write(config)
    framed.child.send_signal(signal.SIGHUP)
    until(lambda: Client(port, token=before).get("/api/v1/summary")[0] == 401, 5)


def main():
    checks = Checks("page")
    check_types(checks)
    if not PROGRAM:
        checks.skip(f"the page in a browser: {PACKAGE} is not installed")
        checks.end()
    with folder() as where:
        check_folder(checks, where)
        clip = NumberedClip(encode(f"{where}/clip.h264", COUNT, size=SIZE))
        with Camera(clip, user=f"viewer:{SECRET}") as gate, Camera(clip) as yard:
            yard.number = COUNT // 2  # so that it shows different numbers than gate
            cameras = {"gate": gate, "yard": yard}
            config = {"gate": gate.url(f"viewer:{SECRET}@"), "yard": yard.url(), "where": where}
            with Framed(where, CONFIG.format(**config, token="")) as framed, Browser() as browser:
                port = port_of(framed)
                origin = f"http://127.0.0.1:{port}"
                check_files(checks, port)
                check_wall(checks, browser, origin, cameras)
                check_losses(checks, browser, origin)
                check_camera(checks, browser, origin, gate)
                check_boxes(checks, browser, origin, where)
                check_part(checks, browser, origin, port)
                check_outage(checks, browser, origin, yard)
                check_config(checks, browser, origin, framed)
                check_wizard(checks, browser, origin, where, gate)
                check_missing(checks, browser, origin, where, port, yard)
                check_proxy(checks, browser, port, cameras)
                check_narrow(checks, browser, origin)
                check_hidden(checks, browser, origin, port)
                check_heap(checks, browser, origin)
                check_age(checks, browser, origin, cameras)
                check_viewers(checks, browser, origin, port)
                text = CONFIG.format(**config, token=f"\nhttp_token: {TOKEN}")
                ask_for_token(framed, port, text)
                check_token(checks, browser, origin, framed, port, text)
                check_read_token(checks, browser, origin, framed, port, text)
    checks.end()


main()
