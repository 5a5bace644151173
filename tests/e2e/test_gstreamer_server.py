#!/usr/bin/python3
"""GStreamer's RTSP server as a second opinion to our own cameras: H.264, H.265 and MJPEG over TCP, UDP and multicast, with TLS and with passwords. A
client gets every picture once, in order and identical to the file's."""
import contextlib
import importlib.util
import os
import subprocess
import sys

from certificate import make_certificate
from framed_client import Checks, Framed, Server, folder, status, until
from network_namespace import Namespace, why_no_namespace
from numbered_clip import RATE, encode
from watch import DAMAGED, OUTPUT, Watcher, reference

PICTURES = 100  # of a clip, which is repeated
WANTED = 60  # of each camera
CODECS = ("h264", "h265", "mjpeg")
LOGIN = "viewer:pass w%rd"
USER = "viewer:pass%20w%25rd@"


def why_not():
    """Returns what this box lacks, or ""."""
    if not importlib.util.find_spec("gi"):
        return "python3-gi is not installed"
    check = "import gi; gi.require_version('GstRtspServer', '1.0')"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=False)
    return "gir1.2-gst-rtsp-server-1.0 is not installed" if done.returncode else ""


def make_clips(where):
    """Returns codec -> (path in a container, digests)."""
    made = {}
    for codec in CODECS:
        raw = encode(os.path.join(where, f"raw.{codec}" + (".mkv" if codec == "mjpeg" else "")), PICTURES, codec)
        path = os.path.join(where, f"{codec}.mkv")
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-r", str(RATE), "-i", raw, "-c", "copy", path], check=True)
        made[codec] = path, reference(path)
    return made


class Case:
    """A camera on a server. It must play, unless `refused` is set: the fingerprint of a certificate that must be rejected."""

    def __init__(self, name, server, mount, codec, keys="", user="", refused="", transport="tcp"):
        self.name, self.url, self.codec, self.keys = name, server.url(mount, user), codec, keys
        self.refused, self.transport = refused, transport

    def text(self, where):
        return (f'  {self.name}: {{url: "{self.url}", transport: {self.transport}{self.keys}, outputs: {{o: {OUTPUT},'
                f' sink: "unix:{where}/{self.name}.sock"}}}}}}\n')


def group_server(where, paths, network):
    """Serves by multicast from a separate host, since the server shares its ports with no other socket."""
    if not network:
        return contextlib.nullcontext()
    return Server(where, *paths, "--protocol", "multicast", log="multicast.log", network=network)


def cases(plain, groups, guarded, basic, secure, certificate, other):
    path, fingerprint = certificate
    for mount, codec in enumerate(CODECS):
        for transport in ("tcp", "udp"):
            yield Case(f"{codec}-{transport}", plain, mount, codec, transport=transport)
        if groups:
            yield Case(f"{codec}-multicast", groups, mount, codec, transport="multicast")
    yield Case("digest-tcp", guarded, 0, "h264", user=USER)
    yield Case("digest-udp", guarded, 1, "h265", user=USER, transport="udp")
    yield Case("basic", basic, 0, "h264", user=USER)
    yield Case("tls-fingerprint", secure, 0, "h264", f", tls: {{fingerprint: {fingerprint}}}", USER)
    yield Case("tls-ca", secure, 1, "h265", f', tls: {{ca: "{path}"}}', USER)
    yield Case("tls-any", secure, 2, "mjpeg", ", tls: {verify: false}", USER)
    yield Case("tls-stranger", secure, 0, "h264", f", tls: {{fingerprint: {other[1]}}}", USER, fingerprint)
    yield Case("tls-unknown", secure, 0, "h264", "", USER, fingerprint)


def check_good(checks, case, watcher, told):
    known = [s.known for s in watcher.seen]
    steps = {(b - a) % PICTURES for a, b in zip(known, known[1:])}
    flagged = sum(bool(s.header.flags & DAMAGED) for s in watcher.seen)
    strange = sum(number < 0 for number in known)
    checks.check(len(known) >= WANTED, f"{case.name}: {len(known)} pictures")
    checks.check(steps == {1} and not strange, f"{case.name}: steps {sorted(steps)}, {strange} unlike the file's")
    checks.check(not flagged, f"{case.name}: {flagged} flagged")
    network = told.get("network") or {}
    checks.check(network.get("transport") == case.transport, f"{case.name}: came by {network.get('transport')}")
    checks.check(network.get("lost") == 0, f"{case.name}: {network.get('lost')} packets lost")
    print(f"{case.name:16} {len(known):4} pictures, {network.get('transport')}, picture end {network.get('picture_end')}")


def check_refused(checks, case, watcher, framed):
    log = [line for line in framed.errors().splitlines() if f"camera={case.name} " in line]
    checks.check(not watcher.seen, f"{case.name}: plays, though nobody vouches for it")
    whole = ":".join(case.refused[i : i + 2] for i in range(0, 64, 2))
    checks.check(any(whole in line for line in log), f"{case.name}: the log does not give the fingerprint: {log[-3:]}")
    print(f"{case.name:16} refused: {log[-1] if log else ''}")


def check_all(checks, where, listed, clips):
    config = "log: {level: info}\ncameras:\n" + "".join(case.text(where) for case in listed)
    with Framed(where, config) as framed:
        watchers = [Watcher(f"unix:{where}/{case.name}.sock", clips[case.codec][1]) for case in listed]
        good = [watcher for watcher, case in zip(watchers, listed) if not case.refused]
        until(lambda: all(len(watcher.seen) >= WANTED for watcher in good), 15)
        told = status(where)
        code = framed.stop()
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-2000:]}")
        for case, watcher in zip(listed, watchers):
            watcher.join(5)
            if case.refused:
                check_refused(checks, case, watcher, framed)
            else:
                check_good(checks, case, watcher, told.get(case.name, {}))
        if checks.failed:
            print(framed.errors())


def main():
    checks = Checks("gstreamer_server")
    if why := why_not():
        checks.skip(why)
        checks.end()
    with folder() as where:
        clips = make_clips(where)
        paths = [path for path, _ in clips.values()]
        certificate, other = (make_certificate(where, name) for name in ("camera.pem", "other.pem"))
        if why := why_no_namespace():
            checks.skip(f"multicast: {why}")
        with (
            contextlib.nullcontext() if why else Namespace() as network,
            Server(where, *paths, log="plain.log") as plain,
            group_server(where, paths, network) as groups,
            Server(where, *paths, "--auth", LOGIN, log="digest.log") as guarded,
            Server(where, *paths, "--auth", LOGIN, "--basic", log="basic.log") as basic,
            Server(where, *paths, "--auth", LOGIN, "--tls", certificate[0], log="tls.log") as secure,
        ):
            check_all(checks, where, list(cases(plain, groups, guarded, basic, secure, certificate, other)), clips)
    checks.end()


main()
