#!/usr/bin/python3
"""The ring with the real daemon: it has the same values as the socket beside it, in the daemon's own pages; clients that
are killed, stuck, late, malicious or many cost the others nothing."""
import mmap
import os
import signal
import socket
import subprocess
import threading
import time

import numpy
from framed_client import PATIENCE, ROOT, Checks, Framed, Reader, consume, folder, make_clip, until

CONFIG = """
backend: cpu
cameras:
  clip:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      socket: {{size: 320x320, sink: "unix:{where}/s.sock"}}
      ring: {{size: 320x320, sink: "ring:{where}/r.ring", mode: 0600}}
      hold: {{size: 320x320, slots: 4, max_age: 300ms, sink: "ring:{where}/h.ring"}}
"""

# Returns no slot.
HOARDER = """
import sys
sys.path.insert(0, {here!r})
import consume
peer = consume.connect("ring:" + sys.argv[1])
while peer.recv(272):
    print("frame", flush=True)
"""


class Client:
    """Reads a ring's messages one by one."""

    def __init__(self, path):
        self.peer = consume.connect(f"ring:{path}")
        self.peer.settimeout(10 * PATIENCE)
        self.ring, self.file, self.hellos = consume.Ring(self.peer), None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.peer.close()
        if self.file is not None:
            os.close(self.file)

    def next(self):
        """Returns (header, slot, ticket) of the next frame, and processes hellos before it."""
        while True:
            message, files, flags, _ = socket.recv_fds(self.peer, 272, 2)
            if not message:
                raise EOFError
            if not message.startswith(b"FRNG"):
                return consume.header_of(message[:256]), *consume.SLOT.unpack(message[256:])[::2]
            if self.file is not None:
                os.close(self.file)
            (self.file,) = files
            self.hellos += 1
            self.ring.map(consume.Hello(*consume.HELLO.unpack_from(message)), files)

    def give_back(self, slot, ticket):
        self.peer.send(consume.SLOT.pack(slot, 0, ticket))

    def array(self, header, slot):
        return consume.tensor_of(header, self.ring.payload(header, slot))


def check_values(checks, where):
    """Frames of both outputs with the same pts have the same bytes."""
    readers = [Reader(f"unix:{where}/s.sock", limit=30), Reader(f"ring:{where}/r.ring", limit=30)]
    for reader in readers:
        reader.join(20 * PATIENCE)
    by_pts = [{header.pts_ns: payload for header, payload in reader.frames} for reader in readers]
    both = by_pts[0].keys() & by_pts[1].keys()
    checks.check(len(both) >= 10, f"{len(both)} frames came to both: {[r.error for r in readers]}")
    same = sum(by_pts[0][pts] == by_pts[1][pts] for pts in both)
    checks.check(same == len(both), f"{same} of {len(both)} frames are equal")


def shared_files(pid):
    """Returns (device, inode) of the daemon's memfds."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        if os.readlink(path).startswith("/memfd:framed"):
            found.add((os.stat(path).st_dev, os.stat(path).st_ino))
    return found


def check_memory(checks, where, framed):
    """The client reads the daemon's pages, and cannot write them."""
    with Client(f"{where}/r.ring") as client:
        header, slot, ticket = client.next()
        hello, stat = client.ring.hello, os.fstat(client.file)
        checks.check((stat.st_dev, stat.st_ino) in shared_files(framed.child.pid), "not a memfd of the daemon's")
        inode = f" {stat.st_ino} "
        with open(f"/proc/{framed.child.pid}/maps") as theirs, open("/proc/self/maps") as ours:
            mapped = [[line for line in maps if inode in line and "memfd:framed" in line] for maps in (theirs, ours)]
        checks.check(mapped[0] and mapped[1], "not the same mapping")
        checks.check(all(" r--s " in line for line in mapped[1]), f"mapped {mapped[1]}")
        checks.check((hello.version, hello.hello_bytes, hello.slots) == (1, 256, 6), f"hello {hello}")
        checks.check(hello.slot_bytes == header.payload_bytes == 3 * 320 * 320, f"{hello.slot_bytes} bytes")
        checks.check(stat.st_size == hello.memfd_bytes, f"memfd of {stat.st_size} bytes")
        array = client.array(header, slot)
        checks.check(not array.flags.owndata and not array.flags.writeable, "numpy has a copy")
        for what, attempt in {
            "mapped to write": lambda: mmap.mmap(client.file, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE),
            "written": lambda: os.pwrite(client.file, b"x", 0),
            "cut": lambda: os.ftruncate(client.file, 0),
            "reopened and mapped": lambda: mmap.mmap(os.open(f"/proc/self/fd/{client.file}", os.O_RDWR), 4096),
        }.items():
            try:
                attempt()
                checks.check(False, f"the ring can be {what}")
            except OSError:
                checks.check(True, "")
        client.give_back(slot, ticket)
    mode = os.stat(f"{where}/r.ring").st_mode & 0o777
    checks.check(mode == 0o600, f"mode {mode:o}")


