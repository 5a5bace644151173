#!/usr/bin/python3
"""Detection (kernels/detect.h) against torchvision's NMS, a reimplementation of Ultralytics' chain on torch and torchvision, and plain numpy for
every head, for mmcv's offset and rotated boxes, and for the merge of tiles."""
import os
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/bench/detect")]
import outputs
import program
from checks import Checks

try:
    import torch
    import torchvision

    import torch_chain
except ImportError:
    torch = None

ALL = {"conf": -1, "max_det": 4096, "agnostic": True}


def boxes_of(random, n, spread=200):
    """Returns (n, 4) f32 corners, many of them near each other."""
    first = random.uniform(0, spread, (n, 2))
    return np.concatenate((first, first + random.uniform(1, 80, (n, 2))), 1).astype(np.float32)


# --- torch


def check_torchvision(checks, server, random):
    unlike = 0
    for case in range(1200):
        n, ties = int(random.integers(1, 300)), case >= 1000
        boxes = boxes_of(random, n)
        scores = random.random(n, np.float32)
        if ties:
            boxes, scores = np.floor(boxes / 16) * 16, np.floor(scores * 8) / 8
        iou = float(random.choice([0.1, 0.25, 0.45, 0.5, 0.6, 0.7]))
        rows = np.concatenate((boxes, scores[:, None], np.zeros((n, 1))), 1).astype(np.float32)
        expected = torchvision.ops.nms(torch.from_numpy(rows[:, :4]), torch.from_numpy(rows[:, 4]), iou).tolist()
        found = server.detect("end2end", [rows], 1, suppression=program.GREEDY, iou=iou, **ALL)[1]
        unlike += found["anchor"].tolist() != expected
    checks.check(unlike == 0, f"torchvision.ops.nms: {unlike} of 1200 lists differ")


