#!/usr/bin/python3
"""The web page of one of two daemons that share cameras through a real etcd: it shows both nodes, all cameras, each camera's
state and the reason, and follows changes. A daemon outside a cluster shows nothing of one and makes no request for it."""
import json
import os
import re
import subprocess
import time

from api_schemas import Api
from browser import PACKAGE, PROGRAM, Browser
from etcd_server import INSTALLED, Etcd
from framed_client import BINARY, Checks, Framed, folder, free_port, make_clip, until
from http_client import Client, port_of

PLACES = {"cam0": "box0", "cam1": "box0", "cam2": "box1", "cam3": "box1", "lost": None}
WHY = "no node has its labels"
# {name: [text of each further cell]} of a table's visible rows; its links: {name: href}.
ROWS = """Object.fromEntries([...document.querySelectorAll('.site')[%d]?.tBodies[0].rows ?? []].filter((row) => row.checkVisibility())
    .map((row) => [row.cells[0].textContent, [...row.cells].slice(1).map((cell) => cell.textContent)]))"""
LINKS = """Object.fromEntries([...document.querySelectorAll('.site')[%d]?.tBodies[0].rows ?? []]
    .map((row) => [row.cells[0].textContent, row.querySelector('a').getAttribute('href')]))"""
NODES, CAMERAS = 0, 1
SENTENCE = "(document.querySelector('.sentence')?.textContent ?? '')"
WHOLE = "(document.querySelector('.whole:not([hidden])')?.textContent ?? '')"
STATE = "(document.querySelector('.title .state')?.textContent ?? '')"
# Records each different text of a camera's row from now on in window.told.
RECORD = """window.told = [];
setInterval(() => {
    const row = [...document.querySelectorAll('.site')[1].tBodies[0].rows].find((row) => row.cells[0].textContent === '%s');
    const text = row && row.cells[1].textContent + ' ' + row.cells[2].textContent;
    if (text && window.told.at(-1) !== text) window.told.push(text);
}, 20)"""


class Box(Framed):
    def __init__(self, where, name, etcd):
        folder = f"{where}/{name}"
        os.mkdir(folder)
        self.name, self.port = name, free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        super().__init__(folder, f"backend: cpu\nhttp: {self.port}\ndefaults: {{fps: 2}}\n"
                                 f"cluster: {{etcd: ['{etcd.url}'], site: yard, node: {name}, lease: 2s, room: 8, labels: {{vlan: {name}}}}}\n")

    def cluster(self, *words):
        done = subprocess.run([BINARY, "cluster", *words, "-c", self.config], capture_output=True, text=True, timeout=60)
        return done.stdout or done.stderr

    def answer(self):
        return json.loads(Client(self.port).get("/api/v1/cluster")[2])


def give_cameras(checks, where, box):
    """Places each camera on its node: cam3 by its labels, the others by a move; "lost" has labels that no node has."""
    labels = {"cam3": ", on: {vlan: box1}", "lost": ", on: {vlan: nowhere}"}
    lines = "".join(f"  {name}: {{url: '{where}/clip.mp4', outputs: {{o: {{size: 64x64, sink: 'unix:{where}/{name}'}}}}"
                    f"{labels.get(name, '')}}}\n" for name in PLACES)
    with open(f"{where}/cameras.yaml", "w") as file:
        file.write(f"defaults: {{pace: realtime, loop: true}}\ncameras:\n{lines}")
    told = box.cluster("apply", "-f", f"{where}/cameras.yaml")
    checks.check("5 cameras changed" in told, told)
    for name, node in PLACES.items():
        if node and name not in labels:
            box.cluster("move", name, node)
    expected = {name: (node, "running" if node else "unplaced") for name, node in PLACES.items()}
    now = lambda: {camera["name"]: (camera["node"], camera["state"]) for camera in box.answer()["cameras"]}
    checks.check(until(lambda: now() == expected, 15), f"{now()}\n{box.errors()}")
    for name in PLACES:
        box.cluster("move", name, "-")


def check_answer(checks, box):
    """HTTP returns the same as `framed cluster status --json`, and matches its API description."""
    api, answer, status = Api(), box.answer(), json.loads(box.cluster("status", "--json"))
    checks.check(not api.wrong("Cluster", answer), api.wrong("Cluster", answer))
    same = lambda camera: (camera["node"], camera["generation"], camera["state"], camera["why"] or "", camera["wish"], camera["on"])
    http = {camera["name"]: same(camera) for camera in answer["cameras"]}
    command = {camera["camera"]: same(camera) for camera in status["cameras"]}
    checks.check(http == command and http["lost"][2:4] == ("unplaced", WHY), f"{http}, and {command}")
    http = [(node["name"], node["cameras"], node["running"], node["since_ms"], node["labels"], node["used"]) for node in answer["nodes"]]
    command = [(node["node"], node["cameras"], node["running"], node["since_ms"], node["labels"], node["taken"]) for node in status["nodes"]]
    checks.check(http == command and [node[1:3] for node in http] == [(2, 2)] * 2, f"{http}, and {command}")
    for path in ("summary", "status"):
        answer = json.loads(Client(box.port).get(f"/api/v1/{path}")[2])["cluster"]
        counts = [answer[key] for key in ("nodes", "cameras", "elsewhere", "troubled")]
        checks.check(not api.wrong("ClusterMember", answer) and counts == [2, 5, 2, 1], f"{path}: {answer}")


