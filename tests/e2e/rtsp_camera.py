"""An RTSP camera on loopback that shows a numbered clip as a live camera does: RTP within the RTSP connection, by UDP or by multicast, with TLS if it
has a certificate. It behaves correctly; faulty cameras override methods of its Connection. It runs on threads of the process that makes it and is
closed when its with-block ends."""
import base64
import collections
import random
import re
import select
import socket
import struct
import threading
import time

import rtp_payloads
from camera_guard import Guard
from numbered_clip import GOP, RATE

PAYLOAD_MAX = 400  # bytes: small, so that a picture takes several packets
REPORT_SECONDS = 1.0
NTP_EPOCH = 2208988800  # 1970 in seconds since 1900
CLOCK = 90000
LINE = "\r\n"

# due, began, at: CLOCK_MONOTONIC; the last bytes were sent between `began` and `at`.
Sent = collections.namedtuple("Sent", "number connection due began at whole wall")


class Hangup(Exception):
    """Ends a connection."""


def family_of(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def why_no_ipv6():
    """Returns the reason why no camera can listen on ::1; None if one can."""
    try:
        with socket.socket(socket.AF_INET6) as listener:
            listener.bind(("::1", 0))
    except OSError as error:
        return f"no IPv6 on loopback: {error.strerror}"
    return None


class Request:
    def __init__(self, text, moment):
        first, *lines = text.splitlines()
        self.text, self.moment = text, moment
        self.method, self.url = (first.split() + ["", ""])[:2]
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}


class Interleaved:
    """RTP and RTCP within the RTSP connection."""

    name, sockets = "tcp", ()

    def __init__(self, connection, channels=(0, 1)):
        self.connection, self.channels = connection, channels

    def frame(self, data, rtcp=False):
        return struct.pack(">cBH", b"$", self.channels[rtcp], len(data)) + data

    def send(self, packets):
        """Sends all packets at once; returns the time just before."""
        began = time.monotonic()
        self.connection.write(b"".join(map(self.frame, packets)))
        return began

    def send_rtcp(self, data):
        self.connection.write(self.frame(data, rtcp=True))

    def close(self):
        pass


class Datagrams:
    """RTP and RTCP by UDP, to two ports of a host or of a multicast group."""

    name = "udp"

    def __init__(self, host, to, ports):
        self.to, self.ports = to, ports
        self.sockets = self.bind_pair(host)
        self.own_ports = [each.getsockname()[1] for each in self.sockets]

    @staticmethod
    def bind_pair(host):
        while True:
            pair = [socket.socket(family_of(host), socket.SOCK_DGRAM) for _ in range(2)]
            port = random.randrange(10000, 32766, 2)
            try:
                for i, each in enumerate(pair):
                    each.bind((host, port + i))
                    if each.family == socket.AF_INET:
                        each.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(host))
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                return pair
            except OSError:
                for each in pair:
                    each.close()

    def send(self, packets):
        began = time.monotonic()
        for packet in packets:
            began = time.monotonic()
            self.send_to(0, packet)
        return began

    def send_rtcp(self, data):
        self.send_to(1, data)

    def send_to(self, which, data):
        try:
            self.sockets[which].sendto(data, (self.to, self.ports[which]))
        except ConnectionRefusedError:  # caused by an earlier packet: the receiver is gone
            pass

    def close(self):
        for each in self.sockets:
            each.close()


