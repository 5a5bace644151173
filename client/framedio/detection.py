"""Turns a network's raw output into boxes in the camera's picture, by libframed."""
import ctypes
import os
import threading
from collections import OrderedDict

from .arrays import array_of
from .frame import Batch, Element, Frame, Torn
from .heads import HEADS, layout_of, tensors_of
from .library import CUDA, HOST, ElementHeader, Found, Header, Model, Output, libframed
from .rows import numpy_or_none, rows_of

DTYPES = {name: number for number, name in enumerate(("f32", "f16", "bf16", "s8", "u8", "s32", "s64"))}
ACTIVATIONS = {name: number for number, name in enumerate(("plain", "sigmoid", "softmax"))}
SUPPRESSIONS = {name: number for number, name in enumerate(("greedy", "fast", "soft", "keep"))}
CUT = 1
DETECTORS_MAX = 16
OWN = threading.local()  # each detector belongs to one thread


class Extras:
    """More results of detect() for a picture, with extras=True; numpy arrays if numpy is installed.

    anchors: n, rows of the output. angles: n, radians in the source, of rotated boxes. quads: n x 4 x 2, the corners.
    keypoints: n x keypoints x columns, in source pixels. coefficients: n x coefficients, for masks for example. None: there
    are none. candidates: number of scores above their thresholds. dropped: number of boxes that were not finite. cut: True
    if there were more candidates than were processed.
    """

    def __init__(self, found, model):
        points = model.keypoints, model.keypoint_columns
        self.candidates, self.dropped, self.cut = found.candidates, found.dropped, bool(found.flags & CUT)
        self.anchors = _copied(found.anchors, ctypes.c_uint32, found.count, 1, 1, ())
        self.angles = _copied(found.angles, ctypes.c_float, found.count, 1, 1, ())
        self.quads = _copied(found.quads, ctypes.c_float, found.count, 8, 8, (4, 2))
        self.keypoints = _copied(found.keypoints, ctypes.c_float, found.count, found.extra_stride, points[0] * points[1], points)
        self.coefficients = _copied(found.coefficients, ctypes.c_float, found.count, found.extra_stride, model.coefficients,
                                    (model.coefficients,))


def _copied(address, kind, count, stride, columns, shape):
    """Copies count rows of `columns` numbers, `stride` apart, as count x shape; returns None without an address."""
    if not address:
        return None
    numbers = (kind * (max(count - 1, 0) * stride + (columns if count else 0))).from_address(address)[:]
    rows = [numbers[at * stride : at * stride + columns] for at in range(count)]
    numpy = numpy_or_none()
    if numpy is None:
        return rows if shape else [row[0] for row in rows]
    return numpy.array(rows, "u4" if kind is ctypes.c_uint32 else "f4").reshape(count, *shape)


