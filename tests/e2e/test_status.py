#!/usr/bin/python3
"""`framed status` of a healthy, a flapping and a refused camera, in JSON and as a table; its errors when nothing
answers; clients of the socket disturb nothing; and `framed reload`."""
import fcntl
import json
import os
import pty
import re
import resource
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

from framed_client import BINARY, PATIENCE, Checks, Framed, Reader, Server, ffmpeg, folder, make_clip, run, until

SECRET = "Zorngiebel"
CONFIG = """
control: {where}/own.sock
cameras:
  healthy:
    url: {healthy}
    outputs:
      read: {{size: 64x64, sink: "unix:{where}/read.sock"}}
      unheard: {{kernel: yuv, sink: "tcp:0"}}
      full: {{kernel: yuv, format: yuv420p, sink: "file:/dev/full", protocol: raw}}
  flapping:
    url: tcp://127.0.0.1:{port}
    demuxer: mpegts
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/flapping.sock"}}
  refused:
    url: {refused}
    outputs:
      o: {{size: 64x64, sink: "ring:{where}/refused.ring"}}
"""
RELOADED = """
control: {where}/own.sock
cameras:
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs: {{{outputs}}}
"""


class Flapping(threading.Thread):
    """A camera that sends each client a second of video and hangs up."""

    def __init__(self, clip):
        super().__init__(daemon=True)
        with open(clip, "rb") as file:
            self.data = file.read()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            with client:
                try:
                    client.sendall(self.data)
                    time.sleep(0.3)
                except OSError:
                    pass


def status(where, *options, **more):
    return run("status", "-c", f"{where}/framed.yaml", *options, **more)


def snapshot(where):
    code, output, errors = status(where, "--json")
    return json.loads(output) if code == 0 else {"errors": errors}


def camera_of(told, name):
    return next(camera for camera in told["cameras"] if camera["name"] == name)


def output_of(camera, name):
    return next(output for output in camera["outputs"] if output["name"] == name)


def check_daemon(checks, told, framed):
    checks.check(told["schema_version"] == 1 and re.fullmatch(r"\d+\.\d+\.\d+", told["version"]), f"versions: {told}")
    process, backend = told["process"], told["backend"]
    checks.check(process["pid"] == framed.child.pid, f"{process}")
    checks.check(abs(process["resident_bytes"] / 1024 / framed.resident_kib() - 1) < 0.3, f"{process}")
    checks.check(0 < process["cpu_cores"] <= process["cpu_cores_allowed"] + 0.5, f"{process}")
    checks.check(backend["name"] in ("cpu", "cuda") and backend["description"], f"{backend}")
    checks.check(told["config"]["path"] == framed.config, f"{told['config']}")
    checks.check(0 <= time.time() - told["config"]["loaded_at"] - told["uptime_s"] < 5 * PATIENCE, f"{told['config']}")


def check_bound(checks, bound, backend):
    legs = ("network", "cpu", "decoder", "kernel", "client")  # of a machine with other work
    checks.check(bound["leg"] in legs, f"bound: {bound}")
    for leg in ("upload", "kernel", "download"):
        share = bound[leg]
        checks.check(share is None if backend == "cpu" else 0 <= share <= 1, f"{leg} of {backend}: {share}")
    more = bound["cameras_more"]  # unknown if the cameras take less than a hundredth of the processors
    ends = (None,) if more is None else ("cpu", "memory", "device_memory")
    checks.check(bound["ends_first"] in ends and (more is None or 0 <= more <= 1024), f"bound: {bound}")
    checks.check(0 < bound["cpu"] < os.cpu_count() + 0.5, f"bound: {bound}")


