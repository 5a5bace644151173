"""Faults of cameras, one case each: the fault, the time when service is back, and how soon a good picture must follow."""
import itertools
import os
import random
import threading
import time

from faulty_camera import Camera, Connection
from framed_client import PATIENCE, until
from numbered_clip import GOP, NumberedClip, encode
from watch import OUTPUT

BACK = 2.0  # s to the first good picture once service is back
REFUSED = 15.0  # s for which a wrong password is watched: other failures are retried long before
BACKOFF = (1, 1, 1.5, 1.5, 1.5)

CAMERA = """
  {name}:
    url: {url}
    {media}
    outputs:
      o: {output}{more}, sink: "unix:{where}/{name}.sock"}}
"""


class Case:
    """One camera with its fault. `fault(case)` causes it and returns the time when service was back, or None if it never went."""

    def __init__(self, name, fault, more="", user="", media=None, lost=0, epochs=None,
                 harmed=False, **camera):
        self.name, self.fault, self.more = name, fault, more
        self.user, self.media, self.lost, self.epochs, self.harmed = user, media, lost, epochs, harmed
        self.options, self.took, self.problems, self.told = camera, None, [], ""

    def text(self, where):
        media = f"media_timeout: {self.media}s" if self.media else ""
        return CAMERA.format(name=self.name, url=self.camera.url(self.user), output=OUTPUT, more=self.more, where=where,
                             media=media)

    def complain(self, text):
        self.problems.append(f"{self.name}: {text}")

    def sent_since(self, moment):
        """Returns the number of the first picture sent after that moment."""
        return next((sent.number for sent in list(self.camera.sent) if sent.at > moment), None)

    def wait_good(self, since=0.0, count=1, seconds=20.0):
        """Returns the time when the first of `count` good pictures sent after `since` was finished, or None if they did not arrive."""
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
                if self.took > BACK * PATIENCE:
                    self.complain(f"good again after {self.took:.2f} s, {BACK * PATIENCE:.1f} s allowed")
            if self.fault is not refused:
                self.wait_good(time.monotonic(), GOP)
        except Exception as error:  # this is a thread: report the error, else it is lost
            self.complain(repr(error))
        self.over = time.monotonic()
        self.camera.close()


# --- faults

def begun(case, count=12):
    case.wait_good(count=count)


def at_next(act, count=12):
    """Calls `act` before the next picture, in the middle of a group, once `count` pictures have arrived; service is back at once."""
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


def frozen(seconds):
    """Sends nothing for this time, which is less than `media_timeout`."""
    freeze = at_next(lambda connection: connection.freeze(seconds))
    return lambda case: freeze(case) + seconds


def away(seconds):
    """Refuses connections for this time."""
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
    """Leaves that request unanswered; answers the next client."""
    def fault(case):
        until(lambda: any(said == method for said, _ in case.camera.requests), 20)
        case.camera.mute = set()
        return next(at for said, at in case.camera.requests if said == method)
    return fault


def several(*acts, gap=3 * GOP, at=7):
    """Runs each act before a picture in the middle of another group, or before picture `at` of one."""
    def fault(case):
        begun(case)
        start = case.camera.next_keyframe() + at
        for i, act in enumerate(acts):
            case.camera.next(act, start + i * gap)
        until(lambda: case.camera.number > start + len(acts) * gap, 60)
    return fault


def mangling(change):
    def act(connection):
        connection.mangle = change
    return act


