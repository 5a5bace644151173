"""Merges the detections of a picture's tiles into one list."""
import ctypes

from .library import libframed
from .rows import DETECTION_BYTES, numpy_or_none, packed, rows_of

METRICS = {"iou": 0, "ios": 1}
MODES = {"nms": 0, "nmm": 2}
AGNOSTIC = 4


def _one_list(detections, numpy):
    """Returns all rows of an array, or of a list's arrays."""
    if not isinstance(detections, (list, tuple)) or not detections:
        return detections
    if numpy is None:
        lists = isinstance(detections[0], list) or not detections[0]
        return [row for rows in detections for row in rows] if lists else detections
    parts = [numpy.asarray(part) for part in detections]
    if all(part.ndim == 1 and part.size for part in parts):  # rows, not lists of them
        return numpy.asarray(detections)
    parts = [part for part in parts if part.size]
    return numpy.concatenate(parts) if parts else numpy.empty((0, 6), "f4")


def merge(detections, metric="ios", threshold=0.5, mode="nms", agnostic=False):
    """Merges detections in source pixels from several tiles of one picture; returns the remaining ones, best first.

    detections: an array of n x 6 (x1 y1 x2 y2 score class) or more columns, or a list of such arrays, as detect() returns
    for a batch. Further columns stay with their boxes.
    metric: "ios", shared area by the smaller box's, or "iou", by the union's. A box is removed in favour of the best kept
    box that it overlaps by more than `threshold`, 0 to 1, and that has its class, or any class with `agnostic`.
    mode: "nms": the kept box is unchanged; "nmm": it becomes the hull of itself and all boxes removed in its favour.
    """
    if metric not in METRICS or mode not in MODES:
        raise ValueError(f'metric is "ios" or "iou" and mode "nms" or "nmm", not {metric!r} and {mode!r}')
    numpy = numpy_or_none()
    rows = _one_list(detections, numpy)
    boxes, count = packed(rows, with_track=False)
    to, source = ctypes.create_string_buffer(max(count, 1) * DETECTION_BYTES), (ctypes.c_int32 * max(count, 1))()
    flags = METRICS[metric] | MODES[mode] | (AGNOSTIC if agnostic else 0)
    left = libframed.framed_merge(to, source, boxes, count, threshold, flags)
    if left < 0:
        raise ValueError(f"threshold is 0 to 1, not {threshold}")
    merged = rows_of(ctypes.addressof(to), left)
    if numpy is None:
        return [(*row[:4], *rows[at][4:]) for row, at in zip(merged, source)]
    if count == 0:
        return merged
    kept = numpy.asarray(rows)[numpy.frombuffer(source, "i4", left)]
    kept[:, :4] = merged[:, :4]
    return kept
