"""DLPack capsules of memory on a GPU. Each is one malloc block whose deleter is free: it keeps nothing alive, since the
frame is valid only until the next request."""
import ctypes
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

CPU, CUDA = 1, 2
READ_ONLY = 1
CODES = {"|i1": (0, 8), "|u1": (1, 8), "<f2": (2, 16), "<f4": (2, 32)}  # (kind, bits)
DIMENSIONS_MAX = 4


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", c_void_p), ("strides", c_void_p), ("byte_offset", c_uint64),
    ]


class Managed(ctypes.Structure):
    """The struct before version 1."""

    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p), ("sizes", c_int64 * DIMENSIONS_MAX)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
        ("tensor", Tensor), ("sizes", c_int64 * DIMENSIONS_MAX),
    ]


NAMES = {Managed: b"dltensor", Versioned: b"dltensor_versioned"}  # a capsule keeps no copy of its name


def capsule_of(payload, typestr, max_version):
    kind = Versioned if max_version and max_version[0] >= 1 else Managed
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = c_void_p, [ctypes.c_size_t]
    block = libc.malloc(ctypes.sizeof(kind))
    if not block:
        raise MemoryError
    ctypes.memset(block, 0, ctypes.sizeof(kind))
    made = kind.from_address(block)
    made.deleter = ctypes.cast(libc.free, c_void_p)
    if kind is Versioned:
        made.major, made.minor, made.flags = 1, 0, READ_ONLY
    made.sizes[: len(payload.shape)] = payload.shape
    device_type, device_id = payload.__dlpack_device__()
    code, bits = CODES[typestr]
    made.tensor = Tensor(payload.pointer, device_type, device_id, len(payload.shape), code, bits, 1,
                         block + kind.sizes.offset, None, 0)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
    return new(block, NAMES[kind], None)
