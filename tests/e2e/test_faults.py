#!/usr/bin/python3
"""Cameras that misbehave, each in its own way and all at once in one framed: how soon each is good again, that every
picture which could be decoded comes once and in order, that damage is flagged and nothing old passes for live. Prints
a row for each fault."""
import itertools
import os
import random
import re
import socket
import threading
import time

from faulty_camera import Camera, Connection
from framed_client import PATIENCE, SANITIZED, Checks, Framed, folder, until
from numbered_clip import GOP, NumberedClip, encode
from watch import CAPTURE_CLOCK, OUTPUT, Account, Watcher, check_ledger, reference

CONNECT, MEDIA = 2.0, 2.0  # deadlines of framed's, s
SLACK = 2.0  # s to the first good picture once framed may try again
BACKOFF = (1, 1, 2, 5, 10)
UNDECODABLE = 2 * MEDIA + 1 + 2.4 + SLACK  # s: and a keyframe's distance, the packets that it takes, a first pause

CAMERA = """
  {name}:
    url: {url}
    connect_timeout: {connect}s
    media_timeout: {media}s
    close_timeout: 300ms
    {keys}
    outputs:
      o: {output}{more}, sink: "unix:{where}/{name}.sock"}}
"""


class Case:
    """One camera with its fault. `fault(case)` brings it about and returns the moment at which service was back, or
    None where it never went; `within` says how soon a good picture must follow."""

    def __init__(self, name, fault, within=SLACK, keys="", more="", user="", media=MEDIA, lost=0, epochs=None,
                 harmed=False, **camera):
        self.name, self.fault, self.within, self.keys, self.more = name, fault, within, keys, more
        self.user, self.media, self.lost, self.epochs, self.harmed = user, media, lost, epochs, harmed
        self.options, self.took, self.problems = camera, None, []

    def text(self, where):
        return CAMERA.format(name=self.name, url=self.camera.url(self.user), connect=CONNECT, media=self.media,
                             keys=self.keys, output=OUTPUT, more=self.more, where=where)

    def complain(self, text):
        self.problems.append(f"{self.name}: {text}")

    def sent_since(self, moment):
        """The number of the first picture that was sent after that moment."""
        return next((sent.number for sent in list(self.camera.sent) if sent.at > moment), None)

    def wait_good(self, since=0.0, count=1, seconds=20.0):
        """When the first of `count` good pictures that were sent after `since` was finished; None: they did not come."""
        first = until(lambda: (number := self.sent_since(since)) is not None and (number,), seconds)
        good = first and until(lambda: len(times := self.watcher.good_after(first[0])) >= count and times, seconds)
        if not good:
            self.complain("no good picture")
        return good[0] if good else None

    def run(self):
        try:
            back = self.fault(self)
            if back is not None and (first := self.wait_good(back, seconds=60)):
                self.took = first - back
                if self.took > self.within * PATIENCE:
                    self.complain(f"good again after {self.took:.2f} s, {self.within:.1f} s allowed")
            if self.fault is not refused:
                self.wait_good(time.monotonic(), GOP)
        except Exception as error:  # of a thread: it must not get lost
            self.complain(repr(error))
        self.over = time.monotonic()
        self.camera.close()


# --- faults

def begun(case, count=12):
    case.wait_good(count=count)


def at_next(act, count=12):
    """Ahead of a picture in the middle of its group, when so many have come; service is back at once."""
    def fault(case):
        begun(case, count)
        done = threading.Event()
        moment = []

        def now(connection):
            moment.append(time.monotonic())
            done.set()
            act(connection)

        case.camera.next(now)
        done.wait(10)
        return moment[0]
    return fault


def away(seconds):
    """Refuses connections for so long."""
    def fault(case):
        begun(case)
        case.camera.refuse()
        case.camera.next(Connection.fin)
        time.sleep(seconds)
        case.camera.listen()
        return time.monotonic()
    return fault


def down_at_start(case):
    time.sleep(3)
    case.camera.listen()
    return time.monotonic()


def deaf_at_start(case):
    until(lambda: case.camera.calls, 20)
    case.camera.deaf = False
    return case.camera.calls[0]


def mute_at(method):
    """Has not answered that request; answers the next client."""
    def fault(case):
        until(lambda: any(said == method for said, _ in case.camera.requests), 20)
        case.camera.mute = set()
        return next(at for said, at in case.camera.requests if said == method)
    return fault


def several(*acts, gap=3 * GOP):
    """Each act ahead of a picture in the middle of another group."""
    def fault(case):
        begun(case)
        start = case.camera.next_keyframe() + 7
        for i, act in enumerate(acts):
            case.camera.next(act, start + i * gap)
        until(lambda: case.camera.number > start + len(acts) * gap, 60)
    return fault


