#!/usr/bin/python3
"""Messages on NOTIFY_SOCKET: READY, STATUS and STOPPING, and WATCHDOG while the loop runs and no camera's thread is
stuck. A thread that has a reason to wait is not stuck."""
import ctypes
import os
import re
import signal
import socket
import threading
import time

from framed_client import PATIENCE, Checks, Framed, Reader, ffmpeg, folder, free_port, make_clip, until

WATCHDOG_S = 0.6 * PATIENCE
CAMERA = """
  {name}:
    url: {url}
    connect_timeout: 300ms
    media_timeout: 300ms
    {keys}
    outputs: {{o: {{size: 32x32, {output}}}}}"""
TOP = "backend: cpu\ncameras:"


class Manager(threading.Thread):
    """A service manager's socket. `heard` holds (arrival time, message)."""

    def __init__(self, where):
        super().__init__(daemon=True)
        self.path, self.heard = f"{where}/notify", []
        if os.path.exists(self.path):
            os.remove(self.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.start()

    def run(self):
        while True:
            message = self.socket.recv(4096).decode()
            self.heard.append((time.monotonic(), message))

    def environment(self, watchdog=WATCHDOG_S):
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(int(watchdog * 1e6))}

    def messages(self):
        return [message for _, message in self.heard]

    def signs(self, since=0.0):
        return [at for at, message in self.heard if message == "WATCHDOG=1" and at >= since]

    def is_silent(self, seconds):
        return time.monotonic() - max(self.signs(), default=0) > seconds


