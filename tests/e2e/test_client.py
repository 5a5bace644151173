#!/usr/bin/python3
"""libframed with the real daemon: over a ring, a unix and a tcp socket it returns the same frames and batches as a reader of the bytes. A program
reads on through restarts of the daemon and of the camera, and detects each torn frame."""
import glob
import json
import os
import re
import subprocess
import threading

import numpy
from framed_client import BINARY, PATIENCE, ROOT, Checks, Framed, Reader, Server, consume, folder, free_port, make_clip, until

FRAMES = os.path.join(os.path.dirname(BINARY), "tests", "e2e", "client_frames")
COUNT = 40
CONFIG = """
backend: cpu
defaults: {{overflow: wait, slots: 8}}
cameras:
  clip:
    url: {where}/clip.mp4
    outputs:
      ring: {{size: 320x320, sink: "ring:{where}/frames.ring"}}
      unix: {{size: 320x320, sink: "unix:{where}/frames.sock"}}
      tcp: {{size: 320x320, tensor: {{dtype: f32, scale: 1/255}}, sink: "tcp:127.0.0.1:{port}"}}
      bytes: {{size: 320x320, sink: "unix:{where}/bytes.sock"}}
      floats: {{size: 320x320, tensor: {{dtype: f32, scale: 1/255}}, sink: "unix:{where}/floats.sock"}}
"""
BATCHES = """
backend: cpu
defaults: {{loop: true, pace: realtime, size: 160x160, slots: 8}}
cameras:
  gate: {{url: {where}/clip.mp4}}
  yard: {{url: {where}/clip.mp4}}
batches:
  ring: {{cameras: ["*"], count: 2, wait: 200ms, sink: "ring:{where}/batches.ring"}}
  unix: {{cameras: ["*"], count: 2, wait: 200ms, sink: "unix:{where}/batches.sock"}}
"""
SHOWN = """
backend: cpu
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      detector: {{size: 640x640, tensor: {{dtype: f32, scale: 1/255}}, sink: "ring:{where}/gate.ring"}}
"""
BUILT_WITH = os.environ.get("SAN", "")
SANITIZERS = ["--coverage"] if BUILT_WITH == "coverage" else [f"-fsanitize={BUILT_WITH}"] if BUILT_WITH else []

RESTARTS = int(os.environ.get("RESTARTS", 8))  # of the daemon, and half as many of the camera
# A slot is revoked while the program still holds it.
RESTARTED = """
backend: cpu
cameras:
  gate:
    url: "{url}"
    outputs:
      ring: {{size: 160x160, slots: 4, max_age: 60ms, sink: "ring:{where}/gate.ring"}}
      unix: {{size: 160x160, sink: "unix:{where}/gate.sock"}}
"""
REFERENCE = """
backend: cpu
cameras:
  gate: {{url: {where}/clip.mp4, outputs: {{bytes: {{size: 160x160, overflow: wait, sink: "unix:{where}/known.sock"}}}}}}
"""


class Frames:
    """The lines of a program that reads with libframed."""

    def __init__(self, address, which="all", count=COUNT, hold_ms=0):
        self.child = subprocess.Popen([FRAMES, address, which, str(count), str(hold_ms)], stdout=subprocess.PIPE, text=True)

    def wait(self, seconds=30):
        """Returns (frames, counts)."""
        try:
            output, _ = self.child.communicate(timeout=seconds * PATIENCE)
        finally:
            self.child.kill()
            self.child.wait()
        *frames, counts = map(json.loads, output.splitlines())
        return frames, counts


def sums(payload):
    data = numpy.frombuffer(payload, "u1").astype("u8")
    return [int(data.sum()), int((data * numpy.arange(len(data), dtype="u8")).sum())]