def check_quiet(checks, page, origins):
    foreign = [url for url in page.requests if not url.startswith(origins)]
    checks.check(not page.console and not page.failures and not foreign, f"{page.console}, {page.failures}, {foreign}")


def check_site(checks, browser, box, other):
    """Both nodes and all cameras, problems first, each with a link to its page at its node."""
    page = browser.page(f"{box.origin}/#/cluster")
    checks.check(page.until(f"Object.keys({ROWS % CAMERAS}).length === 5", 8), f"cameras: {page.run(ROWS % CAMERAS)}")
    checks.check(page.run(SENTENCE) == "box0 is in the cluster yard. 4 of 5 cameras run.", page.run(SENTENCE))
    nodes = page.run(ROWS % NODES)
    for name, words in (("box0", "in, this one"), ("box1", "in")):
        state, room, cameras, plan, labels, version, since = nodes[name]
        checks.check((state, room, cameras, labels) == (words, "2.0 of 8.0", "2 planned, 2 running", f"vlan: {name}")
                     and plan.startswith("obeyed, ") and version and re.fullmatch(r"[\d.]+ (s|min)", since), f"{name}: {nodes[name]}")
    cameras = page.run(ROWS % CAMERAS)
    checks.check(list(cameras) == ["lost", "cam0", "cam1", "cam2", "cam3"], f"their order: {list(cameras)}")
    checks.check(cameras["lost"] == ["unplaced", "–", "0", f"{WHY} (on vlan: nowhere)"], f"{cameras['lost']}")
    checks.check([cameras[name][:2] for name in ("cam0", "cam3")] == [["running", "box0"], ["running", "box1"]], f"{cameras}")
    links = page.run(LINKS % NODES) | page.run(LINKS % CAMERAS)
    wanted = {"box0": "#/", "box1": other.origin, "cam0": "#/camera/cam0", "cam3": f"{other.origin}/#/camera/cam3", "lost": None}
    checks.check(wanted.items() <= links.items(), f"{links}")
    page.run("((input) => { input.value = 'CAM3'; input.dispatchEvent(new Event('input')); })(document.querySelector('input[type=search]'))")
    checks.check(list(page.run(ROWS % CAMERAS)) == ["cam3"], f"by name: {page.run(ROWS % CAMERAS)}")
    page.run("document.querySelector('tbody a').focus()")
    page.press("ArrowDown")
    checks.check(page.run("document.activeElement.textContent") == "box1", f"the arrow goes to {page.run('document.activeElement.textContent')}")
    time.sleep(1.5)
    checks.check(page.run("document.activeElement.textContent") == "box1", "the focus is lost when news come")
    check_quiet(checks, page, box.origin)
    page.close()


def check_elsewhere(checks, browser, box, other):
    """The wall counts cameras that run elsewhere; the page of such a camera names the node and links to it."""
    page = browser.page(f"{box.origin}/")
    checks.check(page.until(f"{WHOLE}.includes('2 nodes, 5 cameras: 2 at other nodes, 1 not running.')", 8), page.run(WHOLE))
    page.run("document.querySelector('.whole a').click()")
    checks.check(page.until("document.querySelectorAll('table').length === 2", 5), "the link leads nowhere")
    for name, words in (("lost", "unplaced"), ("nobody", "there is no camera of this name"), ("cam2", "running at box1")):
        page.run(f"location.hash = '#/camera/{name}'")
        checks.check(page.until(f"{STATE} === '{words}'", 5), f"{name}: {page.run(STATE)}")
    told = page.run("document.querySelector('main').innerText")
    checks.check("Its page at box1" in told and not page.run("document.querySelector('.pair').checkVisibility()"), told)
    check_quiet(checks, page, box.origin)
    page.run("[...document.querySelectorAll('main a')].find((link) => link.textContent.includes('box1')).click()")
    there = f"location.href === '{other.origin}/#/camera/cam2' && {STATE} === 'running'"
    checks.check(page.until(there, 8), f"{page.run('location.href')}: {page.run(STATE)}")
    page.close()


