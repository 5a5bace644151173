#!/usr/bin/python3
"""`shared: /NAME`: another process opens a ring's memory once to read and write, as Triton's server does, and then reads each
frame by the offset and size from framedio: it gets framedio's bytes. The name is removed with the daemon, is taken over from
a killed daemon but not from a living one, and refers to new memory when frames become larger."""
import grp
import hashlib
import itertools
import mmap
import os
import signal
import sys

from framed_client import PATIENCE, Checks, Framed, folder, framedio_environment, make_clip, run, until

if "framedio" not in sys.argv:  # restart: the loader reads the environment only when a process begins
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio
from memory_server import MemoryServer

FRAMES = 1000
NAME = f"/framed-test-{os.getpid()}"
PATH = f"/dev/shm{NAME}"
CONFIG = """
backend: cpu
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    outputs:
      o: {{size: {size}, overflow: wait, slots: 4, shared: {name}, sink: "ring:{where}/o.ring"{more}}}
"""
BATCHES = """
backend: cpu
cameras:
  gate: {{url: {where}/clip.mp4, loop: true}}
batches:
  o: {{cameras: gate, count: 3, per_camera: 3, size: 160x128, slots: 4, shared: {name}, sink: "ring:{where}/o.ring"}}
"""
# A separate process that gets only the name; it opens and maps as Triton's server does.
SERVER = """
import ctypes, hashlib, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    what, *words = line.split()
    if what == "register":
        file = libc.shm_open(words[0].encode(), os.O_RDWR, 0)
        memory = mmap.mmap(file, int(words[1]), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        os.close(file)
        print(len(memory), flush=True)
    else:
        offset, size = map(int, words)
        print(hashlib.md5(memoryview(memory)[offset : offset + size]).hexdigest(), flush=True)
"""


def config(where, size="320x256", more="", name=NAME):
    return CONFIG.format(where=where, size=size, more=more, name=name)


def serve():
    return MemoryServer(SERVER, lambda frame: (frame.memory_number, frame.shared, frame.memory_bytes))


def digest(frame):
    return hashlib.md5(frame.data).hexdigest()


def check_frames(checks, server, reader, n, what):
    """Compares the next n frames; returns how many different pictures they had."""
    seen, wrong = set(), []
    for frame in itertools.islice(reader, n):
        theirs = server.infer(frame)
        ours = digest(frame)
        if theirs != ours and frame.whole:
            wrong.append(frame.sequence)
        seen.add(ours)
    checks.check(not wrong, f"{what}: frames {wrong[:9]} differ")
    return len(seen)


def mapped_file(address):
    """Returns inode and rights of the mapping at this address of ours."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            row = line.split()
            first, end = (int(part, 16) for part in row[0].split("-"))
            if first <= address < end:
                return int(row[4]), row[1]
    return None


def check_thousand(checks, where):
    """Compares a thousand frames; they lie in the shared file itself, which framedio has mapped read-only."""
    group = grp.getgrnam("daemon") if os.getuid() == 0 else grp.getgrgid(max(os.getgroups()))
    with Framed(where, config(where, more=f", mode: 0664, group: {group.gr_name}")) as framed, serve() as server:
        with framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
            frame = next(reader)
            entry = os.stat(PATH)
            inode, rights = mapped_file(frame.pointer)
            checks.check((inode, rights[:2]) == (entry.st_ino, "r-"), f"mapped {inode} {rights}, {entry.st_ino} has the name")
            checks.check(frame.shared == NAME and frame.memory_bytes == entry.st_size, f"{frame.shared} {frame.memory_bytes}")
            checks.check(frame.offset + frame.bytes <= entry.st_size, f"{frame.bytes} bytes at {frame.offset}")
            rights = entry.st_mode & 0o777, entry.st_gid
            checks.check(rights == (0o664, group.gr_gid), f"mode {entry.st_mode:o}, group {entry.st_gid}")
            pictures = check_frames(checks, server, reader, FRAMES, "a thousand")
            checks.check(pictures > 40 and server.registrations == 1, f"{pictures} pictures, {server.registrations} registrations")
            checks.check(reader.torn == 0 and reader.lost == 0, f"{reader.counts()}")
        checks.check(framed.stop() == 0, framed.errors())
    checks.check(not os.path.exists(PATH), "the name is left")


def check_batches(checks, where):
    with Framed(where, BATCHES.format(where=where, name=NAME)) as framed, serve() as server:
        with framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
            pictures = check_frames(checks, server, reader, 50, "batches")
            checks.check(pictures > 10 and set(next(reader).cameras) == {"gate"}, f"{pictures} different batches")
        checks.check(framed.stop() == 0, framed.errors())


def check_restarts(checks, where):
    """A killed daemon's name passes to the next one, while server and reader still have the old memory."""
    with serve() as server, framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
        for n in (1, 2):
            with Framed(where, config(where)) as framed:
                check_frames(checks, server, reader, 100, f"daemon {n}")
                checks.check(server.registrations == n, f"daemon {n}: {server.registrations} registrations")
                framed.child.send_signal(signal.SIGKILL)
                framed.wait(5)
            checks.check(os.path.exists(PATH), "it left nothing: nothing was tried")
        with Framed(where, config(where)) as framed:
            check_frames(checks, server, reader, 10, "daemon 3")
            checks.check("shared" not in framed.errors(), framed.errors())
            checks.check(framed.stop() == 0, framed.errors())