def check_frames(checks, where):
    """For every kind of sink, each frame has the bytes of a plain socket's."""
    port = free_port()
    plain = {kind: Reader(f"unix:{where}/{kind}.sock", COUNT) for kind in ("bytes", "floats")}
    programs = {
        "ring": Frames(f"ring:{where}/frames.ring"),
        "unix": Frames(f"unix:{where}/frames.sock"),
        "tcp": Frames(f"tcp:localhost:{port}"),
    }
    with Framed(where, CONFIG.format(where=where, port=port)):
        for reader in plain.values():
            reader.join(30 * PATIENCE)
        for name, program in programs.items():
            frames, counts = program.wait()
            expected = [(header.sequence, header.epoch, sums(payload))
                        for header, payload in plain["floats" if name == "tcp" else "bytes"].frames]
            seen = [(frame["sequence"], frame["epoch"], frame["sums"]) for frame in frames]
            checks.check(len(seen) == COUNT and seen == expected, f"{name}: {seen[:3]}..., not {expected[:3]}...")
            checks.check(all(frame["whole"] and frame["camera"] == "clip" for frame in frames), f"{name}: {frames[:3]}")
            wanted = {"frames": COUNT, "skipped": 0, "torn": 0, "lost": 0, "connections": 1}
            checks.check(counts == wanted, f"{name}: {counts}")


def check_batches(checks, where):
    """Both sinks deliver whole batches, with elements of the two cameras."""
    with Framed(where, BATCHES.format(where=where)):
        for address in (f"ring:{where}/batches.ring", f"unix:{where}/batches.sock"):
            frames, counts = Frames(address, count=20).wait()
            checks.check(len(frames) == 20 and counts["torn"] == 0, f"{address}: {counts}")
            for batch in frames:
                filled = [element for element in batch["elements"] if not element[2] & consume.EMPTY]
                cameras = sorted(camera for camera, *_ in filled)
                good = batch["whole"] and set(cameras) <= {"gate", "yard"} and len(filled) >= 1
                checks.check(good and all(width == 320 for *_, width in filled), f"{address}: {batch}")
                checks.check(batch["bytes"] == len(batch["elements"]) * 3 * 160 * 160, f"{address}: {batch}")
            both = sum(len(batch["elements"]) == 2 for batch in frames)
            checks.check(both >= 10, f"{address}: {both} of 20 batches have two pictures")


class Restarted(threading.Thread):
    """Reads on until it is stopped, and records its frames."""

    def __init__(self, *arguments):
        super().__init__(daemon=True)
        self.program, self.frames = Frames(*arguments), []
        self.start()

    def run(self):
        for line in self.program.child.stdout:
            self.frames.append(json.loads(line))

    def wait_for_more(self):
        """Returns true if another frame arrives."""
        seen = len(self.frames)
        return until(lambda: len(self.frames) > seen, 20)

    def stop(self):
        self.program.child.kill()
        self.program.child.wait()
        self.join()
        return self.frames


def known_pictures(where):
    """Returns the sums of every picture of the clip."""
    reader = Reader(f"unix:{where}/known.sock")
    with Framed(where, REFERENCE.format(where=where)) as framed:
        framed.wait(30)
        reader.join(10 * PATIENCE)
    return {tuple(sums(payload)) for _, payload in reader.frames}


