"""Cameras with RTSP quirks, each found in some real camera; their RTP is correct."""
import time
from urllib.parse import urlsplit

from rtsp_camera import Camera, Connection, Hangup, Interleaved

SHORT_SECONDS = 6  # timeout of a session: keep-alives every 3 s


class SloppyReplies(Connection):
    """Ignores CSeq; sends a header name in lower case, LF alone, blanks, no Content-Type, a base URL without its scheme."""

    def reply(self, request, status, *headers, body=""):
        self.camera.replies.append((self.serial, request.method, status, request.url))
        kept = [f"{name.lower()}:      {value}  " for name, _, value in (line.partition(": ") for line in headers)
                if name != "Content-Type"]
        if body:
            kept += [f"Content-length:{len(body)}", f"Content-Base: {self.camera.authority()}/live/"]
        self.write("\n".join(("", f"RTSP/1.0 {status}", "Cseq: 0", *kept, "", body)).encode())


class TakesOneUrl(Connection):
    """SETUP accepts one URL alone: `track` in place of the last part of the path, or appended to it."""

    def on_setup(self, request):
        if urlsplit(request.url).path != self.camera.track_path:
            self.reply(request, "404 Not Found")
            return
        super().on_setup(request)


class OtherChannels(Connection):
    """Uses other channels than requested."""

    def set_up_tcp(self, _asked):
        return Interleaved(self, (10, 11))


class UntoldChannels(Connection):
    """Uses the requested channels, but does not report them."""

    def transport_reply(self):
        return "RTP/AVP/TCP;unicast"


class EvenChannel(Connection):
    """Sends RTCP on the channel of RTP."""

    def set_up_tcp(self, _asked):
        return Interleaved(self, (0, 0))

    def transport_reply(self):
        return "RTP/AVP/TCP;unicast;interleaved=0-1"


class WantsReports(Connection):
    """Hangs up on a client that sends no report for 10 s."""

    def before(self, _number, _seconds):
        own = [moment for moment, serial, data in self.camera.reports if serial == self.serial and data[1] == 201]
        if time.monotonic() - max(own, default=self.started) > 10:
            raise Hangup


class WantsParameters(Connection):
    """Hangs up on a client that sends no GET_PARAMETER for the session's timeout, though `Public` does not list it."""

    def before(self, _number, _seconds):
        own = [request.moment for serial, request in self.camera.heard
               if serial == self.serial and request.method == "GET_PARAMETER"]
        if time.monotonic() - max(own, default=self.started) > self.camera.session_seconds:
            raise Hangup


class AnswersNoLife(Connection):
    """Answers nothing once it plays."""

    def answer(self, request):
        if self.playing and request.method != "TEARDOWN":
            self.camera.seen(request, self.serial)
            return
        super().answer(request)


class RefusesLife(Connection):
    """Answers 400 once it plays."""

    def on_other(self, request):
        if self.playing:
            self.reply(request, "400 Bad Request")
            return
        super().on_other(request)


class OneSession(Connection):
    """Plays to one client. Before picture LAST it falls silent and holds the session until its timeout, though the client is gone; other clients get
    453 meanwhile."""

    LAST = 75

    def on_setup(self, request):
        if self.camera.held_until > time.monotonic() or self.camera.player not in (None, self):
            self.reply(request, "453 Not Enough Bandwidth")
            self.camera.refused += 1
            return
        self.camera.player = self
        super().on_setup(request)

    def before(self, number, _seconds):
        if self.serial == 1 and number >= self.LAST:
            self.camera.held_until = time.monotonic() + self.camera.session_seconds
            while not self.camera.over.wait(0.1):
                self.receive(0.01)
            raise Hangup


class OneSessionCamera(Camera):
    connection, session_seconds = OneSession, SHORT_SECONDS
    player, held_until, refused = None, 0.0, 0

    def left(self, connection):
        if self.player is connection:
            self.player = None


class Redirects(Connection):
    """DESCRIBE redirects to another path, `redirects` times."""

    def on_describe(self, request):
        if self.camera.redirected < self.camera.redirects:
            self.camera.redirected += 1
            base = f"rtsp://{self.camera.authority()}/moved{self.camera.redirected}"
            self.reply(request, "302 Moved Temporarily", f"Location: {base}")
            return
        super().on_describe(request)


class Forbids(Connection):
    """Answers 403, even to the right password."""

    def on_describe(self, request):
        self.reply(request, "403 Forbidden")


class SilentDatagrams(Connection):
    """Packets sent by UDP do not arrive."""

    def set_up_udp(self, asked):
        made = super().set_up_udp(asked)
        made.send = lambda _packets: time.monotonic()
        made.send_rtcp = lambda _data: None
        return made


class SloppyCamera(Camera):
    connection = SloppyReplies


class OneUrlCamera(Camera):
    """`track_path`: the path of the track."""

    connection, track_path = TakesOneUrl, ""

    def url(self, user=""):
        return super().url(user) + "/stream"


class AppendingCamera(OneUrlCamera):
    track_path = "/live/stream/track0"


class MergingCamera(OneUrlCamera):
    track_path = "/live/track0"


class OtherChannelsCamera(Camera):
    connection = OtherChannels


class UntoldChannelsCamera(Camera):
    connection = UntoldChannels


class EvenChannelCamera(Camera):
    connection = EvenChannel


class WantsReportsCamera(Camera):
    connection = WantsReports


class WantsParametersCamera(Camera):
    connection, session_seconds = WantsParameters, SHORT_SECONDS
    public = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"


class NoLifeCamera(Camera):
    connection, session_seconds = AnswersNoLife, SHORT_SECONDS


class RefusesLifeCamera(Camera):
    connection, session_seconds = RefusesLife, SHORT_SECONDS


class ShortSessionCamera(Camera):
    session_seconds, public = SHORT_SECONDS, Camera.public + ", GET_PARAMETER"


class RedirectingCamera(Camera):
    connection, redirects, redirected = Redirects, 2, 0


class CirclingCamera(RedirectingCamera):
    redirects = 1 << 30


class ForbiddingCamera(Camera):
    connection = Forbids


class SilentDatagramsCamera(Camera):
    connection = SilentDatagrams


class NoDatagramsCamera(Camera):
    transports = ("tcp",)
