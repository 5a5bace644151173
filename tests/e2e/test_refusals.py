#!/usr/bin/python3
"""The system refuses one call for memory, a socket, a watch or a thread. Whichever it is, framed runs on, or ends with an
error that says so and its own exit code: never by a signal, never hanging, and with an account that adds up.
FRAMED_FAULTS_ALL=1 tries every call instead of a selection."""
import concurrent.futures
import os
import select
import socket
import threading
import time

from framed_client import BINARY, PATIENCE, SANITIZED, Checks, Framed, Metrics, ffmpeg, folder, make_clip

AT_ONCE = 4  # they mostly wait
ALL = bool(os.environ.get("FRAMED_FAULTS_ALL"))
SHIM = os.path.join(os.path.dirname(BINARY), "faults", "nth.so")
# A sanitizer has its own allocator.
KINDS = ["map", "socket", "accept", "connect", "bind", "watch", "thread"] + ["memory"] * (not SANITIZED)
FILE = """
backend: cpu
defaults: {{overflow: drop_oldest}}
cameras:
  clip:
    url: {clip}
    outputs:
      a: {{size: 32x32, sink: "file:{where}/a.raw"}}
      b: {{kernel: yuv, sink: "unix:{where}/b.sock"}}
      c: {{size: 32x32, sink: "ring:{where}/c.ring"}}
"""
LIVE = """
backend: cpu
cameras:
  live:
    url: tcp://127.0.0.1:{port}
    connect_timeout: 2s
    media_timeout: 1s
    outputs:
      a: {{size: 32x32, overflow: wait, sink: "unix:{where}/a.sock"}}
"""


class Source(threading.Thread):
    """A camera: sends the clip to each client and keeps the connection open."""

    def __init__(self, clip):
        super().__init__(daemon=True)
        with open(clip, "rb") as file:
            self.data = file.read()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def serve(self, client):
        try:
            with client:
                client.sendall(self.data)
                client.recv(1)
        except OSError:
            pass

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()


class Fault:
    """A framed in its own folder in which one call fails, or none."""

    def __init__(self, kind=None, number=0):
        self.kind, self.number, self.scratch = kind, number, folder()
        self.where, self.counts = self.scratch.name, f"{self.scratch.name}/counts"
        self.env = {"LD_PRELOAD": SHIM, "FRAMED_NTH_COUNT": self.counts, "FRAMED_NTH": f"{kind}:{number}",
                    "ASAN_OPTIONS": "verify_asan_link_order=0:exitcode=99", "UBSAN_OPTIONS": "exitcode=99",
                    "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + " report_thread_leaks=0"}  # exit() joins no threads

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def noted(self):
        with open(self.counts) as file:
            return dict(line.split() for line in file)


def is_theirs(fault, code):
    """libavformat, and glibc when it looks up a group, use memory that they were refused. Framed cannot prevent that."""
    return code == -11 and any(name in fault.noted().get("failed", "") for name in ("/libav", "/libc.so"))


def judge(checks, fault, framed, code):
    case, errors = f"{fault.kind}:{fault.number}", framed.errors()
    lines = errors.splitlines()
    if code is not None and code < 0 and is_theirs(fault, code):
        print(f"{case}: died in {fault.noted()['failed']}", flush=True)
        return
    checks.check(code in (0, 1, 69, 78), f"{case}: exit {code}\n{errors}")
    told = [line for line in lines if not line.startswith("info ")]
    checks.check(code == 0 or told, f"{case}: exit {code} without a word\n{errors}")
    checks.check("unaccounted" not in errors, f"{case}: an account that does not add up\n{errors}")
    if code in (0, 1) and os.path.exists(framed.counters) and not any("metrics file" in line for line in told):
        offered, emitted, lost = Metrics(framed.counters).account()
        checks.check(offered == emitted + lost, f"{case}: {offered} offered, {emitted} emitted, {lost} lost")


def run_file(checks, fault, clip):
    with Framed(fault.where, FILE.format(where=fault.where, clip=clip), fault.env) as framed:
        judge(checks, fault, framed, framed.wait(15))


def got_frame(path):
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            ready, _, _ = select.select([peer], [], [], 0.5)
            return bool(ready and peer.recv(4) == b"FRMD")
    except OSError:
        time.sleep(0.02)
        return False


def run_live(checks, fault, port):
    """A framed that keeps running delivers pictures, if necessary after a retry."""
    with Framed(fault.where, LIVE.format(where=fault.where, port=port), fault.env) as framed:
        deadline = time.monotonic() + 10 * PATIENCE
        got = False
        while not got and framed.child.poll() is None and time.monotonic() < deadline:
            got = got_frame(f"{fault.where}/a.sock")
        code = framed.stop(5) if framed.child.poll() is None else framed.child.returncode
        judge(checks, fault, framed, code)
        checks.check(got or code, f"{fault.kind}:{fault.number}: no frame\n{framed.errors()}")


def numbers(count, choice):
    """Returns the numbers of the calls to fail: all `count`, or `choice` of them, the earliest ones preferred."""
    if ALL or count <= choice:
        return range(1, count + 1)
    early = choice // 4
    step = (count - early) / (choice - early)
    return [*range(1, early + 1), *(early + 1 + int(i * step) for i in range(choice - early))]


def try_all(checks, run, which, choice):
    """Runs `run` once without a fault to count its calls, then once for each call to fail, several at a time."""
    def one(case):
        with Fault(*case) as fault:
            run(checks, fault, which)

    with Fault() as none:
        run(checks, none, which)
        counts = {kind: int(count) for kind, count in none.noted().items()}
    cases = [(kind, number) for kind in KINDS for number in numbers(counts[kind], choice)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, cases))
    print(f"{run.__name__}: {len(cases)} calls refused of {sum(counts[kind] for kind in KINDS)}", flush=True)
    return counts


def main():
    checks = Checks("refusals")
    with folder() as where:
        make_clip(f"{where}/clip.mp4", frames=6, size="64x48")
        ffmpeg("-i", f"{where}/clip.mp4", "-c", "copy", f"{where}/clip.ts")
        try_all(checks, run_file, f"{where}/clip.mp4", 80)
        counts = try_all(checks, run_live, Source(f"{where}/clip.ts").port, 3)
        checks.check(counts["accept"] and counts["connect"], f"calls are not seen: {counts}")
    if SANITIZED:
        checks.skip("allocations: a sanitizer has an allocator of its own")
    checks.end()


main()
