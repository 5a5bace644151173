#!/usr/bin/python3
"""framedio with frames and outputs on a GPU: PyTorch and CuPy see the ring's own memory, and detect() finds the same in an output on the GPU as on
the host. Skipped without a GPU and PyTorch."""
import ctypes
import os
import socket
import sys

import numpy
from cuda_client import torch
from framed_client import PATIENCE, Checks, folder, framedio_environment
from ring_sender import RingSender, consume

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio
from framedio.library import Header

ON_DEVICE, DESCRIPTOR, PINNED, READ_WRITE = 1, 1, 1, 3


class Properties(ctypes.Structure):
    """CUmemAllocationProp"""

    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int),
                ("metadata", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    """CUmemAccessDesc"""

    _fields_ = [("place", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]


class CudaRing(RingSender):
    """The sender's ring, with its slots in device memory that another process could import."""

    def accept(self):
        driver, handle, granule = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_size_t()
        properties, access = Properties(PINNED, DESCRIPTOR, ON_DEVICE, 0), Access(ON_DEVICE, 0, READ_WRITE)
        self.address, exported, uuid = ctypes.c_uint64(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
        for failed in (
            driver.cuMemGetAllocationGranularity(ctypes.byref(granule), ctypes.byref(properties), 0),
            driver.cuMemCreate(ctypes.byref(handle), granule, ctypes.byref(properties), ctypes.c_uint64(0)),
            driver.cuMemExportToShareableHandle(ctypes.byref(exported), handle, DESCRIPTOR, ctypes.c_uint64(0)),
            driver.cuMemAddressReserve(ctypes.byref(self.address), granule, ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0)),
            driver.cuMemMap(self.address, granule, ctypes.c_size_t(0), handle, ctypes.c_uint64(0)),
            driver.cuMemSetAccess(self.address, granule, ctypes.byref(access), ctypes.c_size_t(1)),
            driver.cuDeviceGetUuid(ctypes.byref(uuid), 0),
        ):
            if failed:
                raise OSError(f"CUDA's error {failed}")
        self.driver = driver
        memfd, self.peer = self.words(), self.listener.accept()[0]
        fields = (b"FRNG", 1, 256, self.SLOTS, 1, 0, self.BYTES, self.BYTES, self.STATE, self.LENGTH, granule.value,
                  bytes(uuid), 0, 0)
        socket.send_fds(self.peer, [consume.HELLO.pack(*fields).ljust(256, b"\0")], [memfd, exported.value])

    def write(self, slot, values):
        self.driver.cuMemcpyHtoD_v2(ctypes.c_uint64(self.address.value + slot * self.BYTES), values, ctypes.c_size_t(len(values)))


class Ort:
    """Imitates an OrtValue on a GPU."""

    def __init__(self, tensor):
        self.tensor = tensor

    def data_ptr(self):
        return self.tensor.data_ptr()

    def shape(self):
        return list(self.tensor.shape)

    def data_type(self):
        return "tensor(float)"

    def device_name(self):
        return "Cuda"


def import_cupy():
    try:
        import cupy
    except ImportError:
        return None
    return cupy


def check_frames(checks, where, cupy):
    sender = CudaRing(where)
    with framedio.open(f"ring:{sender.path}", timeout=10 * PATIENCE) as reader:
        reader.poll()
        sender.accept()
        for ticket in (5, 6):
            slot, values = ticket % 3, numpy.arange(192, dtype="u1") + ticket
            sender.write(slot, values.tobytes())
            sender.send(slot, None, ticket)
            frame = next(reader)
            wanted = values.reshape(3, 4, 16)
            checks.check(frame.on_gpu and frame.whole and frame.__dlpack_device__() == (2, 0), f"{frame}")
            forms = {"torch()": frame.torch, "from_dlpack": lambda: torch.from_dlpack(frame),
                     "as_tensor": lambda: torch.as_tensor(frame, device="cuda")}
            for name, form in forms.items():
                tensor = form()
                checks.check(tensor.data_ptr() == frame.pointer and tensor.is_cuda, f"{name}: a copy, or not on the GPU")
                checks.check((tensor.cpu().numpy() == wanted).all(), f"{name}: {tensor}")
            for name in ("cupy", "from_dlpack", "asarray") if cupy else ():
                seen = frame.cupy() if name == "cupy" else getattr(cupy, name)(frame)
                checks.check(seen.data.ptr == frame.pointer, f"cupy, {name}: a copy")
                checks.check((cupy.asnumpy(seen) == wanted).all(), f"cupy, {name}: {seen}")
            for refused in (frame.numpy, frame.keep, lambda: frame.data):
                try:
                    refused()
                    checks.check(False, "host memory from a GPU")
                except ValueError:
                    pass
        sender.hang_up()


def scene(random, anchors=8400, objects=40):
    output = numpy.zeros((84, anchors), "f4")
    output[:4] = random.random((4, anchors)) * 300 + 100
    for _ in range(objects):
        at = random.integers(anchors, size=12)
        output[:4, at] = random.random((4, 1)) * 300 + 100 + random.random((4, len(at))) * 4
        output[4 + random.integers(80), at] = random.uniform(0.3, 0.9, len(at))
    return output


def check_detect(checks, cupy):
    random = numpy.random.default_rng(1)
    header = Header(width=640, height=640, source_width=1920, source_height=1080)
    header.dst_to_src[:] = 3, 0, 1, 0, 3, -419
    output = scene(random)
    wanted = framedio.detect(output, header)
    checks.check(len(wanted) > 20, f"{len(wanted)} boxes")
    tensor = torch.from_numpy(output).cuda()
    forms = {"torch": tensor, "one picture": tensor[None], "rows": tensor.T.contiguous(), "OrtValue": Ort(tensor),
             "DLPack": type("Lent", (), {"__dlpack__": lambda self, **how: tensor.__dlpack__(**how),
                                         "__dlpack_device__": lambda self: tensor.__dlpack_device__()})()}
    if cupy:
        forms["cupy"] = cupy.asarray(output)
    torch.cuda.synchronize()
    for name, form in forms.items():
        checks.check(numpy.array_equal(framedio.detect(form, header), wanted), f"{name}: other boxes than on the host")
    half = tensor.half()
    checks.check(numpy.array_equal(framedio.detect(half, header), framedio.detect(half.cpu(), header)), "f16")
    boxes, extras = framedio.detect(tensor, header, extras=True)
    checks.check((output[4:, extras.anchors].max(0) == boxes[:, 4]).all(), "anchors")
    before = torch.cuda.current_device()
    stream, right = torch.cuda.Stream(), 0
    with torch.cuda.stream(stream):  # made after long work in its own stream: a reader that does not wait reads zeroes
        heavy = torch.rand(8192, 8192, device="cuda")
        for _ in range(10):
            late = torch.zeros_like(tensor)
            for _ in range(5):
                heavy = (heavy @ heavy).clamp(0, 1)
            late.copy_(tensor + heavy[0, 0] * 0)
            right += numpy.array_equal(framedio.detect(late, header), wanted)
    checks.check(right == 10, f"{right} of 10 outputs of another stream")
    checks.check(torch.cuda.current_device() == before, "another current device")


def main():
    checks = Checks("framedio_cuda")
    if not torch:
        checks.skip("no GPU with PyTorch")
        checks.end()
    cupy = import_cupy()
    with folder() as where:
        check_frames(checks, where, cupy)
    check_detect(checks, cupy)
    checks.end()


main()
