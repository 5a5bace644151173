"""Faults of a site. Each is a generator that causes a fault, yields the affected boxes, and then repairs it."""
import base64
import contextlib
import signal
import time

from processes import OTHER_VERSION
from site_of_boxes import PROMISE, text, until


def busiest(site, without=()):
    placed = site.placed()
    return max((i for i in range(len(site.framed)) if i not in without),
               key=lambda i: len(placed.get(site.framed[i].box.name, [])))


def follower(site):
    return busiest(site, without={site.leader()})


def spread(site):
    """Gives each box a camera, so that a fault of any box is visible."""
    for each in site.framed:
        name = each.box.name
        if not site.placed().get(name):
            camera = site.placed()[site.framed[busiest(site)].box.name][0]
            each.cluster("move", camera, name)
            until(lambda: site.box_of(camera) == name, 10, lambda: f"{camera} does not move: {site.placed()}")
            each.cluster("move", camera, "-")
    site.heal()


def killed(site):
    """kill -9 of a framed"""
    hit = busiest(site)
    site.framed[hit].kill()
    yield {hit}
    site.settle(without={hit})
    site.framed[hit].start()


def frozen(site):
    """SIGSTOP, and SIGCONT once others have its cameras"""
    hit = busiest(site)
    site.framed[hit].signal(signal.SIGSTOP)
    yield {hit}
    site.settle(without={hit})
    site.framed[hit].signal(signal.SIGCONT)


def dead(site, hit):
    site.network.boxes[hit].pull()
    site.framed[hit].kill()
    site.etcd[hit].kill()
    yield {hit}
    site.settle(without={hit})
    site.network.boxes[hit].plug()
    site.etcd[hit].start()
    site.framed[hit].start()


def dead_follower(site):
    """a box without power"""
    yield from dead(site, follower(site))


def dead_leader(site):
    """the same, for the box with etcd's leader"""
    yield from dead(site, site.leader())


def cut(site, hit):
    site.network.boxes[hit].pull()
    yield {hit}
    site.settle(without={hit})
    site.network.boxes[hit].plug()


def cut_follower(site):
    """the cable of a box, out and in"""
    yield from cut(site, follower(site))


def cut_leader(site):
    """the cable of the box whose etcd leads"""
    yield from cut(site, site.leader())


def split(site):
    """a box reaches cameras, but no other box"""
    hit = busiest(site)
    others = [box.address for i, box in enumerate(site.network.boxes) if i != hit]
    for address in others:
        site.network.boxes[hit].ip("route", "add", "blackhole", address)
    yield {hit}
    site.settle(without={hit})
    for address in others:
        site.network.boxes[hit].ip("route", "del", "blackhole", address)


def stopped(site):
    """SIGTERM"""
    hit = busiest(site)
    site.framed[hit].stop()
    yield {hit}
    site.settle(without={hit})
    site.framed[hit].start()


def drain(site, hit):
    """Returns the seconds until its cameras ran elsewhere."""
    began, name = time.monotonic(), site.framed[hit].box.name
    code, _, errors = site.framed[hit].cluster("drain", name)
    if code != 0:
        raise OSError(errors)
    until(lambda: not site.placed().get(name), 10, lambda: f"cameras stay at {name}: {site.placed()}")
    site.settle(without={hit})
    return time.monotonic() - began


def drained(site):
    """framed cluster drain, and undrain"""
    hit = busiest(site)
    yield {hit}
    drain(site, hit)
    site.framed[hit].cluster("undrain", site.framed[hit].box.name)


def upgraded(site):
    """every box in turn: drain, another version, undrain"""
    yield set(range(len(site.framed)))
    for i, each in enumerate(site.framed):
        name = each.box.name
        before = site.nodes()[name]["incarnation"]
        drain(site, i)
        each.stop()
        each.program = OTHER_VERSION if each.program != OTHER_VERSION else each.first_program
        each.start()
        until(lambda: site.nodes().get(name, {}).get("incarnation", before) != before, 10, lambda: f"it stays away: {site.nodes()}")
        each.cluster("undrain", name)
        site.heal()


def clock(site):
    """a box whose clock is an hour ahead takes over from another"""
    ahead = busiest(site)
    site.framed[ahead].stop()
    site.framed[ahead].ahead = 3600
    site.framed[ahead].start()
    site.heal()
    hit = busiest(site, without={ahead})
    site.framed[hit].kill()
    yield {ahead, hit}
    site.settle(without={hit})
    site.framed[hit].start()
    site.heal()
    site.framed[ahead].stop()
    site.framed[ahead].ahead = 0
    site.framed[ahead].start()


def etcd_away(site):
    """two of three etcd killed for 12 s: all stop, as none may place a camera"""
    two = [site.leader(), follower(site)]
    for i in two:
        site.etcd[i].kill()
    yield set()
    time.sleep(12)
    for i in two:
        site.etcd[i].start()


def full(site):
    """etcd's disk full for 10 s"""
    filler = base64.b64encode(bytes(1 << 19)).decode()
    with contextlib.suppress(OSError):
        for i in range(64):
            site.ask("kv/put", {"key": text(f"/filler/{i}"), "value": filler})
    yield set()
    time.sleep(10)
    answer = site.ask("kv/deleterange", {"key": text("/filler/"), "range_end": text("/filler0")})
    site.ask("kv/compaction", {"revision": answer["header"]["revision"]})
    for each in site.etcd:
        each.ask("maintenance/defragment", {}, seconds=10)
    for alarm in site.ask("maintenance/alarm", {"action": "GET"}).get("alarms", []):
        site.ask("maintenance/alarm", {"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": alarm["memberID"]})


# Seconds that a camera may be without pictures.
LIMITS = {killed: PROMISE, frozen: PROMISE, dead_follower: PROMISE, dead_leader: PROMISE, cut_follower: PROMISE,
          cut_leader: PROMISE, split: PROMISE, clock: PROMISE, stopped: 1, drained: 1, upgraded: 1, full: 1,
          etcd_away: 12 + PROMISE}


# --- at random: one box at a time

def random_kill(site, box):
    site.framed[box].kill()
    yield
    site.framed[box].start()


def random_freeze(site, box):
    site.framed[box].signal(signal.SIGSTOP)
    yield
    site.framed[box].signal(signal.SIGCONT)


def random_etcd(site, box):
    site.etcd[box].kill()
    yield
    site.etcd[box].start()


def random_cable(site, box):
    site.network.boxes[box].pull()
    yield
    site.network.boxes[box].plug()


def random_power(site, box):
    site.network.boxes[box].pull()
    site.framed[box].kill()
    site.etcd[box].kill()
    yield
    site.network.boxes[box].plug()
    site.etcd[box].start()
    site.framed[box].start()


def random_stop(site, box):
    site.framed[box].stop()
    yield
    site.framed[box].start()


RANDOM = [random_kill, random_freeze, random_etcd, random_cable, random_power, random_stop]