def check_in_use(checks, where):
    """A living daemon keeps its name: another that is configured with it does not start."""
    other = f"{where}/other"
    os.mkdir(other)
    os.symlink(f"{where}/clip.mp4", f"{other}/clip.mp4")
    with Framed(where, config(where)) as framed, serve() as server:
        with framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
            check_frames(checks, server, reader, 10, "the first")
            with Framed(other, config(other)) as second:
                checks.check(second.wait(10) == 1, "the second runs")
                checks.check(f"another program has the shared memory {NAME}" in second.errors(), second.errors())
            check_frames(checks, server, reader, 10, "the first, later")
            checks.check(server.registrations == 1, f"{server.registrations} registrations")
        checks.check(framed.stop() == 0, framed.errors())


def reload(framed, text):
    """Returns the result of `framed reload`."""
    with open(framed.config, "w") as file:
        file.write(text)
    where = os.path.dirname(framed.config)
    return run("reload", "-c", framed.config, env={"RUNTIME_DIRECTORY": where})


def check_reloads(checks, where):
    """Without a change the memory stays. With larger frames the name refers to new memory, and existing mappings stay valid."""
    with Framed(where, config(where)) as framed, serve() as server:
        with framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
            check_frames(checks, server, reader, 10, "before")
            inode = os.stat(PATH).st_ino
            with open(PATH, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            code, _, errors = reload(framed, config(where))
            check_frames(checks, server, reader, 10, "the same")
            checks.check((code, os.stat(PATH).st_ino) == (0, inode), f"reload {code}: {errors}")
            checks.check(server.registrations == 1, f"{server.registrations} registrations")
            code, _, errors = reload(framed, config(where, size="640x480"))
            checks.check(code == 0, errors)
            until(lambda: next(reader).header.width == 640, 10)
            check_frames(checks, server, reader, 20, "larger")
            checks.check(server.registrations >= 2 and os.stat(PATH).st_ino != inode, f"{server.registrations} registrations")
            checks.check(os.stat(PATH).st_size > len(mapped) and mapped[len(mapped) - 1] is not None, "sizes")
            with open(f"{PATH}-foreign", "w"):
                code, _, errors = reload(framed, config(where, name=f"{NAME}-foreign"))
            os.unlink(f"{PATH}-foreign")
            checks.check(code != 0 and f"{PATH}-foreign exists and is not framed's" in errors, f"reload {code}: {errors}")
            code, _, errors = reload(framed, config(where, name=f"{NAME}-b"))
            checks.check(code == 0 and until(lambda: next(reader).shared == f"{NAME}-b", 10), f"{code}: {errors}")
            check_frames(checks, server, reader, 20, "another name")
            checks.check(not os.path.exists(PATH), "the former name is left")
        checks.check(framed.stop() == 0, framed.errors())
    checks.check(not os.path.exists(f"{PATH}-b"), "the name is left")


def check_removed(checks, where):
    """When the object is removed, frames go to a new one."""
    with Framed(where, config(where)) as framed, serve() as server:
        with framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
            check_frames(checks, server, reader, 10, "before")
            os.unlink(PATH)
            moved = until(lambda: next(reader).memory_number > 1, 10)
            checks.check(moved and os.path.exists(PATH), framed.errors())
            check_frames(checks, server, reader, 20, "behind")
            checks.check("was removed or cut short" in framed.errors(), framed.errors())
        checks.check(framed.stop() == 0, framed.errors())


def check_cut(checks, where):
    """When the object is cut short, after the words that readers check, the daemon survives and frames go to a new one."""
    with Framed(where, config(where)) as framed, serve() as server:
        with framedio.open(f"ring:{where}/o.ring", newest=False, timeout=20 * PATIENCE) as reader:
            check_frames(checks, server, reader, 10, "before")
            os.truncate(PATH, 4096)
            checks.check(until(lambda: next(reader).memory_number > 1, 10), framed.errors())
            check_frames(checks, server, reader, 20, "behind")
            checks.check("was removed or cut short" in framed.errors(), framed.errors())
        checks.check(framed.stop() == 0, framed.errors())


def check_note(checks, where):
    """`framed check` notes the risk of a shared name, and refuses a foreign one."""
    named = config(where, more=", group: root")
    for text, noted in ((named, True), (named.replace(f"shared: {NAME}, ", ""), False)):
        with open(f"{where}/note.yaml", "w") as file:
            file.write(text)
        code, output, errors = run("check", "-c", f"{where}/note.yaml")
        said = "output o of gate: `shared` lets all who may open its ring (mode 0660, group root) change its frames"
        checks.check(code == 0 and (said in output) == noted, f"{code}: {output}{errors}")
        with open(PATH, "x"):
            code, output, errors = run("check", "-c", f"{where}/note.yaml")
        os.unlink(PATH)
        refused = f"cameras.gate.outputs.o.shared: {PATH} exists and is not framed's (another name)" in errors
        checks.check((code != 0, refused) == (noted, noted), f"{code}: {output}{errors}")


def main():
    checks = Checks("shared")
    with folder() as where:
        make_clip(f"{where}/clip.mp4", frames=50)
        check_note(checks, where)
        check_thousand(checks, where)
        check_batches(checks, where)
        check_restarts(checks, where)
        check_in_use(checks, where)
        check_reloads(checks, where)
        check_removed(checks, where)
        check_cut(checks, where)
    checks.end()


main()
