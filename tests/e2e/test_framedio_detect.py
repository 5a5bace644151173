#!/usr/bin/python3
"""framedio's detect, merge and send: boxes of every head and every kind of array equal plain numpy's; ambiguous shapes of outputs are refused;
results reach the other end of a ring."""
import json
import os
import socket
import struct
import subprocess
import sys
import threading

import numpy
from framed_client import PATIENCE, Checks, Framed, folder, framedio_environment, make_clip
from ring_sender import RingSender

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio
from framedio import detection
from framedio.library import Header

CLASSES, ANCHORS = 5, 336  # of 128 x 128: strides of 8, 16 and 32
RESULT = struct.Struct("<4sHHIIQII")
FOUND = struct.Struct("<5fHHq")
LINES = """
backend: cpu
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      one: {{size: 128x128, sink: "ring:{where}/gate.ring", detections: {{sink: "unix:{where}/gate.lines", labels: [a, b, c]}}}}
"""
BATCHES = """
backend: cpu
defaults: {{loop: true, pace: realtime, size: 128x128, slots: 8}}
cameras:
  gate: {{url: {where}/clip.mp4, outputs: {{one: {{sink: "unix:{where}/gate.sock"}}}}}}
  yard: {{url: {where}/clip.mp4}}
batches:
  ring: {{cameras: ["*"], count: 3, tail: zero, wait: 200ms, sink: "ring:{where}/batches.ring"}}
"""
NO_NUMPY = """
import array, sys
sys.modules["numpy"] = None
import framedio
from framedio.library import Header
header = Header(width=128, height=128, source_width=256, source_height=256)
header.dst_to_src[:] = 2, 0, 0.5, 0, 2, 0.5
rows = array.array("f", [20, 20, 10, 10, 0.25, 0.75] * 2 + [0] * 6)
shaped = memoryview(rows).cast("B").cast("f", [3, 6])
print(framedio.detect(shaped, header, classes=2), framedio.detect(shaped, header, classes=2, extras=True)[1].anchors)
print(framedio.merge([[(0, 0, 10, 10, 0.5, 1), (4, 0, 12, 10, 0.75, 1)], [], [(0, 0, 1, 1, 0.5, 2, 77)]]))
"""


def header_of(matrix=(2, 0, 0.5, 0, 2, -39.5), size=(256, 176)):
    header = Header(width=128, height=128, source_width=size[0], source_height=size[1])
    header.dst_to_src[:] = matrix
    return header


def scene(random, objects=6, each=8):
    """Returns (4 + CLASSES, ANCHORS) f32: objects that several anchors report."""
    output = numpy.zeros((4 + CLASSES, ANCHORS), "f4")
    output[:4] = random.random((4, ANCHORS)) * 60 + 20
    places = random.permutation(ANCHORS)[: objects * each].reshape(objects, each)
    for at in places:
        output[:4, at] = random.random((4, 1)) * 60 + 20 + random.random((4, each)) * 3
        output[4 + random.integers(CLASSES), at] = random.uniform(0.3, 0.9, each)
    return output


def overlap(box, others):
    low, high = numpy.maximum(box[:2], others[:, :2]), numpy.minimum(box[2:4], others[:, 2:4])
    shared = (high - low).clip(0).prod(1)
    areas = (others[:, 2:4] - others[:, :2]).prod(1)
    return shared / ((box[2:4] - box[:2]).prod() + areas - shared), shared / numpy.minimum((box[2:4] - box[:2]).prod(), areas)


def suppressed(rows, threshold=0.45, metric=0):
    """Suppresses greedily; rows are x1 y1 x2 y2 score class."""
    rows, kept = rows[numpy.argsort(-rows[:, 4], kind="stable")], []
    while len(rows):
        kept.append(rows[0])
        goes = (overlap(rows[0], rows)[metric] > threshold) & (rows[:, 5] == rows[0, 5])
        goes[0] = True
        rows = rows[~goes]
    return numpy.array(kept).reshape(-1, 6)


def expected(output, header=None, conf=0.25):
    """Returns numpy's boxes for a scene."""
    header = header or header_of()
    scores, labels = output[4:].max(0), output[4:].argmax(0)
    half = output[2:4] / 2
    rows = numpy.concatenate([output[:2] - half, output[:2] + half, [scores, labels]]).T
    rows = suppressed(rows[scores > conf])
    rows[:, :4] = rows[:, :4] * 2 + [0.0, -40.0, 0.0, -40.0]
    return numpy.concatenate([rows[:, :4].clip(0, [header.source_width, header.source_height] * 2), rows[:, 4:]], 1)


