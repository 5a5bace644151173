"""Shared by the tests that use a GPU: its detection, the clip, and readers that take every frame in place and keep a digest of its bytes. Without a
GPU, or without PyTorch, device memory is left out."""
import ctypes
import hashlib
import os
import threading

import numpy
from framed_client import PATIENCE, consume, make_clip

import ring_cuda


def has_gpu():
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def import_torch():
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.zeros(1, device="cuda")  # takes seconds, once
    return torch


GPU = has_gpu()
torch = import_torch() if GPU else None
BACKEND = "cuda" if GPU else "auto"
MEMORIES = ("host", "cuda") if torch else ("host",)
DECODERS = ("cpu", "nvdec") if GPU else ("cpu",)


def clip(where):
    """Returns the clip named by CLIP, else makes one."""
    return os.environ.get("CLIP") or make_clip(os.path.join(where, "clip.mp4"), frames=75)


def array_of(payload):
    """Returns the frame as bytes in host memory, copied from the device through a tensor if necessary."""
    if isinstance(payload, ring_cuda.DeviceArray):
        return torch.as_tensor(payload, device="cuda").cpu().numpy()
    return numpy.frombuffer(payload, "u1")


def digest(payload):
    return hashlib.blake2b(numpy.ascontiguousarray(array_of(payload)), digest_size=16).digest()


class Digests(threading.Thread):
    """sequence -> digest of every frame of a sink, until it closes or `limit` have arrived. `look(ring, header, payload)` is called for each frame of
    a ring while its slot is held. on_device: True for each frame that lay there."""

    def __init__(self, address, memory="host", limit=None, look=None):
        super().__init__(daemon=True)
        self.address, self.memory, self.limit, self.look = address, memory, limit, look
        self.frames, self.order, self.on_device = {}, [], []
        self.lost, self.gone, self.error = 0, 0, None
        self.start()

    def run(self):
        try:
            with consume.connect(self.address, 10 * PATIENCE) as peer:
                self.take_all(peer)
        except (OSError, ValueError) as error:
            self.error = error

    def take_all(self, peer):
        if not self.address.startswith("ring:"):
            return self.take(None, consume.read_frames(peer.makefile("rb")))
        ring = ring_cuda.Ring(peer) if self.memory == "cuda" else consume.Ring(peer)
        return self.take(ring, ring.frames())

    def take(self, ring, frames):
        for header, payload in frames:
            if ring and self.look:
                self.look(ring, header, payload)
            value = digest(payload)
            if ring and not ring.is_whole():
                self.gone += 1
                continue
            self.frames[header.sequence] = value
            self.on_device.append(isinstance(payload, ring_cuda.DeviceArray))
            self.order.append(header.sequence)
            self.lost = header.lost
            if len(self.order) == self.limit:
                return


def digests_of_file(path):
    with open(path, "rb") as file:
        return {header.sequence: digest(payload) for header, payload in consume.read_frames(file)}