def check_healthy(checks, camera):
    checks.check(camera["state"] == "running" and camera["next_try_s"] is None, f"healthy: {camera}")
    checks.check((camera["codec"], camera["decoder"]) in (("h264", "cpu"), ("h264", "nvdec")), f"healthy: {camera}")
    checks.check(camera["backend"] in ("cpu", "cuda"), f"healthy: {camera['backend']}")
    checks.check(any(re.fullmatch(r"[^:]+:\d+", reader["name"]) and reader["taken"] > 0 and reader["missed"] == 0
                     for reader in output_of(camera, "read")["consumers"]), f"who reads: {output_of(camera, 'read')}")
    checks.check(camera["picture"] == {"width": 320, "height": 240}, f"healthy: {camera['picture']}")
    checks.check(15 < camera["fps_in"] < 35, f"healthy: {camera['fps_in']} frames/s")
    checks.check(camera["converted"] == 0 == sum(camera["flagged"].values()), f"healthy: {camera}")
    checks.check(list(camera["flagged"]) == ["damaged", "interlaced", "hdr"], f"healthy: {camera['flagged']}")
    read, unheard, full = (output_of(camera, name) for name in ("read", "unheard", "full"))
    checks.check(read["clients"] == 1 and 15 < read["fps_out"] < 35 and read["open"], f"read: {read}")
    latency = read["latency"]
    checks.check(0 < latency["p50_s"] <= latency["p99_s"] < 2 * PATIENCE, f"read: {latency}")
    checks.check(unheard["lost"]["client"] > 0 == unheard["emitted"], f"unheard: {unheard}")
    checks.check(re.fullmatch(r"tcp:127\.0\.0\.1:[1-9]\d*", unheard["sink"]), f"unheard: {unheard['sink']}")
    checks.check(full["lost"]["sink"] > 0 and "is not a file" in full["last_error"]["text"], f"full: {full}")
    for output in camera["outputs"]:
        ended = output["emitted"] + sum(output["lost"].values())
        checks.check(0 <= output["offered"] - ended <= 12, f"{output['name']}: the sums do not match: {output}")


def check_others(checks, flapping, refused):
    error = flapping["last_error"]
    checks.check(flapping["reconnects"] > 0 and flapping["pictures"] > 0, f"flapping: {flapping}")
    checks.check(error and error["text"] == "the stream ended" and error["age_s"] < 10, f"flapping: {error}")
    checks.check(refused["state"] == "retrying" and 500 < refused["next_try_s"] <= 600, f"refused: {refused}")
    checks.check(refused["codec"] is None is refused["backend"] and refused["pictures"] == 0, f"refused: {refused}")
    checks.check("refused the user name or password" in refused["last_error"]["text"], f"refused: {refused}")


def check_table(checks, where):
    code, table, errors = status(where)
    lines = table.splitlines()
    checks.check(code == 0 and not errors, f"exit {code}: {errors}")
    for pattern in (r"^framed \d+\.\d+\.\d+, pid \d+, up ",
                    r"^(not )?limited.*; (room for about \d+ more|no room for more cameras|room for more cameras) like these",
                    r"^CAMERA +STATE +PER S +STREAM OR SINK +CLIENTS ",
                    r"^healthy +running +\d\d\.\d +h264 320x240, decoder ", r"^  unheard +open .* \d+: client \d+$",
                    r"^refused +retrying in \d+ s ", r"^    \d+ s ago: .*refused the user name or password"):
        checks.check(any(re.search(pattern, line) for line in lines), f"no line {pattern!r} in\n{table}")
    columns = {line.index("open") for line in lines if re.match(r"  \w+ +open", line)}
    states = "open|closed|running|connecting|retrying in \\d+ s"
    rates = [re.match(rf" *\w+ +(?:{states}) +(\d+\.\d)", line) for line in lines]
    ends = {match.end(1) for match in rates if match} | {line.index("PER S") + 5 for line in lines if "PER S" in line}
    checks.check(len(columns) == len(ends) == 1, f"not aligned:\n{table}")


