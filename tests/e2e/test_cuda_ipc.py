#!/usr/bin/python3
"""`memory: cuda-ipc`: another process opens a ring's slots on the GPU by framedio's handle, as Triton's server does. By offset and size, it reads the
same bytes as framedio and a socket of the same camera; again after the daemon was killed. Needs a GPU."""
import ctypes
import hashlib
import itertools
import os
import signal
import sys

from framed_client import PATIENCE, Checks, Framed, folder, framedio_environment, until

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio
from cuda_client import GPU, clip
from memory_server import MemoryServer

FRAMES = 200
CONFIG = """
backend: cuda
defaults: {{overflow: wait, slots: 4, size: 320x256}}
cameras:
  gate:
    url: {clip}
    loop: true
    outputs:
      ring: {{memory: cuda-ipc, sink: "ring:{where}/o.ring"}}
      plain: {{sink: "unix:{where}/o.sock"}}
"""
CUDA = '''
import ctypes, hashlib
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]
library, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
def call(name, *arguments):
    error = getattr(library, name)(*arguments)
    if error:
        raise OSError(f"{name}: {error}")
def begin():
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
def digest(address, size):
    copy = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", copy, ctypes.c_uint64(address), ctypes.c_size_t(size))
    return hashlib.md5(copy.raw).hexdigest()
'''
SERVER = CUDA + '''
import sys
begin()
memory = ctypes.c_uint64()
for line in sys.stdin:
    what, *words = line.split()
    if what == "register":
        if memory.value:
            call("cuIpcCloseMemHandle", memory)
        call("cuIpcOpenMemHandle_v2", ctypes.byref(memory), Handle.from_buffer_copy(bytes.fromhex(words[0])), 1)
        print("registered", flush=True)
    else:
        offset, size = map(int, words)
        print(digest(memory.value + offset, size), flush=True)
'''


def serve():
    return MemoryServer(SERVER, lambda frame: (frame.ipc_handle, frame.ipc_handle.hex()))


def check_frames(checks, where, server, cuda, n):
    """Checks a daemon's first n frames. Returns the number of different pictures among them."""
    options = {"newest": False, "timeout": 20 * PATIENCE}
    seen, wrong = set(), []
    with framedio.open(f"ring:{where}/o.ring", **options) as ring, framedio.open(f"unix:{where}/o.sock", **options) as plain:
        plain.poll()  # connects: the camera waits for both
        for frame, beside in itertools.islice(zip(ring, plain), n):
            if not checks.check(frame.on_gpu and frame.ipc_handle and frame.shared is None, f"{frame} is not on the GPU"):
                break
            ours, theirs, wanted = cuda.digest(frame.pointer, frame.bytes), server.infer(frame), hashlib.md5(beside.data).hexdigest()
            if (ours, theirs, frame.sequence) != (wanted, wanted, beside.sequence):
                wrong.append((frame.sequence, beside.sequence, ours, theirs, wanted))
            seen.add(wanted)
    checks.check(not wrong, f"{len(wrong)} of {n} frames differ: {wrong[:3]}")
    return len(seen)


def check_ipc(checks, where, cuda):
    source = clip(where)
    with serve() as server:
        for n in (1, 2):
            with Framed(where, CONFIG.format(where=where, clip=source)) as framed:
                until(lambda: "running" in framed.errors(), 20)
                pictures = check_frames(checks, where, server, cuda, FRAMES)
                checks.check(pictures > 10 and server.registrations == n, f"{pictures} pictures, {server.registrations} times")
                checks.check("on the host" not in framed.errors(), framed.errors())
                if n == 1:
                    framed.child.send_signal(signal.SIGKILL)
                checks.check(framed.stop() == (0 if n == 2 else -signal.SIGKILL), framed.errors())


def main():
    checks = Checks("cuda_ipc")
    if not GPU:
        checks.skip("no GPU")
        checks.end()
    cuda = type(ctypes)("cuda")
    exec(CUDA, vars(cuda))
    cuda.begin()
    with folder() as where:
        check_ipc(checks, where, cuda)
    checks.end()


main()
