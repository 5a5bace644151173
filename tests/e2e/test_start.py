#!/usr/bin/python3
"""The start of a daemon: signals that arrive before it runs, and a daemon as a container's first process."""
import glob
import os
import re
import signal
import subprocess
import time

from framed_client import BINARY, SANITIZED, Checks, Framed, Process, folder, make_clip, until

CONFIG = """
control: {where}/control.sock
cameras:
  gate: {{url: {where}/clip.mp4, loop: true, pace: realtime, outputs: {{o: {{size: 64x64, sink: "unix:{where}/o.sock"}}}}}}
"""


def status_of(pid, field):
    with open(f"/proc/{pid}/status") as file:
        return re.search(rf"^{field}:\s*(.*)$", file.read(), re.M)[1]


def holds(pid, number):
    return int(status_of(pid, "SigBlk"), 16) >> (number - 1) & 1 or int(status_of(pid, "SigCgt"), 16) >> (number - 1) & 1


class FromPipe(Process):
    """A `framed run` that waits for its configuration."""

    def __init__(self, where):
        self.pipe = f"{where}/pipe"
        os.mkfifo(self.pipe)
        super().__init__(["sh", "-c", f'exec "$0" run -c {self.pipe}', BINARY], f"{where}/pipe.log", {"RUNTIME_DIRECTORY": where})

    def write(self, text):
        """Writes the configuration; returns None if framed does not read it."""
        def opened():
            try:
                return os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # the other end is not open
                return None
        descriptor = until(opened, 5)
        if descriptor:
            os.write(descriptor, text.encode())
            os.close(descriptor)
        return descriptor


def check_signals(checks, where):
    """SIGHUP and SIGUSR1 wait while the configuration is read, and do not end framed."""
    for number in (signal.SIGHUP, signal.SIGUSR1):
        with FromPipe(where) as framed:
            until(lambda: holds(framed.child.pid, number), 5)
            for _ in range(3):
                framed.child.send_signal(number)
            good = framed.write(CONFIG.format(where=where)) and until(lambda: os.path.exists(f"{where}/control.sock"), 20)
            checks.check(good, f"{number!r}: exit {framed.child.poll()}\n{framed.errors()}")
            checks.check(number != signal.SIGHUP or until(lambda: "not reloaded" in framed.errors(), 20), f"a reload is forgotten\n{framed.errors()}")
            checks.check(framed.stop() == 0, framed.errors())
        os.remove(framed.pipe)


def check_signals_before_main(checks, where):
    """SIGHUP while the constructors of libraries run, one of them slow."""
    with open(f"{where}/slow.c", "w") as file:
        file.write("#include <unistd.h>\n__attribute__((constructor)) static void slow(void) { usleep(500000); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{where}/slow.so", f"{where}/slow.c"], check=True)
    with Framed(where, CONFIG.format(where=where), env={"LD_PRELOAD": f"{where}/slow.so"}) as framed:
        until(lambda: os.path.basename(os.readlink(f"/proc/{framed.child.pid}/exe")) == os.path.basename(BINARY)
              and "slow.so" in open(f"/proc/{framed.child.pid}/maps").read(), 5)
        until(lambda: holds(framed.child.pid, signal.SIGHUP), 0.3)
        framed.child.send_signal(signal.SIGHUP)
        checks.check(until(lambda: "reloaded" in framed.errors(), 20), f"exit {framed.child.poll()}\n{framed.errors()}")
        checks.check(framed.stop() == 0, framed.errors())


class Blocked(Framed):
    """Starts with SIGHUP blocked: before main() the signal would end framed."""

    def __enter__(self):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        try:
            return super().__enter__()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_signals_all_along(checks, where):
    """SIGHUP all the time from the first moment of the start."""
    with Blocked(where, CONFIG.format(where=where)) as framed:
        framed.child.send_signal(signal.SIGHUP)
        while framed.child.poll() is None and not os.path.exists(f"{where}/o.sock"):
            framed.child.send_signal(signal.SIGHUP)
            time.sleep(0.002)
        checks.check(framed.child.poll() is None and until(lambda: "reloaded" in framed.errors(), 20), framed.errors())
        checks.check(framed.stop() == 0, framed.errors())


class First(Framed):
    """A `framed run` as process 1."""

    def __init__(self, where, config):
        super().__init__(where, config)
        self.arguments = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *self.arguments]

    def first(self):
        """Returns its process id outside the namespace."""
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children") as file:
            return int(file.read().split()[0])

    def inside(self, script):
        return subprocess.run(["nsenter", f"--target={self.first()}", "--pid", "--mount", "sh", "-c", script], capture_output=True, text=True)


def zombies(parent):
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        try:
            if int(status_of(os.path.basename(path), "PPid")) == parent and status_of(os.path.basename(path), "State")[0] == "Z":
                found.append(path)
        except OSError:
            pass  # the process has ended
    return found


def check_first_process(checks, where):
    if os.geteuid() != 0 or subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"]).returncode:
        checks.skip("only root may have process numbers of its own")
        return
    with First(where, CONFIG.format(where=where)) as framed:
        checks.check(until(lambda: os.path.exists(f"{where}/o.sock"), 20), framed.errors())
        for _ in range(20):
            framed.inside("sleep 0.05 & exit 0")
        checks.check(until(lambda: framed.inside("pgrep -x sleep").returncode == 1, 10), "the orphans live")
        checks.check(until(lambda: not zombies(framed.first()), 10), f"zombies {zombies(framed.first())}")
        os.kill(framed.first(), signal.SIGHUP)
        checks.check(until(lambda: "reloaded" in framed.errors(), 10), f"no reload\n{framed.errors()}")
        os.kill(framed.first(), signal.SIGTERM)
        checks.check(framed.wait(10) == 0 and "Terminated: stopping" in framed.errors(), f"{framed.child.poll()} {framed.errors()}")
    with First(where, "cameras: 1\n") as framed:
        checks.check(framed.wait(10) == 78, f"a wrong configuration: exit {framed.child.poll()}")


def main():
    checks = Checks("start")
    with folder() as where:
        make_clip(f"{where}/clip.mp4", frames=25)
        check_signals(checks, where)
        if SANITIZED:
            checks.skip("a sanitizer has to be the first library")
        else:
            check_signals_before_main(checks, where)
        check_signals_all_along(checks, where)
        check_first_process(checks, where)
    checks.end()


main()