class Connection:
    """One client, from its first request to the end. Its session ends with it."""

    def __init__(self, camera, peer, serial):
        self.camera, self.peer, self.serial = camera, peer, serial
        self.buffer, self.playing, self.transport = b"", False, None
        self.sequence, self.rtp_base = random.randrange(65536), camera.rtp_base
        self.ssrc, self.session = random.randrange(1, 2**32), str(random.randrange(10**8, 10**9))
        self.wall_offset, self.clip, self.started = 0.0, camera.clip, time.monotonic()

    # --- requests

    def receive(self, seconds):
        """Returns the next request, or None if none arrives in time; records RTCP meanwhile."""
        end = time.monotonic() + seconds
        while True:
            if request := self.take_request():
                return request
            if not self.take_input(max(end - time.monotonic(), 0)):
                return None

    def take_input(self, seconds):
        """Returns True if any input arrived."""
        sockets = self.transport.sockets if self.transport else ()
        if not getattr(self.peer, "pending", lambda: 0)():
            poll = select.poll()
            for each in (self.peer, *sockets):
                poll.register(each, select.POLLIN)
            ready = [fd for fd, _ in poll.poll(1000 * seconds)]
            for each in sockets:
                if each.fileno() in ready:
                    self.note_packet(each.recv(65536), each is sockets[1])
            if self.peer.fileno() not in ready:
                return bool(ready)
        data = self.peer.recv(65536)
        if not data:
            raise Hangup
        self.buffer += data
        return True

    def take_request(self):
        while self.buffer[:1] == b"$" and len(self.buffer) >= 4:
            channel, size = struct.unpack(">BH", self.buffer[1:4])
            if len(self.buffer) < 4 + size:
                return None
            data, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
            self.note_packet(data, channel % 2 == 1)
        end = self.buffer.find(b"\r\n\r\n")
        if self.buffer[:1] == b"$" or end < 0:
            return None
        text, self.buffer = self.buffer[:end].decode(errors="replace"), self.buffer[end + 4 :]
        return Request(text, time.monotonic())

    def note_packet(self, data, rtcp):
        if rtcp and len(data) >= 8:
            self.camera.reports.append((time.monotonic(), self.serial, data))

    def answer(self, request):
        self.camera.seen(request, self.serial)
        if request.method in self.camera.mute:
            while not self.camera.over.wait(0.1):
                self.take_input(0.01)  # notices when the client leaves
            raise Hangup
        challenges = self.camera.guard.refusal(request) if self.camera.guard else None
        if challenges is not None:
            self.reply(request, "401 Unauthorized", *(f"WWW-Authenticate: {text}" for text in challenges))
            return
        getattr(self, f"on_{request.method.lower()}", self.on_other)(request)

    def reply(self, request, status, *headers, body=""):
        self.camera.replies.append((self.serial, request.method, status, request.url))
        size = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"RTSP/1.0 {status}", f"CSeq: {request.headers.get('cseq', 0)}", *headers, *size]
        self.write((LINE.join(lines) + 2 * LINE + body).encode())

    def on_describe(self, request):
        body = self.camera.description(request.url)
        self.reply(request, "200 OK", "Content-Type: application/sdp", body=body)

    def on_setup(self, request):
        asked = request.headers.get("transport", "")
        kind = "multicast" if "multicast" in asked else "tcp" if "/TCP" in asked else "udp"
        if kind not in self.camera.transports:
            self.reply(request, "461 Unsupported Transport")
            return
        self.transport = getattr(self, f"set_up_{kind}")(asked)
        self.reply(request, "200 OK", f"Transport: {self.transport_reply()}",
                   f"Session: {self.session};timeout={self.camera.session_seconds}")

    def set_up_tcp(self, asked):
        channels = re.search(r"interleaved=(\d+)-(\d+)", asked)
        return Interleaved(self, tuple(map(int, channels.groups())) if channels else (0, 1))

    def set_up_udp(self, asked):
        ports = re.search(r"client_port=(\d+)-(\d+)", asked)
        return Datagrams(self.camera.host, self.peer.getpeername()[0], tuple(map(int, ports.groups())))

    def set_up_multicast(self, _asked):
        made = Datagrams(self.camera.host, self.camera.group, (self.camera.group_port, self.camera.group_port + 1))
        made.name = "multicast"
        return made

    def transport_reply(self):
        way = self.transport
        if way.name == "tcp":
            return f"RTP/AVP/TCP;unicast;interleaved={way.channels[0]}-{way.channels[1]}"
        if way.name == "multicast":
            return f"RTP/AVP;multicast;destination={way.to};port={way.ports[0]}-{way.ports[1]};ttl=1"
        return (f"RTP/AVP;unicast;client_port={way.ports[0]}-{way.ports[1]}"
                f";server_port={way.own_ports[0]}-{way.own_ports[1]}")

    def on_play(self, request):
        self.reply(request, "200 OK", f"Session: {self.session}")
        self.playing = True

    def on_teardown(self, request):
        self.reply(request, "200 OK", f"Session: {self.session}")
        raise Hangup

    def on_other(self, request):
        """Handles mainly OPTIONS and GET_PARAMETER."""
        session = [f"Session: {self.session}"] if "session" in request.headers else []
        self.reply(request, "200 OK", f"Public: {self.camera.public}", *session)

    # --- media

    def write(self, data):
        self.peer.settimeout(10)
        self.peer.sendall(data)

    def rtp_time(self, seconds):
        return (self.rtp_base + int(seconds * CLOCK)) & 0xFFFFFFFF

    def sender_report(self, seconds):
        wall = time.time() + self.wall_offset + NTP_EPOCH
        return rtp_payloads.sender_report(self.ssrc, wall, self.rtp_time(seconds))

    def packets(self, number, seconds):
        """Returns a picture's packets, as a camera should send them."""
        unit = self.clip.units[number % len(self.clip.units)]
        return rtp_payloads.packets_of(self.clip.codec, unit, seconds, self.camera.payload_max)

    def changed(self, _number, packets):
        """Returns the packets to send instead; None in place of a lost one."""
        return packets

    def wrap(self, packet):
        """Returns the packet with its header; advances the sequence number."""
        self.sequence += 1
        if packet is None:
            return None
        return rtp_payloads.rtp(packet.payload, self.sequence - 1, self.rtp_time(packet.seconds), self.ssrc,
                                packet.marker)

    def wrap_all(self, packets):
        return [data for packet in packets if (data := self.wrap(packet)) is not None]

    def send_picture(self, number, seconds):
        """Returns (True if all of it was sent, the time when its last bytes began their way)."""
        packets = self.packets(number, seconds)
        wanted = self.changed(number, packets)
        self.camera.withheld += wanted.count(None)
        began = self.transport.send(self.wrap_all(wanted))
        return None not in wanted and wanted == packets, began

    def report(self, seconds):
        self.transport.send_rtcp(self.sender_report(seconds))

    def before(self, number, seconds):
        """Called before each picture."""

    def stream(self):
        """Sends pictures at their times, starting at a keyframe or `late` pictures behind one, and runs the acts due before each."""
        start, reported = time.monotonic(), -REPORT_SECONDS
        first = self.camera.next_keyframe() + self.camera.late
        index = 0
        while not self.camera.over.is_set():
            due = start + self.camera.delay + self.camera.moment(index)
            while (left := due - time.monotonic()) > 0:
                if request := self.receive(left):
                    self.answer(request)
            number, seconds = first + index, index / self.camera.rate
            for act in self.camera.acts(number):
                act(self)
            self.before(number, seconds)
            if self.camera.reporting and seconds - reported >= REPORT_SECONDS:
                self.report(seconds)
                reported = seconds
            self.camera.number = number + 1
            whole, began = self.send_picture(number, seconds)
            self.camera.sent.append(Sent(number, self.serial, due, began, time.monotonic(), whole, time.time()))
            index += 1

    def serve(self):
        try:
            if self.camera.tls:
                self.peer = self.camera.tls.wrap_socket(self.peer, server_side=True)
            while not self.playing:
                if request := self.receive(0.2):
                    self.answer(request)
                if self.camera.over.is_set():
                    return
            self.camera.plays += 1
            self.stream()
        except (OSError, ValueError, Hangup):  # ValueError: from sockets that the camera closed
            pass
        finally:
            self.camera.left(self)
            if self.transport:
                self.transport.close()
            self.peer.close()