class Watch:
    """`framed status --watch` in a terminal of 60 by 12, as its own job."""

    def __init__(self, where):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 12, 60, 0, 0))
        self.child = subprocess.Popen([BINARY, "status", "-c", f"{where}/framed.yaml", "--watch"], stdin=slave,
                                      stdout=slave, stderr=slave, process_group=0)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.seen = b""

    def read(self):
        """Returns all output since the last call."""
        new = b""
        try:
            while piece := os.read(self.master, 65536):
                new += piece
        except OSError:
            pass
        self.seen += new
        return new

    def is_redrawn(self, times):
        """Waits until it is redrawn this many times more."""
        before = self.seen.count(b"\033[H")
        return until(lambda: self.read() and self.seen.count(b"\033[H") >= before + times, 10)

    def send(self, number):
        self.child.send_signal(number)

    def is_stopped(self):
        return until(lambda: os.waitpid(self.child.pid, os.WNOHANG | os.WUNTRACED)[0], 5)

    def end(self):
        """Returns the exit code."""
        code = self.child.wait(5 * PATIENCE)
        self.read()
        os.close(self.master)
        return code


ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"


def check_watch(checks, where):
    """The screen is redrawn, cut to the terminal's size, and the terminal is restored on SIGINT."""
    watch = Watch(where)
    checks.check(watch.is_redrawn(3), f"watch: not redrawn: {watch.seen!r}")
    watch.send(signal.SIGINT)
    code = watch.end()
    checks.check(code == 0 and watch.seen.startswith(ENTER) and watch.seen.endswith(LEAVE),
                 f"watch: exit {code}: {watch.seen!r}")
    screens = watch.seen.split(b"\033[H")[1:]
    checks.check(max(screen.count(b"\n") for screen in screens) <= 11, f"watch: too long: {screens}")


def check_watch_is_stopped(checks, where):
    """The terminal is restored on SIGTSTP, taken again on SIGCONT, and restored on SIGQUIT, which ends the command."""
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # the test's parent may have set it to ignored
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    watch = Watch(where)
    watch.is_redrawn(1)
    watch.send(signal.SIGTSTP)
    checks.check(watch.is_stopped(), "SIGTSTP does not stop it")
    watch.read()
    checks.check(watch.seen.endswith(LEAVE), f"stopped: {watch.seen!r}")
    watch.send(signal.SIGCONT)
    checks.check(watch.is_redrawn(1) and watch.seen.count(ENTER) == 2, f"continued: {watch.seen!r}")
    watch.send(signal.SIGQUIT)
    code = watch.end()
    checks.check(code == -signal.SIGQUIT and watch.seen.endswith(LEAVE), f"SIGQUIT: exit {code}: {watch.seen!r}")


def check_nobody_is_hurt(checks, where):
    """Clients that keep a connection open, send nonsense or leave."""
    stuck = []
    for said in (b"", b"x" * 100, b"status", b"\0\xff" * 600, b"status\n", b"bogus\n"):
        for _ in range(5):
            client = socket.socket(socket.AF_UNIX)
            client.connect(f"{where}/own.sock")
            client.send(said)
            stuck.append(client)
    start = time.monotonic()
    code, _, errors = status(where, "--json")
    took = time.monotonic() - start
    checks.check(code == 0 and took < 2 * PATIENCE, f"beside stuck clients: exit {code} after {took:.2f} s: {errors}")
    answer = stuck[-1].recv(4096)
    checks.check(answer.startswith(b'{"error":"unknown request'), f"bogus: {answer!r}")
    for client in stuck:
        client.close()


def check_removed(checks, where, framed):
    """The control socket's file is deleted: it is restored, and a connected client still gets an answer."""
    path = f"{where}/own.sock"
    with socket.socket(socket.AF_UNIX) as before:
        before.settimeout(10)
        before.connect(path)
        os.unlink(path)
        checks.check(until(lambda: os.path.exists(path), 4), "the control socket does not come back")
        before.sendall(b"status\n")
        checks.check(before.recv(1) == b"{", "who was connected gets no answer")
    code, _, errors = status(where, "--json")
    checks.check(code == 0, f"by the control socket that came back: {code} {errors}")
    checks.check(os.stat(path).st_mode & 0o777 == 0o660, "the mode of the control socket that came back")
    line = f"control: the socket {path} was removed: listens there again"
    checks.check(framed.errors().count(line) == 1, framed.errors())