class Detector:
    """libframed's detector for outputs of one shape and one set of options."""

    def __init__(self, arrays, size, head, conf, iou, classes, planes, activation, multi_label, agnostic, compat_ultralytics,
                 only, max_det, candidates, suppression, normalised, rotated, keypoints, coefficients, strides, offset,
                 scale, zero, width, height, clip, quads):
        model = self.model = Model()
        libframed.framed_model_init(model, HEADS.index(head))
        model.width, model.height = size
        model.keypoints, model.keypoint_columns = keypoints or (0, 0)
        model.rotated, model.coefficients = rotated, coefficients
        extra = model.keypoints * model.keypoint_columns + coefficients + rotated
        layout = layout_of(head, arrays, size, classes, planes, activation == "softmax", extra)
        model.pictures, model.anchors, model.classes, model.planes = layout
        model.memory, model.device = (HOST, 0) if arrays[0].device is None else (CUDA, arrays[0].device)
        if len(strides) > len(model.strides):
            raise ValueError(f"strides: {len(model.strides)} at most, not {len(strides)}")
        if scale is not None and not any(array.dtype in ("s8", "u8") for array in arrays):
            raise ValueError(f"scale= is of outputs of s8 and u8, not of {arrays[0].dtype}")
        if any(array.device != arrays[0].device for array in arrays):
            raise ValueError("the tensors of an output lie on several devices")
        for at, array in enumerate(arrays):
            if array.dtype in ("s8", "u8") and scale is None:
                raise ValueError(f"an output of {array.dtype} has a scale and a zero point: scale= and zero= are wanted")
            if array.dtype not in DTYPES:
                raise ValueError(f"an output of {array.dtype}: {', '.join(DTYPES)} are known")
            model.format[at] = DTYPES[array.dtype], 1 if scale is None else scale, zero
        model.multi_label, model.agnostic, model.compat_ultralytics = multi_label, agnostic, compat_ultralytics
        model.clip, model.quads, model.iou, model.offset = clip, quads, iou, offset
        model.max_det, model.candidates = max_det, candidates
        (model.width_min, model.width_max), (model.height_min, model.height_max) = width, height
        model.strides[: len(strides)] = strides
        if activation is not None:
            model.activation = _number_of(ACTIVATIONS, "activation", activation)
        if suppression is not None:
            model.suppression = _number_of(SUPPRESSIONS, "suppression", suppression)
        if normalised is not None:
            model.normalised = normalised
        self._choose(conf, only)
        self._open()

    def _choose(self, conf, only):
        """Sets the selected classes and their thresholds."""
        classes = self.model.classes
        if isinstance(conf, tuple):
            if len(conf) != classes:
                raise ValueError(f"{len(conf)} thresholds for {classes} classes")
            self.class_conf = (ctypes.c_float * classes)(*conf)
            self.model.class_conf = ctypes.addressof(self.class_conf)
        else:
            self.model.conf = conf
        if only is not None:
            if not all(0 <= number < classes for number in only):
                raise ValueError(f"only: class numbers from 0 to {classes - 1}")
            self.class_list = (ctypes.c_uint8 * classes)(*(number in only for number in range(classes)))
            self.model.class_list = ctypes.addressof(self.class_list)

    def _open(self):
        why = ctypes.c_char_p()
        self.output, self.found = Output(), (Found * self.model.pictures)()
        self.handle = libframed.framed_detector_open(self.model, why)
        if not self.handle:
            error = ctypes.get_errno()
            text = (why.value or os.strerror(error).encode()).decode()
            raise OSError(error, text) if self.model.memory == CUDA else ValueError(text)

    def __del__(self, close=libframed.framed_detector_close):
        close(getattr(self, "handle", None))

    def run(self, arrays, address, stride, pictures, stream):
        """Returns the results of each picture. address: the first picture's header; the others follow at stride."""
        for at, array in enumerate(arrays):
            self.output.tensor[at] = array.pointer
        self.output.stream = stream
        if libframed.framed_detect_headers(self.handle, self.output, address, stride, self.found, pictures) < 0:
            raise ValueError(libframed.framed_detector_error(self.handle).decode())
        return self.found[:pictures]


def _number_of(names, what, name):
    if name not in names:
        raise ValueError(f"{what} is {', '.join(names)}, not {name!r}")
    return names[name]