def same(found, wanted, tolerance=1e-3):
    return numpy.shape(found) == wanted.shape and numpy.allclose(found, wanted, atol=tolerance)


def refused(checks, text, *arguments, kind=ValueError, **options):
    try:
        checks.check(False, f"{text}: not refused: {framedio.detect(*arguments, **options)}")
    except kind as error:
        checks.check(text in str(error), f"{error}, not {text}")


class Speaking:
    """An array with only the given attributes."""

    def __init__(self, held, **words):
        self.held = held
        self.__dict__.update(words)


class Ort:
    """Imitates an OrtValue."""

    def __init__(self, held):
        self.held = held

    def data_ptr(self):
        return self.held.ctypes.data

    def shape(self):
        return list(self.held.shape)

    def data_type(self):
        return {"f4": "tensor(float)", "f2": "tensor(float16)"}[self.held.dtype.str[1:]]

    def device_name(self):
        return "cpu"


def check_arrays(checks, random):
    """One output in every form."""
    output, header = scene(random), header_of()
    wanted = expected(output)
    checks.check(3 <= len(wanted) <= 20, f"{len(wanted)} boxes")
    rows = numpy.ascontiguousarray(output.T)
    dlpack = type("Lent", (), {"__dlpack__": lambda self, **_: output.__dlpack__(),
                               "__dlpack_device__": lambda self: (1, 0)})()
    forms = {
        "columns": output, "rows": rows, "one picture": output[None], "list": [output], "OrtValue": Ort(output),
        "interface": Speaking(output, __array_interface__=output.__array_interface__), "DLPack": dlpack,
        "buffer": memoryview(bytearray(output.tobytes())).cast("f", output.shape),
    }
    for name, form in forms.items():
        found = framedio.detect(form, header)
        checks.check(found.dtype == "f4" and same(found, wanted), f"{name}: {found}, not {wanted}")
    half = output.astype("f2")
    for form in (half, Ort(half)):
        checks.check(same(framedio.detect(form, header), expected(half.astype("f4"))), "f16")
    narrow = numpy.round(output[:, :]).astype("u1")
    checks.check(same(framedio.detect(narrow, header, scale=0.5, zero=3, conf=-2),
                      expected((narrow.astype("f4") - 3) / 2, conf=-2)), "u8")
    kept = len(detection.OWN.detectors)
    for _ in range(3):
        framedio.detect(output, header)
        framedio.detect(output, header, conf=[0.25] * CLASSES)
    checks.check(len(detection.OWN.detectors) <= kept + 1, "a detector for each call")
    for iou in range(40):
        framedio.detect(output, header, iou=iou / 100)
    checks.check(len(detection.OWN.detectors) == detection.DETECTORS_MAX, f"{len(detection.OWN.detectors)} detectors")
    try:
        import torch
    except ImportError:
        checks.skip("no PyTorch")
        return
    checks.check(same(framedio.detect(torch.from_numpy(output), header), wanted), "torch")
    bfloat = torch.from_numpy(output).bfloat16()
    lent = type("Lent", (), {"__dlpack__": lambda self: bfloat.__dlpack__(), "__dlpack_device__": lambda self: (1, 0)})()
    for form in (bfloat, lent):
        checks.check(same(framedio.detect(form, header), expected(bfloat.float().numpy())), "bf16")
    refused(checks, "not contiguous", torch.from_numpy(output).T, header)