class Tracer:
    """Stops single threads of a child, as a fault in a driver would."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def call(self, request, thread):
        if self.libc.ptrace(request, thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def hold(self, thread):
        self.call(self.SEIZE, thread)
        self.call(self.INTERRUPT, thread)
        os.waitpid(thread, 0x40000000)  # __WALL

    def let_go(self, thread):
        self.call(self.DETACH, thread)


def thread_named(framed, name):
    folder_of_threads = f"/proc/{framed.child.pid}/task"
    for thread in os.listdir(folder_of_threads):
        with open(f"{folder_of_threads}/{thread}/comm") as comm:
            if comm.read().strip() == name:
                return int(thread)
    raise LookupError(f"no thread {name}")


def config(*cameras):
    return TOP + "".join(CAMERA.format(**{"keys": "", **camera}) for camera in cameras)


def endless(where, name="gate"):
    keys = "loop: true\n    pace: realtime"
    return {"name": name, "url": f"{where}/clip.mp4", "keys": keys, "output": f"sink: 'file:{where}/{name}.raw'"}


def check_life(checks, where):
    """Expects READY, the number of running cameras, at least two WATCHDOG messages per watchdog period, then STOPPING."""
    manager = Manager(where)
    away = {"name": "away", "url": f"tcp://127.0.0.1:{free_port()}", "output": f"sink: 'file:{where}/away.raw'"}
    with Framed(where, config(endless(where), away), manager.environment()) as framed:
        checks.check(until(lambda: "STATUS=1 of 2 cameras running" in manager.messages(), 10),
                     f"no status: {manager.messages()}\n{framed.errors()}")
        time.sleep(4 * WATCHDOG_S)
        signs = manager.signs()
        longest = max((b - a for a, b in zip(signs, signs[1:])), default=99)
        checks.check(len(signs) >= 6 and longest < 0.9 * WATCHDOG_S, f"{len(signs)} signs, {longest:.2f} s apart")
        checks.check(manager.messages()[0] == "READY=1", f"first came {manager.messages()[:1]}")
        framed.stop()
    heard = manager.messages()
    checks.check("STOPPING=1" in heard and "WATCHDOG=1" not in heard[heard.index("STOPPING=1") + 5:], f"end: {heard[-6:]}")
    checks.check(heard.count("READY=1") == 1 and heard.count("STATUS=1 of 2 cameras running") == 1, f"repeats: {heard}")


def check_reload(checks, where):
    """Expects RELOADING with its time, then READY, for a good and for a bad configuration."""
    manager = Manager(where)
    with Framed(where, config(endless(where)), manager.environment()) as framed:
        until(lambda: "STATUS=1 of 1 cameras running" in manager.messages(), 10)
        for times, text in ((1, config(endless(where), endless(where, "yard"))), (2, "cameras: 3")):
            with open(framed.config, "w") as file:
                file.write(text)
            before = time.monotonic()
            framed.child.send_signal(signal.SIGHUP)
            until(lambda: manager.messages().count("READY=1") == 1 + times, 10)
            heard = [message for _, message in manager.heard if message.startswith(("RELOADING", "READY"))][-2:]
            told = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", heard[0])
            checks.check(told and before * 1e6 <= int(told[1]) <= time.monotonic() * 1e6, f"reloading: {heard}")
            checks.check(heard[1] == "READY=1" and len(manager.messages()) > 4, f"reloaded: {heard}")
        said = until(lambda: "STATUS=2 of 2 cameras running" in manager.messages(), 10)
        checks.check(said, f"status after a reload: {manager.messages()}\n{framed.errors()}")


def check_reload_is_through(checks, where):
    """READY after a reload, as after the start, is sent once every camera has been started; also if the reload comes
    before the start is complete."""
    many = [{"name": f"c{i}", "url": f"tcp://127.0.0.1:{free_port()}", "output": f"sink: 'unix:{where}/{i}.sock'"}
            for i in range(50)]
    for first, starts in ((many[:1], 49), (many, 34)):  # one every 43 ms; 16 of the second case start at once
        manager = Manager(where)
        with Framed(where, config(*first), manager.environment()) as framed:
            until(lambda: "READY=1" in manager.messages() if first != many else "camera=c49 output=o listens" in framed.errors(), 10)
            with open(framed.config, "w") as file:
                file.write(config(*many))
            before = time.monotonic()
            framed.child.send_signal(signal.SIGHUP)
            ready = until(lambda: [at for at, message in manager.heard if message == "READY=1" and at > before], 20)
            took = ready[0] - before if ready else 0
            checks.check(took > 0.8 * 0.043 * starts, f"ready after {took:.2f} s, of {starts} starts:\n{framed.errors()}")
            checks.check(framed.stop() == 0, framed.errors())


def page(path, name):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        peer.sendall(f"GET {name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with peer.makefile("rb") as answer:
            return answer.read().decode()


def check_stuck_camera(checks, where):
    """Stops one camera thread of two: WATCHDOG messages stop and one line says why. They return with the thread."""
    manager = Manager(where)
    text = f"http: unix:{where}/http.sock\n" + config(endless(where), endless(where, "yard"))
    with Framed(where, text, manager.environment()) as framed:
        until(lambda: "STATUS=2 of 2 cameras running" in manager.messages(), 10)
        tracer, thread = Tracer(), thread_named(framed, "yard")
        tracer.hold(thread)
        silent = until(lambda: manager.is_silent(2 * WATCHDOG_S), 15)
        checks.check(silent, f"signs of life with a camera that is stuck:\n{framed.errors()}")
        health = page(f"{where}/http.sock", "/healthz")
        checks.check(re.match(r"HTTP/1.1 503 .*\n\r?\ncamera yard is stuck while \w[\w ]*\n$", health, re.S),
                     f"health of a stuck camera: {health!r}")
        said = re.findall(r"^error camera=yard stuck while \w.*: the watchdog gets no more signs of life$",
                          framed.errors(), re.M)
        checks.check(len(said) == 1, f"a stuck camera: {framed.errors()}")
        tracer.let_go(thread)
        back = time.monotonic()
        checks.check(until(lambda: manager.signs(back), 10), f"no sign of life afterwards:\n{framed.errors()}")
        checks.check(page(f"{where}/http.sock", "/healthz").startswith("HTTP/1.1 200 "), "health does not come back")
        checks.check("no camera is stuck any more" in framed.errors(), framed.errors())


def check_stuck_loop(checks, where):
    manager = Manager(where)
    with Framed(where, config(endless(where)), manager.environment()) as framed:
        until(lambda: len(manager.signs()) > 2, 10)
        Tracer().hold(framed.child.pid)
        checks.check(until(lambda: manager.is_silent(3 * WATCHDOG_S), 10), "signs of life without a loop")
        framed.child.send_signal(signal.SIGABRT)  # sent by systemd in this case; another thread handles it
        checks.check(framed.wait(5) == 1, "SIGABRT does not end it with 1")
        checks.check("SIGABRT from another process" in framed.errors(), framed.errors())


def check_patience(checks, where):
    """A camera that waits for a client, for the next picture's time or for the next try is not stuck."""
    manager = Manager(where)
    cameras = [
        {"name": "client", "url": f"{where}/clip.mp4", "output": f"overflow: wait, sink: 'unix:{where}/c.sock'"},
        {"name": "slow", "url": f"{where}/slow.mp4", "keys": "pace: realtime", "output": f"sink: 'file:{where}/s.raw'"},
        {"name": "away", "url": f"tcp://127.0.0.1:{free_port()}", "output": f"sink: 'file:{where}/a.raw'"},
    ]
    with Framed(where, config(*cameras), manager.environment()) as framed:
        until(manager.signs, 10)
        time.sleep(8 + 2 * WATCHDOG_S)  # pauses of 1, 1 and 2 s, pictures 4 s apart
        signs = manager.signs()
        longest = max((b - a for a, b in zip(signs, signs[1:])), default=99)
        checks.check(longest < 0.9 * WATCHDOG_S, f"{longest:.2f} s without a sign of life:\n{framed.errors()}")
        reader = Reader(f"unix:{where}/c.sock", limit=3)
        checks.check(until(lambda: reader.count >= 3, 10), "the camera that waited gives nothing")
        checks.check("stuck" not in framed.errors(), framed.errors())


def check_without(checks, where):
    """A watchdog meant for another process, or a missing socket, has no effect."""
    for environment in ({"NOTIFY_SOCKET": f"{where}/gone"}, {"WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}):
        with Framed(where, config(endless(where)), environment) as framed:
            checks.check(until(lambda: "running" in framed.errors(), 10), f"{environment}: {framed.errors()}")
            checks.check(framed.stop() == 0, f"{environment}: {framed.errors()}")


def main():
    checks = Checks("notify")
    with folder() as where:
        make_clip(f"{where}/clip.mp4")
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x64:rate=1/4", "-frames:v", "20", "-c:v", "libx264", "-bf", "0",
               f"{where}/slow.mp4")
        check_life(checks, where)
        check_reload(checks, where)
        check_reload_is_through(checks, where)
        check_stuck_camera(checks, where)
        check_stuck_loop(checks, where)
        check_patience(checks, where)
        check_without(checks, where)
    checks.end()


main()