def _plain(value):
    """Returns a value for comparing options: numbers unchanged, sequences as tuples."""
    return tuple(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


def _detector_of(arrays, size, options):
    """Returns this thread's detector for such arrays and options, from its most recent ones."""
    key = (size, *options, *((array.shape, array.dtype, array.device) for array in arrays))
    kept = OWN.__dict__.setdefault("detectors", OrderedDict())
    detector = kept.get(key)
    if detector is None:
        detector = kept[key] = Detector(arrays, size, *options)
        if len(kept) > DETECTORS_MAX:
            kept.popitem(last=False)
    else:
        kept.move_to_end(key)
    return detector


def _headers_of(frame):
    """Returns (header with the size, address of the first, bytes to the next, count; None: a single picture, not a list)."""
    if isinstance(frame, Batch):
        return frame.header, ctypes.addressof(frame.headers), ctypes.sizeof(ElementHeader), len(frame)
    header = frame if isinstance(frame, Header) else getattr(frame, "header", None)
    if not isinstance(header, Header):
        raise TypeError(f"a Frame, a Batch, an element of a batch or a header is wanted, not a {type(frame).__name__}")
    return header, ctypes.addressof(header), 0, None


def detect(output, frame, head="yolov8", conf=0.25, iou=0.45, *, classes=None, planes=None, activation=None,
           multi_label=False, agnostic=False, compat_ultralytics=False, only=None, max_det=300, candidates=0,
           suppression=None, normalised=None, rotated=False, keypoints=None, coefficients=0, strides=(), offset=0,
           scale=None, zero=0, width=(0, 0), height=(0, 0), clip=True, quads=False, extras=False, stream=None):
    """Returns boxes in the camera's picture from a network's raw output, decoded, filtered, without duplicates and mapped:
    for a frame an array n x 6 of x1, y1, x2, y2, score, class, best first; for a batch a list of them, as long as the
    batch. Without numpy they are lists of tuples. The boxes are the same on every CPU and GPU.

    output: the network's output: an array of numpy, PyTorch or CuPy, an OrtValue, or any object with __array_interface__,
    __cuda_array_interface__ or __dlpack__, on the host or on a GPU; a list if the head has several. It is read in place and
    must be contiguous. f32, f16, bf16; s8 and u8 with `scale` and `zero`: (element - zero) * scale.
    frame: the Frame, Batch or batch element that the network read, or a header; its matrix maps the boxes. A batch's output
    has at least as many pictures as the batch. Torn is raised if framed took the frame away before this call: the output
    may be of two frames.
    head: the format of the output, for each picture. N: anchors; C: classes. "extra": columns of keypoints, then of
    coefficients, then an angle if boxes are rotated.
        "yolov8"   N x (cx cy w h, C scores, extra), or transposed: YOLOv8, v9, 11, 12, v6
        "yolov5"   N x (cx cy w h, objectness, C scores, extra), or transposed: v5, v7
        "yolox"    the same; `strides` (8, 16, 32) if cells and logarithms are not decoded yet
        "end2end"  N x (x1 y1 x2 y2, score, class, extra): v10, YOLO26
        "detr"     N x (cx cy w h) of 0..1 and N x C logits: RT-DETR, D-FINE, RF-DETR; DETR with activation="softmax"
        "efficientnms"  count, boxes, scores, classes, in TensorRT's order or as a dict of these names
        "tflite"   boxes (y1 x1 y2 x2 of 0..1), classes, scores, count, in its order or as a dict of these names
    conf: scores above it are candidates; one number, or one per class. only: numbers of the classes to keep.
    iou: a box is removed if its overlap with a better one of its class is larger. agnostic: of any class.
    classes, planes: the number of classes, and True if the output is columns x N instead of N x columns. Both follow from
    the output's shape and the frame's size unless both ways are possible; then ValueError requests one of them.
    activation: of scores: "plain", "sigmoid", "softmax"; None: the head's default.
    multi_label: every class above its threshold, not only an anchor's best. compat_ultralytics: separates classes by 7680
    pixels each, which costs precision.
    suppression: "greedy", "fast" (removed boxes also suppress), "soft" (lowers scores), "keep" (none); None: the head's
    default. max_det: boxes per picture. candidates: how many of the best are processed; 0: 30,000, on a GPU 8,192.
    normalised: True if boxes are 0..1 of the input; None: the head's default. rotated: boxes have an angle.
    keypoints: (count, columns of each), for example (17, 3). coefficients: their number, for example 32 for masks.
    offset: 1: sides are x2 - x1 + 1, for old mmdetection models. width, height: (min, max) in source pixels; 0: any.
    clip: clip boxes to the picture. quads: also return the corners of each box. stream: the CUDA stream that makes the
    output, if its library does not report it.
    extras: also return Extras: (boxes, Extras), for a batch two lists.
    """
    if head not in HEADS:
        raise ValueError(f"head is {', '.join(HEADS)}, not {head!r}")
    header, address, stride, count = _headers_of(frame)
    arrays = [array_of(tensor) for tensor in tensors_of(head, output)]
    options = (head, _plain(conf), iou, classes, planes, activation, multi_label, agnostic, compat_ultralytics, _plain(only),
               max_det, candidates, suppression, normalised, rotated, _plain(keypoints), coefficients, _plain(strides),
               offset, scale, zero, _plain(width), _plain(height), clip, quads)
    detector = _detector_of(arrays, (header.width, header.height), options)
    pictures = detector.model.pictures
    if (count or 1) > pictures or (count is None and pictures > 1):
        raise ValueError(f"an output of {pictures} pictures for {'one' if count is None else count}")
    whole = frame.batch if isinstance(frame, Element) else frame
    if isinstance(whole, (Frame, Batch)) and not whole.whole:
        how = "taken away" if whole.valid else "given back"
        raise Torn(f"frame {header.sequence} was {how} before its output was read")
    found = detector.run(arrays, address, stride, count or 1, arrays[0].stream if stream is None else stream)
    boxes = [rows_of(picture.detections, picture.count) for picture in found]
    if not extras:
        return boxes[0] if count is None else boxes
    beside = [Extras(picture, detector.model) for picture in found]
    return (boxes[0], beside[0]) if count is None else (boxes, beside)