def check_killed(checks, where, framed):
    """A client is killed while it holds every slot; another keeps reading."""
    good = Reader(f"ring:{where}/r.ring", limit=60, keep=False)
    until(lambda: good.count > 0, 10)
    program = HOARDER.format(here=os.path.join(ROOT, "tests", "e2e"))
    command = ["/usr/bin/python3", "-c", program, f"{where}/r.ring"]
    hoarder = subprocess.Popen(command, stdout=subprocess.PIPE)
    for _ in range(8):
        hoarder.stdout.readline()
    hoarder.send_signal(signal.SIGKILL)
    hoarder.wait()
    hoarder.stdout.close()
    good.join(20 * PATIENCE)
    numbers = [header.sequence for header, _ in good.frames]
    checks.check(numbers == list(range(numbers[0], numbers[0] + 60)), f"the other one got {numbers}")
    checks.check(good.frames[-1][0].lost == 0, f"the other one lost {good.frames[-1][0].lost}")
    clients = until(lambda: framed.live_metrics().sum("framed_sink_clients", output="ring") == 0, 5)
    checks.check(clients, "a killed client is still counted")


def check_stuck(checks, where):
    """A stuck client loses its slots and can detect it; others are not affected."""
    good = Reader(f"ring:{where}/h.ring", limit=40, keep=False)
    until(lambda: good.count > 0, 10)
    with Client(f"{where}/h.ring") as stuck:
        header, slot, ticket = stuck.next()
        first = stuck.array(header, slot)
        copy = first.copy()
        checks.check(stuck.ring.is_there(slot, ticket), "the frame is not there")
        start = time.monotonic()
        gone = until(lambda: not stuck.ring.is_there(slot, ticket), 5)
        took = time.monotonic() - start
        checks.check(gone and took < 2 * PATIENCE, f"it kept its slot for {took:.1f} s")
        changed = until(lambda: not numpy.array_equal(first, copy), 5)
        checks.check(changed, "the slot was not used again: it is no shared memory")
        stuck.give_back(slot, ticket)  # late: harmless
        good.join(20 * PATIENCE)
    lost = good.frames[-1][0].lost if good.frames else -1
    checks.check(good.count == 40 and lost == 0, f"beside it {good.count} frames, {lost} lost")


def check_slow_reader(checks, where):
    """A reader of consume.py learns that its frame was taken away; a fast reader never loses one."""
    with consume.connect(f"ring:{where}/h.ring") as peer:
        ring = consume.Ring(peer)
        frames = ring.frames()
        for _ in range(3):
            next(frames)
            checks.check(ring.is_whole(), "a new frame is not whole")
        next(frames)
        checks.check(ring.torn == 0, f"{ring.torn} frames are called torn")
        checks.check(until(lambda: not ring.is_whole(), 5), "the frame is whole for ever")
        next(frames)
        checks.check(ring.torn == 1, f"{ring.torn} frames are called torn, not one")