def check_ultralytics(checks, server, random):
    unlike, kept = [], 0
    for case in range(400):
        classes = int(random.choice([1, 2, 80]))
        output = outputs.scene(random, int(random.integers(0, 400)), 12, classes, 1200)
        rules = {"agnostic": bool(case & 1), "multi_label": bool(case & 2), "max_det": 20 if case & 4 else 300}
        chosen = random.permutation(classes)[:1 + classes // 2] if case & 8 else None
        if case & 16:
            output[4:] = np.floor(output[4:] * 16) / 16
        expected = torch_chain.suppress(torch.from_numpy(output)[None], classes, 0.04 if case & 32 else 0.25, 0.45,
                                        keep_classes=None if chosen is None else torch.from_numpy(chosen), **rules)
        listed = None if chosen is None else np.isin(np.arange(classes), chosen)
        found = server.detect("yolov8", [output], classes, planes=True, compat_ultralytics=True, class_list=listed,
                              conf=0.04 if case & 32 else 0.25, **rules)[1]
        expected = expected[0].numpy()
        kept += len(expected)
        same = len(found) == len(expected) and np.array_equal(found["box"], expected[:, :4])
        if not (same and np.array_equal(found["score"], expected[:, 4]) and np.array_equal(found["label"], expected[:, 5])):
            unlike.append(case)
    checks.check(not unlike and kept > 1000, f"Ultralytics' chain: {kept} boxes, unlike: {unlike}")


# --- every head in numpy: scores, classes and corners of the results without suppression


def corners(boxes):
    return np.concatenate((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2), 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def by_score(boxes, scores, conf):
    """Returns (anchors, corners, scores, classes) of the largest scores above conf, in order."""
    best, label = scores.max(1), scores.argmax(1)
    order = np.argsort(-best, kind="stable")
    order = order[best[order] > conf]
    return order, boxes[order], best[order], label[order]


def head_cases(random):
    """Yields (name, tensors, classes, rules, anchors, corners, scores, classes)."""
    n, c = 84, 7  # cells of 64 x 64 at strides of 8, 16 and 32
    raw = random.random((n, 5 + c), np.float32)
    raw[:, :4] = random.uniform(5, 60, (n, 4))
    yield "yolov8", [np.delete(raw, 4, 1)], c, {}, *by_score(corners(raw[:, :4]), raw[:, 5:], 0.25)
    yield "yolov8", [np.delete(raw, 4, 1).T], c, {"planes": True}, *by_score(corners(raw[:, :4]), raw[:, 5:], 0.25)
    half = raw.astype(np.float16)
    yield "yolov5", [half], c, {}, *by_score(corners(half[:, :4].astype(np.float32)),
                                             half[:, 4:5].astype(np.float32) * half[:, 5:].astype(np.float32), 0.25)
    small = raw.copy()
    small[:, :4] = random.uniform(-1, 1, (n, 4))
    cells = [((x, y), s) for s in (8, 16, 32) for y in range(64 // s) for x in range(64 // s)]
    place, stride = np.array([p for p, _ in cells]), np.array([[s] for _, s in cells])
    boxes = np.concatenate(((small[:, :2] + place) * stride, np.exp(small[:, 2:4]) * stride), 1)
    yield ("yolox", [small], c, {"strides": (8, 16, 32, 0), "width": 64, "height": 64},
           *by_score(corners(boxes), small[:, 4:5] * small[:, 5:], 0.25))
    listed = boxes_of(random, n)
    scores, labels = random.random(n, np.float32), random.integers(0, c, n)
    ordered = by_score(listed, scores[:, None], 0.25)
    ordered = (*ordered[:3], labels[ordered[0]])
    yield "end2end", [np.concatenate((listed, scores[:, None], labels[:, None]), 1).astype(np.float32)], c, {}, *ordered
    yield ("efficientnms", [listed, scores, labels.astype(np.int32), np.array([n], np.int32)], c, {}, *ordered)
    turned = (listed / 640)[:, [1, 0, 3, 2]]
    yield ("tflite", [turned, scores, labels.astype(np.float32), np.array([n], np.float32)], c, {"normalised": True},
           *ordered)
    centre, logits = random.random((n, 4), np.float32), random.normal(0, 3, (n, c + 1)).astype(np.float32)
    yield ("detr", [centre, logits[:, :c].copy()], c, {"normalised": True, "activation": program.SIGMOID},
           *by_score(corners(centre) * 640, sigmoid(logits[:, :c]), 0.25))
    power = np.exp(logits.astype(np.float64))
    yield ("detr", [centre, logits], c, {"normalised": True, "activation": program.SOFTMAX},
           *by_score(corners(centre) * 640, (power / power.sum(1, keepdims=True))[:, :c], 0.25))


def check_heads(checks, server, random):
    for _ in range(20):
        for head, tensors, classes, rules, anchors, boxes, scores, labels in head_cases(random):
            rules = dict(rules)
            strides = rules.pop("strides", None)
            if strides:
                rules["strides"] = (program.ctypes.c_int32 * 4)(*strides)
            found = server.detect(head, tensors, classes, suppression=program.KEEP, **rules)[1]
            good = (len(found) == len(anchors) and np.array_equal(found["anchor"], anchors)
                    and np.array_equal(found["label"], labels) and np.allclose(found["score"], scores, 1e-6, 1e-7)
                    and np.allclose(found["box"], boxes, 1e-5, 1e-4))
            checks.check(good and len(anchors) > 10, f"{head}, {rules}: {len(found)} of {len(anchors)}: {found[:3]}")


# --- mapping


def map_points(matrix, points):
    m = np.reshape(matrix, (2, 3))
    return (points - 0.5) @ m[:, :2].T + m[:, 2] + 0.5


def turned_corners(rows):
    """Returns corners, (n, 4, 2), from centre, sides and angle, in the order of kernels/detect_head.h."""
    c, s = np.cos(rows[:, 4]), np.sin(rows[:, 4])
    across = np.stack((c, s), 1) * rows[:, 2:3] / 2
    down = np.stack((-s, c), 1) * rows[:, 3:4] / 2
    return rows[:, None, :2] + np.stack((across + down, across - down, -across - down, down - across), 1)


def check_mapping(checks, server, random):
    for _ in range(50):
        matrix = random.normal(0, 2, 6)
        boxes = boxes_of(random, 40)
        points = random.uniform(0, 600, (40, 5, 3)).astype(np.float32)
        rows = np.concatenate((boxes, np.full((40, 1), 0.9), np.zeros((40, 1)), points.reshape(40, 15),
                               random.random((40, 4))), 1).astype(np.float32)
        _, found, quads, extra = server.detect("end2end", [rows], 1, matrix, keypoints=5, keypoint_columns=3,
                                               coefficients=4, suppression=program.KEEP, quads=True)
        expected = map_points(matrix, boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(40, 4, 2).astype(np.float64))
        hull = np.concatenate((expected.min(1), expected.max(1)), 1)
        at = np.concatenate((map_points(matrix, points[..., :2].astype(np.float64)), points[..., 2:]), 2).reshape(40, 15)
        checks.check(np.allclose(quads, expected, 1e-5, 1e-3) and np.allclose(found["box"], hull, 1e-5, 1e-3), "corners")
        checks.check(np.allclose(extra[:, :15], at, 1e-5, 1e-3) and np.array_equal(extra[:, 15:], rows[:, 21:]), "extra")
        rows = random.uniform(20, 60, (40, 7)).astype(np.float32)
        rows[:, 4:6], rows[:, 6] = (0.9, 0), random.uniform(-7, 7, 40)
        _, found, quads, _ = server.detect("end2end", [rows], 1, matrix, rotated=True, suppression=program.KEEP,
                                           quads=True)
        turned = rows[:, [0, 1, 2, 3, 6]].astype(np.float64)
        expected = map_points(matrix, turned_corners(turned))
        axis = np.stack((np.cos(turned[:, 4]), np.sin(turned[:, 4])), 1) @ np.reshape(matrix, (2, 3))[:, :2].T
        apart = np.angle(np.exp(1j * (found["angle"] - np.arctan2(axis[:, 1], axis[:, 0]))))
        checks.check(np.allclose(quads, expected, 1e-5, 1e-3) and np.abs(apart).max() < 1e-5, f"rotated: {apart}")


# --- mmcv: the offset of old models, and rotated boxes


def greedy(n, overlap, iou):
    kept = []
    for i in range(n):
        if all(not overlap(k, i) > iou for k in kept):
            kept.append(i)
    return kept


def upright_overlap(boxes, offset):
    boxes, one = boxes.astype(np.float32), np.float32(offset)
    area = (boxes[:, 2] - boxes[:, 0] + one) * (boxes[:, 3] - boxes[:, 1] + one)

    def overlap(i, j):
        low, high = np.maximum(boxes[i, :2], boxes[j, :2]), np.minimum(boxes[i, 2:], boxes[j, 2:])
        shared = np.prod(np.maximum(high - low + one, np.float32(0)))
        return float(shared / (area[i] + area[j] - shared))

    return overlap


def cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def quads_shared(a, b):
    """Returns the area common to two convex quads: the hull of corners inside the other quad and of edge crossings."""
    points = []
    for one, other in ((a, b), (b, a)):
        edges = np.roll(other, -1, 0) - other
        for point in one:
            sides = cross(edges, point - other)
            if (sides >= 0).all() or (sides <= 0).all():
                points.append(point)
    for p, d in zip(a, np.roll(a, -1, 0) - a):
        for q, e in zip(b, np.roll(b, -1, 0) - b):
            if abs(cross(d, e)) > 1e-12:
                t, u = cross(q - p, e) / cross(d, e), cross(q - p, d) / cross(d, e)
                if 0 <= t <= 1 and 0 <= u <= 1:
                    points.append(p + t * d)
    if len(points) < 3:
        return 0.0
    points = np.array(points) - np.mean(points, 0)
    points = points[np.argsort(np.arctan2(points[:, 1], points[:, 0]))]
    return abs(cross(points, np.roll(points, -1, 0)).sum()) / 2


def check_mmcv(checks, server, random):
    unlike, close = 0, 0
    for _ in range(150):
        n = int(random.integers(2, 60))
        boxes = np.floor(boxes_of(random, n, 60))
        rows = np.concatenate((boxes, np.linspace(1, 0.5, n)[:, None], np.zeros((n, 1))), 1).astype(np.float32)
        found = server.detect("end2end", [rows], 1, suppression=program.GREEDY, offset=1, iou=0.3, **ALL)[1]
        unlike += found["anchor"].tolist() != greedy(n, upright_overlap(boxes, 1), 0.3)
    checks.check(unlike == 0, f"an offset of 1: {unlike} of 150 lists differ")
    unlike = 0
    for _ in range(60):
        n = int(random.integers(2, 30))
        rows = random.uniform(0, 60, (n, 7)).astype(np.float32)
        rows[:, 2:4] += 2
        rows[:, 4], rows[:, 5], rows[:, 6] = np.linspace(1, 0.5, n), 0, random.uniform(-4, 4, n)
        quads = turned_corners(rows[:, [0, 1, 2, 3, 6]].astype(np.float64))
        area = (rows[:, 2] * rows[:, 3]).astype(np.float64)
        shared = {(i, j): quads_shared(quads[i], quads[j]) for j in range(n) for i in range(j)}
        overlaps = {pair: s / (area[pair[0]] + area[pair[1]] - s) for pair, s in shared.items()}
        if min(abs(x - 0.2) for x in overlaps.values()) < 1e-5:
            close += 1
            continue
        found = server.detect("end2end", [rows], 1, rotated=True, suppression=program.GREEDY, iou=0.2, **ALL)[1]
        unlike += found["anchor"].tolist() != greedy(n, lambda i, j: overlaps[i, j], 0.2)
    checks.check(unlike == 0 and close < 10, f"rotated boxes: {unlike} of 60 lists differ, {close} too close")


# --- merge


def check_merge(checks, server, random):
    for case in range(100):
        n = int(random.integers(0, 80))
        found = np.zeros(n, program.DETECTION)
        found["box"], found["score"] = np.floor(boxes_of(random, n, 150) / 8) * 8, np.floor(random.random(n) * 32) / 32
        found["box"][:, 2:] += 8
        found["label"], found["anchor"] = random.integers(0, 2, n), np.arange(n)
        order = np.argsort(-found["score"], kind="stable")
        box, label, smaller = found["box"][order], found["label"][order], case % 2
        area = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
        kept, grown = [], []
        for i in range(n):
            hit = None
            for at, k in enumerate(kept):
                low, high = np.maximum(box[k, :2], box[i, :2]), np.minimum(box[k, 2:], box[i, 2:])
                shared = np.prod(np.maximum(high - low, np.float32(0)))
                part = shared / (min(area[k], area[i]) if smaller else area[k] + area[i] - shared)
                if label[k] == label[i] and float(part) > 0.5:
                    hit = at
                    break
            if hit is None:
                kept.append(i)
                grown.append(box[i].copy())
            elif case & 2:
                grown[hit] = np.concatenate((np.minimum(grown[hit][:2], box[i, :2]), np.maximum(grown[hit][2:], box[i, 2:])))
        left, source = server.merge(found, metric=smaller, absorb=bool(case & 2), threshold=0.5)
        good = source.tolist() == order[kept].tolist() and np.array_equal(left["box"], np.reshape(grown, (-1, 4)))
        checks.check(good, f"merge {case}: {source.tolist()}, not {order[kept].tolist()}")


def main():
    checks, server, random = Checks("detect"), program.Program(), np.random.default_rng(20240229)
    check_heads(checks, server, random)
    check_mapping(checks, server, random)
    check_mmcv(checks, server, random)
    check_merge(checks, server, random)
    if torch:
        check_torchvision(checks, server, random)
        check_ultralytics(checks, server, random)
    else:
        checks.skip("torchvision's NMS and Ultralytics' chain: no python3-torch and python3-torchvision")
    checks.check(server.close() == 0, "bench-detect failed")
    checks.end()


main()