def mangling(change):
    def act(connection):
        connection.mangle = change
    return act


def flip(payloads):
    """Eight bits of the last and longest of a picture's NAL units."""
    chance = random.Random(len(payloads))
    broken = [bytearray(payload) for payload in payloads]
    for _ in range(8):
        payload = chance.choice(broken)
        at = chance.randrange(min(20, len(payload) // 2), len(payload))
        payload[at] ^= 1 << chance.randrange(8)
    return [bytes(payload) for payload in broken]


def drop(first, last=None):
    """The packets from `first` on up to, and without, `last`."""
    return lambda payloads: [None if i in range(len(payloads))[first:last] else p for i, p in enumerate(payloads)]


def new_clip(key):
    """Another stream when the client is back."""
    def act(connection):
        connection.camera.clip = CLIPS[key]
        connection.fin()
    return act


def size_in_stream(case):
    """From a keyframe on, without a word."""
    begun(case)

    def act(connection):
        connection.clip = connection.camera.clip = CLIPS["large"]

    start = case.camera.next_keyframe() + GOP
    case.camera.next(act, start)
    until(lambda: case.camera.number > start + GOP, 20)


def codec_in_stream(connection):
    """Without a word, and it is another one to who asks again."""
    connection.clip = connection.camera.clip = CLIPS["h265"]


def slammed(case):
    """Hangs up on everyone, until the pauses between the calls have been seen."""
    until(lambda: len(case.camera.calls) > len(BACKOFF), 60)
    pauses = [b - a for a, b in itertools.pairwise(case.camera.calls)]
    print("pauses between calls:", " ".join(f"{pause:.2f}" for pause in pauses), "s", flush=True)
    for pause, wanted in zip(pauses, BACKOFF):
        if not 0.75 * wanted <= pause <= 1.25 * wanted + 0.5 * PATIENCE:
            case.complain(f"{pause:.2f} s between calls, not about {wanted}")
    case.camera.slam = False
    return time.monotonic()


def refused(case):
    """The password stays wrong for 36 s: two tries, and one 30 s later at the earliest."""
    until(lambda: case.camera.calls, 20)
    until(lambda: False, 36 / PATIENCE)
    calls = case.camera.calls
    pauses = [b - a for a, b in itertools.pairwise(calls)]
    if not 2 <= len(calls) <= 3 or any(pause < 29.9 for pause in pauses[1:]):
        case.complain(f"pauses between tries with a wrong password: {pauses}")


CLIPS = {}
DIGESTS = {}


def cases():
    jump = lambda seconds: lambda connection: connection.jump(seconds)
    return [
        Case("refused-basic", refused, user="viewer:wrong@", basic=True, **{"password": "viewer:right"}),
        Case("refused-digest", refused, user="viewer:wrong@", **{"password": "viewer:right"}),
        Case("slammed", slammed, within=30 * 1.2 + SLACK, start="slam"),
        Case("fin", at_next(Connection.fin)),
        Case("fin-in-picture", at_next(Connection.half)),
        Case("reset", at_next(Connection.reset)),
        Case("rtcp-bye", at_next(Connection.bye)),
        Case("lone-rtcp-bye", at_next(Connection.lone_bye), within=MEDIA + SLACK, lost=1),
        Case("silent", at_next(Connection.go_mute), within=MEDIA + SLACK, lost=1),
        Case("away-shortly", away(1.5)),
        Case("away-longer", away(6), within=5 * 1.2 + SLACK),
        Case("down-at-start", down_at_start, within=2 * 1.2 + SLACK, start="down"),
        Case("half-open", deaf_at_start, within=CONNECT + SLACK, start="deaf"),
        *(Case(f"mute-{method.lower()}", mute_at(method), within=CONNECT + SLACK, start=method)
          for method in ("OPTIONS", "DESCRIBE", "SETUP", "PLAY")),
        Case("frozen", at_next(lambda c: c.freeze(1.2)), within=1.2 + SLACK),
        Case("frozen-max-age", at_next(lambda c: c.freeze(3)), within=3 + SLACK, media=8, more=", max_age: 400ms",
             lost=80),
        Case("rtp-hour-on", several(jump(3600)), epochs=2),
        Case("rtp-minute-back", several(jump(-60)), epochs=2),
        Case("rtp-second-back", several(jump(-1)), epochs=2),
        Case("rtp-wrap", several(), rtp_base=2**32 - 180000, epochs=1),
        Case("rtp-restart", several(Connection.restart), epochs=2, harmed=True),
        Case("report-steps", several(lambda c: c.wall_step(3600), lambda c: c.wall_step(-7200)), epochs=1),
        Case("flipped-bits", several(*[mangling(flip)] * 5), harmed=True),
        Case("packets-lost", several(*map(mangling, (drop(1, 2), drop(0, 1), drop(-1), drop(0)))), harmed=True),
        Case("picture-lost-h265", several(*[mangling(drop(0))] * 3), harmed=True, clip="h265"),
        Case("joined-late", several(), start="late", harmed=True),
        Case("joined-late-h265", several(), start="late", harmed=True, clip="h265"),
        Case("babble", several(*[lambda c: c.babble(500)] * 3)),
        Case("noise", at_next(lambda c: c.noise(500)), within=MEDIA + 1.2 + SLACK, harmed=True),
        Case("size-by-reconnect", at_next(new_clip("large")), epochs=2),
        Case("codec-by-reconnect", at_next(new_clip("h265")), epochs=2),
        Case("size-in-stream", size_in_stream, epochs=2),
        Case("garbage", at_next(Connection.garble, GOP + 12), within=UNDECODABLE, harmed=True),
        Case("codec-in-stream", at_next(codec_in_stream, GOP + 12), within=UNDECODABLE, epochs=1, harmed=True),
        Case("no-parameter-sets", several(), start="bare"),
    ]


def camera_of(case):
    options = dict(case.options)
    start, password = options.pop("start", ""), options.pop("password", None)
    camera = Camera(CLIPS[options.pop("clip", "plain")], user=password, start=False, **options)
    camera.starts = start != "down"
    camera.slam, camera.deaf, camera.parameter_sets = start == "slam", start == "deaf", start != "bare"
    camera.mute = {start} if start.isupper() else set()
    camera.late = start == "late"
    return camera


# --- the verdict

def check_case(checks, framed, metrics, case):
    for problem in case.problems:
        checks.check(False, problem)
    offered, lost = check_ledger(checks, metrics, case.name, case.watcher.seen)
    losses = metrics.losses(camera=case.name)
    took = "-" if case.took is None else f"{case.took:.2f}"
    if case.fault is refused:
        said = len(re.findall(rf"camera={case.name} .*password", framed.errors()))
        checks.check(said == 1, f"{case.name}: said {said} times")
        checks.check(offered == 0, f"{case.name}: pictures without the password")
        print(f"{case.name:18} {took:>6}   {len(case.camera.calls)} tries in 36 s")
        return
    account = Account(case.camera.sent, case.watcher.seen)
    account.check(checks, case.name)
    if not case.harmed:
        allowed = case.lost + lost - losses["stopping"]
        checks.check(len(account.missing) <= allowed, f"{case.name}: lost {account.missing}, {losses}")
        checks.check(account.flagged <= (case.name == "fin-in-picture"), f"{case.name}: {account.flagged} flagged")
    if case.epochs:
        connections = len({s.connection for s in case.camera.sent})
        extra = connections - (2 if "reconnect" in case.name else 1)
        checks.check(account.epochs == case.epochs + extra, f"{case.name}: {account.epochs} epochs")
    print(f"{case.name:18} {took:>6} {len(account.missing):5} {len(account.doubled):7} {len(account.torn):5}"
          f" {account.flagged:8} {len(account.unflagged):9}  {dict(losses) or ''}", flush=True)


def check_live(checks, case):
    """Nothing that is older than max_age, and what it takes to deliver it, by the camera's own clock."""
    due = {sent.number: sent.due for sent in case.camera.sent}
    ages = [s.header.finished_ns / 1e9 - due[s.known] for s in case.watcher.seen if s.known in due]
    print(f"oldest picture under max_age 0.4 s: {max(ages):.2f} s")
    checks.check(max(ages) < 0.4 + 0.4 * PATIENCE, f"{case.name}: a picture {max(ages):.2f} s old")


def check_capture(checks, case):
    """The camera's clock is set an hour on, then two back: pictures say so, and nothing else changes."""
    arrivals = {sent.number: sent.wall for sent in case.camera.sent}
    shifts = {round((s.header.capture_ns / 1e9 - arrivals[s.known]) / 3600) for s in case.watcher.seen
              if s.header.flags & CAPTURE_CLOCK and s.known in arrivals}
    checks.check(shifts == {0, 1, -1}, f"{case.name}: capture times are {shifts} hours off")


def held(framed):
    """(descriptors, threads) of a process."""
    return [len(os.listdir(f"/proc/{framed.child.pid}/{kind}")) for kind in ("fd", "task")]


def at_rest(where, config, listed):
    """What framed holds with every camera gone and every client there."""
    with Framed(where, config) as framed:
        watchers = [Watcher(f"unix:{where}/{case.name}.sock", DIGESTS) for case in listed]
        until(lambda: framed.errors().count("next try") >= len(listed), 20)
        time.sleep(0.5)
        counts = held(framed)
        framed.stop()
        for watcher in watchers:
            watcher.join(5)
        return counts


def check_held(checks, before, after):
    print(f"with every camera gone: {before[0]} descriptors, {before[1]} threads before, {after[0]}, {after[1]} after")
    checks.check(after[0] <= before[0], f"{after[0]} descriptors, {before[0]} before")
    checks.check(after[1] <= before[1], f"{after[1]} threads, {before[1]} before")


def check_all(checks, where, listed):
    config = "log: {level: info}\ncameras:" + "".join(case.text(where) for case in listed)
    before = at_rest(where, config, listed)
    for case in listed:
        if case.camera.starts:
            case.camera.listen()
    with Framed(where, config) as framed:
        for case in listed:
            case.watcher = Watcher(f"unix:{where}/{case.name}.sock", DIGESTS)
        threads = [threading.Thread(target=case.run, daemon=True) for case in listed]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(150 * PATIENCE)
        check_held(checks, before, until(lambda: (now := held(framed)) <= before and now, 3) or held(framed))
        print(f"{framed.resident_kib() / 1024:.1f} MiB resident")
        code = framed.stop()
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-2000:]}")
        for case in listed:
            case.watcher.join(5)
        print("fault                   s  lost doubled torn flagged unflagged")
        for case in listed:
            check_case(checks, framed, framed.metrics(), case)
            if case.name == "frozen-max-age":
                check_live(checks, case)
            if case.name == "report-steps":
                check_capture(checks, case)
        if checks.failed:
            print(framed.errors())


