#!/usr/bin/python3
"""The same faults for framed, for the ffmpeg program, and for ffmpeg with a supervisor that restarts it when it ends or
delivers no picture for a while; each has its own camera, with numbers in its pictures. Prints a Markdown table.
FRAMED_FAULTS="NAME..." selects faults, FRAMED_AT_ONCE=4 is how many run at a time."""
import collections
import concurrent.futures
import os
import select
import subprocess
import threading
import time
import zlib

import torment  # makes the next imports possible
from fault_cases import CLIPS, camera_of, cases, make_clips, refused
from framed_client import Framed, ffmpeg, folder, until
from watch import HEIGHT, WIDTH, Account, Header, Watcher, reference

AT_ONCE = int(os.environ.get("FRAMED_AT_ONCE", "4"))
BOUND = 45.0  # s after which a good picture counts as never
MEDIA = 2.0  # s, ffmpeg's -timeout with a supervisor
STALL, PAUSE = 3.0, 1.0  # of the supervisor, s: without a picture, and from an end to the next start
# Output to a pipe, like framed's: numbers stay readable, and a new camera size does not change the pictures' size.
SCALE = ["-vf", f"scale={WIDTH}:{HEIGHT}:flags=bilinear,format=gray", "-f", "rawvideo", "-"]
# As fast and accurate as possible: probing is as short as framed's, and no picture is repeated to fill a rate.
INPUT = ["-threads", "1", "-rtsp_transport", "tcp", "-allowed_media_types", "video", "-fpsprobesize", "2",
         "-analyzeduration", "100000"]

Row = collections.namedtuple("Row", "good counts held oldest")