def check_restarts(checks, where):
    """Three programs: on the ring a fast one and one that holds each frame for too long, and one on the socket."""
    known = known_pictures(where)
    checks.check(len(known) == 50, f"{len(known)} pictures are known, not 50")
    programs = {
        "fast": Restarted(f"ring:{where}/gate.ring", "newest", 10**9),
        "slow": Restarted(f"ring:{where}/gate.ring", "all", 10**9, 300),
        "socket": Restarted(f"unix:{where}/gate.sock", "all", 10**9),
    }
    port = free_port()
    camera = Server(where, f"{where}/clip.mp4", "--port", str(port))
    config = RESTARTED.format(url=f"rtsp://127.0.0.1:{port}/0", where=where)
    with camera:
        for number in range(RESTARTS):
            with Framed(where, config):
                for name, program in programs.items():
                    checks.check(program.wait_for_more(), f"{name}: no frame behind restart {number} of the daemon")
    with Framed(where, config):
        for number in range(RESTARTS // 2):
            with camera:
                for name, program in programs.items():
                    checks.check(program.wait_for_more(), f"{name}: no frame behind restart {number} of the camera")
    torn = {}
    for name, program in programs.items():
        frames = program.stop()
        wrong = [frame for frame in frames if frame["whole"] and tuple(frame["sums"]) not in known]
        checks.check(not wrong, f"{name}: {len(wrong)} of {len(frames)} frames are torn and nobody was told: {wrong[:3]}")
        torn[name] = sum(not frame["whole"] for frame in frames)
    checks.check(torn["slow"] > 0 and torn["socket"] == 0, f"torn: {torn}")


def installed(where):
    """Installs the library with `make install-client`; returns its prefix."""
    variables = [f"B={os.path.dirname(BINARY)}", f"PREFIX={where}/usr", "NVCC="]
    subprocess.run(["make", "-s", *variables, "install-client"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return f"{where}/usr"


def program_of(text, usr, where):
    """Builds a program, as its author would, from the C text in a page; returns its path."""
    environment = {**os.environ, "PKG_CONFIG_PATH": f"{usr}/lib/pkgconfig"}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "framed"], env=environment, check=True, capture_output=True,
                           text=True).stdout.split()
    with open(f"{where}/program.c", "w") as file:
        file.write(text.replace("/run/framed/", f"{where}/"))
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warnings, "-o", f"{where}/program", f"{where}/program.c", *flags, *SANITIZERS], check=True)
    return f"{where}/program"


def lines_of(program, usr, count):
    """Returns a program's first lines; it prints to a terminal, so that it does not buffer them."""
    screen, terminal = os.openpty()
    child = subprocess.Popen([program], stdout=terminal, env={**os.environ, "LD_LIBRARY_PATH": f"{usr}/lib"})
    silent = threading.Timer(20 * PATIENCE, child.kill)
    silent.start()
    os.close(terminal)
    with open(screen) as lines:
        try:
            return [lines.readline() for _ in range(count)]
        except OSError:  # the program has ended
            return []
        finally:
            silent.cancel()
            child.kill()
            child.wait()


def check_shown(checks, where):
    """The programs in README.md and framed(3), with the installed library, shared and static."""
    usr = installed(where)
    texts = {}
    for path in (f"{ROOT}/README.md", f"{ROOT}/scripts/man/framed.3.md"):
        with open(path) as file:
            texts[os.path.basename(path)] = re.findall(r"```c\n(.*?)```", file.read(), re.S)
    texts = {"README.md": texts["README.md"][0], "framed.3.md": texts["framed.3.md"][0], "detection": texts["framed.3.md"][1]}
    checks.check(len(texts["README.md"].splitlines()) <= 11, "the README's program has more than eleven lines")
    with Framed(where, SHOWN.format(where=where)):
        shown = [(texts["framed.3.md"], r"gate \d+: 0 0 160 120\n"), (texts["detection"], r"gate \d+: 0\n"),
                 (texts["README.md"], r"gate \d+: 0\.\d+\n")]
        for text, wanted in shown:
            if text == texts["README.md"]:  # this one is linked statically
                for library in glob.glob(f"{usr}/lib/*.so*"):
                    os.remove(library)
            lines = lines_of(program_of(text, usr, where), usr, 3)
            good = [re.fullmatch(wanted, line) for line in lines]
            checks.check(len(good) == 3 and all(good), f"{wanted}: the program prints {lines}")


def main():
    checks = Checks("client")
    for check in (check_frames, check_batches, check_restarts, check_shown):
        with folder() as where:
            make_clip(os.path.join(where, "clip.mp4"))
            check(checks, where)
    checks.end()


main()