def check_garbage(checks, where):
    """Only the client that sends an invalid return is dropped."""
    with Client(f"{where}/r.ring") as good:
        good.next()
        for bytes_sent in (b"x", bytes(15), bytes(17), bytes(5000), consume.SLOT.pack(6, 0, 1), os.urandom(4000)):
            with Client(f"{where}/r.ring") as bad:
                bad.next()
                bad.peer.send(bytes_sent)
                try:
                    while True:
                        bad.next()
                except (EOFError, ConnectionError):
                    checks.check(True, "")
                except TimeoutError:
                    checks.check(False, f"{bytes_sent[:8]} is taken for a return")
        for _ in range(5):
            header, slot, ticket = good.next()
            good.give_back(slot, ticket)
        checks.check(header.lost == 0, f"the good one lost {header.lost}")


def check_many(checks, where):
    readers = [Reader(f"ring:{where}/r.ring", limit=20, keep=False) for _ in range(40)]
    for reader in readers:
        reader.join(20 * PATIENCE)
    whole = sum(reader.count == 20 for reader in readers)
    checks.check(whole == 40, f"{whole} of 40 clients got 20 frames")


RESIZED = """
cameras:
  pipe:
    url: unix:{where}/in.sock
    demuxer: nut
    outputs:
      ring: {{kernel: yuv, format: yuv420p, overflow: wait, sink: "ring:{where}/z.ring"}}
"""


def check_size_change(checks, where):
    """The camera returns with larger pictures: a new hello, and frames of the new size."""
    path = f"{where}/in.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(20 * PATIENCE)
        with Framed(where, RESIZED.format(where=where)) as framed, Client(f"{where}/z.ring") as client:
            shapes = []
            for size in ("64x48", "320x240"):
                source = f"testsrc2=size={size}:rate=25"
                nut = subprocess.run(
                    ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-frames:v", "10", "-c:v", "rawvideo",
                     "-pix_fmt", "yuv420p", "-f", "nut", "-"], check=True, capture_output=True).stdout
                with listener.accept()[0] as peer:
                    sender = threading.Thread(target=peer.sendall, args=[nut], daemon=True)
                    sender.start()
                    for _ in range(10):
                        header, slot, ticket = client.next()
                        shapes.append((header.width, header.height, client.hellos, client.ring.hello.slot_bytes))
                        luma = numpy.frombuffer(client.ring.payload(header, slot), "u1")[: header.width * header.height]
                        checks.check(luma.std() > 20, "an empty picture")
                        client.give_back(slot, ticket)
                    sender.join(10)
            expected = [(64, 48, 1, 64 * 48 * 3 // 2)] * 10 + [(320, 240, 2, 320 * 240 * 3 // 2)] * 10
            checks.check(shapes == expected, f"shapes {shapes}")
            checks.check(framed.stop() == 0, framed.errors())
            offered, emitted, lost = framed.metrics().account(output="ring")
            checks.check((offered, emitted, lost) == (20, 20, 0), f"{offered} offered, {emitted} emitted, {lost} lost")


def main():
    checks = Checks("ring")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        with Framed(where, CONFIG.format(where=where)) as framed:
            until(lambda: os.path.exists(f"{where}/h.ring"), 10)
            check_values(checks, where)
            check_memory(checks, where, framed)
            check_killed(checks, where, framed)
            check_stuck(checks, where)
            check_slow_reader(checks, where)
            check_garbage(checks, where)
            check_many(checks, where)
            checks.check(framed.errors().count("a client was dropped") in range(1, 7), framed.errors())
            checks.check(framed.stop() == 0, framed.errors())
            for output in ("socket", "ring", "hold"):
                offered, emitted, lost = framed.metrics().account(output=output)
                checks.check(offered == emitted + lost, f"{output}: {offered} offered, {emitted} + {lost}")
                checks.check(emitted > 0, f"{output}: nothing emitted")
        check_size_change(checks, where)
    checks.end()


main()
