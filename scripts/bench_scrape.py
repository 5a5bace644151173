#!/usr/bin/python3
"""The cost of scraping /metrics under full load: CAMERAS of CLIP at their own pace, each with a reader.

usage: bench_scrape.py CLIP [--framed BINARY] [--cameras 50] [--scrapes 500] [--seconds 25] [--half-open 500]

Prints the least, the median and the 99th percentile of a scrape, from connecting to the last byte, and the effect on
pictures without and with scraping: frames lost and the cameras' worst p99 from received to finished. Then the same for
/healthz while clients hold half-open requests and reconnect when they are dropped.
"""
import argparse
import json
import multiprocessing
import os
import selectors
import signal
import socket
import statistics
import subprocess
import tempfile
import time

TOP = "log: {{level: warning}}\nhttp: unix:{where}/http.sock\ncontrol: {where}/control.sock\n"
CAMERA = """
  camera{i}:
    url: {clip!r}
    loop: true
    pace: realtime
    outputs: {{t: {{size: 320x320, sink: 'unix:{where}/{i}.sock'}}}}
"""


def read(where, cameras):
    """Reads and discards the frames of every output."""
    peers, scratch = selectors.DefaultSelector(), bytearray(4 << 20)
    for i in range(cameras):
        path = f"{where}/{i}.sock"
        while not os.path.exists(path):
            time.sleep(0.01)
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(path)
        peers.register(peer, selectors.EVENT_READ)
    while True:
        for key, _ in peers.select():
            if not key.fileobj.recv_into(scratch):
                peers.unregister(key.fileobj)


def hold(where, count, ready):
    """Keeps `count` requests half-open; restarts each as soon as it is dropped."""
    def connect():
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(f"{where}/http.sock")
        peers.register(peer, selectors.EVENT_READ)
        try:
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: fra")
        except OSError:
            pass  # dropped already, and therefore readable

    peers = selectors.DefaultSelector()
    for _ in range(count):
        connect()
    ready.set()
    while True:
        for key, _ in peers.select():
            peers.unregister(key.fileobj)
            key.fileobj.close()
            connect()
        time.sleep(0.01)


class Daemon:
    """framed with its cameras, HTTP on a unix socket, and a reader of every output."""

    def __init__(self, options, where):
        self.where = where
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(TOP.format(where=where) + "cameras:\n")
            file.writelines(CAMERA.format(i=i, clip=os.path.abspath(options.clip), where=where)
                            for i in range(options.cameras))
        self.framed = options.framed
        self.child = subprocess.Popen([options.framed, "run", "-c", f"{where}/framed.yaml"])
        self.reader = multiprocessing.Process(target=read, args=(where, options.cameras), daemon=True)
        self.reader.start()

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(10)
        self.reader.kill()
        self.reader.join()

    def state(self):
        """Returns (frames lost so far, worst p99 of latency in ms, cores used)."""
        told = json.loads(subprocess.run([self.framed, "status", "--json", "--socket", f"{self.where}/control.sock"],
                                         capture_output=True, check=True).stdout)
        outputs = [output for camera in told["cameras"] for output in camera["outputs"]]
        p99 = max((output["latency"]["p99_s"] or 0 for output in outputs), default=0)
        return sum(sum(output["lost"].values()) for output in outputs), 1e3 * p99, told["process"]["cpu_cores"]

    def scrape(self, page="/metrics"):
        """Returns (seconds, bytes)."""
        start, size = time.perf_counter(), 0
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(f"{self.where}/http.sock")
            peer.sendall(f"GET {page} HTTP/1.1\r\nHost: framed\r\n\r\n".encode())
            while got := peer.recv(1 << 20):
                size += len(got)
        return time.perf_counter() - start, size


def scrape_beside(daemon, options):
    """Returns sorted times of /healthz in ms while clients hold half-open requests."""
    ready = multiprocessing.Event()
    holder = multiprocessing.Process(target=hold, args=(daemon.where, options.half_open, ready), daemon=True)
    holder.start()
    ready.wait()
    times = []
    for _ in range(options.scrapes):
        times.append(1e3 * daemon.scrape("/healthz")[0])
        time.sleep(0.01)
    holder.kill()
    holder.join()
    return sorted(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clip")
    parser.add_argument("--framed", default="build/framed")
    parser.add_argument("--cameras", type=int, default=50)
    parser.add_argument("--scrapes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--half-open", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="framed-scrape-") as where:
        daemon = Daemon(options, where)
        try:
            time.sleep(3 + options.cameras * 0.05)
            before = daemon.state()[0]
            time.sleep(options.seconds)
            quiet = daemon.state()
            times, size = [], 0
            for _ in range(options.scrapes):
                took, size = daemon.scrape()
                times.append(1e3 * took)
                time.sleep(options.seconds / options.scrapes)
            busy = daemon.state()
            beside = scrape_beside(daemon, options)
        finally:
            daemon.stop()
    times.sort()
    print(f"{options.cameras} cameras, {busy[2]:.2f} cores, /metrics of {size} bytes: "
          f"least {times[0]:.3f} ms, median {statistics.median(times):.3f} ms, p99 {times[int(0.99 * len(times))]:.3f} ms of {len(times)} scrapes")
    print(f"without scraping: {quiet[0] - before} frames lost, p99 {quiet[1]:.1f} ms; "
          f"with it: {busy[0] - quiet[0]} lost, p99 {busy[1]:.1f} ms")
    print(f"/healthz beside {options.half_open} half-open requests: p50 {statistics.median(beside):.3f} ms, "
          f"p99 {beside[int(0.99 * len(beside))]:.3f} ms, most {beside[-1]:.3f} ms of {len(beside)}")


main()
