#!/usr/bin/python3
"""The web page in a browser: what it shows of cameras that run, fail and come back, and that it asks nobody else."""
import gzip
import os
import re
import shutil
import subprocess

from browser import PACKAGE, PROGRAM, Browser
from framed_client import ROOT, Checks, Framed, folder, free_port, make_clip
from http_client import Client, port_of

CONFIG = """
http: 0
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/o.sock"}}
  door:
    url: tcp://127.0.0.1:{port}
    outputs:
      o: {{size: 64x64, sink: "tcp:0"}}
"""
PAGE = os.path.join(ROOT, "daemon", "service", "page")
POLICY = "default-src 'none'; script-src 'self'"
TYPES = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2021", "--module", "es2020", "--lib",
         "es2021,dom,dom.iterable"]


def check_types(checks):
    """The types that its comments name fit."""
    if not shutil.which("tsc"):
        return checks.skip("node-typescript is not installed")
    done = subprocess.run(["tsc", *TYPES, f"{PAGE}/app.js"], capture_output=True, text=True)
    checks.check(done.returncode == 0, done.stdout)


def check_files(checks, port):
    """What the binary serves: all files, small, with the headers that keep others' scripts out, and once only."""
    client, sent, plain = Client(port), 0, 0
    for name in ["/", *(f"/page/{name}" for name in os.listdir(PAGE) if name != "index.html")]:
        status, headers, body = client.get_bytes(name)
        told = [headers["Content-Encoding"], headers["Cache-Control"], headers["X-Content-Type-Options"]]
        checks.check((status, told) == (200, ["gzip", "no-cache", "nosniff"]), f"{name}: {status} {headers}")
        checks.check(headers["Content-Security-Policy"].startswith(POLICY), f"{name}: {headers}")
        again, _, _ = client.get_bytes(name, headers={"If-None-Match": headers["ETag"]})
        checks.check(again == 304, f"{name} is sent again: {again}")
        sent, plain = sent + len(body), plain + len(gzip.decompress(body))
    checks.check(sent <= 40000 and plain <= 120000, f"the page is {plain} bytes, {sent} compressed")


def check_quiet(checks, page, port):
    """No error, and no request to anybody else."""
    foreign = [url for url in page.requests if not re.match(rf"http://127\.0\.0\.1:{port}/|blob:|data:", url)]
    checks.check(not page.console and not page.failures and not foreign,
                 f"console {page.console}, failed {page.failures}, foreign {foreign}")


def check_table(checks, browser, port):
    page = browser.page(f"http://127.0.0.1:{port}/", before="localStorage.setItem('framed-look', 'table')")
    rows = "[...document.querySelectorAll('.cameras tbody tr')].map((row) => row.innerText.split('\\t').slice(0, 2).join(' '))"
    told = page.until(f"(({rows})[1] ?? '').endsWith('running') && {rows}", 10)
    checks.check(told and re.match("door (retrying|connecting)", told[0]) and told[1] == "gate running", f"rows: {told}")
    checks.check(page.run("document.querySelector('.sentence').textContent").startswith("1 of 2 show pictures."), "the band")
    check_quiet(checks, page, port)
    page.close()


def main():
    checks = Checks("page")
    check_types(checks)
    with folder() as where:
        clip = make_clip(f"{where}/clip.mp4")
        with Framed(where, CONFIG.format(clip=clip, where=where, port=free_port())) as framed:
            port = port_of(framed)
            check_files(checks, port)
            if not PROGRAM:
                checks.skip(f"the page in a browser: {PACKAGE} is not installed")
                checks.end()
            with Browser() as browser:
                check_table(checks, browser, port)
    checks.end()


main()
