"""Detections as rows x1, y1, x2, y2, score, class, and, with seven columns, track: arrays of numpy if it is installed, else
lists of tuples. In C they are struct framed_detection."""
import ctypes
import struct

DETECTION = struct.Struct("<5fHHq")
DETECTION_BYTES = 32


def numpy_or_none():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def on_host(array):
    """Returns an array of PyTorch or CuPy, which may be on a GPU, for numpy."""
    if hasattr(array, "detach"):
        return array.detach().cpu()
    return array.get() if hasattr(array, "__cuda_array_interface__") else array


def rows_of(address, count):
    """Copies `count` of C's detections: x1, y1, x2, y2, score, class."""
    raw = ctypes.string_at(address, count * DETECTION_BYTES)
    numpy = numpy_or_none()
    if numpy is None:
        return [row[:6] for row in DETECTION.iter_unpack(raw)]
    floats = numpy.frombuffer(raw, "<f4").reshape(count, 8)
    rows = floats[:, :6].copy()
    rows[:, 5] = floats.view("<i4")[:, 5]  # the class, and flags that are 0
    return rows


def _matrix_of(numpy, rows):
    matrix = numpy.asarray(on_host(rows), "f8")
    if matrix.size == 0:
        return numpy.empty((0, 6))
    if matrix.ndim != 2 or matrix.shape[1] < 6:
        raise ValueError(f"detections of n x 6 are wanted (x1 y1 x2 y2 score class), not {matrix.shape}")
    if not ((0 <= matrix[:, 5]) & (matrix[:, 5] < 65536)).all():
        raise ValueError("classes are 0 to 65535")
    return matrix


def packed(rows, with_track=True):
    """Returns the bytes of C's detections, and their number. ValueError: rows of another shape."""
    numpy = numpy_or_none()
    if numpy is None or isinstance(rows, (list, tuple)):
        if any(len(row) < 6 for row in rows):
            raise ValueError("rows of x1, y1, x2, y2, score, class are wanted")
        if not all(0 <= row[5] < 65536 for row in rows):
            raise ValueError("classes are 0 to 65535")
        tracks = (int(row[6]) if with_track and len(row) > 6 else 0 for row in rows)
        return b"".join(DETECTION.pack(*map(float, row[:5]), int(row[5]), 0, track) for row, track in zip(rows, tracks)), len(rows)
    matrix = _matrix_of(numpy, rows)
    detections = numpy.zeros(len(matrix), [("f", "<f4", 5), ("class_id", "<u2"), ("flags", "<u2"), ("track", "<i8")])
    detections["f"], detections["class_id"] = matrix[:, :5], matrix[:, 5]
    if with_track and matrix.shape[1] > 6:
        detections["track"] = matrix[:, 6]
    return detections.tobytes(), len(matrix)