def answer_slowly(listener):
    """Sends a byte now and then, and never a newline."""
    peer, _ = listener.accept()
    with peer:
        try:
            while True:
                peer.sendall(b"x")
                time.sleep(0.5)
        except OSError:
            pass


def check_slow_answer(checks, where):
    """The timeout applies to the whole answer, not to each piece."""
    with socket.socket(socket.AF_UNIX) as slow:
        slow.bind(f"{where}/slow.sock")
        slow.listen()
        answering = threading.Thread(target=answer_slowly, args=(slow,))
        answering.start()
        start = time.monotonic()
        child = subprocess.Popen([BINARY, "status", "--socket", f"{where}/slow.sock"], stderr=subprocess.PIPE)
        ended = until(lambda: child.poll() is not None, 8 * PATIENCE)
        took = time.monotonic() - start
        child.kill()
        errors = child.communicate()[1]
        answering.join()
    checks.check(ended and child.returncode == 1 and took > 4 and b"timed out" in errors,
                 f"a slow answer: exit {child.returncode} after {took:.1f} s: {errors}")


def check_nobody_answers(checks, where):
    code, output, errors = run("status", "--socket", f"{where}/none.sock")
    told = f"framed status: framed does not answer on {where}/none.sock: No such file or directory"
    told += " (is it running? -c FILE or --socket PATH ask another daemon)\n"
    checks.check((code, output, errors) == (1, "", told), f"no socket: exit {code}: {errors}")
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(f"{where}/mute.sock")
        code, _, errors = run("status", "--socket", f"{where}/mute.sock")
        checks.check(code == 1 and "Connection refused" in errors, f"stale socket: exit {code}: {errors}")
    for arguments, expected in ((["--bogus"], 2), (["--json", "--watch"], 2), (["extra"], 2), (["--help"], 0),
                                (["-c", f"{where}/none.yaml"], 78), (["--socket", "x" * 200], 2)):
        code = run("status", *arguments)[0]
        checks.check(code == expected, f"status {arguments}: exit {code}")
    with open(f"{where}/off.yaml", "w") as file:
        file.write("control: off\n")
    code, _, errors = run("status", "-c", f"{where}/off.yaml")
    checks.check(code == 1 and "control: off" in errors, f"control: off: exit {code}: {errors}")


def check_second(checks, where, text):
    """A daemon whose control socket is in use by another: an error if the configuration names the socket, else a warning."""
    with Framed(where, text) as first:
        until(lambda: os.path.exists(f"{where}/own.sock"), 5)
        os.mkdir(f"{where}/second")
        with Framed(f"{where}/second", text) as second:
            code = second.wait(5)
            checks.check(code == 1 and f"another program listens on {where}/own.sock" in second.errors(),
                         f"second: exit {code}: {second.errors()}")
        checks.check("cameras" in snapshot(where), "the first one's socket is gone")
        first.stop()
        checks.check(not os.path.exists(f"{where}/own.sock"), "the socket is left behind")
    text = text.replace(f"control: {where}/own.sock", "")
    with Framed(where, text, {"RUNTIME_DIRECTORY": f"{where}/none/there"}) as framed:
        checks.check(until(lambda: "running" in framed.errors(), 10), f"no default place: {framed.errors()}")
        checks.check(framed.errors().count("no control socket") == 1, f"no default place: {framed.errors()}")
        framed.stop()


WAITING = """
control: {where}/own.sock
cameras:
  waiting:
    url: {clip}
    pace: full
    outputs: {{o: {{size: 64x64, overflow: wait, sink: "unix:{where}/waiting.sock"}}}}
"""


