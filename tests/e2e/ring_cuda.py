"""Frames of a ring with `memory: cuda` as arrays on the GPU, by ctypes on libcuda alone; complements consume.py.

    ring = ring_cuda.Ring(consume.connect("ring:PATH"))
    for header, payload in ring.frames():
        tensor = torch.as_tensor(payload, device="cuda")

The tensor is the slot's own memory: finish with it (torch.cuda.synchronize) before requesting the next frame, then call ring.is_whole(): a slot that
is kept for too long is reused. ring.torn counts such frames. For a batch, the header is a consume.Batch and the tensor is N x C x H x W.
"""
import ctypes

import consume

POSIX_FILE_DESCRIPTOR = LOCATION_DEVICE = 1  # of CUDA's cuda.h
READ, READ_WRITE = 1, 3


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]


def call(name, *arguments):
    """Calls a function of libcuda; raises OSError for the error that it returns."""
    error = getattr(call.library, name)(*arguments)
    if error:
        text = ctypes.c_char_p()
        call.library.cuGetErrorString(error, ctypes.byref(text))
        raise OSError(f"{name}: {(text.value or b'?').decode()}")


def device_of(uuid):
    """Returns the local ordinal of the device with this UUID; framed's may differ."""
    count, device, found = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(16)
    call("cuDeviceGetCount", ctypes.byref(count))
    for ordinal in range(count.value):
        call("cuDeviceGet", ctypes.byref(device), ordinal)
        call("cuDeviceGetUuid", found, device)
        if found.raw == uuid:
            return device.value
    raise OSError("framed's GPU is not visible here")


class DeviceMemory:
    """An allocation of framed's, mapped here until the last reference to it goes."""

    def __init__(self, file, size, uuid):
        self.size, self.address = ctypes.c_size_t(size), ctypes.c_uint64()
        device, context, handle = device_of(uuid), ctypes.c_void_p(), ctypes.c_uint64()
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)  # the context that PyTorch uses
        call("cuCtxSetCurrent", context)
        call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(file), POSIX_FILE_DESCRIPTOR)
        call("cuMemAddressReserve", ctypes.byref(self.address), self.size, ctypes.c_size_t(0), ctypes.c_uint64(0),
             ctypes.c_uint64(0))
        call("cuMemMap", self.address, self.size, ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        call("cuMemRelease", handle)  # the mapping keeps the memory
        self.allow(device)

    def allow(self, device):
        """Allows reading; writing too where the driver has no read-only mappings."""
        for flags in (READ, READ_WRITE):
            access = Access(LOCATION_DEVICE, device, flags)
            try:
                return call("cuMemSetAccess", self.address, self.size, ctypes.byref(access), ctypes.c_size_t(1))
            except OSError:
                if flags == READ_WRITE:
                    raise

    def __del__(self):
        if self.address.value:
            call.library.cuMemUnmap(self.address, self.size)
            call.library.cuMemAddressFree(self.address, self.size)


class DeviceArray:
    """One frame or batch on the GPU."""

    def __init__(self, memory, offset, header):
        self.memory = memory
        shape, dtype = consume.shape_of(header)
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.replace("<u1", "|u1").replace("<i1", "|i1"),
            "data": (memory.address.value + offset, False),  # PyTorch rejects arrays marked read-only
            "version": 3,
        }


class Ring(consume.Ring):
    """A ring whose payloads are DeviceArrays, or memoryviews where framed's slots are on the host."""

    def __init__(self, peer):
        super().__init__(peer)
        call.library = ctypes.CDLL("libcuda.so.1")
        call("cuInit", 0)

    def map(self, hello, files):
        super().map(hello, files)
        self.device = DeviceMemory(files[1], hello.device_bytes, hello.device_uuid) if hello.memory == 1 else None

    def payload(self, header, slot):
        if not self.device:
            return super().payload(header, slot)
        return DeviceArray(self.device, self.hello.slot_offset + slot * self.hello.slot_stride, header)
