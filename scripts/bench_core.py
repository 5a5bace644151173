#!/usr/bin/python3
"""The whole daemon on one core: one camera at full speed compared with decoding alone and with the ffmpeg program.

usage: bench_core.py CLIP [--framed PATH] [--ffmpeg PATH] [--cpu N] [--seconds S] [--rounds N] [--dtype u8|f16|f32]

CLIP is looped; each program in turn has processor N to itself, and its consumer the others. The clip's pictures become
640x640 letterboxed tensors, with ffmpeg packed rgb24. The table compares frames per second of the program's own
processor time: on a quiet machine that equals wall-clock time, and on a busy one other work does not count. `busy` is
the program's share of wall-clock time: a lower value in only one row means that the program waited.
"""
import argparse
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
WARM_FRAMES = 30
PATIENCE = 30  # seconds until a program delivers
SIDE = 640
HEADER, SLOT = 256, struct.Struct("<IIQ")  # daemon/wire.h


class Consumer:
    """Counts the frames that its own thread reads until the other end closes."""

    def __init__(self, read):
        self.frames = 0
        self.read = read
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while self.read():
                self.frames += 1
        except OSError:
            pass


def connected(path, kind):
    deadline = time.monotonic() + PATIENCE
    while True:
        peer = socket.socket(socket.AF_UNIX, kind)
        try:
            peer.connect(path)
            return peer
        except OSError:
            peer.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def ring_reader(path):
    """Returns a reader of a ring's frames that returns each slot as soon as its message arrives."""
    peer = connected(path, socket.SOCK_SEQPACKET)

    def read():
        while True:
            message, files, _, _ = socket.recv_fds(peer, HEADER + SLOT.size, 2)
            for file in files:
                os.close(file)
            if not message:
                return False
            if message[:4] != b"FRNG":
                slot, _, ticket = SLOT.unpack_from(message, HEADER)
                peer.send(SLOT.pack(slot, 0, ticket))
                return True

    return read


def stream_reader(file, first):
    """Returns a reader of a stream's frames: `first` returns the bytes of the next one, None at the end."""
    buffer = None

    def read():
        nonlocal buffer
        size = first(file)
        if not size:
            return False
        if not buffer or len(buffer) != size:
            buffer = memoryview(bytearray(size))
        at = 0
        while at < size:
            n = file.readinto(buffer[at:])
            if not n:
                return False
            at += n
        return True

    return read


def payload_bytes(file):
    header = b""
    while len(header) < HEADER:
        part = file.read(HEADER - len(header))
        if not part:
            return None
        header += part
    return struct.unpack_from("<Q", header, 8)[0]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Program:
    """A child on the measured processor."""

    def __init__(self, options, command, **how):
        self.child = subprocess.Popen(
            ["taskset", "-c", str(options.cpu), *command], stdin=subprocess.DEVNULL, stderr=options.log, **how
        )

    def window(self, consumer, seconds):
        """Returns (frames per second of wall-clock time, and of processor time) after warm-up."""
        deadline = time.monotonic() + PATIENCE
        while consumer.frames < WARM_FRAMES:
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.child.args[3]} delivers nothing")
            time.sleep(0.02)
        frames, cpu, start = consumer.frames, cpu_seconds(self.child.pid), time.monotonic()
        time.sleep(seconds)
        frames, cpu = consumer.frames - frames, cpu_seconds(self.child.pid) - cpu
        return frames / (time.monotonic() - start), frames / cpu

    def line(self, seconds):
        """Returns the next line of output; "" if the program ends first, or prints none in time and is killed."""
        deadline = threading.Timer(seconds, self.child.kill)
        deadline.start()
        try:
            return self.child.stdout.readline()
        finally:
            deadline.cancel()

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def write_config(options, folder, name, sink):
    path = f"{folder}/{name}.yaml"
    scale = "1" if options.dtype == "u8" else "1/255"
    layout = "nhwc" if options.dtype == "u8" else "nchw"
    with open(path, "w") as file:
        file.write(
            f"backend: cpu\nlog: {{level: warning}}\ndefaults: {{loop: true, pace: full, overflow: wait, "
            f"size: {SIDE}x{SIDE}, tensor: {{dtype: {options.dtype}, layout: {layout}, scale: {scale}}}}}\n"
            f"cameras:\n  camera:\n    url: {options.clip!r}\n    outputs: {{tensor: {{sink: {sink!r}}}}}\n"
        )
    return path


