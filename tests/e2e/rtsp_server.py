#!/usr/bin/python3
"""An RTSP server (on loopback unless A is another address) that streams clips unchanged (no transcoding), in real time.

usage: rtsp_server.py CLIP... [--mounts N] [--once] [--auth USER:PASSWORD] [--basic] [--tls FILE] [--protocol NAME]
       [--address A] [--interface NAME] [--port P] [--seconds S]

CLIP is H.264, H.265 with its parameter sets in band (x265's repeat-headers=1), MJPEG, MPEG-4 or VP8, in mp4, mkv or webm. Every client of
rtsp://127.0.0.1:PORT/0 .. /N-1 gets a clip from its first picture, repeated with rising timestamps unless --once; N mounts (default: one per clip)
use the clips in turn. NAME: tcp, udp or multicast; default: TCP or UDP, as the client requests. By multicast all clients get the same stream, on that
interface. --tls: rtsps, with the certificate and the key in that file. Prints "READY PORT"; ends on SIGTERM, on SIGINT and after S seconds (default
300).
"""
import argparse
import random
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gio, GLib, Gst, GstApp, GstRtsp, GstRtspServer  # GstApp: for appsink's methods

PAYLOADERS = {
    "video/x-h264": "rtph264pay name=pay0 pt=96 config-interval=-1",
    "video/x-h265": "rtph265pay name=pay0 pt=96 config-interval=-1",
    "image/jpeg": "rtpjpegpay name=pay0",
    "video/mpeg": "rtpmp4vpay name=pay0 pt=96 config-interval=1",
    "video/x-vp8": "rtpvp8pay name=pay0 pt=96",
}
PROTOCOLS = {
    "tcp": GstRtsp.RTSPLowerTrans.TCP,
    "udp": GstRtsp.RTSPLowerTrans.UDP,
    "multicast": GstRtsp.RTSPLowerTrans.UDP_MCAST,
}
GROUP = "239.255.77.2"


class Unit:
    """One access unit: its bytes, and its decoding and presentation times in ns."""

    def __init__(self, buffer):
        self.pts, self.dts, self.duration = buffer.pts, buffer.dts, buffer.duration
        self.data = buffer.extract_dup(0, buffer.get_size())

    def use_start_codes(self):
        """Replaces 4-byte lengths: rtph265pay accepts H.265 only with start codes."""
        data = bytearray(self.data)
        at = 0
        while at + 4 <= len(data):
            length = int.from_bytes(data[at : at + 4], "big")
            data[at : at + 4] = b"\0\0\0\1"
            at += 4 + length
        self.data = bytes(data)

    def buffer(self, delay):
        made = Gst.Buffer.new_wrapped(self.data)
        made.pts, made.duration = self.pts + delay, self.duration
        if self.dts != Gst.CLOCK_TIME_NONE:
            made.dts = self.dts + delay
        return made


class Clip:
    """The access units of a file's video track, in decoding order, in memory."""

    def __init__(self, path):
        demuxer = "qtdemux" if path.endswith((".mp4", ".mov")) else "matroskademux"
        pipeline = Gst.parse_launch(
            f"filesrc name=file ! {demuxer} name=demux demux.video_0 ! appsink name=units sync=false"
        )
        pipeline.get_by_name("file").set_property("location", path)
        sink = pipeline.get_by_name("units")
        pipeline.set_state(Gst.State.PLAYING)
        self.units = []
        while sample := sink.try_pull_sample(5 * Gst.SECOND):
            self.caps = sample.get_caps()
            self.units.append(Unit(sample.get_buffer()))
        pipeline.set_state(Gst.State.NULL)
        if not self.units:
            sys.exit(f"rtsp_server: no video in {path}")
        self.media_type = self.caps.get_structure(0).get_name()
        if self.media_type == "video/x-h265":
            self.caps = Gst.caps_from_string("video/x-h265,stream-format=byte-stream,alignment=au")
            for unit in self.units:
                unit.use_start_codes()
        first = min(unit.pts for unit in self.units)
        last = max(self.units, key=lambda unit: unit.pts)
        frame = last.duration if last.duration != Gst.CLOCK_TIME_NONE else (last.pts - first) // len(self.units)
        self.duration = last.pts + frame - first


class Feed:
    """One client's position in the clip."""

    def __init__(self, clip, source, once):
        self.clip, self.once, self.next = clip, once, 0
        source.set_property("caps", clip.caps)
        source.set_property("format", Gst.Format.TIME)
        source.connect("need-data", self.push)

    def push(self, source, _length):
        turn, index = divmod(self.next, len(self.clip.units))
        if turn and self.once:
            source.end_of_stream()
            return
        self.next += 1
        source.push_buffer(self.clip.units[index].buffer(turn * self.clip.duration))


def factory(clip, options):
    made = GstRtspServer.RTSPMediaFactory()
    made.set_launch(f"( appsrc name=units ! {PAYLOADERS[clip.media_type]} )")

    def configure(_factory, media):
        media.feed = Feed(clip, media.get_element().get_by_name("units"), options.once)

    made.connect("media-configure", configure)
    if options.protocol:
        made.set_protocols(PROTOCOLS[options.protocol])
    if options.protocol == "multicast":
        share(made, options.interface)
    if options.auth or options.tls:
        permissions = GstRtspServer.RTSPPermissions()
        for right in ("media.factory.access", "media.factory.construct"):
            permissions.add_permission_for_role("viewer", right, True)
        made.set_permissions(permissions)
    return made


def share(made, interface):
    """Shares the stream by multicast, on ports that no other socket of this host uses."""
    pool, port = GstRtspServer.RTSPAddressPool(), random.randrange(20000, 32000, 2)
    pool.add_range(GROUP, GROUP, port, port + 9, 1)
    made.set_shared(True)
    made.set_multicast_iface(interface)
    made.set_address_pool(pool)


def guard(server, options):
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    guardian = GstRtspServer.RTSPAuth()
    if options.tls:
        guardian.set_tls_certificate(Gio.TlsCertificate.new_from_file(options.tls))
    user, _, password = (options.auth or "").partition(":")
    if not options.auth:
        guardian.set_default_token(token)
    elif options.basic:
        guardian.set_supported_methods(GstRtsp.RTSPAuthMethod.BASIC)
        guardian.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
    else:
        guardian.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        guardian.add_digest(user, password, token)
    server.set_auth(guardian)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clips", nargs="+")
    parser.add_argument("--mounts", type=int)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--auth")
    parser.add_argument("--basic", action="store_true")
    parser.add_argument("--tls")
    parser.add_argument("--protocol", choices=PROTOCOLS)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--port", default="0")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()

    Gst.init(None)
    clips = [Clip(path) for path in options.clips]
    server = GstRtspServer.RTSPServer()
    server.set_address(options.address)
    server.set_service(options.port)
    if options.auth or options.tls:
        guard(server, options)
    mounts = server.get_mount_points()
    for i in range(options.mounts or len(clips)):
        mounts.add_factory(f"/{i}", factory(clips[i % len(clips)], options))
    if not server.attach(None):
        sys.exit(f"rtsp_server: cannot listen on port {options.port}")

    loop = GLib.MainLoop()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    GLib.timeout_add(int(1000 * options.seconds), loop.quit)
    print("READY", server.get_bound_port(), flush=True)
    loop.run()


main()
