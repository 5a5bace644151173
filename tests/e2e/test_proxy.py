#!/usr/bin/python3
"""The examples of framed-proxy(7), unchanged except for ports, names and files, run by this machine's nginx and Caddy:
page and API below the path, the token, writes from the own origin only, and streams without buffering."""
import gzip
import http.client
import json
import os
import re
import shutil
import ssl
import time

from certificate import make_certificate
from framed_client import PATIENCE, ROOT, Checks, Framed, Process, folder, free_port, make_clip, run, until
from http_client import port_of

TOKEN = "Tok3n-of-the-page"


def blocks(language):
    with open(f"{ROOT}/scripts/man/framed-proxy.7.md") as file:
        return re.findall(rf"```{language}\n(.*?)```", file.read(), re.S)


def nginx(where, port, backend, certificate, extra=""):
    """Writes a configuration around the example's server and returns the command."""
    server = blocks("nginx")[0].replace("listen 443", f"listen 127.0.0.1:{port}").replace("8780/", f"{backend}/")
    server = server.replace("/etc/ssl/certs/box.pem", certificate).replace("/etc/ssl/private/box.key", certificate + ".key")
    server = server.replace("        proxy_buffering off;\n", f"        proxy_buffering off;\n{extra}")
    temporary = "".join(f"{kind}_temp_path {where}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    with open(f"{where}/nginx.conf", "w") as file:
        file.write(f"{user}pid {where}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{server}}}\n")
    return ["nginx", "-p", where, "-c", f"{where}/nginx.conf", "-e", "stderr", "-g", "daemon off;"]


def caddy(where, port, backend, certificate):
    site = blocks("caddy")[0].replace("box.example.org", f"https://127.0.0.1:{port}").replace("8780", str(backend))
    site = site.replace("/etc/ssl/certs/box.pem", certificate).replace("/etc/ssl/private/box.key", certificate + ".key")
    with open(f"{where}/Caddyfile", "w") as file:
        file.write("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", f"{where}/Caddyfile"]


class Proxied:
    """A browser's requests through the proxy."""

    def __init__(self, port):
        self.port, self.context = port, ssl._create_unverified_context()

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10 * PATIENCE, context=self.context)

    def ask(self, path, method="GET", body=None, token=TOKEN, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection = self.connection()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read()
            if response.headers.get("Content-Encoding") == "gzip":
                text = gzip.decompress(text)
            return response.status, response.headers, text.decode()
        finally:
            connection.close()

    def answers(self):
        try:
            return self.ask("/cameras/healthz")[0] == 200
        except OSError:
            return False


def check_pages(checks, what, proxied):
    status, headers, _ = proxied.ask("/cameras")
    checks.check(status == 308 and headers["Location"].endswith("/cameras/"), f"{what}: {status} {headers['Location']}")
    status, headers, page = proxied.ask("/cameras/", token=None)
    checks.check(status == 200 and "default-src 'none'" in headers.get("Content-Security-Policy", ""), f"{what}: {status} {headers}")
    listed = re.findall(r"""(?:src|href)="([^"#]+)""", page)
    checks.check(listed and not any(url.startswith(("/", "http")) for url in listed), f"{what}: {listed}")
    for url in listed:
        status, _, _ = proxied.ask(f"/cameras/{url}", token=None)
        checks.check(status == 200, f"{what}: {url}: {status}")
    for token, wanted in ((None, 401), ("wrong", 401), (TOKEN, 200)):
        status, _, text = proxied.ask("/cameras/api/v1/cameras", token=token)
        checks.check(status == wanted, f"{what}: token {token}: {status} {text[:200]}")
    checks.check(json.loads(text)["cameras"][0]["name"] == "gate" if status == 200 else False, f"{what}: {text[:200]}")


def check_writes(checks, what, proxied):
    own = f"https://127.0.0.1:{proxied.port}"
    for origin, wanted in ((own, 200), ("https://evil.example", 403), (None, 200)):
        headers = {"Content_Type": "application/json", **({"Origin": origin} if origin else {})}
        status, _, text = proxied.ask("/cameras/api/v1/probe", "POST", '{"url": "rtsp://127.0.0.1:1/x"}', **headers)
        checks.check(status == wanted, f"{what}: Origin {origin}: {status} {text}")


def check_streams(checks, what, proxied):
    """Streams arrive without delay: events from the start, and pictures."""
    for path, least in (("api/v1/events", 20), ("api/v1/view?c=gate:160&fps=5", 10000)):
        connection = proxied.connection()
        began = time.monotonic()
        connection.request("GET", f"/cameras/{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        response = connection.getresponse()
        got, pieces = b"", 0
        while response.status == 200 and len(got) < least and (piece := response.read1(65536)):
            got, pieces = got + piece, pieces + 1
        took = time.monotonic() - began
        checks.check(response.status == 200 and len(got) >= least and took < 5 * PATIENCE, f"{what}: {path}: {response.status}, {len(got)} bytes in {pieces} pieces, {took:.2f} s")
        connection.close()


def check_proxy(checks, where, what, command, port):
    with Process(command, f"{where}/{what}.log", env={"HOME": where, "XDG_DATA_HOME": where, "XDG_CONFIG_HOME": where}) as process:
        proxied = Proxied(port)
        if not until(proxied.answers, 10):
            checks.check(False, f"{what} does not answer: {process.errors()[-1000:]}")
            return
        if what == "nginx with a token":
            checks.check(proxied.ask("/cameras/api/v1/cameras", token=None)[0] == 200, f"{what}: it brings no token")
            return
        check_pages(checks, what, proxied)
        check_writes(checks, what, proxied)
        check_streams(checks, what, proxied)


def check_nginx(checks, where, backend, certificate):
    if not shutil.which("nginx"):
        checks.skip("nginx is not installed")
        return
    port = free_port()
    check_proxy(checks, where, "nginx", nginx(where, port, backend, certificate), port)
    brings = blocks("nginx")[1].splitlines(keepends=True)[-1].replace("TOKEN", TOKEN)
    port = free_port()
    check_proxy(checks, where, "nginx with a token", nginx(where, port, backend, certificate, extra=brings), port)


def check_caddy(checks, where, backend, certificate):
    if not shutil.which("caddy"):
        checks.skip("caddy is not installed")
        return
    port = free_port()
    check_proxy(checks, where, "caddy", caddy(where, port, backend, certificate), port)


def main():
    checks = Checks("proxy")
    with folder() as where:
        example = blocks("yaml")[0]
        checks.check("8780" in example, example)
        code, _, errors = run("check", "-c", "-", stdin=example.replace("/run/framed", where), env={"PAGE_TOKEN": TOKEN})
        checks.check(code == 0, f"the example's configuration: {errors}")
        clip, (certificate, _) = make_clip(f"{where}/clip.mkv", frames=100), make_certificate(where, "box.pem")
        config = example.replace("8780", "0").replace("rtsp://10.0.0.5/stream1", f"'{clip}', loop: true, pace: realtime")
        config = config.replace("/run/framed", where) + "http_write: true\n"
        with Framed(where, config, env={"PAGE_TOKEN": TOKEN}) as framed:
            backend = port_of(framed)
            check_nginx(checks, where, backend, certificate)
            check_caddy(checks, where, backend, certificate)
    checks.end()


main()
