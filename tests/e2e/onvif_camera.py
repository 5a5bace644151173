"""ONVIF cameras on an address of this box, without pictures: each answers WS-Discovery and SOAP, with a user or without. They run on threads of the
process that makes them and end with their with-block.

`python3 onvif_camera.py ADDRESS URL` runs one with that RTSP URL until it is killed."""
import base64
import datetime
import hashlib
import html
import http.server
import re
import socket
import struct
import sys
import threading
import time
import uuid
import xml.etree.ElementTree

GROUP, PORT = "239.255.255.250", 3702
ENVELOPE = ('<?xml version="1.0" encoding="UTF-8"?><env:Envelope xmlns:env="http://www.w3.org/2003/05/soap-envelope"'
            ' xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing"'
            ' xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"'
            ' xmlns:dn="http://www.onvif.org/ver10/network/wsdl" xmlns:tds="http://www.onvif.org/ver10/device/wsdl"'
            ' xmlns:trt="http://www.onvif.org/ver10/media/wsdl" xmlns:tt="http://www.onvif.org/ver10/schema"'
            ' xmlns:ter="http://www.onvif.org/ver10/error"><env:Header>%s</env:Header><env:Body>%s</env:Body></env:Envelope>')
REFUSAL = ENVELOPE % ("", '<env:Fault><env:Code><env:Value>env:Sender</env:Value><env:Subcode>'
                      "<env:Value>ter:NotAuthorized</env:Value></env:Subcode></env:Code><env:Reason>"
                      '<env:Text xml:lang="en">Sender not authorized</env:Text></env:Reason></env:Fault>')


def multicast_receiver(address):
    """Returns a socket that receives the group's probes on the interface with that address."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    receiver.bind((GROUP, PORT))
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton(address)))
    receiver.settimeout(0.1)
    return receiver


def text_of(pattern, request):
    match = re.search(rf"<[^>]*\b{pattern}\b[^>]*>([^<]*)<", request)
    return html.unescape(match[1]) if match else ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        camera = self.server.camera
        request = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if request:  # libcurl sends an empty body until it has the challenge
            xml.etree.ElementTree.fromstring(request)  # raises if it is not XML
        status, body, headers = camera.answer(self, request)
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/soap+xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignored: the test itself handles clients that went away."""