def check_waiting(checks, where, clip):
    """A camera that waits because no client takes its frames is limited by its clients, and the free capacity is unknown."""
    with Framed(where, WAITING.format(where=where, clip=clip)) as framed:
        until(lambda: "running" in framed.errors(), 10)
        # Wait until pictures from before the wait have left the rates.
        until(lambda: (camera_of(snapshot(where), "waiting")["thread"]["submit"] or 0) > 0.99, 15)
        told = snapshot(where)
        bound, share = told["bound"], camera_of(told, "waiting")["thread"]["submit"]
        leg = "cpu" if bound["cpu"] >= 0.9 * told["process"]["cpu_cores_allowed"] else "client"  # other programs' work
        checks.check(bound["leg"] == leg and share > 0.9, f"a wait that does not end: {share}, {bound}")
        checks.check(bound["cameras_more"] is None is bound["ends_first"], f"the room beside a wait: {bound}")
        table = status(where)[1]
        checks.check(re.search("limited.*; room for more cameras like these is unknown", table, re.M), table)
        framed.stop()


def answer_wrong(listener):
    peer, _ = listener.accept()
    with peer:
        peer.recv(256)
        peer.sendall(b"hello\n")


def check_reload_of(checks, where, framed, text):
    """A command with another configuration file than the daemon's gets an error and reloads nothing."""
    with open(framed.config, "w") as file:
        file.write(text)
    other, link = os.path.realpath(f"{where}/other.yaml"), f"{where}/link.yaml"
    with open(other, "w") as file:
        file.write(text)
    os.symlink(os.path.basename(framed.config), link)
    before = snapshot(where)["config"]["last_reload"]
    told = f"this daemon runs with {os.path.realpath(framed.config)}, not with {other}\n"
    for options in ((), ("--socket", f"{where}/own.sock")):
        code, output, errors = run("reload", "-c", other, *options)
        checks.check((code, output) == (1, "") and errors == told + "framed reload: nothing has changed\n",
                     f"of another file: {code} {output}{errors}")
    checks.check(snapshot(where)["config"]["last_reload"] == before, "the wrong framed was reloaded")
    for options in ((), ("--json",), ("--json", "--socket", f"{where}/own.sock")):
        code, output, errors = run("status", "-c", other, *options)
        checks.check((code, output, errors) == (1, "", f"framed status: {told}"), f"of another file: {code} {output}{errors}")
    checks.check(run("status", "-c", link)[0] == 0, "of a link")
    for arguments in (("-c", os.path.relpath(framed.config)), ("-c", link), ("--socket", f"{where}/own.sock")):
        code, output, errors = run("reload", *arguments)
        checks.check((code, output) == (0, "1 camera kept\n"), f"{arguments}: {code} {output}{errors}")
    code, _, errors = run("reload", "-c", f"{where}/none.yaml", "--socket", f"{where}/own.sock")
    checks.check(code == 78 and f"{where}/none.yaml: No such file" in errors, f"of no file: {code} {errors}")


