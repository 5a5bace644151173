"""libframed by ctypes: the structs of framed.h and wire.h, and the functions."""
import ctypes
from ctypes import POINTER, Structure, c_char, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint16
from ctypes import c_uint32, c_uint64, c_void_p

NEWEST, ONCE, CLIP = 1, 2, 1
HOST, CUDA, CUDA_IPC = 0, 1, 2


class Header(Structure):
    """struct framed_header"""

    _fields_ = [
        ("magic", c_char * 4), ("version", c_uint16), ("header_bytes", c_uint16), ("payload_bytes", c_uint64),
        ("sequence", c_uint64), ("lost", c_uint64), ("pts_ns", c_int64), ("epoch", c_uint32), ("flags", c_uint32),
        ("capture_ns", c_int64), ("received_ns", c_int64), ("decoded_ns", c_int64), ("finished_ns", c_int64),
        ("width", c_uint32), ("height", c_uint32), ("source_width", c_uint32), ("source_height", c_uint32),
        ("format", c_char * 8), ("dtype", c_char * 4), ("layout", c_char * 4), ("planes", c_uint32),
        ("batch_index", c_uint32), ("plane_offset", c_uint64 * 4), ("plane_stride", c_uint32 * 4),
        ("src_to_dst", c_float * 6), ("dst_to_src", c_float * 6), ("camera", c_char * 24), ("output", c_char * 16),
    ]


class ElementHeader(Structure):
    """struct framed_element_header"""

    _fields_ = [
        ("header", Header), ("region", c_char * 24), ("parent_sequence", c_uint64), ("object", c_uint32),
        ("part", c_uint32), ("parts", c_uint32), ("reserved", c_char * 20),
    ]


class BatchHeader(Structure):
    """struct framed_batch"""

    _fields_ = [
        ("magic", c_char * 4), ("version", c_uint16), ("bytes", c_uint16), ("count", c_uint32), ("capacity", c_uint32),
        ("closed_by", c_uint32), ("header_bytes", c_uint32), ("element_bytes", c_uint64), ("payload_bytes", c_uint64),
        ("sequence", c_uint64), ("lost", c_uint64), ("opened_ns", c_int64), ("closed_ns", c_int64),
        ("finished_ns", c_int64), ("slot", c_uint32), ("elements", c_uint32), ("ticket", c_uint64),
        ("reserved", c_char * 32),
    ]


class View(Structure):
    """struct framed_view"""

    _fields_ = [
        ("data", c_void_p), ("bytes", c_uint64), ("memory", c_uint32), ("device", c_int32), ("header", Header),
        ("batch", BatchHeader), ("elements", c_void_p), ("slot", c_uint32), ("memory_number", c_uint32),
        ("ticket", c_uint64), ("state", c_void_p), ("connection", c_uint64), ("offset", c_uint64), ("memory_bytes", c_uint64),
        ("shared", c_char_p), ("ipc_handle", c_void_p), ("reserved", c_uint64 * 2),
    ]


class Counts(Structure):
    """struct framed_counts"""

    _fields_ = [(name, c_uint64) for name in ("frames", "skipped", "torn", "lost", "connections", "results", "unsent")]


def load():
    try:
        library = ctypes.CDLL("libframed.so.1", use_errno=True)
    except OSError as error:
        raise ImportError(f"framedio needs libframed.so.1 (Debian: libframed1): {error}") from None
    for name, result, *arguments in (
        ("open", c_void_p, c_char_p, c_uint),
        ("next", c_int, c_void_p, POINTER(View), c_int),
        ("fd", c_int, c_void_p),
        ("whole", c_int, c_void_p, POINTER(View)),
        ("release", c_int, c_void_p, POINTER(View), c_void_p, c_int),
        ("send", c_int, c_void_p, POINTER(View), c_uint32, c_void_p, c_int, c_uint, c_uint32),
        ("close", None, c_void_p),
        ("error", c_char_p, c_void_p),
        ("count", None, c_void_p, POINTER(Counts)),
        ("hold", c_void_p, c_void_p),
        ("drop", None, c_void_p),
        ("to_source", None, POINTER(Header), c_void_p, c_size_t, c_size_t, c_uint),
        ("points_to_source", None, POINTER(Header), c_void_p, c_size_t, c_size_t, c_uint),
    ):
        function = getattr(library, f"framed_{name}")
        function.restype, function.argtypes = result, arguments
    return library


libframed = load()
