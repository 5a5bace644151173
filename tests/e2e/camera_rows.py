"""The cameras for the tests of RTSP clients, one row each: its behaviour and the expected result."""
import os
import time

import session_cameras as session
import stream_cameras as stream
from camera_guard import Basic, Digest, Guard
from framed_client import PATIENCE, status
from numbered_clip import GOP, RATE, UNKNOWN, NumberedClip, encode
from rtsp_camera import Camera
from watch import CAPTURE_CLOCK, DAMAGED, OUTPUT, Account, reference

SECONDS = 24.0  # played by every camera
PICTURES = 800  # of a clip: more than are played
HALF_INTERVAL = 0.5 / RATE  # s: a client that waits for the next picture is later
LEARNING = 20  # pictures in which a camera's markers are learnt
KEYS = ", connect_timeout: 5s, close_timeout: 600ms"
USER = "viewer:right"
IPV6 = "::1"
HOUR = 3600

CLIPS, DIGESTS = {}, {}


def make_clips(where):
    for key, codec, size, slices in (
        ("plain", "h264", (320, 192), 1),
        ("sliced", "h264", (320, 192), 4),
        ("large", "h264", (480, 288), 1),
        ("h265", "h265", (320, 192), 1),
    ):
        path = encode(os.path.join(where, f"{key}.{codec}"), PICTURES, codec, size, slices=slices)
        CLIPS[key] = NumberedClip(path, codec)
        DIGESTS.update(reference(path))


class Row:
    """`judge(result)` checks the result; options go to the camera. Each camera has its own address, since a wrong password counts for all cameras at
    an address; IPv6 cameras share one, as its loopback has only one."""

    def __init__(self, name, kind, judge, clip="plain", keys="", user="", other=None, host="", **options):
        self.name, self.kind, self.judge, self.clip, self.keys = name, kind, judge, clip, keys
        self.user, self.other, self.host, self.options, self.watcher = user, other, host, options, None

    def start(self, index):
        self.key = f"camera{index}"
        self.camera = self.kind(CLIPS[self.clip], host=self.host or f"127.0.1.{index + 1}", **self.options)
        self.camera.other_clip = CLIPS.get(self.other)
        self.camera.group, self.camera.group_port = f"239.255.77.{index + 1}", 20000 + 2 * index

    def text(self, where):
        return (f'  {self.key}: {{url: "{self.camera.url(self.user)}"{KEYS}{self.keys}, outputs: {{o: {OUTPUT},'
                f' sink: "unix:{where}/{self.key}.sock"}}}}}}\n')


def ask(where, rows):
    """Returns `framed status` for each row. Packets withheld just before may not be counted as lost yet."""
    least = {row: row.camera.withheld for row in rows}
    time.sleep(0.3)
    told = status(where)
    for row in rows:
        row.withheld = (least[row], row.camera.withheld)
    return told