def flip(packets):
    """Flips eight bits in a picture's packets, past their first bytes."""
    chance = random.Random(len(packets))
    broken = [bytearray(packet.payload) for packet in packets]
    for _ in range(8):
        payload = chance.choice(broken)
        at = chance.randrange(min(20, len(payload) // 2), len(payload))
        payload[at] ^= 1 << chance.randrange(8)
    return [packet._replace(payload=bytes(payload)) for packet, payload in zip(packets, broken)]


def drop(first, last=None):
    """Drops the packets from `first` up to, but not including, `last`."""
    return lambda packets: [None if i in range(len(packets))[first:last] else p for i, p in enumerate(packets)]


def new_clip(key):
    """Closes the connection; the next one gets another stream."""
    def act(connection):
        connection.camera.clip = CLIPS[key]
        connection.fin()
    return act


def other_in_stream(key):
    """Switches to another clip of the same codec at a keyframe, unannounced."""
    def fault(case):
        begun(case)

        def act(connection):
            connection.clip = connection.camera.clip = CLIPS[key]

        start = case.camera.next_keyframe() + GOP
        case.camera.next(act, start)
        until(lambda: case.camera.number > start + GOP, 20)
    return fault


def codec_in_stream(key):
    """Switches the codec unannounced; a client that connects again gets the new stream as well."""
    def act(connection):
        connection.clip = connection.camera.clip = CLIPS[key]
    return act


def slammed(case):
    """Hangs up on everyone, until the pauses between the connections have been seen."""
    until(lambda: len(case.camera.calls) > len(BACKOFF), 60)
    pauses = [b - a for a, b in itertools.pairwise(case.camera.calls)]
    case.told = "pauses between calls: " + " ".join(f"{pause:.2f}" for pause in pauses) + " s"
    for pause, wanted in zip(pauses, BACKOFF):
        if not 0.75 * wanted <= pause <= 1.25 * wanted + 0.5 * PATIENCE:
            case.complain(f"{pause:.2f} s between calls, not about {wanted}")
    case.camera.slam = False
    return time.monotonic()


def refused(case):
    """The password stays wrong: one try, and the next one after minutes."""
    until(lambda: case.camera.calls, 20)
    time.sleep(REFUSED)
    if len(signed := case.camera.guard.signed) != 1 or len(case.camera.calls) != 1:
        case.complain(f"{len(case.camera.calls)} connections, {len(signed)} tries with a wrong password")


CLIPS = {}  # filled by make_clips


def cases():
    jump = lambda seconds: lambda connection: connection.jump(seconds)
    return [
        Case("refused-basic", refused, user="viewer:wrong@", basic=True, password="viewer:right", host="127.0.2.1"),
        Case("refused-digest", refused, user="viewer:wrong@", password="viewer:right", host="127.0.2.2"),
        Case("slammed", slammed, start="slam"),
        Case("fin", at_next(Connection.fin)),
        Case("fin-in-picture", at_next(Connection.half)),
        Case("reset", at_next(Connection.reset)),
        Case("rtcp-bye", at_next(Connection.bye)),
        Case("lone-rtcp-bye", at_next(Connection.lone_bye), lost=1),
        Case("silent", at_next(Connection.go_mute), lost=1),
        Case("away-shortly", away(1.5)),
        Case("away-longer", away(6)),
        Case("down-at-start", down_at_start, start="down"),
        Case("half-open", deaf_at_start, start="deaf"),
        *(Case(f"mute-{method.lower()}", mute_at(method), start=method)
          for method in ("OPTIONS", "DESCRIBE", "SETUP", "PLAY")),
        Case("frozen", at_next(lambda c: c.freeze(1.2)), lost=GOP),
        Case("frozen-max-age", frozen(3), media=8, more=", max_age: 400ms", lost=80),
        Case("rtp-hour-on", several(jump(3600)), epochs=2),
        Case("rtp-minute-back", several(jump(-60)), epochs=2),
        Case("rtp-second-back", several(jump(-1)), epochs=2),
        Case("rtp-wrap", several(), rtp_base=2**32 - 180000, epochs=1),
        Case("rtp-restart", several(Connection.restart), epochs=2, harmed=True),
        Case("rtp-restart-back", at_next(lambda c: c.restart(-20000)), media=8, harmed=True),
        Case("report-steps", several(lambda c: c.wall_step(3600), lambda c: c.wall_step(-7200)), epochs=3),
        Case("flipped-bits", several(*[mangling(flip)] * 5), harmed=True),
        Case("packets-lost", several(*map(mangling, (drop(1, 2), drop(0, 1), drop(-1), drop(0)))), harmed=True),
        Case("packets-lost-h265", several(*map(mangling, (drop(1, 2), drop(0, 1), drop(-1), drop(0)))), harmed=True,
             clip="h265"),
        Case("picture-lost-h265", several(*[mangling(drop(0))] * 3), harmed=True, clip="h265"),
        Case("keyframe-torn", several(*[mangling(drop(2, 3))] * 2, at=GOP), harmed=True),
        Case("keyframe-torn-h265", several(*[mangling(drop(3, 4))] * 2, at=GOP), harmed=True, clip="h265"),
        Case("joined-late", several(), start="late", harmed=True),
        Case("joined-late-h265", several(), start="late", harmed=True, clip="h265"),
        Case("babble", several(*[lambda c: c.babble(500)] * 3)),
        Case("noise", at_next(lambda c: c.noise(500)), harmed=True),
        Case("size-by-reconnect", at_next(new_clip("large")), epochs=2),
        Case("codec-by-reconnect", at_next(new_clip("h265")), epochs=2),
        Case("size-in-stream", other_in_stream("large"), epochs=2),
        Case("pixels-in-stream", other_in_stream("deep")),
        Case("range-in-stream", other_in_stream("full")),
        Case("garbage", at_next(Connection.garble, GOP + 12), harmed=True),
        Case("garbage-h265", at_next(Connection.garble, GOP + 12), harmed=True, clip="h265"),
        Case("codec-in-stream", at_next(codec_in_stream("h265"), GOP + 12), epochs=1, harmed=True),
        Case("codec-in-stream-h265", at_next(codec_in_stream("plain"), GOP + 12), epochs=1, harmed=True, clip="h265"),
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


def make_clips(where):
    for key, codec, size, pixels, count in (
        ("plain", "h264", (320, 192), "yuv420p", 2500),
        ("large", "h264", (480, 288), "yuv420p", 1000),
        ("deep", "h264", (320, 192), "yuv422p10", 1000),
        ("full", "h264", (320, 192), "yuvj420p", 1000),
        ("h265", "h265", (320, 192), "yuv420p", 1000),
    ):
        path = encode(os.path.join(where, f"{key}.{codec}"), count, codec, size, pixels)
        CLIPS[key] = NumberedClip(path, codec)