def check_options(checks, random):
    output, header = scene(random), header_of()
    wanted = expected(output)
    only = int(wanted[0, 5])
    checks.check(same(framedio.detect(output, header, only=[only]), wanted[wanted[:, 5] == only]), "only")
    conf = [0.25 if label == only else 1 for label in range(CLASSES)]
    checks.check(same(framedio.detect(output, header, conf=conf), wanted[wanted[:, 5] == only]), "conf of each class")
    checks.check(len(framedio.detect(output, header, suppression="keep")) > len(wanted), "keep")
    checks.check(len(framedio.detect(output, header, max_det=2)) == 2, "max_det")
    checks.check(len(framedio.detect(output, header, width=(1e4, 0))) == 0, "width")
    boxes, extras = framedio.detect(output, header, extras=True, quads=True, candidates=7)
    checks.check(extras.cut and extras.candidates == 48 and extras.dropped == 0 and extras.angles is None, f"{vars(extras)}")
    checks.check(extras.quads.shape == (len(boxes), 4, 2) and (output[4:, extras.anchors].max(0) == boxes[:, 4]).all(),
                 f"{extras.anchors}")
    whole = numpy.concatenate([output, random.random((8, ANCHORS), "f4")])
    boxes, extras = framedio.detect(whole, header, keypoints=(2, 3), coefficients=2, extras=True)
    points = whole[-8:-2, extras.anchors].reshape(2, 3, -1).transpose(2, 0, 1).copy()
    points[..., :2] = points[..., :2] * 2 + [0, -40]
    checks.check(same(boxes, wanted) and numpy.allclose(extras.keypoints, points, atol=1e-4), "keypoints")
    checks.check((extras.coefficients == whole[-2:, extras.anchors].T).all(), "coefficients")
    empty = framedio.detect(output, header, conf=0.99, keypoints=(0, 0), extras=True)
    checks.check(empty[0].shape == (0, 6) and empty[1].anchors.shape == (0,), f"{empty}")


