#!/usr/bin/python3
"""The cost for live cameras of analysing every camera and of a page's wall of all cameras: framed-bench's live rows, in
turns. The cameras come over RTSP from framed-bench's server, which also reads their rings, outside the daemon. The ways:
plain; stats: every camera's pictures are analysed (statistics, motion, fingerprint); wall: one client holds views of all
cameras, each with as many as a view allows, and requests the summary and the losses as often as the page. Plain runs first
and last: their difference is the machine's drift.

usage: bench_wall.py CLIP [--build FOLDER] [--cameras 165] [--seconds 25] [--settle 5] [--backend cuda] [--ways plain,stats,wall,plain]
"""
import argparse
import http.client
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from http_client import Client
from view_client import View

PORT = 18642
OF_ONE_VIEW = 64  # daemon/view/view_messages.h
SUMMARY_S, HISTORY_S, HISTORY_SAMPLES = 1, 10, 150  # daemon/service/page/{status,overview}.js
ENDING_S = 3  # the time for framed and its clients' connections to end

WRAPPER = """#!/bin/sh
# The configuration with what framed-bench has no option for.
sed -i -e '1i http: 127.0.0.1:{port}' -e 's/^defaults: {{/defaults: {{{keys}/' "$3"
exec '{framed}' "$@"
"""
WANTED = {"CPU": "cores", "sent to finished p50": "p50", "sent to finished p99": "p99", "sent to finished max": "max",
          "lost": "lost", "sent, and no frame": "unseen", "slots taken back while read": "torn",
          "first frames as the reference": "first", "the server was behind by": "behind", "rate": "rate",
          "received to finished p99": "received p99", "packets that framed missed": "missed"}


class Page(threading.Thread):
    """The page's requests while it shows the wall; `pictures` and `polls` count them."""

    def __init__(self, cameras):
        super().__init__(daemon=True)
        self.client = Client(PORT)
        self.cameras, self.pictures, self.polls, self.slowest, self.ends, self.trouble = cameras, 0, 0, 0, False, []

    def watch(self, cameras):
        try:
            with View(PORT, ",".join(f"camera{i}:320" for i in cameras), 5) as view:
                if view.error:
                    raise RuntimeError(view.error)
                while not self.ends:
                    view.pictures(1)
                    self.pictures += 1
        except (OSError, EOFError, RuntimeError, http.client.HTTPException) as error:
            self.trouble.append((time.monotonic(), f"view: {error!r}"))

    def poll(self, page):
        asked = time.monotonic()
        status, _, body = self.client.get(page)
        self.slowest = max(self.slowest, time.monotonic() - asked)
        self.polls += 1
        if status != 200:
            self.trouble.append((asked, f"{page}: {status}"))
        return body

    def wait_for_daemon(self):
        while not self.ends:
            try:
                return self.client.get("/healthz")
            except OSError:
                time.sleep(0.1)

    def run(self):
        self.wait_for_daemon()
        self.began = time.monotonic()
        for first in range(0, self.cameras, OF_ONE_VIEW):
            some = range(first, min(first + OF_ONE_VIEW, self.cameras))
            threading.Thread(target=self.watch, args=(some,), daemon=True).start()
        history_at, newest = self.began, 0
        while not self.ends:
            asked = time.monotonic()
            try:
                self.poll("/api/v1/summary")
                if asked >= history_at:
                    history_at = asked + HISTORY_S
                    newest = json.loads(self.poll(f"/api/v1/history?only=lost&samples={HISTORY_SAMPLES}&since={newest}"))["newest"]
            except (OSError, ValueError, http.client.HTTPException) as error:
                self.trouble.append((asked, f"a poll: {error!r}"))
            time.sleep(max(0, asked + SUMMARY_S - time.monotonic()))

    def end(self):
        """Returns the errors from before framed's end."""
        ended = time.monotonic()
        self.ends = True
        self.join(10)
        return [what for at, what in self.trouble if at < ended - ENDING_S]


def run_way(options, way, where):
    wrapper = f"{where}/framed"
    with open(wrapper, "w") as file:
        file.write(WRAPPER.format(port=PORT, keys="stats: true, " if way == "stats" else "",
                                  framed=os.path.join(options.build, "framed")))
    os.chmod(wrapper, stat.S_IRWXU)
    page = Page(options.cameras) if way == "wall" else None
    if page:
        page.start()
    bench = subprocess.run([os.path.join(options.build, "framed-bench"), "--json", "--clip", options.clip, "--cameras", str(options.cameras),
                            "--live", "--rtsp", "tcp", "--rows", "live", "--backend", options.backend, "--seconds", str(options.seconds),
                            "--settle", str(options.settle), "--framed", wrapper], capture_output=True, text=True)
    trouble = page.end() if page else []
    if not bench.stdout.startswith("{"):
        raise SystemExit(f"bench_wall: framed-bench: exit {bench.returncode}: {bench.stderr[-2000:]}")
    report = json.loads(bench.stdout)
    figures = {short: row["value"] for row in report["rows"] for name, short in WANTED.items() if row["name"].endswith(f": {name}")}
    print(f"{way:6}", "  ".join(f"{short} {figures[short]:.2f}" for short in WANTED.values() if short in figures), *report["notes"], flush=True)
    if page:
        print(f"       {page.pictures} previews, {page.polls} polls, the slowest {page.slowest * 1e3:.0f} ms", *trouble, flush=True)
        figures["unwatched"] = len(trouble) + (page.pictures == 0)
    return figures


def judge(runs):
    """Compares the ways with the worse of the plain runs, whose difference is the machine's drift."""
    plain = [figures for way, figures in runs if way == "plain"]
    p99, cores = max(f["p99"] for f in plain), max(f["cores"] for f in plain)
    good = True
    print("plain: p99 " + " and ".join(f"{figures['p99']:.2f}" for figures in plain) + " ms")
    for way, figures in runs:
        if way == "plain":
            continue
        lost = sum(figures[name] for name in ("lost", "unseen", "torn", "missed"))
        more_ms, more_cores = figures["p99"] - p99, figures["cores"] - cores
        met = lost == 0 and not figures.get("unwatched") and more_ms <= 1 and (way != "stats" or more_cores <= 0.3)
        good = good and met
        print(f"{way}: lost {lost:.0f} (limit 0), p99 {more_ms:+.2f} ms (limit 1), {more_cores:+.2f} cores"
              f"{' (limit 0.3)' if way == 'stats' else ''}{'' if met else '   MISSED'}")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clip")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--cameras", type=int, default=165)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--settle", type=float, default=5)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--ways", default="plain,stats,wall,plain")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    runs = []
    with tempfile.TemporaryDirectory() as where:
        for way in options.ways.split(","):
            runs.append((way, run_way(options, way, where)))
    sys.exit(0 if judge(runs) else 1)


main()
