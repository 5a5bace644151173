"""Shared by the end-to-end tests: a framed process and an RTSP server that end with their with-block, readers of sockets, counters and clips."""
import collections
import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import consume
from checks import Checks
from pace import Patience

BINARY = os.path.abspath(os.environ.get("FRAMED", os.path.join(ROOT, "build", "framed")))
BENCH = f"{BINARY}-bench"
MEDIA = os.path.join(ROOT, "..", "shared", "media")
SANITIZED = bool(os.environ.get("SAN"))
PATIENCE = Patience(4 if SANITIZED else 1)  # multiplies every time limit
FIRST_PORT = int(os.environ.get("TEST_PORTS", 10000 + os.getpid() % 200 * 100))

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?=(?:error|warning|info|debug) )", re.M)  # of a log line


def folder():
    """Returns a scratch folder, with a path short enough for socket names."""
    return tempfile.TemporaryDirectory(prefix="framed-test-")


def run(*arguments, stdin=None, env=None, timeout=30, program=BINARY):
    """Runs framed with these arguments to its end: (exit code, standard output, standard error)."""
    done = subprocess.run(
        [program, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=timeout * PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


def first_lines(command, count, seconds=10, **options):
    """Returns the first lines of a program that never ends; fewer if it does not print them in time."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    silent = threading.Timer(seconds * PATIENCE, child.kill)
    silent.start()
    try:
        return [child.stdout.readline() for _ in range(count)]
    finally:
        silent.cancel()
        child.kill()
        child.wait()
        child.stdout.close()


def framedio_environment():
    """Returns the environment in which Python finds framedio and the library that it loads. A library with a sanitizer must be preloaded; leaks of
    Python itself are ignored."""
    libraries = ":".join(filter(None, [os.path.dirname(BINARY), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "client"), "LD_LIBRARY_PATH": libraries}
    if "address" in os.environ.get("SAN", ""):
        library = subprocess.run(["cc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
        environment |= {"LD_PRELOAD": library.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    return environment


def status(where):
    """Returns camera -> its entry of `framed status`."""
    code, output, _ = run("status", "-c", f"{where}/framed.yaml", "--json", env={"RUNTIME_DIRECTORY": where})
    return {camera["name"]: camera for camera in json.loads(output)["cameras"]} if code == 0 else {}


def until(condition, seconds):
    """Waits until condition() holds; returns its last value. A machine that slows down meanwhile gets more time."""
    began = time.monotonic()
    deadline = began + seconds * PATIENCE
    while not (said := condition()):
        if time.monotonic() >= deadline and time.monotonic() >= (deadline := began + seconds * PATIENCE):
            break
        time.sleep(0.02)
    return said


class Process:
    """A child that is killed when its with-block ends. Its output is kept in a file."""

    def __init__(self, arguments, log, env=None):
        self.arguments, self.log, self.env = arguments, log, {**os.environ, **(env or {})}

    def __enter__(self):
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(
                self.arguments, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=self.env
            )
        return self

    def __exit__(self, exception=None, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stdout.close()
        if exception:
            print(f"{self.arguments[0]} said:\n{self.errors()[-4000:]}", flush=True)

    def errors(self):
        """Returns its standard error: its log, without the time of each line."""
        with open(self.log) as log:
            return TIME.sub("", log.read())

    def wait(self, seconds):
        """Returns the exit code, or None if it does not end in time."""
        try:
            return self.child.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            return None

    def watch(self, seconds):
        """Waits for this time, or until it ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(seconds)

    def stop(self, seconds=5):
        """Sends SIGTERM, then waits."""
        self.child.send_signal(signal.SIGTERM)
        return self.wait(seconds)


class Framed(Process):
    """`framed run` on a configuration text, with its counters in a file."""

    def __init__(self, where, config, env=None):
        self.config = os.path.join(where, "framed.yaml")
        self.counters = os.path.join(where, "framed.metrics")
        with open(self.config, "w") as file:
            file.write(config)
        arguments = [BINARY, "run", "-c", self.config, "--metrics", self.counters]
        # Its control socket lies in the folder, as a unit's lies in its RUNTIME_DIRECTORY.
        env = {"RUNTIME_DIRECTORY": where, **(env or {})}
        super().__init__(arguments, os.path.join(where, "framed.log"), env)

    def metrics(self):
        return Metrics(self.counters)

    def live_metrics(self, seconds=5):
        """Returns current counters, while it runs."""
        before = os.stat(self.counters).st_mtime_ns if os.path.exists(self.counters) else 0
        self.child.send_signal(signal.SIGUSR1)
        until(lambda: os.path.exists(self.counters) and os.stat(self.counters).st_mtime_ns != before, seconds)
        return self.metrics()

    def resident_kib(self):
        with open(f"/proc/{self.child.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


class Metrics:
    """Prometheus text: a list of (name, labels, value)."""

    LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
    LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

    def __init__(self, path):
        self.rows = []
        with open(path) as file:
            for line in file:
                if not line.startswith("#") and (match := self.LINE.match(line.strip())):
                    name, labels, value = match.groups()
                    self.rows.append((name, dict(self.LABEL.findall(labels or "")), float(value)))

    def all(self, name, **labels):
        return [(has, value) for row, has, value in self.rows if row == name and labels.items() <= has.items()]

    def sum(self, name, **labels):
        return int(sum(value for _, value in self.all(name, **labels)))

    def losses(self, **labels):
        """Returns reason -> lost frames, without reasons of 0."""
        lost = collections.Counter()
        for has, value in self.all("framed_frames_lost_total", **labels):
            lost[has["reason"]] += int(value)
        return +lost

    def account(self, **labels):
        """Returns (offered, emitted, lost)."""
        stages = [self.sum("framed_frames_total", stage=stage, **labels) for stage in ("offered", "emitted")]
        return (*stages, sum(self.losses(**labels).values()))


class Server(Process):
    """rtsp_server.py on a free port, with its clip or clips; inside `network`, if given."""

    def __init__(self, where, *arguments, log="server.log", network=None):
        program = os.path.join(ROOT, "tests", "e2e", "rtsp_server.py")
        self.host = network.inner if network else "127.0.0.1"
        inside = ["--address", self.host, "--interface", network.inner_link] if network else []
        prefix = network.prefix if network else []
        super().__init__([*prefix, "/usr/bin/python3", program, *arguments, *inside], os.path.join(where, log))
        self.scheme = "rtsps" if "--tls" in arguments else "rtsp"

    def __enter__(self):
        super().__enter__()
        ready, _, _ = select.select([self.child.stdout], [], [], 20)
        line = self.child.stdout.readline().decode().split() if ready else []
        if line[:1] != ["READY"]:
            self.__exit__()
            raise RuntimeError(f"the RTSP server did not start: {self.errors()}")
        self.port = int(line[1])
        return self

    def url(self, mount=0, user=""):
        return f"{self.scheme}://{user}{self.host}:{self.port}/{mount}"


class Reader(threading.Thread):
    """Reads frames from a `framed` socket or a ring into self.frames until the stream ends or `limit` have arrived."""

    def __init__(self, address, limit=None, keep=True):
        super().__init__(daemon=True)
        self.address, self.limit, self.keep = address, limit, keep
        self.frames, self.count, self.error = [], 0, None
        self.start()

    def run(self):
        try:
            for header, payload in consume.frames_from(self.address, 10 * PATIENCE):
                self.frames.append((header, bytes(payload) if self.keep else b""))
                self.count += 1
                if self.count == self.limit:
                    return
        except (OSError, ValueError) as error:
            self.error = error

    def tensors(self):
        return [(header, consume.tensor_of(header, payload)) for header, payload in self.frames]


PORTS = iter(range(FIRST_PORT, FIRST_PORT + 100))


def free_port():
    """Returns a port reserved for this test; the kernel does not hand it out (tests/run)."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def footage(name):
    """Returns a sample file's path, or None where the samples are missing."""
    path = os.path.normpath(os.path.join(MEDIA, name))
    return path if os.path.exists(path) else None


def ffmpeg(*arguments):
    """Returns the ffmpeg program's standard output."""
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout


def make_clip(path, codec="h264", frames=50, size="320x240", rate=25, b_frames=0):
    """Makes a clip in which all pictures differ, with a keyframe each second. tests/run keeps clips for all tests."""
    kept = os.path.join(os.environ.get("TEST_CLIPS", ""), f"{codec}-{frames}-{size}-{rate}-{b_frames}{os.path.splitext(path)[1]}")
    if os.path.exists(kept):
        return shutil.copyfile(kept, path)
    x265 = f"log-level=error:repeat-headers=1:bframes={b_frames}"
    coders = {
        "h264": ["-c:v", "libx264", "-bf", str(b_frames)],
        "h265": ["-c:v", "libx265", "-x265-params", x265],
        "mpeg4": ["-c:v", "mpeg4", "-q:v", "2"],
        "vp8": ["-c:v", "libvpx", "-b:v", "2M"],
    }
    source = f"testsrc2=size={size}:rate={rate}"
    ffmpeg("-f", "lavfi", "-i", source, "-frames:v", str(frames), "-pix_fmt", "yuv420p", "-g", str(rate),
           *coders[codec], path)
    if "TEST_CLIPS" in os.environ:
        making = f"{kept}.{os.getpid()}-{threading.get_ident()}"
        os.rename(shutil.copyfile(path, making), kept)
    return path


def decode_yuv420(path):
    """Returns every picture of a clip as its three planes, decoded by the ffmpeg program."""
    shape = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height", "-of", "csv=p=0",
         path],
        check=True, capture_output=True, text=True,
    ).stdout
    width, height = map(int, shape.strip().split(",")[:2])
    raw = ffmpeg("-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-")
    chroma = ((height + 1) // 2, (width + 1) // 2)
    luma_bytes, chroma_bytes = width * height, chroma[0] * chroma[1]
    pictures = numpy.frombuffer(raw, "u1").reshape(-1, luma_bytes + 2 * chroma_bytes)
    return [
        (
            p[:luma_bytes].reshape(height, width),
            p[luma_bytes : luma_bytes + chroma_bytes].reshape(chroma),
            p[luma_bytes + chroma_bytes :].reshape(chroma),
        )
        for p in pictures
    ]