def run_alone(options, folder):
    config = write_config(options, folder, "alone", f"unix:{folder}/nobody")
    command = [f"{options.framed}-bench", "--decode-alone", config, "--seconds", str(options.seconds)]
    program = Program(options, command, stdout=subprocess.PIPE, text=True)
    try:
        if not program.line(2 * PATIENCE).startswith("up "):  # its own deadline and error message come first
            raise RuntimeError("decoding alone delivers nothing")
        cpu = cpu_seconds(program.child.pid)
        counted = program.line(options.seconds + PATIENCE).split()
        cpu = cpu_seconds(program.child.pid) - cpu
    finally:
        program.stop()
    if len(counted) != 3:
        raise RuntimeError("decoding alone failed")
    return int(counted[1]) / float(counted[2]), int(counted[1]) / cpu


def run_daemon(options, folder, kind):
    path = f"{folder}/{kind}.sock"
    config = write_config(options, folder, kind, f"{kind}:{path}")
    program = Program(options, [options.framed, "run", "-c", config])
    try:
        if kind == "ring":
            read = ring_reader(path)
        else:
            peer = connected(path, socket.SOCK_STREAM)
            read = stream_reader(peer.makefile("rb", buffering=0), payload_bytes)
        return program.window(Consumer(read), options.seconds)
    finally:
        program.stop()


def run_ffmpeg(options, folder):
    bar = f"scale={SIDE}:-2:flags=bilinear,pad={SIDE}:{SIDE}:0:(oh-ih)/2,format=rgb24"
    command = [options.ffmpeg, "-v", "error", "-threads", "1", "-filter_threads", "1", "-stream_loop", "-1"]
    command += ["-i", options.clip, "-an", "-vf", bar, "-f", "rawvideo", "pipe:1"]
    program = Program(options, command, stdout=subprocess.PIPE, bufsize=0)
    try:
        fcntl.fcntl(program.child.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
        read = stream_reader(program.child.stdout, lambda _: SIDE * SIDE * 3)
        return program.window(Consumer(read), options.seconds)
    finally:
        program.stop()


ROWS = (
    ("decoding alone", run_alone),
    ("framed to a ring", lambda options, folder: run_daemon(options, folder, "ring")),
    ("framed to a unix socket", lambda options, folder: run_daemon(options, folder, "unix")),
    ("ffmpeg to a pipe", run_ffmpeg),
)
# (row, limit, the ratio to the limit's rate to reach)
GOALS = ((1, 0, 0.95), (1, 3, 1.2), (2, 0, None), (2, 3, None), (3, 0, None))


def measure(options, folder):
    """Returns (rate by wall clock, rate by processor time) of every row: the best round of each."""
    times = [[] for _ in ROWS]
    for _ in range(options.rounds):
        for i, (_, run) in enumerate(ROWS):
            times[i].append(run(options, folder))
    return [tuple(max(values) for values in zip(*rounds)) for rounds in times]


def print_table(options, rates):
    print(f"{options.clip} on processor {options.cpu}, {options.dtype}, best of {options.rounds} x {options.seconds:g} s")
    print(f"{'':45}{'frames/cpu s':>12}{'frames/s':>10}{'busy':>7}")
    for (name, _), (clock, cpu) in zip(ROWS, rates):
        print(f"{name:45}{cpu:12.1f}{clock:10.1f}{100 * clock / cpu:6.0f}%")
    print(f"\n{'':45}{'ratio':>12}   to reach")
    for row, limit, goal in GOALS:
        ratio = rates[row][1] / rates[limit][1]
        verdict = f"   >= {goal:.2f} {'reached' if ratio >= goal else 'MISSED'}" if goal else ""
        print(f"{ROWS[row][0] + ' / ' + ROWS[limit][0]:45}{ratio:12.3f}{verdict}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    allowed = sorted(os.sched_getaffinity(0))
    parser.add_argument("clip")
    parser.add_argument("--framed", default="build/framed")
    parser.add_argument("--ffmpeg", default="ffmpeg")
    parser.add_argument("--cpu", type=int, default=allowed[-1])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", choices=("u8", "f16", "f32"), default="u8")
    options = parser.parse_args()
    others = set(allowed) - {options.cpu}
    if options.cpu not in allowed or not others:
        parser.error("--cpu: one of the processors that this may use, beside another for the consumer")
    options.clip, options.framed = os.path.abspath(options.clip), os.path.abspath(options.framed)
    if not os.path.exists(options.clip):
        parser.error(f"{options.clip} is not there")
    os.sched_setaffinity(0, others)
    return options


def main():
    options = parse()
    folder = tempfile.mkdtemp(prefix="framed-core-")
    try:
        with open(f"{folder}/log", "w+") as options.log:
            try:
                print_table(options, measure(options, folder))
            except RuntimeError as error:
                options.log.seek(0)
                sys.exit(f"bench_core: {error}\n{options.log.read()[-2000:]}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
