#!/usr/bin/python3
"""An RTSP server on loopback that streams a clip as it is (no transcoding), at its own pace.

usage: rtsp_server.py CLIP [--mounts N] [--once] [--auth USER:PASSWORD] [--basic] [--port P] [--seconds S]

CLIP is H.264, or H.265 with its parameter sets in band (x265's repeat-headers=1), in mp4 or mkv. Every client of
rtsp://127.0.0.1:PORT/0 .. /N-1, over UDP or TCP, gets the clip from its first picture, over and over with rising
timestamps unless --once. Prints "READY PORT"; ends on SIGTERM, on SIGINT and after S seconds (default 300).
"""
import argparse
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstApp, GstRtsp, GstRtspServer  # GstApp: for appsink's methods

PAYLOADERS = {"video/x-h264": "rtph264pay", "video/x-h265": "rtph265pay"}


class Unit:
    """One access unit: its bytes and when it is decoded and shown, in ns."""

    def __init__(self, buffer):
        self.pts, self.dts, self.duration = buffer.pts, buffer.dts, buffer.duration
        self.data = buffer.extract_dup(0, buffer.get_size())

    def use_start_codes(self):
        """In place of 4-byte lengths: the only form of H.265 that rtph265pay takes."""
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
    """One client's way through the clip."""

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


def factory(clip, once, guarded):
    made = GstRtspServer.RTSPMediaFactory()
    made.set_launch(f"( appsrc name=units ! {PAYLOADERS[clip.media_type]} name=pay0 pt=96 config-interval=-1 )")

    def configure(_factory, media):
        media.feed = Feed(clip, media.get_element().get_by_name("units"), once)

    made.connect("media-configure", configure)
    if guarded:
        permissions = GstRtspServer.RTSPPermissions()
        for right in ("media.factory.access", "media.factory.construct"):
            permissions.add_permission_for_role("viewer", right, True)
        made.set_permissions(permissions)
    return made


def guard(server, auth, basic):
    user, password = auth.split(":", 1)
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    guardian = GstRtspServer.RTSPAuth()
    if basic:
        guardian.set_supported_methods(GstRtsp.RTSPAuthMethod.BASIC)
        guardian.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
    else:
        guardian.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        guardian.add_digest(user, password, token)
    server.set_auth(guardian)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clip")
    parser.add_argument("--mounts", type=int, default=1)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--auth")
    parser.add_argument("--basic", action="store_true")
    parser.add_argument("--port", default="0")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()

    Gst.init(None)
    clip = Clip(options.clip)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(options.port)
    if options.auth:
        guard(server, options.auth, options.basic)
    mounts = server.get_mount_points()
    for i in range(options.mounts):
        mounts.add_factory(f"/{i}", factory(clip, options.once, bool(options.auth)))
    if not server.attach(None):
        sys.exit(f"rtsp_server: cannot listen on port {options.port}")

    loop = GLib.MainLoop()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    GLib.timeout_add(int(1000 * options.seconds), loop.quit)
    print("READY", server.get_bound_port(), flush=True)
    loop.run()


main()