class Result:
    """Outcome of a row. `problems` contains each expectation that failed."""

    def __init__(self, row, told, log):
        self.row, self.camera, self.told, self.log, self.problems = row, row.camera, told, log, []
        self.seen = list(row.watcher.seen)
        self.account = Account(row.camera.sent, self.seen)
        self.first = next((s.known for s in self.seen if s.known != UNKNOWN), None)
        self.missing = [n for n in self.account.missing if self.first is not None and n >= self.first]
        self.network = told.get("network") or {}

    def want(self, good, text):
        if not good:
            self.problems.append(text)

    def whole(self):
        """Returns the numbers of pictures sent whole, as were all from their group's keyframe to them."""
        torn = {sent.number // GOP: sent.number for sent in reversed(self.camera.sent) if not sent.whole}
        return {sent.number for sent in self.camera.sent if sent.number < torn.get(sent.number // GOP, sent.number + 1)}

    def missing_whole(self):
        """Returns the whole() pictures, from the first to the last one seen, that are missing or flagged."""
        good = {s.known for s in self.seen if not s.header.flags & DAMAGED}
        return sorted(self.whole() & set(range(self.first or 0, max(good, default=0))) - good)

    # --- figures

    def delays(self, after=0):
        """Returns for whole pictures the s from the camera's last bytes to the client's read."""
        began = {sent.number: sent.began for sent in self.camera.sent}
        wanted = [s for s in self.seen if s.known in began and not s.header.flags & DAMAGED]
        return [s.read - began[s.known] for s in wanted[after:]]

    def delay(self, share=0.5, after=0):
        delays = sorted(self.delays(after))
        return delays[min(int(share * len(delays)), len(delays) - 1)] if delays else None

    def waited(self):
        """Returns the s from the first connection to the first picture."""
        return self.seen[0].read - self.camera.calls[0] if self.seen and self.camera.calls else None

    def setups(self):
        return [status for _, method, status, _ in self.camera.replies if method == "SETUP"]

    def shifts(self):
        """Returns the differences, in whole hours, between capture times by a sender's clock and the times of sending."""
        walls = {sent.number: sent.wall for sent in self.camera.sent}
        return {round((s.header.capture_ns / 1e9 - walls[s.known]) / HOUR) for s in self.seen
                if s.header.flags & CAPTURE_CLOCK and s.known in walls}

    # --- what must hold

    def plays(self, connections=1, epochs=1, flagged=0, timed=True):
        """Every picture since the first arrives once, in order and whole, up to the end."""
        self.want(len(self.seen) > 10 and self.camera.sent[self.row.sent - 1].number - self.seen[-1].top < RATE, "does not play")
        self.want(len(self.camera.calls) == connections, f"{len(self.camera.calls)} connections")
        self.want(not self.missing, f"{len(self.missing)} pictures are missing: {self.missing[:5]}")
        self.want(self.account.flagged <= flagged, f"{self.account.flagged} are flagged")
        for what in ("doubled", "disordered", "unflagged") + (("pts",) if timed else ()):
            found = getattr(self.account, what)
            self.want(not found, f"{len(found)} {what}: {found[:3]}")
        self.want(self.account.epochs == epochs, f"{self.account.epochs} epochs")

    def at_once(self, after=0):
        """No picture waited for the next one."""
        delay = self.delay(after=after)
        self.want(delay is not None and delay < HALF_INTERVAL * PATIENCE, f"a delay of {1000 * (delay or 0):.0f} ms")

    def shows(self, what, wanted):
        self.want(self.network.get(what) == wanted, f"{what}: {self.network.get(what)} shown, {wanted} in truth")

    def loses_nothing(self):
        self.shows("lost", 0)

    def shows_losses(self, more=0):
        """All packets that the camera withheld are counted as lost, and at most `more` others."""
        (least, most), lost = self.row.withheld, self.network.get("lost")
        self.want(lost is not None and least <= lost <= most + more,
                  f"lost: {lost} shown, {most} in truth" + (f", {more} came too late" if more else ""))


# --- what must come of a row

def plays(result):
    result.plays()
    result.loses_nothing()


def plays_at_once(result):
    plays(result)
    result.at_once()


def plays_over_udp(result):
    plays_at_once(result)
    result.shows("transport", "udp")


def learnt_at_once(result):
    """At once, that is within a picture."""
    result.plays(flagged=1)
    result.at_once(after=2)
    result.loses_nothing()


def ended_by_silence(result):
    plays(result)
    result.at_once(after=LEARNING)


def shared_stamps(result):
    result.plays(epochs=2, timed=False)
    result.loses_nothing()
    result.at_once(after=LEARNING)
    reads = [s.read for s in result.seen]
    longest = max((b - a for a, b in zip(reads, reads[1:])), default=0)
    result.want(longest < 0.5 * PATIENCE, f"nothing for {longest:.2f} s")


def harmed_alone(result):
    """Pictures with missing packets, and pictures that refer to them, are flagged or missing; all others are good."""
    result.want(len(result.camera.calls) == 1, f"{len(result.camera.calls)} connections")
    result.want(not result.account.unflagged, f"{len(result.account.unflagged)} damaged are not flagged")
    good = {s.known for s in result.seen if not s.header.flags & DAMAGED}
    torn = {sent.number for sent in result.camera.sent if not sent.whole}
    result.want(torn and not good & torn, f"torn pictures pass for whole: {sorted(good & torn)}")
    missing = result.missing_whole()
    result.want(not missing, f"{len(missing)} good pictures are missing or flagged: {missing[:5]}")


def losses_shown(result):
    result.want(result.camera.withheld > 10, "nothing was withheld")
    harmed_alone(result)
    result.shows_losses()


def strangers_dropped(result):
    """Strangers that arrive before the track's SETUP are not counted."""
    result.plays()
    result.loses_nothing()
    foreign = result.network.get("foreign")
    result.want(foreign is not None and 0 <= result.camera.strangers - foreign <= 13,
                f"foreign: {foreign} shown, {result.camera.strangers} in truth")
    waited = result.waited()
    result.want(waited is not None and waited < 2.5 * PATIENCE, f"first picture after {waited or 0:.1f} s")


def resynchronised(result):
    """One packet is lost per cut."""
    harmed_alone(result)
    result.shows("lost", len(stream.CutsFrames.CUTS))


def set_up_by(tries):
    def judge(result):
        plays(result)
        result.want(len(result.setups()) == tries, f"{len(result.setups())} SETUPs")
    return judge


def reports_used(result):
    plays(result)
    result.want(result.shifts() == {0}, f"capture times by the sender's clock: {result.shifts()} hours off")


def signed_by(algorithm):
    """Every signed request was right."""
    def judge(result):
        plays(result)
        guard = result.camera.guard
        result.want(not guard.refused, f"{len(guard.refused)} signed requests were refused")
        other = [text for _, text in guard.signed if algorithm_of(text) != algorithm]
        result.want(guard.signed and not other, f"signed otherwise: {other[:1]}")
    return judge


def algorithm_of(authorization):
    if authorization.startswith("Basic"):
        return "Basic"
    return "SHA-256" if "SHA-256" in authorization else "MD5"


def signed_again(result):
    signed_by("MD5")(result)
    stale = result.camera.guard.stale
    result.want(2 <= stale <= SECONDS / 3 + 1, f"{stale} requests with a nonce that was over")


def one_try(result):
    """There is no second try within the time of this test."""
    guard = result.camera.guard
    result.want(len(guard.signed) == 1, f"{len(guard.signed)} signed tries")
    result.want(not result.seen, "plays without the password")
    pause = result.told.get("next_try_s")
    result.want(pause is not None and 500 < pause < 700, f"the next try is in {pause} s")
    result.want("password" in result.log, "the log does not say why")


def forbidden(result):
    """A 403 says nothing about the password: no login has to wait."""
    result.want(len(result.camera.calls) == 2, f"{len(result.camera.calls)} connections")
    pause = result.told.get("next_try_s")
    result.want(pause is not None and pause < 33, f"the next try is in {pause} s")
    result.want("may not see the stream" in result.log, "the log does not say why")


def learns_keep_alive(result):
    """Learns it with the third session at the latest, and loses what was sent meanwhile."""
    calls = len(result.camera.calls)
    result.plays(connections=calls, epochs=calls)
    result.want(calls <= 3, f"{calls} connections")


def no_storm(result):
    """Comes back to the camera that held the session, with few requests meanwhile."""
    result.plays(connections=len(result.camera.calls), epochs=2)
    result.want(result.camera.plays == 2, f"{result.camera.plays} times PLAY")
    result.want(len(result.camera.calls) <= 9, f"{len(result.camera.calls)} connections")


def falls_to_tcp(within, most):
    """A second connection may have been tried beside the first."""
    def judge(result):
        connections = len(result.camera.calls)
        result.plays(connections=connections)
        result.want(connections <= most, f"{connections} connections")
        result.loses_nothing()
        waited = result.waited()
        result.want(waited is not None and waited < within * PATIENCE, f"first picture after {waited or 99:.1f} s")
    return judge


def capture_unknown(result):
    plays(result)
    result.want(not result.shifts(), f"capture times of a clock that is none, {result.shifts()} hours off")


def clock_steps(result):
    result.plays(epochs=2)
    result.want(result.shifts() == {0, 1}, f"capture times are {result.shifts()} hours off")


def parts(result):
    """Goes on over another connection as soon as allowed."""
    result.plays(connections=2, epochs=2)
    calls, parted = result.camera.calls, result.camera.parted
    took = calls[1] - parted if len(calls) > 1 and parted else None
    result.want(took is not None and took < 1.5 * PATIENCE, f"connects again after {took or 99:.1f} s")
    result.want("ended the stream" in result.log, "not by its BYE")


def changes_size(result):
    result.plays(epochs=2)
    result.loses_nothing()
    asked = [url for _, method, _, url in result.camera.replies if method == "SETUP"]
    result.want(asked and all(url.endswith("/track2") for url in asked), f"SETUP of {asked}")


def gives_up(result):
    """Gives up after five redirections, and retries seldom."""
    asked = len([1 for method, _ in result.camera.requests if method == "DESCRIBE"])
    tries = asked / 6
    result.want(not result.seen and tries == int(tries) and tries < SECONDS, f"{asked} times DESCRIBE")
    result.want("redirect" in result.log, "the log does not say why")


def keyframes_wanted(result):
    """Once per loss, at most once a second."""
    losses_shown(result)
    asked = [moment for moment, _, data in result.camera.reports if is_keyframe_request(data)]
    result.want(len(asked) >= 10, f"{len(asked)} requests for a keyframe")
    pauses = [b - a for a, b in zip(asked, asked[1:])]
    result.want(min(pauses, default=1) > 0.9, f"requests {min(pauses, default=1):.2f} s apart")


def is_keyframe_request(data):
    """Returns True if the compound packet contains a PLI."""
    while len(data) >= 4:
        size = 4 * (int.from_bytes(data[2:4], "big") + 1)
        if data[1] == 206 and data[0] & 31 == 1:
            return True
        data = data[size:]
    return False


def guarded(*ways, user=USER, **options):
    return {"guard": Guard(USER, list(ways), **options), "user": user + "@"}


def rows():
    udp = ", transport: udp"
    return [
        Row("1 marks sets", stream.MarkingCamera, plays_at_once),
        Row("1 stamps sets before", stream.LateStampCamera, plays_at_once),
        Row("2 marks slices", stream.SliceMarkingCamera, learnt_at_once, clip="sliced"),
        Row("3 never marks", stream.MarklessCamera, ended_by_silence),
        Row("4 repeats stamps", stream.RepeatingCamera, shared_stamps),
        Row("5 joins units", stream.JoiningCamera, plays),
        Row("6 loses packets", stream.LossyCamera, losses_shown),
        Row("6 loses packets h265", stream.LossyCamera, losses_shown, clip="h265"),
        Row("7 shares the channel", stream.SharedCamera, strangers_dropped),
        Row("8 cuts frames", stream.CuttingCamera, resynchronised, clip="large"),
        Row("9 sloppy replies", session.SloppyCamera, plays_at_once),
        Row("10 merged URL", session.MergingCamera, set_up_by(2)),
        Row("10 appended URL", session.AppendingCamera, set_up_by(1)),
        Row("11 other channels", session.OtherChannelsCamera, plays_at_once),
        Row("11 untold channels", session.UntoldChannelsCamera, plays_at_once),
        Row("11 RTCP among RTP", session.EvenChannelCamera, reports_used),
        Row("12 SHA-256 alone", Camera, signed_by("SHA-256"), **guarded(Digest("SHA-256"))),
        Row("12 MD5, SHA-256", Camera, signed_by("SHA-256"), **guarded(Digest(named=True), Digest("SHA-256", qop=True))),
        Row("12 Basic first", Camera, signed_by("MD5"), **guarded(Basic(), Digest())),
        Row("12 Basic, one line", Camera, signed_by("MD5"), **guarded(Basic(), Digest(qop=True), joined=True)),
        Row("12 odd parameter", Camera, signed_by("MD5"), **guarded(Digest(more=', random="7s,=3", stale=FALSE'))),
        Row("12 stale nonces", session.ShortSessionCamera, signed_again, **guarded(Digest(), nonce_seconds=3)),
        Row("13 wrong password", Camera, one_try, **guarded(Digest(), user="viewer:wrong")),
        Row("13 forbidden", session.ForbiddingCamera, forbidden, **guarded(Digest())),
        Row("14 wants reports", session.WantsReportsCamera, plays),
        Row("14 wants parameters", session.WantsParametersCamera, learns_keep_alive),
        Row("15 answers no life", session.NoLifeCamera, plays),
        Row("15 400 to a life", session.RefusesLifeCamera, plays),
        Row("16 one session", session.OneSessionCamera, no_storm),
        Row("17 large packets", stream.LargePacketCamera, plays, clip="large", keys=udp),
        Row("18 UDP silent", session.SilentDatagramsCamera, falls_to_tcp(3.5, 3), keys=udp),
        Row("18 no UDP", session.NoDatagramsCamera, falls_to_tcp(1.0, 1), keys=udp),
        Row("19 no clock", stream.camera(stream.ReportsNoClock), capture_unknown),
        Row("19 1970", stream.camera(stream.Reports1970), capture_unknown),
        Row("19 an hour on", stream.camera(stream.StepsClock), clock_steps),
        Row("19 SDES cut", stream.camera(stream.CutsReports), reports_used),
        Row("19 others' reports", stream.camera(stream.ReportsOfOthers), capture_unknown),
        Row("19 BYE", stream.PartingCamera, parts),
        Row("20 odd description", stream.OddDescription, changes_size, other="large"),
        Row("redirects", session.RedirectingCamera, lambda result: result.plays(connections=3)),
        Row("redirects for ever", session.CirclingCamera, gives_up),
        Row("offers keyframes", stream.OffersKeyframes, keyframes_wanted),
        Row("multicast", Camera, plays_at_once, keys=", transport: multicast"),
        Row("IPv6 sloppy replies", session.SloppyCamera, plays_at_once, host=IPV6),
        Row("IPv6 redirects", session.RedirectingCamera, lambda result: result.plays(connections=3), host=IPV6),
        Row("IPv6 UDP", Camera, plays_over_udp, keys=udp, host=IPV6),
        Row("H.265 marks slices", stream.SliceMarkingCamera, plays, clip="h265"),
        Row("H.265 never marks", stream.MarklessCamera, ended_by_silence, clip="h265"),
    ]


HEAD = "camera                pictures lost flagged torn   p50   p99  calls  lost/held  outcome"


def line(result):
    p50, p99 = (result.delay(share, LEARNING) for share in (0.5, 0.99))
    figures = " ".join("    -" if value is None else f"{1000 * value:5.1f}" for value in (p50, p99))
    return (f"{result.row.name:22} {len(result.seen):7} {len(result.missing):4} {result.account.flagged:7}"
            f" {len(result.account.torn):4} {figures} {len(result.camera.calls):6}"
            f" {result.network.get('lost', '-')!s:>5}/{result.camera.withheld:<4} "
            f" {'; '.join(result.problems) or 'as it should'}")
