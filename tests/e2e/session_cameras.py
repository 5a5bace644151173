"""Cameras whose RTSP is odd, each in a way in which some camera is; their RTP is in order."""
import time
from urllib.parse import urlsplit

from rtsp_camera import Camera, Connection, Hangup, Interleaved

SHORT_SECONDS = 6  # timeout of a session: keep-alives every 3 s


class SloppyReplies(Connection):
    """No use of CSeq, a name in small letters, LF alone, blanks, no Content-Type, a base without its scheme."""

    def reply(self, request, status, *headers, body=""):
        self.camera.replies.append((self.serial, request.method, status, request.url))
        kept = [f"{name.lower()}:      {value}  " for name, _, value in (line.partition(": ") for line in headers)
                if name != "Content-Type"]
        if body:
            kept += [f"Content-length:{len(body)}", f"Content-Base: {self.camera.authority()}/live/"]
        self.write("\n".join(("", f"RTSP/1.0 {status}", "Cseq: 0", *kept, "", body)).encode())


class TakesOneUrl(Connection):
    """SETUP finds the track under one URL alone: `track` in place of the last part of the path, or behind it."""

    def on_setup(self, request):
        if urlsplit(request.url).path != self.camera.track_path:
            self.reply(request, "404 Not Found")
            return
        super().on_setup(request)


class OtherChannels(Connection):
    """Other channels than those asked for."""

    def set_up_tcp(self, _asked):
        return Interleaved(self, (10, 11))


class UntoldChannels(Connection):
    """The channels asked for, without a word about them."""

    def transport_reply(self):
        return "RTP/AVP/TCP;unicast"


class EvenChannel(Connection):
    """RTCP on the channel of RTP."""

    def set_up_tcp(self, _asked):
        return Interleaved(self, (0, 0))

    def transport_reply(self):
        return "RTP/AVP/TCP;unicast;interleaved=0-1"


class WantsReports(Connection):
    """Hangs up on who sends no report for 10 s."""

    def before(self, _number, _seconds):
        own = [moment for moment, serial, data in self.camera.reports if serial == self.serial and data[1] == 201]
        if time.monotonic() - max(own, default=self.started) > 10:
            raise Hangup


class WantsParameters(Connection):
    """Hangs up on who sends no GET_PARAMETER for the session's timeout; does not list it."""

    def before(self, _number, _seconds):
        own = [request.moment for serial, request in self.camera.heard
               if serial == self.serial and request.method == "GET_PARAMETER"]
        if time.monotonic() - max(own, default=self.started) > self.camera.session_seconds:
            raise Hangup


class AnswersNoLife(Connection):
    """Once it plays it answers nothing."""

    def answer(self, request):
        if self.playing and request.method != "TEARDOWN":
            self.camera.seen(request, self.serial)
            return
        super().answer(request)


class RefusesLife(Connection):
    """Once it plays it answers 400."""

    def on_other(self, request):
        if self.playing:
            self.reply(request, "400 Bad Request")
            return
        super().on_other(request)


class OneSession(Connection):
    """Plays to one client. Ahead of picture LAST it falls silent, and holds the session until its timeout though the
    client is gone; 453 to whoever comes meanwhile."""

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
    """DESCRIBE names another path, so often as the camera says."""

    def on_describe(self, request):
        if self.camera.redirected < self.camera.redirects:
            self.camera.redirected += 1
            base = f"rtsp://{self.camera.authority()}/moved{self.camera.redirected}"
            self.reply(request, "302 Moved Temporarily", f"Location: {base}")
            return
        super().on_describe(request)


class Forbids(Connection):
    """403, also to who has the password."""

    def on_describe(self, request):
        self.reply(request, "403 Forbidden")


class SilentDatagrams(Connection):
    """What goes by UDP does not arrive."""

    def set_up_udp(self, asked):
        made = super().set_up_udp(asked)
        made.send = lambda _packets: time.monotonic()
        made.send_rtcp = lambda _data: None
        return made


class SloppyCamera(Camera):
    connection = SloppyReplies


class OneUrlCamera(Camera):
    """`track_path`: where the track is."""

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