def check_reload(checks, where, clip):
    """`framed reload` prints what was done, or every mistake of the new file; the status reports the reload."""
    good = RELOADED.format(where=where, clip=clip, outputs="a: {size: 64x64, sink: 'tcp:0'}")
    with Framed(where, good) as framed:
        until(lambda: "running" in framed.errors(), 10)
        checks.check(snapshot(where)["config"]["last_reload"] is None, "a reload before the first")

        def reload(text):
            with open(framed.config, "w") as file:
                file.write(text)
            return run("reload", "-c", framed.config)

        code, output, errors = reload(good)
        checks.check((code, output, errors) == (0, "1 camera kept\n", ""), f"no change: {code} {output}{errors}")
        more = good.replace("outputs: {", "outputs: {b: {size: 32x32, sink: 'tcp:0'}, ")
        code, output, errors = reload(more)
        done = "1 camera kept, 1 output of those kept added\n"
        checks.check((code, output, errors) == (0, done, ""), f"one more: {code} {output}{errors}")
        told = snapshot(where)
        last = told["config"]["last_reload"]
        checks.check(last["ok"] and last["error"] is None and abs(time.time() - last["at"]) < 60, f"{last}")
        checks.check({out["name"] for out in told["cameras"][0]["outputs"]} == {"a", "b"}, f"{told['cameras']}")
        code, output, errors = reload(good.replace("loop", "lop").replace("64x64", "64"))
        checks.check(code == 78 and not output and len(errors.splitlines()) == 3, f"bad: {code} {output}{errors}")
        checks.check("gate.lop: unknown key" in errors and errors.endswith("nothing has changed\n"), f"bad: {errors}")
        last = snapshot(where)["config"]["last_reload"]
        checks.check(not last["ok"] and "unknown key" in last["error"], f"{last}")
        checks.check("the last reload was refused: " in status(where)[1], "the table does not say so")
        checks.check("camera=gate ended" not in framed.errors(), f"the camera did not stay:\n{framed.errors()}")
        check_reload_of(checks, where, framed, more)
        framed.stop()
    code, output, errors = run("reload", "--socket", f"{where}/own.sock")
    checks.check(code == 1 and errors.startswith("framed reload: framed does not answer"), f"nobody: {code} {errors}")
    for arguments, what in (
        (("reload", "extra"), "framed reload: extra: takes no further argument ("),
        (("reload", "--fast"), "framed reload: --fast: bad option ("),
        (("status", "-c"), "framed status: -c: wants a value ("),
        (("status", "--json", "--watch"), "framed status: --watch: is not for --json ("),
    ):
        code, output, errors = run(*arguments)
        checks.check(code == 2 and not output and errors.startswith(what), f"usage: {code} {output}{errors}")
    checks.check(run("reload", "--help")[0] == 0, "help")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{where}/other.sock")
        other.listen()
        answering = threading.Thread(target=answer_wrong, args=(other,))
        answering.start()
        code, output, errors = run("reload", "--socket", f"{where}/other.sock")
        answering.join()
        checks.check(code == 1 and "is not framed's control socket" in errors, f"another program: {code} {output}{errors}")


def main():
    checks = Checks("status")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"))
        second = os.path.join(where, "second.ts")
        ffmpeg("-i", clip, "-t", "1", "-c", "copy", second)
        flapping = Flapping(second)
        with Server(where, clip, "--mounts", "2", "--auth", f"viewer:{SECRET}") as server:
            text = CONFIG.format(where=where, port=flapping.port, healthy=server.url(0, f"viewer:{SECRET}@"),
                                 refused=server.url(1, f"viewer:{SECRET}2@"))
            with Framed(where, text) as framed:
                Reader(f"unix:{where}/read.sock", keep=False)
                until(lambda: "or with a reload" in framed.errors(), 15)
                until(lambda: (told := snapshot(where)).get("cameras") and camera_of(told, "flapping")["reconnects"]
                      and camera_of(told, "healthy")["fps_in"] > 15, 20)
                told = snapshot(where)
                check_daemon(checks, told, framed)
                check_bound(checks, told["bound"], told["backend"]["name"])
                check_healthy(checks, camera_of(told, "healthy"))
                check_others(checks, camera_of(told, "flapping"), camera_of(told, "refused"))
                check_table(checks, where)
                print(status(where)[1])
                checks.check(SECRET not in json.dumps(told) + status(where)[1], "the password shows")
                check_nobody_is_hurt(checks, where)
                check_removed(checks, where, framed)
                check_watch(checks, where)
                check_watch_is_stopped(checks, where)
                start = time.monotonic()
                code = framed.stop()
                took = time.monotonic() - start
                checks.check(code == 0 and took < 2.5 * PATIENCE, f"exit {code} after {took:.1f} s: {framed.errors()}")
        check_nobody_answers(checks, where)
        check_slow_answer(checks, where)
        check_waiting(checks, where, clip)
        check_reload(checks, where, clip)
        check_second(checks, where, CONFIG.format(where=where, port=flapping.port, healthy=clip, refused="/dev/null"))
    checks.end()


main()
