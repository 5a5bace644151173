"""An RTSP camera on loopback that shows a numbered clip as a live camera does (TCP interleaved, H.264 by RFC 6184,
H.265 by RFC 7798), and misbehaves when it is told to. It runs on threads of the process that makes it and is gone when
its with-block ends."""
import base64
import collections
import hashlib
import random
import re
import socket
import struct
import threading
import time

from numbered_clip import GOP, RATE

PAYLOAD_MAX = 400  # bytes: small, so that a picture is several packets
REPORT_SECONDS = 1.0
NTP_EPOCH = 2208988800  # 1970 in seconds since 1900
CLOCK = 90000
REALM, NONCE = "camera", "5ca1ab1e"

Sent = collections.namedtuple("Sent", "number connection due at whole wall")  # due and at: CLOCK_MONOTONIC


class Hangup(Exception):
    """Ends a connection."""


class Connection:
    """One client, from its first request to the end. Faults of a picture are functions of it, called by its own
    thread ahead of that picture."""

    def __init__(self, camera, peer, serial):
        self.camera, self.peer, self.serial = camera, peer, serial
        self.buffer, self.playing = b"", False
        self.sequence, self.rtp_base = random.randrange(65536), camera.rtp_base
        self.wall_offset = 0.0
        self.mangle = None  # changes the next picture's packets: a list of payloads in, one out
        self.spoil = list  # the same, of every picture
        self.clip = camera.clip

    # --- requests

    def receive(self, timeout):
        """The next request, or None when none came in time; skips what comes on the interleaved channels."""
        self.peer.settimeout(timeout)
        while True:
            if self.buffer[:1] == b"$" and len(self.buffer) >= 4:
                size = 4 + struct.unpack(">H", self.buffer[2:4])[0]
                if len(self.buffer) >= size:
                    self.buffer = self.buffer[size:]
                    continue
            elif (end := self.buffer.find(b"\r\n\r\n")) >= 0:
                text, self.buffer = self.buffer[:end].decode(errors="replace"), self.buffer[end + 4 :]
                return text
            try:
                data = self.peer.recv(4096)
            except (TimeoutError, BlockingIOError):
                return None
            if not data:
                raise Hangup
            self.buffer += data

    def answer(self, request):
        method, url = request.split()[:2]
        sequence = re.search(r"^CSeq: *(\d+)", request, re.M | re.I)
        head = f"CSeq: {sequence[1] if sequence else 0}\r\n"
        self.camera.seen(method)
        if method in self.camera.mute:
            self.camera.over.wait()
            raise Hangup
        if not self.camera.admits(request):
            self.say("401 Unauthorized", head + self.camera.challenge)
        elif method == "DESCRIBE":
            body = self.camera.description(url)
            self.say("200 OK", f"{head}Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n", body)
        elif method == "SETUP":
            self.say("200 OK", f"{head}Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1;timeout=60\r\n")
        else:
            self.say("200 OK", f"{head}Session: 1\r\nPublic: DESCRIBE, SETUP, PLAY, TEARDOWN\r\n")
        self.playing |= method == "PLAY"
        if method == "TEARDOWN":
            raise Hangup

    def say(self, status, head, body=""):
        self.peer.settimeout(10)
        self.peer.sendall(f"RTSP/1.0 {status}\r\n{head}\r\n{body}".encode())

    # --- media

    def send(self, channel, data):
        self.peer.settimeout(10)
        self.peer.sendall(struct.pack(">cBH", b"$", channel, len(data)) + data)

    def rtp_time(self, seconds):
        return (self.rtp_base + int(seconds * CLOCK)) & 0xFFFFFFFF

    def sender_report(self, seconds):
        wall = time.time() + self.wall_offset + NTP_EPOCH
        return struct.pack(">BBHIIIIII", 0x80, 200, 6, 1, int(wall), int(wall % 1 * 2**32), self.rtp_time(seconds),
                           0, 0)

    def packets(self, unit):
        """RTP payloads of an access unit."""
        for nal in unit:
            if len(nal) <= PAYLOAD_MAX:
                yield nal
                continue
            h264 = self.clip.codec == "h264"
            head = 1 if h264 else 2
            kind = self.clip.type_of(nal)
            indicator = bytes([nal[0] & 0xE0 | 28]) if h264 else bytes([nal[0] & 0x81 | 49 << 1, nal[1]])
            pieces = [nal[i : i + PAYLOAD_MAX] for i in range(head, len(nal), PAYLOAD_MAX)]
            for i, piece in enumerate(pieces):
                mark = (128 if i == 0 else 0) | (64 if i == len(pieces) - 1 else 0)
                yield indicator + bytes([mark | kind]) + piece

    def send_picture(self, number, seconds):
        """As many packets as `mangle` leaves of it."""
        payloads = list(self.packets(self.clip.units[number % len(self.clip.units)]))
        wanted, self.mangle = (self.mangle or self.spoil)(payloads), None
        last, data = len(payloads) - 1, b""
        for i, payload in enumerate(wanted):
            if payload is not None:  # else it is lost on the way: its sequence number is missed
                head = struct.pack(">BBHII", 0x80, 96 | (128 if i == last else 0), self.sequence & 0xFFFF,
                                   self.rtp_time(seconds), 1)
                data += struct.pack(">cBH", b"$", 0, len(head + payload)) + head + payload
            self.sequence += 1
        self.peer.settimeout(10)
        self.peer.sendall(data)
        return wanted == payloads

    def stream(self):
        """Pictures at their times, from a first one that can be decoded alone or `late` ones behind it, with whatever is
        asked of it ahead of each."""
        start, reported = time.monotonic(), -REPORT_SECONDS
        first = self.camera.next_keyframe() + self.camera.late
        index = 0
        while not self.camera.over.is_set():
            due = start + index / RATE
            while (left := due - time.monotonic()) > 0:
                if request := self.receive(left):
                    self.answer(request)
            number = first + index
            for act in self.camera.acts(number):
                act(self)
            seconds = index / RATE
            if self.camera.reports and seconds - reported >= REPORT_SECONDS:
                self.send(1, self.sender_report(seconds))
                reported = seconds
            self.camera.number = number + 1
            whole = self.send_picture(number, seconds)
            self.camera.sent.append(Sent(number, self.serial, due, time.monotonic(), whole, time.time()))
            index += 1

    def serve(self):
        try:
            while not self.playing:
                if request := self.receive(0.2):
                    self.answer(request)
                if self.camera.over.is_set():
                    return
            self.camera.plays += 1
            self.stream()
        except (OSError, Hangup):
            pass
        finally:
            self.peer.close()

    # --- faults, called ahead of a picture

    def half(self):
        """Of the next picture comes a half, and then the end."""
        self.mangle = lambda payloads: payloads[: len(payloads) // 2]
        self.camera.next(Connection.fin)

    def fin(self):
        self.peer.shutdown(socket.SHUT_RDWR)
        raise Hangup

    def reset(self):
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Hangup

    def bye(self):
        self.send(1, self.sender_report(0) + struct.pack(">BBHI", 0x81, 203, 1, 1))
        self.go_mute()

    def lone_bye(self):
        """Without the report that is to come before it, and shorter than what libavformat looks at."""
        self.send(1, struct.pack(">BBHI", 0x81, 203, 1, 1))
        self.go_mute()

    def go_mute(self):
        """The connection stays, and nothing comes any more."""
        while not self.camera.over.wait(0.1):
            self.receive(0.01)  # sees the client leave
        raise Hangup

    def freeze(self, seconds):
        """What is due meanwhile comes all at once."""
        self.camera.over.wait(seconds)

    def jump(self, seconds):
        """The RTP clock is set, the camera goes on."""
        self.rtp_base += int(seconds * CLOCK)

    def wall_step(self, seconds):
        self.wall_offset += seconds

    def restart(self, packets=20000):
        """The camera's encoder begins anew, without a word: by its numbers so many packets further on."""
        self.sequence, self.rtp_base = self.sequence + packets, self.rtp_base + 123456789

    def garble(self):
        """From now on every packet is noise behind the head of its NAL unit."""
        chance = random.Random(1)
        self.spoil = lambda payloads: [p[:2] + chance.randbytes(len(p) - 2) for p in payloads]

    def babble(self, size):
        """Noise that ends like an answer, and packets of channels and types that nobody set up."""
        self.noise(size)
        self.peer.sendall(b"\r\n\r\n")
        for channel, length in ((7, 100), (0, 8), (1, 9), (255, 1000)):
            self.send(channel, bytes(length))

    def noise(self, size):
        """Where a `$` is expected."""
        self.peer.sendall(bytes(random.randrange(256) for _ in range(size)).replace(b"$", b"%"))


class Camera:
    """Listens while it is up. `user`: "NAME:PASSWORD" that is asked for; `mute`: RTSP methods that are never answered;
    `slam`: hangs up on every client at once; `deaf`: takes clients and reads nothing."""

    def __init__(self, clip, user=None, basic=False, start=True, rtp_base=None):
        self.clip, self.user, self.basic = clip, user, basic
        self.mute, self.reports, self.parameter_sets, self.slam, self.deaf = set(), True, True, False, False
        self.rtp_base = random.randrange(2**31) if rtp_base is None else rtp_base
        self.number, self.plays, self.serial, self.late = 0, 0, 0, 0
        self.sent, self.requests, self.calls = [], [], []  # calls: when a client connected
        self.waiting = []  # (number or None, act): what to do ahead of that picture, or of the next
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
        return f"rtsp://{user}127.0.0.1:{self.port}/live"

    # --- up and down

    def listen(self):
        self.refuse()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen()
        self.listener = listener
        self.spawn(self.accept, listener)

    def take_port(self):
        """One below those that the kernel deals, which nobody else gets until close(), also while nobody listens there. The
        option, set late, lets the camera's listeners share the port; other cameras first bind without it."""
        while not self.port:
            port, self.place = random.randrange(10000, 32768), socket.socket()
            try:
                self.place.bind(("127.0.0.1", port))
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
            self.spawn(Connection(self, peer, self.serial).serve)

    # --- what its connections ask

    def seen(self, method):
        self.requests.append((method, time.monotonic()))

    def next_keyframe(self):
        return -(-self.number // GOP) * GOP

    def acts(self, number):
        with self.lock:
            due = [act for at, act in self.waiting if at is None or at <= number]
            self.waiting = [(at, act) for at, act in self.waiting if not (at is None or at <= number)]
        return due

    def next(self, act, at=None):
        """act(connection) ahead of the next picture, or of picture `at`."""
        with self.lock:
            self.waiting.append((at, act))

    def call_off(self):
        """What was asked for and has not been done."""
        with self.lock:
            self.waiting = []

    def description(self, url):
        name, sprop = {"h264": "H264", "h265": "H265"}[self.clip.codec], ""
        sets = [base64.b64encode(nal).decode() for nal in self.clip.parameter_sets]
        if self.clip.codec == "h264":
            sprop = ";sprop-parameter-sets=" + ",".join(sets)
        else:
            sprop = "".join(f";sprop-{name}={text}" for name, text in zip(("vps", "sps", "pps"), sets))
        return (f"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=live\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\n"
                f"m=video 0 RTP/AVP 96\r\na=rtpmap:96 {name}/90000\r\n"
                f"a=fmtp:96 packetization-mode=1{sprop if self.parameter_sets else ''}\r\na=control:track0\r\n")

    @property
    def challenge(self):
        how = f'Basic realm="{REALM}"' if self.basic else f'Digest realm="{REALM}", nonce="{NONCE}"'
        return f"WWW-Authenticate: {how}\r\n"

    def admits(self, request):
        if not self.user or request.startswith("OPTIONS"):
            return True
        line = re.search(r"^Authorization: *(Basic|Digest) +(.*)", request, re.M | re.I)
        if not line:
            return False
        if self.basic:
            return line[2].strip() == base64.b64encode(self.user.encode()).decode()
        fields = dict(re.findall(r'(\w+)="([^"]*)"', line[2]))
        name, password = self.user.split(":", 1)
        secret = digest(f"{name}:{REALM}:{password}")
        wanted = digest(f"{secret}:{NONCE}:" + digest(f"{request.split()[0]}:{fields.get('uri', '')}"))
        return fields.get("response") == wanted


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()
