#!/usr/bin/python3
"""An RTSP server on loopback that accepts announced streams (RECORD), GStreamer's, and writes the H.264 that it receives.

usage: record_server.py FILE [--auth USER:PASSWORD] [--port P]

rtsp://127.0.0.1:PORT/live accepts one client at a time; each starts a new file, FILE.1, FILE.2 and so on, as an elementary stream. Prints "READY
PORT"; ends on SIGTERM.
"""
import argparse
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer


class Factory(GstRtspServer.RTSPMediaFactory):
    """Writes each client's stream into a new file."""

    def __init__(self, path):
        super().__init__()
        self.path, self.clients = path, 0
        self.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
        self.set_latency(0)

    def do_create_element(self, _url):
        self.clients += 1
        return Gst.parse_launch(
            f"( rtph264depay name=depay0 ! video/x-h264,stream-format=byte-stream,alignment=au"
            f" ! filesink buffer-mode=2 async=false sync=false location={self.path}.{self.clients} )"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--auth")
    parser.add_argument("--port", default="0")
    options = parser.parse_args()
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(options.port)
    factory = Factory(options.path)
    if options.auth:
        token = GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "sender")
        guardian = GstRtspServer.RTSPAuth()
        guardian.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        guardian.add_digest(*options.auth.split(":", 1), token)
        server.set_auth(guardian)
        permissions = GstRtspServer.RTSPPermissions()
        for right in ("media.factory.access", "media.factory.construct"):
            permissions.add_permission_for_role("sender", right, True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory("/live", factory)
    if not server.attach(None):
        sys.exit(f"record_server: cannot listen on port {options.port}")
    loop = GLib.MainLoop()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    print("READY", server.get_bound_port(), flush=True)
    loop.run()


main()