def check_heads(checks, random):
    """The same scene in the form of every other head."""
    output, header = scene(random), header_of()
    wanted = expected(output)
    objectness = numpy.concatenate([output[:4], numpy.ones((1, ANCHORS), "f4"), output[4:]]).T.copy()
    for head in ("yolov5", "yolox"):
        checks.check(same(framedio.detect(objectness, header, head), wanted), head)
    cells = objectness.copy()
    stride = numpy.repeat([8, 16, 32], [256, 64, 16])[:, None].astype("f4")
    grid = numpy.concatenate([[(i % n, i // n) for i in range(n * n)] for n in (16, 8, 4)])
    cells[:, :2], cells[:, 2:4] = cells[:, :2] / stride - grid, numpy.log(cells[:, 2:4] / stride)
    checks.check(same(framedio.detect(cells, header, "yolox", strides=(8, 16, 32)), wanted, 1e-2), "cells of yolox")
    half = output[2:4] / 2
    corners, scores, labels = numpy.concatenate([output[:2] - half, output[:2] + half]).T, output[4:].max(0), output[4:].argmax(0)
    finished = numpy.concatenate([corners, scores[:, None], labels[:, None]], 1).astype("f4")
    finished = finished[numpy.argsort(-scores, kind="stable")]
    wanted = finished[finished[:, 4] > 0.25]
    wanted = numpy.concatenate([(wanted[:, :4] * 2 - [0, 40, 0, 40]).clip(0, [256, 176] * 2), wanted[:, 4:]], 1)
    checks.check(same(framedio.detect(finished[None], header, "end2end"), wanted), "end2end")
    boxes, few = finished[:, :4].copy(), int((finished[:, 4] > 0.25).sum())
    count, classes = numpy.array([[few]], "i4"), finished[:, 5].astype("i4")
    parts = {"boxes": boxes, "scores": finished[:, 4].copy(), "classes": classes, "count": count}
    checks.check(same(framedio.detect(parts, header, "efficientnms"), wanted), "efficientnms by name")
    order = [count, boxes[None], parts["scores"][None], classes[None]]
    checks.check(same(framedio.detect(order, header, "efficientnms"), wanted), "efficientnms in order")
    turned = numpy.ascontiguousarray(boxes[:, [1, 0, 3, 2]] / 128)
    order = [turned, classes.astype("f4"), parts["scores"], count.astype("f4")]
    checks.check(same(framedio.detect(order, header, "tflite"), wanted), "tflite")
    inside = numpy.ascontiguousarray(output[4:].T).clip(1e-6)
    order = [numpy.ascontiguousarray(output[:4].T / 128), numpy.log(inside / (1 - inside)).astype("f4")]
    found = framedio.detect(order, header, "detr")
    checks.check(same(found[:, :5], wanted[:, :5]), "detr")


def check_refusals(checks, random):
    output, header = scene(random), header_of()
    square = numpy.zeros((60, 70), "f4")
    refused(checks, "two ways", square, header)
    checks.check(framedio.detect(square, header, planes=True).shape == (0, 6), "planes")
    checks.check(framedio.detect(square, header, classes=56).shape == (0, 6), "classes")
    checks.check(same(framedio.detect(output, header, conf=numpy.float32(0.25)), expected(output, header)), "numpy's numbers")
    refused(checks, "no 4 + 79 + 0 columns", output, header, classes=79)
    refused(checks, "has no 6 + 0 columns", output, header, "end2end")
    refused(checks, "not contiguous", output[:, ::2], header)
    refused(checks, "scale= and zero=", output.astype("u1"), header)
    refused(checks, "<f8", output.astype("f8"), header)
    refused(checks, "above 0", output.astype("u1"), header, scale=0)
    refused(checks, "s8 and u8, not of f32", output, header, scale=0.5)
    refused(checks, "strides: 4 at most", output, header, "yolox", strides=(8, 16, 32, 64, 128))
    refused(checks, "heads of one tensor", [numpy.zeros((9, 4), "f4"), numpy.zeros((9, 5), "f4")], header, "detr", planes=True)
    refused(checks, 'head="yolov5" has; if it is yolov8, classes=6', numpy.zeros((3 * ANCHORS, 10), "f4"), header)
    checks.check(framedio.detect(numpy.zeros((3 * ANCHORS, 10), "f4"), header, classes=6).shape == (0, 6), "three a cell")
    refused(checks, 'or head="end2end"', numpy.zeros((1, 300, 6), "f4"), header)
    refused(checks, "no array", 7, header, kind=TypeError)
    refused(checks, "a Frame, a Batch", output, None, kind=TypeError)
    refused(checks, "an output of 2 pictures for one", numpy.stack([output, output]), header)
    refused(checks, "head is yolov8, yolov5", output, header, "yolov9")
    refused(checks, "suppression is greedy", output, header, suppression="nms")
    refused(checks, "iou: 0 to 1", output, header, iou=2)
    refused(checks, "2 thresholds for 5", output, header, conf=[1, 1])
    refused(checks, "detr has 2 tensors", output, header, "detr")
    refused(checks, "no count", {"boxes": output, "scores": output, "classes": output}, header, "tflite")
    refused(checks, "not of pictures x anchors", output[0], header)


def check_threads(checks, random):
    """A detector belongs to one thread; several threads detect at once, each with its own."""
    header, wrong = header_of(), []
    outputs = [numpy.tile(scene(random), 25) for _ in range(4)]
    wanted = [framedio.detect(output, header, planes=True) for output in outputs]

    def work(output, boxes):
        for _ in range(200):
            if not numpy.array_equal(framedio.detect(output, header, planes=True), boxes):
                wrong.append(1)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(outputs, wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.check(not wrong, f"{len(wrong)} lists of other boxes")


def check_batches(checks, where, random):
    """With the real daemon: each element uses its own matrix, and empty ones have no boxes; the network's batch size is fixed."""
    with Framed(where, BATCHES.format(where=where)):
        with framedio.open(f"ring:{where}/batches.ring", newest=False, timeout=20 * PATIENCE) as reader:
            batch = next(reader)
            outputs = numpy.stack([scene(random) for _ in range(batch.capacity)])
            found = framedio.detect([outputs], batch)
            checks.check(len(found) == len(batch), f"{len(found)} lists for {batch}")
            for element, boxes, output in zip(batch, found, outputs):
                alone = framedio.detect(output, element)
                checks.check(numpy.array_equal(boxes, alone), f"{element}: alone it has other boxes")
                checks.check(element.empty == (len(boxes) == 0), f"{element}: {boxes}")
                if not element.empty:
                    rows = expected(output, header_of(size=(10 ** 6,) * 2))  # the expected boxes are not clipped
                    checks.check(numpy.array_equal(boxes[:, 4:], rows[:, 4:].astype("f4")), f"{element}: {boxes}, {rows}")
            checks.check(batch.send(found) and batch.send([[]] * len(batch), source=False), "a batch's results")
            checks.check(batch[0].send(found[0], model=3) and reader.counts()["results"] > 2, f"{reader.counts()}")
            copy = batch.keep()
            batch.release()
            refused(checks, "given back", outputs, batch, kind=framedio.Torn)
            checks.check(all(map(numpy.array_equal, framedio.detect(outputs, copy), found)), "a copy's boxes")
            refused(checks, "an output of 1 pictures for", outputs[:1], copy)
        with framedio.open(f"unix:{where}/gate.sock", timeout=20 * PATIENCE) as reader:
            frame = next(reader)
            checks.check(len(framedio.detect(outputs[0], frame)) > 0, "a socket's frame")
            try:
                frame.send(found[0])
                checks.check(False, "a socket took results")
            except ValueError as error:
                checks.check("ring" in str(error), str(error))


def check_lines(checks, where, random):
    """Sent results come out of the daemon as a line, in the camera's pixels."""
    with Framed(where, LINES.format(where=where)), socket.socket(socket.AF_UNIX) as peer:
        with framedio.open(f"ring:{where}/gate.ring", timeout=20 * PATIENCE) as reader, peer.makefile() as lines:
            next(reader)
            peer.settimeout(10 * PATIENCE)
            peer.connect(f"{where}/gate.lines")
            for _ in range(3):
                frame = next(reader)
                boxes = framedio.detect(scene(random), frame)
                checks.check(len(boxes) > 2 and frame.send(boxes, model=5), f"{len(boxes)} boxes")
                line = json.loads(lines.readline())
                found = [[*thing["box"], thing["score"], thing["class"]] for thing in line["objects"]]
                checks.check(line["camera"] == "gate" and line["seq"] == frame.sequence, f"{line}")
                checks.check(same(found, boxes, 0.01), f"{found}, not {boxes}")


def take_result(sender):
    message = sender.peer.recv(65536)
    magic, version, flags, slot, element, ticket, count, model = RESULT.unpack_from(message)
    found = list(FOUND.iter_unpack(message[RESULT.size:]))
    return (magic, version, flags, slot, element, ticket, count, model), found


class OnGpu:
    """Imitates the interface of a PyTorch tensor on a GPU."""

    def __init__(self, array):
        self.array = array

    def __array__(self, *_):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")

    def detach(self):
        return self

    def cpu(self):
        return self.array


def check_send(checks, where):
    sender = RingSender(where)
    with framedio.open(f"ring:{sender.path}", timeout=10 * PATIENCE) as reader:
        reader.poll()
        sender.accept()
        sender.send(1, 10, 5)
        frame = next(reader)
        rows = numpy.array([[1, 2, 3, 4, 0.5, 7, -9], [5, 6, 7, 8, 0.25, 65535, 1 << 40]])
        wanted = [(1, 2, 3, 4, 0.5, 7, 0, -9), (5, 6, 7, 8, 0.25, 65535, 0, 1 << 40)]
        for given in (rows, rows.tolist()):
            checks.check(frame.send(given, model=8), "not sent")
            checks.check(take_result(sender) == ((b"FRRS", 1, 2, 1, 0, 5, 2, 8), wanted), f"{given}")
        checks.check(frame.send(rows[:, :6], source=False), "not sent")
        checks.check(take_result(sender) == ((b"FRRS", 1, 0, 1, 0, 5, 2, 0), [row[:7] + (0,) for row in wanted]), "six columns")
        for nothing in ([], numpy.empty((0, 6), "f4")):
            checks.check(frame.send(nothing) and take_result(sender) == ((b"FRRS", 1, 2, 1, 0, 5, 0, 0), []), "no boxes")
        for model in (-1, 1 << 32):
            try:
                frame.send(rows, model=model)
                checks.check(False, f"model {model} was sent")
            except ValueError as error:
                checks.check("0 to 4294967295" in str(error), str(error))
        for wrong, text in ((rows[:, :5], "n x 6"), ([[1, 2]], "rows of"), (numpy.tile(rows, (151, 1)), "300"),
                            ([[0, 0, 1, 1, 1, 65536]], "65535"), (rows - 8, "65535")):
            try:
                frame.send(wrong)
                checks.check(False, f"{text}: was sent")
            except ValueError as error:
                checks.check(text in str(error), str(error))
        on_gpu = OnGpu(rows[:, :4])
        checks.check(same(frame.to_source(on_gpu), frame.to_source(rows[:, :4])), "to_source of PyTorch's on a GPU")
        checks.check(frame.send(OnGpu(rows)) and take_result(sender)[1] == wanted, "detections of PyTorch's on a GPU")
        copy = frame.keep()
        frame.release()
        checks.check(sender.peer.recv(64) == struct.pack("<IIQ", 1, 0, 5), "the slot")
        checks.check(copy.send([]) and take_result(sender)[0][5] == 5, "results of a copy")
        many, sent = numpy.tile(rows, (150, 1)), 0
        while frame.send(many) and sent < 1000:
            sent += 1
        checks.check(0 < sent < 1000 and reader.unsent == 1, f"{sent} sent, {reader.unsent} lost")
        sender.hang_up()
        checks.check(not frame.send([]) and reader.unsent == 2, "the daemon is gone")
        sender.listener.close()
    try:
        frame.send([])
        checks.check(False, "a closed reader sends")
    except ValueError:
        pass


def check_torn(checks, where, random):
    os.makedirs(f"{where}/torn")
    sender = RingSender(f"{where}/torn")
    output = numpy.zeros((1, 4 + CLASSES, ANCHORS), "f4")
    with framedio.open(f"ring:{sender.path}", timeout=10 * PATIENCE) as reader:
        reader.poll()
        sender.accept()
        sender.send(2, 10, 5)
        frame = next(reader)
        checks.check(framedio.detect(output, frame, planes=True).shape == (0, 6), "a whole frame")
        sender.send(2, 11, 6, tell=False)
        refused(checks, "taken away", output, frame, kind=framedio.Torn, planes=True)
        checks.check(framedio.detect(output, frame.header, planes=True).shape == (0, 6), "its header")
        sender.hang_up()


def check_merge(checks, random):
    for metric, mode in ((0, "nms"), (1, "nms"), (1, "nmm")):
        name = ("iou", "ios")[metric]
        low = random.random((80, 2)) * 100
        rows = numpy.concatenate([low, low + random.random((80, 2)) * 60 + 5, random.random((80, 1)),
                                  random.integers(0, 2, (80, 1))], 1).astype("f4")
        wanted = suppressed(rows, 0.5, metric)
        found = framedio.merge(rows, name, 0.5, mode)
        parts = framedio.merge([rows[:30], rows[30:30], rows[30:]], name, 0.5, mode)
        checks.check(numpy.array_equal(found, parts) and numpy.array_equal(found[:, 4:], wanted[:, 4:]), f"{name} {mode}")
        if mode == "nms":
            checks.check(numpy.array_equal(found, wanted), f"{name}: {found}, not {wanted}")
        else:
            checks.check((found[:, :2] <= wanted[:, :2]).all() and (found[:, 2:4] > wanted[:, 2:4]).any(), "hulls")
        checks.check(len(framedio.merge(rows, name, 0.5, mode, agnostic=True)) < len(wanted), "agnostic")
        tracked = numpy.concatenate([rows, numpy.arange(80)[:, None]], 1)
        found = framedio.merge(tracked, name)
        checks.check(found.shape[1] == 7 and (tracked[found[:, 6].astype(int), 4:6] == found[:, 4:6]).all(), "tracks")
    for nothing in ([], [numpy.empty((0, 6), "f4")] * 3, numpy.empty((0, 6))):
        checks.check(framedio.merge(nothing).shape == (0, 6), f"{nothing}")
    for wrong in ({"metric": "giou"}, {"mode": "soft"}, {"threshold": 2}):
        try:
            framedio.merge(rows, **wrong)
            checks.check(False, f"{wrong}: not refused")
        except ValueError:
            pass


def check_without_numpy(checks):
    done = subprocess.run([sys.executable, "-c", NO_NUMPY], capture_output=True, text=True)
    wanted = ("[(30.0, 30.0, 50.0, 50.0, 0.75, 1)] [0]\n"
              "[(4.0, 0.0, 12.0, 10.0, 0.75, 1), (0.0, 0.0, 1.0, 1.0, 0.5, 2, 77)]\n")
    checks.check(done.stdout == wanted, done.stdout + done.stderr)


def main():
    checks, random = Checks("framedio_detect"), numpy.random.default_rng(1)
    check_arrays(checks, random)
    check_options(checks, random)
    check_heads(checks, random)
    check_refusals(checks, random)
    check_threads(checks, random)
    check_merge(checks, random)
    check_without_numpy(checks)
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        check_batches(checks, where, random)
        check_lines(checks, where, random)
        check_send(checks, where)
        check_torn(checks, where, random)
    checks.end()


main()
