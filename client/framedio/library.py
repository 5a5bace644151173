"""libframed by ctypes: the structs of framed.h and wire.h, and the functions."""
import ctypes
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

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
        ("part", c_uint32), ("parts", c_uint32), ("scene", c_uint32), ("fingerprint", c_uint64),
        ("luma_mean", c_float), ("sharpness", c_float),
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


class Format(Structure):
    """struct framed_format"""

    _fields_ = [("dtype", c_uint32), ("scale", c_float), ("zero", c_int32)]


class Model(Structure):
    """struct framed_model"""

    _fields_ = [
        ("bytes", c_uint32), ("head", c_uint32), ("width", c_int32), ("height", c_int32), ("anchors", c_int32),
        ("classes", c_int32), ("pictures", c_int32), ("memory", c_uint32), ("device", c_int32), ("activation", c_uint32),
        ("planes", c_uint8), ("normalised", c_uint8), ("rotated", c_uint8), ("multi_label", c_uint8),
        ("agnostic", c_uint8), ("compat_ultralytics", c_uint8), ("clip", c_uint8), ("quads", c_uint8),
        ("strides", c_int32 * 4), ("keypoints", c_int32), ("keypoint_columns", c_int32), ("coefficients", c_int32),
        ("format", Format * 4), ("conf", c_float), ("class_conf", c_void_p), ("class_list", c_void_p),
        ("iou", c_double), ("suppression", c_uint32), ("soft_floor", c_float), ("candidates", c_int32),
        ("max_det", c_int32), ("offset", c_int32), ("width_min", c_float), ("width_max", c_float),
        ("height_min", c_float), ("height_max", c_float), ("reserved", c_uint64 * 16),
    ]


class Output(Structure):
    """struct framed_output"""

    _fields_ = [("tensor", c_void_p * 4), ("stream", c_void_p), ("reserved", c_uint64 * 4)]


class Found(Structure):
    """struct framed_found"""

    _fields_ = [
        ("count", c_uint32), ("flags", c_uint32), ("candidates", c_uint32), ("dropped", c_uint32),
        ("detections", c_void_p), ("anchors", c_void_p), ("angles", c_void_p), ("quads", c_void_p),
        ("keypoints", c_void_p), ("coefficients", c_void_p), ("extra_stride", c_uint64), ("reserved", c_uint64 * 4),
    ]


class Place(Structure):
    """struct framed_place"""

    _fields_ = [("memory", c_uint32), ("device", c_int32), ("stream", c_void_p), ("reserved", c_uint64 * 4)]


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
        ("model_init", None, POINTER(Model), c_uint32),
        ("detector_open", c_void_p, POINTER(Model), POINTER(c_char_p)),
        ("detector_close", None, c_void_p),
        ("detector_error", c_char_p, c_void_p),
        ("detect_headers", c_int, c_void_p, POINTER(Output), c_void_p, c_size_t, POINTER(Found), c_int),
        ("merge", c_int, c_void_p, c_void_p, c_void_p, c_int, c_double, c_uint),
        ("trilinear_forward", c_int, *[c_void_p] * 3, c_uint64, c_uint64, POINTER(Place)),
        ("trilinear_backward", c_int, *[c_void_p] * 5, c_uint64, c_uint64, POINTER(Place)),
        ("points_to_source", None, POINTER(Header), c_void_p, c_size_t, c_size_t, c_uint),
    ):
        function = getattr(library, f"framed_{name}")
        function.restype, function.argtypes = result, arguments
    return library


libframed = load()