class Camera:
    """Listens while it is up. `guard`: its login; `mute`: RTSP methods that are never answered; `slam`: hangs up on every client at once; `deaf`:
    accepts clients and reads nothing; `tls`: an SSLContext."""

    connection = Connection
    transports = ("tcp", "udp", "multicast")
    public = "DESCRIBE, SETUP, PLAY, TEARDOWN"
    session_seconds = 60
    payload_max = PAYLOAD_MAX
    group, group_port = "239.255.77.1", 0
    rate, delay = RATE, 0  # pictures per second; delay of the first one in s

    def __init__(self, clip, guard=None, start=True, rtp_base=None, host="127.0.0.1", tls=None):
        self.clip, self.guard, self.host, self.tls = clip, guard, host, tls
        self.mute, self.reporting, self.parameter_sets, self.slam, self.deaf = set(), True, True, False, False
        self.rtp_base = random.randrange(2**31) if rtp_base is None else rtp_base
        self.number, self.plays, self.serial, self.late, self.withheld = 0, 0, 0, 0, 0
        self.sent, self.requests, self.calls = [], [], []  # calls: when a client connected
        self.heard, self.replies, self.reports = [], [], []  # requests with their connection; statuses; RTCP of clients
        self.waiting = []  # (number or None, act): acts to run before that picture, or before the next one
        self.over, self.lock = threading.Event(), threading.Lock()
        self.port, self.place, self.listener, self.threads, self.peers, self.held = 0, None, None, [], [], []
        self.take_port()
        self.listen()
        if not start:
            self.refuse()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.over.set()
        self.refuse()
        for peer in self.peers + self.held:
            peer.close()
        for thread in self.threads:
            thread.join(5)
        self.place.close()

    def url(self, user=""):
        return f"rtsp{'s' if self.tls else ''}://{user}{self.authority()}/live"

    def authority(self):
        """Returns host and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    # --- up and down

    def listen(self):
        self.refuse()
        listener = socket.socket(family_of(self.host))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, self.port))
        listener.listen()
        self.listener = listener
        self.spawn(self.accept, listener)

    def take_port(self):
        """Takes a port below the kernel's ephemeral ones and keeps it until close(), even while the camera does not listen. SO_REUSEADDR, set late,
        lets the camera's listeners share it; other cameras bind without it first."""
        while not self.port:
            port, self.place = random.randrange(10000, 32768), socket.socket(family_of(self.host))
            try:
                self.place.bind((self.host, port))
                self.port = port
            except OSError:
                self.place.close()
        self.place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def refuse(self):
        if self.listener:
            try:
                self.listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.listener.close()
            self.listener = None

    def spawn(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads = [t for t in self.threads if t.is_alive()] + [thread]
        thread.start()

    def accept(self, listener):
        while not self.over.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.calls.append(time.monotonic())
            if self.slam:
                peer.close()
                continue
            self.serial += 1
            if self.deaf:
                self.held.append(peer)
                continue
            self.peers = [p for p in self.peers if p.fileno() >= 0] + [peer]
            self.spawn(self.connection(self, peer, self.serial).serve)

    # --- called by its connections

    def seen(self, request, serial):
        self.requests.append((request.method, request.moment))
        self.heard.append((serial, request))

    def left(self, connection):
        """Called when the connection has ended."""

    def moment(self, index):
        """Returns the seconds from the first picture of a connection to its picture `index`."""
        return index / self.rate

    def next_keyframe(self):
        return -(-self.number // GOP) * GOP

    def acts(self, number):
        with self.lock:
            due = [act for at, act in self.waiting if at is None or at <= number]
            self.waiting = [(at, act) for at, act in self.waiting if not (at is None or at <= number)]
        return due

    def next(self, act, at=None):
        """Runs act(connection) before the next picture, or before picture `at`."""
        with self.lock:
            self.waiting.append((at, act))

    def call_off(self):
        """Drops all acts that have not run."""
        with self.lock:
            self.waiting = []

    def format_parameters(self):
        """Returns the value of a=fmtp."""
        sets = [base64.b64encode(nal).decode() for nal in self.clip.parameter_sets]
        if not self.parameter_sets:
            return "packetization-mode=1"
        if self.clip.codec == "h264":
            return "packetization-mode=1;sprop-parameter-sets=" + ",".join(sets)
        return "packetization-mode=1" + "".join(
            f";sprop-{name}={text}" for name, text in zip(("vps", "sps", "pps"), sets))

    def description(self, _url):
        name = {"h264": "H264", "h265": "H265"}[self.clip.codec]
        anywhere = "IP6 ::" if ":" in self.host else "IP4 0.0.0.0"
        return LINE.join((
            "v=0", f"o=- 1 1 IN {anywhere}", "s=live", f"c=IN {anywhere}", "t=0 0", "a=control:*",
            "m=video 0 RTP/AVP 96", f"a=rtpmap:96 {name}/90000", f"a=fmtp:96 {self.format_parameters()}",
            "a=control:track0", ""))