# --- SIGTERM

def stuck_client(where, name):
    """Connected, and never reads."""
    client = socket.socket(socket.AF_UNIX)
    until(lambda: client.connect_ex(f"{where}/{name}.sock") == 0, 10)
    return client


def check_term(checks, where, name, prepare, more=""):
    case = Case(name, None, more=more)
    with Camera(CLIPS["plain"]) as case.camera, Framed(where, "cameras:" + case.text(where)) as framed:
        client = prepare(where, case)
        start = time.monotonic()
        code = framed.stop()
        took = time.monotonic() - start
        print(f"SIGTERM, {name}: gone after {took:.2f} s")
        checks.check(code == 0 and took < 2 * PATIENCE, f"SIGTERM, {name}: exit {code} after {took:.1f} s")
        offered, emitted, lost = framed.metrics().account(camera=name)
        checks.check(offered == emitted + lost, f"SIGTERM, {name}: {offered} offered, {emitted} emitted, {lost} lost")
        if client:
            client.close()


def connecting(_where, case):
    case.camera.mute = {"DESCRIBE"}
    until(lambda: any(method == "DESCRIBE" for method, _ in case.camera.requests), 10)


def silent(where, case):
    case.watcher = Watcher(f"unix:{where}/{case.name}.sock", DIGESTS)
    begun(case)
    case.camera.mute = {"TEARDOWN"}
    case.camera.next(Connection.go_mute)
    time.sleep(0.5)


def waited_for(where, case):
    client = stuck_client(where, case.name)
    until(lambda: case.camera.number > 2 * GOP, 20)
    return client


def check_terms(checks, where):
    check_term(checks, where, "connecting", connecting)
    check_term(checks, where, "silent", silent)
    check_term(checks, where, "stuck-client", waited_for)
    check_term(checks, where, "waits-for-client", waited_for, more=", overflow: wait")


def make_clips(where):
    for key, codec, size, count in (("plain", "h264", (320, 192), 2500), ("large", "h264", (480, 288), 1000),
                                    ("h265", "h265", (320, 192), 1000)):
        path = encode(os.path.join(where, f"{key}.{codec}"), count, codec, size)
        CLIPS[key] = NumberedClip(path, codec)
        DIGESTS.update(reference(path))


def main():
    checks = Checks("faults")
    wanted = os.environ.get("FRAMED_FAULTS", "").split()
    with folder() as where:
        make_clips(where)
        listed = [case for case in cases() if not wanted or case.name in wanted]
        for case in listed:
            case.camera = camera_of(case)
        try:
            check_all(checks, where, listed)
        finally:
            for case in listed:
                case.camera.close()
        check_terms(checks, where)
    checks.end()


main()