def check_narrow(checks, browser, box):
    """At a phone's width nothing is cut off; controls have names."""
    page = browser.page(f"{box.origin}/#/cluster", width=390, height=800, dark=True)
    for route, there in (("cluster", ".site tbody tr"), ("camera/cam2", ".title"), ("", ".whole:not([hidden])")):
        page.run(f"location.hash = '#/{route}'")
        checks.check(page.until(f"document.querySelector('{there}')", 8), f"{route}: no {there}")
        time.sleep(0.2)
        width = page.run("Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('main *')].map((e) => e.getBoundingClientRect().right))")
        checks.check(width <= 390, f"{route}: {width} pixels wide")
        nameless = [role for role, name in page.controls() if not name]
        checks.check(not nameless, f"{route}: no names of {nameless}")
    page.close()


def check_killed(checks, browser, box, other):
    """After the other node's death an open page shows, without a reload, its cameras waiting or starting, then running here,
    or unplaced with the reason."""
    page = browser.page(f"{box.origin}/#/cluster")
    page.until(f"Object.keys({ROWS % CAMERAS}).length === 5", 8)
    page.run(RECORD % "cam2")
    other.child.kill()
    other.child.wait()
    checks.check(page.until("window.told.at(-1) === 'running box0'", 15), f"{page.run('window.told')}\n{box.errors()}")
    told = page.run("window.told")
    checks.check(told[0] == "running box1" and set(told[1:-1]) <= {"waiting box1", "starting box0"}, f"{told}")
    left = page.run(ROWS % CAMERAS)
    checks.check(list(left)[:2] == ["cam3", "lost"] and left["cam3"][:2] == ["unplaced", "–"] and left["cam3"][3] == f"{WHY} (on vlan: box1)", f"{left}")
    checks.check(page.until(f"!('box1' in {ROWS % NODES})", 5), "the dead node stays")
    checks.check(page.run(LINKS % CAMERAS)["cam2"] == "#/camera/cam2", "its link leads to where it was")
    check_quiet(checks, page, box.origin)
    page.close()


def check_alone(checks, browser, box, etcd):
    """Without etcd the node's pages show how long it has been alone, and later that it is back."""
    page, wall = browser.page(f"{box.origin}/#/cluster"), browser.page(f"{box.origin}/")
    etcd.stop()
    for shown, words in ((page, SENTENCE), (wall, WHOLE)):
        checks.check(shown.until(f"/^box0 is out of the cluster yard, alone for [\\d.]+ m?s: .*{etcd.url[7:]}/.test({words})", 10), shown.run(words))
    seconds = "parseFloat(%s.split('alone for ')[1])" % SENTENCE
    first = page.run(seconds)
    checks.check(page.until(f"{seconds} > {first} + 1", 5), f"it stays at {first} s")
    checks.check(page.run("Boolean(document.querySelector('.stale .site'))"), "what it knew last looks like news")
    etcd.start()
    for shown, words in ((page, SENTENCE), (wall, WHOLE)):
        checks.check(shown.until(f"{words}.startsWith('box0 is in the cluster yard.')", 15), shown.run(words))
        shown.close()


def check_no_cluster(checks, browser, where):
    """The page shows no cluster and requests none."""
    with Framed(where, f"http: 0\ncameras: {{x: {{url: '{where}/clip.mp4', loop: true, pace: realtime, outputs: {{o: {{size: 64x64, sink: 'unix:{where}/x'}}}}}}}}\n") as framed:
        origin = f"http://127.0.0.1:{port_of(framed)}"
        page = browser.page(f"{origin}/")
        page.until(f"{SENTENCE}.startsWith('1 of 1')", 8)
        checks.check(not page.run(WHOLE), page.run(WHOLE))
        page.run("location.hash = '#/camera/nobody'")
        checks.check(page.until(f"{STATE} === 'there is no camera of this name'", 5), page.run(STATE))
        checks.check(not any("api/v1/cluster" in url for url in page.requests), "it asks for a cluster")
        page.run("location.hash = '#/cluster'")
        checks.check(page.until(f"{SENTENCE} === 'This daemon is in no cluster.'", 5), page.run(SENTENCE))
        check_quiet(checks, page, origin)
        page.close()


def main():
    checks = Checks("page_cluster")
    for name, there in ((PACKAGE, PROGRAM), ("etcd-server", INSTALLED)):
        if not there:
            checks.skip(f"the page of a cluster: {name} is not installed")
            checks.end()
    with folder() as where, Browser() as browser, Etcd(where) as etcd:
        etcd.wait()
        make_clip(f"{where}/clip.mp4")
        check_no_cluster(checks, browser, where)
        with Box(where, "box0", etcd) as one, Box(where, "box1", etcd) as other:
            for box in (one, other):
                port_of(box)  # waits until it listens
            until(lambda: len(one.answer().get("nodes", [])) == 2, 10)
            give_cameras(checks, where, one)
            check_answer(checks, one)
            check_site(checks, browser, one, other)
            check_elsewhere(checks, browser, one, other)
            check_narrow(checks, browser, one)
            check_killed(checks, browser, one, other)
            check_alone(checks, browser, one, etcd)
            text = one.errors() + other.errors()
            checks.check("ERROR" not in text and "runtime error" not in text, text)
    checks.end()


main()
