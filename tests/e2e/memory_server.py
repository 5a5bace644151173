"""A process that opens a ring's memory by itself, as Triton's server does, and the client that tells it of frames: a few
numbers each. For tests of `shared` and of `memory: cuda-ipc`."""
import os
import subprocess
import sys


class MemoryServer:
    """`program` answers a line for a line: "register" and what names the memory; "infer", the offset and the bytes of a
    frame, with the digest of what lies there. `name` gives, of a frame, what tells one memory from another, and the words
    that name it."""

    def __init__(self, program, name):
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env=plain)
        self.name, self.registered, self.registrations = name, None, 0

    def ask(self, *words):
        print(*words, file=self.child.stdin, flush=True)
        return self.child.stdout.readline().strip()

    def infer(self, frame):
        """What the server read of the frame."""
        memory, *words = self.name(frame)
        if memory != self.registered:
            self.ask("register", *words)
            self.registered, self.registrations = memory, self.registrations + 1
        return self.ask("infer", frame.offset, frame.bytes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()