def ffmpeg_reference(path):
    """Returns digest -> number of the pictures that ffmpeg makes from the clip's file."""
    pictures, size = ffmpeg("-i", path, "-fps_mode", "passthrough", *SCALE), WIDTH * HEIGHT
    return {zlib.crc32(pictures[at : at + size]): at // size for at in range(0, len(pictures), size)}


def held_by(pid):
    """Returns (MiB resident, descriptors) of a process, or None if it does not exist."""
    try:
        with open(f"/proc/{pid}/statm") as statm:
            pages = int(statm.read().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


class Program(Watcher):
    """The pictures of an ffmpeg, restarted if `supervised`."""

    def __init__(self, case, digests, supervised):
        self.url, self.supervised = case.camera.url(case.user), supervised
        self.child, self.starts, self.over = None, 0, threading.Event()
        super().__init__(None, digests)

    def run(self):
        options = ["-timeout", str(int(MEDIA * 1e6))] if self.supervised else []
        while not self.over.is_set():
            self.starts += 1
            self.child = subprocess.Popen(
                ["ffmpeg", "-v", "quiet", "-nostdin", *INPUT, *options, "-i", self.url, "-fps_mode", "passthrough", *SCALE],
                stdout=subprocess.PIPE)
            self.read(self.child.stdout.fileno())
            self.child.kill()
            self.child.wait()
            self.child.stdout.close()
            if not self.supervised:
                return
            self.over.wait(PAUSE)

    def read(self, pipe):
        """Reads until the end or, with a supervisor, until a stall."""
        data, last = b"", time.monotonic()
        while not self.over.is_set():
            if select.select([pipe], [], [], 0.1)[0]:
                piece = os.read(pipe, 1 << 16)
                if not piece:
                    return
                data += piece
            while len(data) >= WIDTH * HEIGHT:
                last = time.monotonic()
                header = Header(len(self.seen), self.starts, 0, 0, 0, time.monotonic_ns())
                self.seen.append(self.look(header, data[: WIDTH * HEIGHT]))
                data = data[WIDTH * HEIGHT :]
            if self.supervised and time.monotonic() - last > STALL:
                return

    def held(self):
        return held_by(self.child.pid) if self.child and self.child.poll() is None else None

    def stop(self):
        self.over.set()
        self.join(10)


class Framing:
    """framed with one camera, and its watcher."""

    def __init__(self, where, case, digests):
        os.mkdir(where)
        self.framed = Framed(where, "log: {level: error}\ncameras:" + case.text(where)).__enter__()
        self.watcher = Watcher(f"unix:{where}/{case.name}.sock", digests)

    @property
    def seen(self):
        return self.watcher.seen

    def good_after(self, number):
        return self.watcher.good_after(number)

    def held(self):
        return held_by(self.framed.child.pid)

    def stop(self):
        self.framed.stop()
        self.framed.__exit__()
        self.watcher.join(5)


def sampled(case):
    """Returns the process's holdings once pictures arrive, or after 2.5 s, before the fault."""
    until(lambda: len(case.watcher.seen) > 10, 2.5)
    return case.watcher.held()


def good_again(case, back):
    """Returns seconds, "never", or "-" if service never stopped and still runs at the end."""
    if case.fault is refused:
        return f"{len(case.camera.calls)} tries in 36 s"
    first = case.wait_good(back, seconds=BOUND) if back is not None else None
    last = case.wait_good(time.monotonic(), seconds=BOUND) if first or back is None else None
    return "never" if not last else "-" if back is None else f"{first - back:.2f} s"


def oldest(case):
    due = {sent.number: sent.due for sent in case.camera.sent}
    return max((s.header.finished_ns / 1e9 - due[s.known] for s in case.watcher.seen if s.known in due), default=0)


def measure(case, start):
    """Measures one fault with one program. Lost are pictures that were sent whole before the last received one."""
    case.camera = camera_of(case)
    if case.camera.starts:
        case.camera.listen()
    case.watcher = start(case)
    try:
        held = [None, None]
        sampler = threading.Thread(target=lambda: held.__setitem__(0, sampled(case)))
        sampler.start()
        good = good_again(case, case.fault(case))
        sampler.join()
        held[1] = case.watcher.held()
    finally:
        case.watcher.stop()
        case.camera.close()
    account = Account(case.camera.sent, case.watcher.seen)
    counts = [len(getattr(account, what)) for what in ("missing", "doubled", "torn", "unflagged")]
    return Row(good, counts, held, oldest(case))


def programs(where):
    """Returns name -> a function that starts the program for a case."""
    theirs, ours = {}, {}
    for clip in CLIPS.values():
        theirs.update(ffmpeg_reference(clip.path))
        ours.update(reference(clip.path))
    return {
        "framed": lambda case: Framing(f"{where}/{case.name}", case, ours),
        "ffmpeg": lambda case: Program(case, theirs, supervised=False),
        "supervised": lambda case: Program(case, theirs, supervised=True),
    }


def line(cells):
    print("|", " | ".join(cells), "|", flush=True)


def tell_head(names):
    print(f"framed: no deadline set; supervisor: ffmpeg's {MEDIA:g} s, {STALL:g} s without a picture, starts after"
          f" {PAUSE:g} s; never: not within {BOUND:g} s\n")
    columns = ("good again", "lost/doubled/torn/unflagged", "MiB resident, descriptors", "oldest picture, s")
    heads = ["fault", *(f"{what}: {name}" for what in columns for name in names)]
    line(heads)
    print("|---" * len(heads) + "|", flush=True)


def tell(name, rows):
    def figures(pair):
        return " to ".join("gone" if one is None else f"{one[0]:.0f}, {one[1]}" for one in pair)

    line([name, *(row.good for row in rows), *("/".join(map(str, row.counts)) for row in rows),
          *(figures(row.held) for row in rows), *(f"{row.oldest:.1f}" for row in rows)])


def main():
    wanted = os.environ.get("FRAMED_FAULTS", "").split()
    with folder() as where:
        make_clips(where)
        starts = programs(where)
        tell_head(starts)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE * len(starts)) as pool:
            trials = {}
            for trio in zip(*(cases() for _ in starts)):  # a case and a camera for each program
                name = trio[0].name
                if not wanted or name in wanted:
                    trials[name] = [pool.submit(measure, *each) for each in zip(trio, starts.values())]
            for name, trial in trials.items():
                tell(name, [future.result() for future in trial])


main()
