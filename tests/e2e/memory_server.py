"""A process that opens a ring's memory by itself, as Triton's server does, and its client, which sends it a few numbers per frame. For tests of
`shared` and of `memory: cuda-ipc`."""
import os
import subprocess
import sys


class MemoryServer:
    """`program` answers each line with a line: "register" and the words that name the memory; "infer", a frame's offset and bytes, answered with a
    digest of the data there. `name(frame)` returns an identity of the memory, followed by the words that name it."""

    def __init__(self, program, name):
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env=plain)
        self.name, self.registered, self.registrations = name, None, 0

    def ask(self, *words):
        print(*words, file=self.child.stdin, flush=True)
        return self.child.stdout.readline().strip()

    def infer(self, frame):
        """Returns the server's digest of the frame."""
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
