"""build/bench-detect from Python: parameters as in kernels/detect.h, tensors and results in numpy."""
import ctypes
import os
import subprocess

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
HEADS = ["yolov8", "yolov5", "yolox", "end2end", "detr", "efficientnms", "tflite"]
PLAIN, SIGMOID, SOFTMAX = range(3)
GREEDY, FAST, SOFT, KEEP = range(4)
F32, F16, BF16, S8, U8, S32, S64 = range(7)
DTYPES = {"float32": F32, "float16": F16, "int8": S8, "uint8": U8, "int32": S32, "int64": S64}
DETECTION = np.dtype([("box", "<f4", 4), ("score", "<f4"), ("label", "<i4"), ("anchor", "<u4"), ("angle", "<f4")])
SUMMARY = np.dtype([("count", "<u4"), ("flags", "<u4"), ("candidates", "<u4"), ("dropped", "<u4")])


class Format(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("scale", ctypes.c_float), ("zero", ctypes.c_int32)]


class Params(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_uint32), ("head", ctypes.c_int),
        ("width", ctypes.c_int32), ("height", ctypes.c_int32), ("anchors", ctypes.c_int32), ("classes", ctypes.c_int32),
        ("planes", ctypes.c_bool), ("normalised", ctypes.c_bool), ("rotated", ctypes.c_bool),
        ("strides", ctypes.c_int32 * 4),
        ("keypoints", ctypes.c_int32), ("keypoint_columns", ctypes.c_int32), ("coefficients", ctypes.c_int32),
        ("activation", ctypes.c_int), ("format", Format * 4),
        ("conf", ctypes.c_float), ("class_conf", ctypes.c_void_p), ("class_list", ctypes.c_void_p),
        ("multi_label", ctypes.c_bool), ("candidates", ctypes.c_int32),
        ("width_min", ctypes.c_float), ("width_max", ctypes.c_float),
        ("height_min", ctypes.c_float), ("height_max", ctypes.c_float),
        ("suppression", ctypes.c_int), ("iou", ctypes.c_double), ("soft_floor", ctypes.c_float),
        ("agnostic", ctypes.c_bool), ("compat_ultralytics", ctypes.c_bool), ("offset", ctypes.c_int32),
        ("max_det", ctypes.c_int32), ("clip", ctypes.c_bool), ("quads", ctypes.c_bool),
    ]


class Merge(ctypes.Structure):
    _fields_ = [("metric", ctypes.c_int), ("absorb", ctypes.c_bool), ("agnostic", ctypes.c_bool),
                ("threshold", ctypes.c_double), ("max_det", ctypes.c_int32)]


def params_of(head, tensors, classes, **rules):
    """Returns the parameters for tensors whose first has a row, or with planes a column, for each anchor."""
    params = Params(ctypes.sizeof(Params), HEADS.index(head), 640, 640, 0, classes, conf=0.25, iou=0.45, max_det=300)
    for name, value in rules.items():
        if name not in ("class_conf", "class_list"):
            setattr(params, name, value)
    params.anchors = tensors[0].shape[1 if params.planes else 0]
    for i, tensor in enumerate(tensors):
        params.format[i] = Format(DTYPES[tensor.dtype.name], 1, 0)
    return params


def request_of(params, tensors, matrix=(1, 0, 0, 0, 1, 0), size=(640, 640), class_conf=None, class_list=None):
    tables = b""
    if class_conf is not None:
        params.class_conf, tables = 1, np.asarray(class_conf, "<f4").tobytes()
    if class_list is not None:
        params.class_list, tables = 1, tables + np.asarray(class_list, "u1").tobytes()
    place = np.asarray(matrix, "<f8").tobytes() + np.asarray(size, "<i4").tobytes()
    return bytes(params) + tables + place + b"".join(np.ascontiguousarray(t).tobytes() for t in tensors)


class Program:
    def __init__(self):
        self.path = os.path.join(ROOT, os.environ.get("B", "build"), "bench-detect")
        self.child = subprocess.Popen([self.path, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.child.stdin.close()
        return self.child.wait()

    def answer(self, request):
        self.child.stdin.write(request)
        self.child.stdin.flush()
        return self.child.stdout.read(int.from_bytes(self.child.stdout.read(8), "little"))

    def detect(self, head, tensors, classes, matrix=(1, 0, 0, 0, 1, 0), size=(640, 640), class_conf=None,
               class_list=None, **rules):
        """Returns (summary, detections, quads or None, extra columns)."""
        params = params_of(head, tensors, classes, **rules)
        data = self.answer(request_of(params, tensors, matrix, size, class_conf, class_list))
        summary = np.frombuffer(data, SUMMARY, 1)[0]
        count, room = int(summary["count"]), params.max_det
        found = np.frombuffer(data, DETECTION, count, SUMMARY.itemsize)
        at = SUMMARY.itemsize + room * DETECTION.itemsize
        quads = None
        if params.quads:
            quads = np.frombuffer(data, "<f4", 8 * count, at).reshape(count, 4, 2)
            at += room * 32
        extra = params.keypoints * params.keypoint_columns + params.coefficients
        return summary, found, quads, np.frombuffer(data, "<f4", extra * count, at).reshape(count, extra)

    def merge(self, found, **rules):
        """Returns (merged detections, the index in `found` of each)."""
        head = bytes(4) + np.asarray(len(found), "<i4").tobytes() + bytes(Merge(**rules))
        data = self.answer(head + np.ascontiguousarray(found).tobytes())
        count = len(data) // (DETECTION.itemsize + 4)
        return np.frombuffer(data, DETECTION, count), np.frombuffer(data, "<i4", count, count * DETECTION.itemsize)

    def time(self, request, runs, pictures=0):
        """Returns (median ms, candidates, kept, processor) of a repeated request; with `pictures` on CUDA, of a batch."""
        how = ["cuda", str(runs), str(pictures)] if pictures else ["time", str(runs)]
        done = subprocess.run([self.path, *how], input=request, capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        ms, candidates, kept, processor = done.stdout.decode().split()
        return float(ms), int(candidates), int(kept), processor
