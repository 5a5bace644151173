#!/usr/bin/python3
"""framed in a cluster whose etcd lies, is slow or falls silent: its own cameras and its loop are not affected, and once etcd answers correctly it is
back with the cluster's cameras."""
import contextlib
import http.client
import os
import random
import time

from etcd_liar import CHUNKED, Liar, answer, chunk, damage, drip, flood, line, header, say, say_nothing, send_headers
from etcd_server import INSTALLED, Etcd
from framed_client import SANITIZED, Checks, Framed, Reader, folder, make_clip, run, until
from http_client import Client

SECONDS = 2.5  # of each lie: longer than the lease
GAP = 0.5 if not SANITIZED else 3  # between pictures at 25 per second, on a busy box
TOKEN = "a-token-of-16-bytes"
CONFIG = """
backend: cpu
http: unix:{where}/http.sock
http_token: {token}
cluster: {{etcd: [{etcd}], site: yard, node: box1, lease: 2s, room: 10}}
defaults: {{loop: true, pace: realtime, size: 160x160, slots: 8}}
cameras:
  gate: {{url: {where}/clip.mp4, outputs: {{o: {{sink: "unix:{where}/gate.sock"}}}}}}
"""
CAMERA = """
cameras:
  yard: {{url: {where}/clip.mp4, loop: true, pace: realtime, outputs: {{o: {{size: 160x160, sink: "unix:{where}/yard.sock"}}}}}}
"""


class Relay:
    """A behaviour: forwards to a real etcd, and passes each answer and each line of a watch through `change`."""

    def __init__(self, etcd, change=bytes):
        self.host, self.change = etcd.url.split("//")[1], change

    def __call__(self, liar, peer, path, body):
        upstream = http.client.HTTPConnection(self.host)
        with contextlib.closing(upstream):
            upstream.request("POST", f"/v3/{path}", body)
            reply = upstream.getresponse()
            if path != "watch":
                peer.sendall(answer(self.change(reply.read()), f"{reply.status} {reply.reason}"))
                return True
            peer.sendall(CHUNKED)
            while data := reply.readline():
                peer.sendall(chunk(self.change(data)))
        return False


class Watch:
    """Measures a reader and framed's answers during a lie."""

    def __init__(self, where, framed, reader):
        self.client, self.framed, self.reader = Client(path=f"{where}/http.sock", token=TOKEN), framed, reader

    def processor(self):
        with open(f"/proc/{self.framed.child.pid}/stat") as stat:
            times = stat.read().rsplit(")", 1)[1].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def look(self, seconds):
        """Returns (longest time without a picture, longest answer of the loop, cores)."""
        begun = last = time.monotonic()
        count, gap, slowest, used = self.reader.count, 0, 0, self.processor()
        while (now := time.monotonic()) < begun + seconds:
            self.client.get("/healthz")
            slowest = max(slowest, time.monotonic() - now)
            if self.reader.count != count:
                count, last = self.reader.count, time.monotonic()
            gap = max(gap, time.monotonic() - last)
            time.sleep(0.01)
        return gap, slowest, (self.processor() - used) / (time.monotonic() - begun)


def lies(etcd):
    """Returns the lies, starting with a partly credible one; the others end each lease."""
    rng = random.Random(7)
    own = Relay(etcd, lambda data: damage(rng, data) if rng.random() < 0.5 else data)
    return {
        "damaged answers": own,
        "HTTP 503": say(answer("no", "503 Service Unavailable")),
        "a redirect": say(answer("", "302 Found", f"Location: {etcd.url}/v3/kv/range\r\n")),
        "silence": say_nothing,
        "one byte in 50 ms": drip,
        "a closed connection": say(b"", False),
        "a flood": flood(b"[],"),
        "headers without end": send_headers,
        "a watch that is canceled": say(CHUNKED + chunk(line({"header": header(), "canceled": True})) + chunk(b"")),
        "empty JSON": say(answer({})),
    }


def is_member(etcd):
    return "kvs" in etcd.ask("kv/range", {"key": "L2ZyYW1lZC95YXJkL25vZGUvYm94MQ=="})  # /framed/yard/node/box1


def check_lies(checks, where, etcd):
    with Liar(Relay(etcd)) as one, Liar(Relay(etcd)) as two, Liar(Relay(etcd)) as three:
        liars = (one, two, three)
        config = CONFIG.format(where=where, token=TOKEN, etcd=", ".join(f"'{liar.url}'" for liar in liars))
        with Framed(where, config) as framed, open(f"{where}/yard.yaml", "w") as file:
            file.write(CAMERA.format(where=where))
            file.flush()
            reader = Reader(f"unix:{where}/gate.sock", keep=False)
            code, output, errors = run("cluster", "apply", "-f", f"{where}/yard.yaml", "-c", f"{where}/framed.yaml")
            checks.check(code == 0, f"apply: {output}{errors}")
            yard = until(lambda: is_member(etcd) and os.path.exists(f"{where}/yard.sock"), 15)
            checks.check(yard, f"the cluster's camera does not come: {framed.errors()[-2000:]}")
            watch = Watch(where, framed, reader)
            _, _, cores = watch.look(SECONDS)
            for name, behave in lies(etcd).items():
                for liar in liars:
                    liar.turn(behave)
                gap, slowest, used = watch.look(SECONDS)
                checks.check(gap < GAP, f"{name}: {gap:.2f} s without a picture")
                checks.check(slowest < GAP, f"{name}: the loop answers after {slowest:.2f} s")
                checks.check(SANITIZED or used < cores + (0.3 if name != "a flood" else 1), f"{name}: {used:.2f} cores, {cores:.2f} before")
            for liar in liars:
                liar.turn(Relay(etcd))
            back = until(lambda: is_member(etcd) and os.path.exists(f"{where}/yard.sock"), 20)
            shown = Reader(f"unix:{where}/yard.sock", 5, keep=False)
            shown.join(20)
            checks.check(back and shown.count == 5, f"not back: {shown.error} {framed.errors()[-2000:]}")
            checks.check((code := framed.stop(10)) == 0, f"exit {code}: {framed.errors()[-2000:]}")
            lost = framed.metrics().losses(camera="gate")
            checks.check(lost.keys() <= {"client"} and lost["client"] < 5, f"gate lost {lost} while its reader was there")


def main():
    checks = Checks("cluster_lies")
    if not INSTALLED:
        checks.skip("etcd-server is not installed")
        checks.end()
    with folder() as where, Etcd(where) as etcd:
        make_clip(f"{where}/clip.mp4", frames=250)
        etcd.wait()
        check_lies(checks, where, etcd)
    checks.end()


main()