class OnvifCamera:
    """`urls`: of its profiles. `user`, `password`: required for all but its clock, by WS-Security or, with `http_digest`, by HTTP. `ahead`: s by
    which its clock is wrong. `attempts` counts requests with a user, `refusals` the refused ones among them."""

    def __init__(self, urls, address="127.0.0.1", name="gate", model="Simulated 1", user=None, password=None,
                 http_digest=False, ahead=0, size=(1280, 720), token="profile&"):
        self.urls, self.address, self.name, self.model = urls, address, name, model
        self.user, self.password, self.http_digest, self.ahead, self.size = user, password, http_digest, ahead, size
        self.token = token  # of the profiles, before their numbers
        self.endpoint, self.nonces = f"urn:uuid:{uuid.uuid4()}", set()
        self.attempts = self.refusals = self.requests = 0
        self.http = Server((address, 0), Handler)
        self.http.camera = self
        self.port, self.ends = self.http.server_address[1], False
        self.receiver = multicast_receiver(address)

    def __enter__(self):
        self.threads = [threading.Thread(target=run) for run in (lambda: self.http.serve_forever(0.02), self.hear)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.http.shutdown()
        self.http.server_close()
        for thread in self.threads:
            thread.join()
        self.receiver.close()

    # --- discovery

    def hear(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind((self.address, 0))
            while not self.ends:
                try:
                    question, peer = self.receiver.recvfrom(65536)
                except TimeoutError:
                    continue
                for datagram in self.matches(question.decode()):
                    sender.sendto(datagram, peer)

    def matches(self, question):
        """Returns the datagrams that answer a probe."""
        if "discovery/Probe<" not in question:
            return []
        header = f"<wsa:RelatesTo>{text_of('MessageID', question)}</wsa:RelatesTo>"
        name, model = (text.replace(" ", "%20") for text in (self.name, self.model))
        return [(ENVELOPE % (header, "<d:ProbeMatches><d:ProbeMatch><wsa:EndpointReference><wsa:Address>"
                             f"{self.endpoint}</wsa:Address></wsa:EndpointReference>"
                             "<d:Types>dn:NetworkVideoTransmitter tds:Device</d:Types><d:Scopes>"
                             f"onvif://www.onvif.org/type/video_encoder onvif://www.onvif.org/name/{name}"
                             f" onvif://www.onvif.org/hardware/{model}</d:Scopes>"
                             f"<d:XAddrs>http://{self.address}:{self.port}/onvif/device_service</d:XAddrs>"
                             "<d:MetadataVersion>1</d:MetadataVersion></d:ProbeMatch></d:ProbeMatches>")).encode()]

    # --- who asks

    def token_is_good(self, request):
        nonce, created = text_of("Nonce", request), text_of("Created", request)
        own = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead)
        said = datetime.datetime.strptime(created, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
        digest = hashlib.sha1(base64.b64decode(nonce) + created.encode() + self.password.encode()).digest()
        fresh = nonce not in self.nonces and abs((said - own).total_seconds()) < 10
        self.nonces.add(nonce)
        return fresh and text_of("Username", request) == self.user and base64.b64decode(text_of("Password", request)) == digest

    def digest_is_good(self, header):
        said = dict(re.findall(r'(\w+)="?([^",]*)"?', header.partition(" ")[2]))
        md5 = lambda text: hashlib.md5(text.encode()).hexdigest()
        first, second = md5(f"{self.user}:camera:{self.password}"), md5(f"POST:{said['uri']}")
        wanted = md5(f"{first}:{said['nonce']}:{said['nc']}:{said['cnonce']}:auth:{second}")
        return said["username"] == self.user and said["response"] == wanted

    def may(self, handler, request):
        has = handler.headers.get("Authorization") if self.http_digest else "UsernameToken" in request
        if self.user is None:
            return True
        if not has:
            return False
        self.attempts += 1
        good = self.digest_is_good(has) if self.http_digest else self.token_is_good(request)
        self.refusals += not good
        return good

    # --- answers

    def answer(self, handler, request):
        """Returns (status, body, headers)."""
        self.requests += 1
        body = (re.findall(r"<\w+:Body[^>]*><(\w+)", request) or [""])[0]
        if body != "GetSystemDateAndTime" and not self.may(handler, request):
            challenge = {"WWW-Authenticate": 'Digest realm="camera", qop="auth", nonce="5f3a"'} if self.http_digest else {}
            return 401 if self.http_digest else 400, REFUSAL, challenge
        return 200, ENVELOPE % ("", getattr(self, f"say_{body}")(request)), {}

    def say_GetSystemDateAndTime(self, _):
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead)
        return ("<tds:GetSystemDateAndTimeResponse><tds:SystemDateAndTime><tt:UTCDateTime>"
                f"<tt:Time><tt:Hour>{now.hour}</tt:Hour><tt:Minute>{now.minute}</tt:Minute><tt:Second>{now.second}</tt:Second></tt:Time>"
                f"<tt:Date><tt:Year>{now.year}</tt:Year><tt:Month>{now.month}</tt:Month><tt:Day>{now.day}</tt:Day></tt:Date>"
                "</tt:UTCDateTime></tds:SystemDateAndTime></tds:GetSystemDateAndTimeResponse>")

    def say_GetDeviceInformation(self, _):
        return ("<tds:GetDeviceInformationResponse><tds:Manufacturer>Tests</tds:Manufacturer>"
                f"<tds:Model>{self.model}</tds:Model><tds:FirmwareVersion>1.2</tds:FirmwareVersion>"
                "<tds:SerialNumber>7</tds:SerialNumber><tds:HardwareId>1</tds:HardwareId></tds:GetDeviceInformationResponse>")

    def say_GetCapabilities(self, _):
        return ("<tds:GetCapabilitiesResponse><tds:Capabilities><tt:Media><tt:XAddr>"
                f"http://192.0.2.77/onvif/media_service</tt:XAddr></tt:Media></tds:Capabilities></tds:GetCapabilitiesResponse>")

    def say_GetProfiles(self, _):
        profiles = "".join(
            f'<trt:Profiles token="{html.escape(self.token)}{i}" fixed="true"><tt:Name>stream {i}</tt:Name><tt:VideoEncoderConfiguration token="e{i}">'
            f"<tt:Encoding>H264</tt:Encoding><tt:Resolution><tt:Width>{self.size[0] >> i}</tt:Width><tt:Height>{self.size[1] >> i}</tt:Height>"
            "</tt:Resolution><tt:RateControl><tt:FrameRateLimit>25</tt:FrameRateLimit></tt:RateControl>"
            "</tt:VideoEncoderConfiguration></trt:Profiles>" for i in range(len(self.urls)))
        return f"<trt:GetProfilesResponse>{profiles}</trt:GetProfilesResponse>"

    def say_GetStreamUri(self, request):
        url = self.urls[int(text_of("ProfileToken", request).removeprefix(self.token))]
        return f"<trt:GetStreamUriResponse><trt:MediaUri><tt:Uri>{url}</tt:Uri></trt:MediaUri></trt:GetStreamUriResponse>"


def main():
    with OnvifCamera([sys.argv[2]], sys.argv[1]) as camera:
        print("READY", camera.port, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
