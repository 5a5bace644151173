#!/usr/bin/python3
"""Runs the programs in examples/ unchanged against a daemon: each has at most ten lines, and finds the blocks of a clip at
their positions and where the same runtime finds them with its own preprocessing. Programs whose library is not installed
are left out, and device memory without a GPU; programs marked "Untested" are only compiled.

environment: BLOCKS, the clip of blocks_clip.py, if there is no ffmpeg to make it; PICTURES, how many of its pictures are
             compared (50)
"""
import ast
import glob
import importlib.util
import os
import re
import sys

import blocks_clip
import blocks_model
import cv2
import numpy
from cuda_client import BACKEND, MEMORIES
from framed_client import ROOT, Checks, Framed, Process, first_lines, folder, framedio_environment, until
from onnx import numpy_helper

WIDTH, HEIGHT, SIDE, COUNT = 1280, 720, 640, 60
NEAR = 0.4  # source pixels between a box and its block: less than an error of half a tensor pixel
SAME = 0.99  # IoU of a box with the box from the runtime's own preprocessing
# Pictures compared, for programs without a network and with one.
LINES, PICTURES = 4, int(os.environ.get("PICTURES", 50))
CONFIG = """
backend: {backend}
cameras:
  blocks:
    url: {clip}
    loop: true
    pace: realtime
    outputs:
      detector:
        size: 640x640
        fps: 10
        slots: 16
        max_age: 20s
        preset: ultralytics
        memory: {memory}
        sink: ring:{where}/detector.ring
        detections: {{sink: "unix:{where}/objects.sock"}}
batches:
  detectors: {{cameras: ["*"], count: 2, tail: zero, size: 640x640, fps: 10, slots: 16, max_age: 20s, preset: ultralytics, sink: "ring:{where}/batches.ring"}}
"""


# --- the runtimes with their own letterbox and network: each returns the raw output for a picture


def padded(picture):
    """Returns the picture made square with gray above and below."""
    border = (SIDE - picture.shape[0]) // 2
    return cv2.copyMakeBorder(picture, border, border, 0, 0, cv2.BORDER_CONSTANT, value=(114, 114, 114))


def blob_of(picture):
    """Returns OpenCV's blob, also common with ONNX Runtime and OpenVINO."""
    small = cv2.resize(picture, (SIDE, SIDE * HEIGHT // WIDTH), interpolation=cv2.INTER_LINEAR)
    return cv2.dnn.blobFromImage(padded(small), 1 / 255, swapRB=True)


def opencv(models):
    network = cv2.dnn.readNetFromONNX(models["onnx"])

    def run(picture):
        network.setInput(blob_of(picture))
        return network.forward()[0]

    return run


def onnxruntime(models):
    import onnxruntime

    session = onnxruntime.InferenceSession(models["onnx"], providers=["CPUExecutionProvider"])
    return lambda picture: session.run(None, {"images": blob_of(picture)})[0][0]


def openvino(models):
    import openvino

    network = openvino.Core().compile_model(models["onnx"], "CPU")
    return lambda picture: network({0: blob_of(picture)})[0][0]


def torch_with(models, resize):
    import torch

    network = torch.jit.load(models["torch"])

    def run(picture):
        planes = torch.from_numpy(picture[:, :, ::-1].copy()).permute(2, 0, 1)[None].float() / 255
        small = resize(planes, (SIDE * HEIGHT // WIDTH, SIDE))
        border = (SIDE - small.shape[2]) // 2
        with torch.inference_mode():
            return network(torch.nn.functional.pad(small, (0, 0, border, border), value=114 / 255))[0].numpy()

    return run


def pytorch(models):
    import torch

    return torch_with(models, lambda planes, size: torch.nn.functional.interpolate(planes, size, mode="bilinear"))


def torchvision(models):
    from torchvision.transforms import functional

    return torch_with(models, lambda planes, size: functional.resize(planes, size, antialias=False))


def boxes_of(output):
    """Returns x1 y1 x2 y2 score class in the camera's picture, from the raw output for its letterbox."""
    rows = output.T[output[4:].max(axis=0) > 0.25]
    half, scores = rows[:, 2:4] / 2, rows[:, 4:].max(axis=1)
    border = numpy.array([0, (SIDE - SIDE * HEIGHT / WIDTH) / 2])
    corners = numpy.hstack([rows[:, :2] - half - border, rows[:, :2] + half - border]) * WIDTH / SIDE
    found = []
    for i in numpy.argsort(-scores, kind="stable"):
        if all(iou(corners[i], box) <= 0.45 for box in found):
            found.append((*corners[i], scores[i], rows[i, 4:].argmax()))
    return found


def iou(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(width, 0) * max(height, 0)
    return both / (sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - both)


def write_torch(path):
    """Writes the network of blocks_model.py for PyTorch, which cannot read ONNX."""
    import torch
    from torch.nn.functional import conv2d, relu

    constants = blocks_model.build().constants
    weights = {constant.name: torch.from_numpy(numpy_helper.to_array(constant).copy()) for constant in constants}

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in weights.items():
                self.register_buffer(name, value)

        def forward(self, images):
            reach, cells = blocks_model.REACH - blocks_model.STRIDE // 2, blocks_model.STRIDE
            masks = relu(conv2d(images, self.colours_weights, self.colours_bias))
            across = conv2d(masks, self.horizontal_weights, stride=cells, padding=(0, reach))
            down = conv2d(masks, self.vertical_weights, stride=cells, padding=(reach, 0))
            inside = relu(conv2d(masks, self.full_weights, self.full_bias, stride=cells))
            distances = torch.cat([across, down], 1)
            ones = conv2d(images, self.ones_weights, self.ones_bias, stride=cells)
            boxes = conv2d(distances, self.offsets_weights)
            boxes += conv2d(ones, self.x_weights, self.x_bias, padding=(0, blocks_model.CELLS - 1))
            boxes += conv2d(ones, self.y_weights, self.y_bias, padding=(blocks_model.CELLS - 1, 0))
            apart = relu(conv2d(torch.cat([distances, inside], 1), self.differences_weights))
            return torch.cat([boxes, relu(conv2d(apart, self.raw_weights))], 1).flatten(2)

    torch.jit.trace(Network(), torch.zeros(1, 3, SIDE, SIDE)).save(path)
    return path


# --- the programs


class Program:
    """A file of examples/. own(models) returns the runtime with its own preprocessing."""

    def __init__(self, name, own=None, model="onnx", ring="detector"):
        self.path, self.own, self.model, self.ring = f"{ROOT}/examples/{name}.py", own, model, ring

    def missing(self, memory="host"):
        """Returns a required library that is not installed, or None."""
        with open(self.path) as file:
            nodes = list(ast.walk(ast.parse(file.read())))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
        names += ["torch" for node in nodes if isinstance(node, ast.Attribute) and node.attr == "torch"]  # frame.torch()
        names = {name.partition(".")[0] for name in names} - {"framedio"}
        if missing := [name for name in sorted(names) if not importlib.util.find_spec(name)]:
            return missing[0]
        if memory == "cuda" and "onnxruntime" in names:
            import onnxruntime

            return None if "CUDAExecutionProvider" in onnxruntime.get_available_providers() else "ONNX Runtime for CUDA"
        return None

    def command(self, where, models):
        return [sys.executable, self.path, f"ring:{where}/{self.ring}.ring", *([models[self.model]] if self.own else [])]

    def lines(self, where, models):
        return first_lines(self.command(where, models), PICTURES if self.own else LINES, 120, env=framedio_environment())


PROGRAMS = {
    "opencv_dnn": Program("opencv_dnn", opencv),
    "opencv_batch": Program("opencv_batch", opencv, ring="batches"),
    "supervision_tracker": Program("supervision_tracker", opencv),
    "onnxruntime_cpu": Program("onnxruntime_cpu", onnxruntime),
    "onnxruntime_binding": Program("onnxruntime_binding", onnxruntime),
    "openvino_cpu": Program("openvino_cpu", openvino),
    "pytorch": Program("pytorch", pytorch, "torch"),
    "torchvision_nms": Program("torchvision_nms", torchvision, "torch"),
}
ON_GPU = ("onnxruntime_binding", "pytorch", "torchvision_nms")
PLAIN = {
    "consume": r"<framedio\.Frame blocks \d+: rgb f32 \(3, 640, 640\)> (whole|taken away)\n",
    "ring_cuda": r"\d+ (cpu|cuda:0) 0\.4\d+\n",
}


READERS = ("own_detector", "read_objects")


def parsed(line):
    """Returns (picture number, rows) of a printed line."""
    match = re.fullmatch(r"blocks (\d+) (.*)\n", line)
    return (int(match[1]) % COUNT, ast.literal_eval(match[2])) if match else (None, [])


def check_lengths(checks):
    """Every program has at most ten lines without comments, and either runs here or is marked "Untested"."""
    for path in sorted(glob.glob(f"{ROOT}/examples/*.py")):
        name = os.path.basename(path)[: -len(".py")]
        with open(path) as file:
            text = file.read()
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        checks.check(len(lines) <= 10, f"{name} has {len(lines)} lines")
        is_run = name in PROGRAMS or name in PLAIN or name in READERS
        checks.check(is_run != ("\n# Untested" in text), f"{name}: is run: {is_run}, whatever it says")
        compile(text, path, "exec")


def check_boxes(checks, name, lines, own, pictures):
    """Returns the least overlap with the runtime's own boxes and the largest distance from the blocks."""
    least, furthest = 1.0, 0.0
    for line in lines:
        number, found = parsed(line)
        if not checks.check(number is not None, f"{name} prints {line!r}"):
            continue
        blocks = blocks_clip.blocks(number, WIDTH, HEIGHT)
        theirs = boxes_of(own(pictures[number]))
        counts = (len(found), len(theirs), len(blocks))
        if not checks.check(len(set(counts)) == 1, f"{name}, {number}: {counts} boxes, of its own, blocks"):
            continue
        for kind, *block in blocks:
            box = max((row for row in found if row[5] == kind), key=lambda row: iou(row, block), default=[0] * 6)
            best = max((row for row in theirs if row[5] == kind), key=lambda row: iou(row, block), default=[0] * 6)
            least = min(least, iou(box, best))
            furthest = max(furthest, *(abs(one - other) for one, other in zip(box, block)))
    checks.check(least >= SAME, f"{name}: a box overlaps that of the runtime's own preprocessing by {least:.4f}")
    checks.check(furthest <= NEAR, f"{name}: a box is {furthest:.2f} pixels beside its block")
    return least, furthest


def check_program(checks, name, memory, where, models, pictures):
    program = PROGRAMS[name]
    if missing := program.missing(memory):
        return checks.skip(f"{name}: {missing} is not installed")
    least, furthest = check_boxes(checks, name, program.lines(where, models), program.own(models), pictures)
    print(f"recipes: {name}, {memory}: IoU with its own preprocessing {least:.5f} or more, {furthest:.2f} pixels beside the blocks")


def check_plain(checks, name, where):
    if missing := Program(name).missing():
        return checks.skip(f"{name}: {missing} is not installed")
    for line in Program(name).lines(where, {}):
        checks.check(re.fullmatch(PLAIN[name], line), f"{name} prints {line!r}")


def check_own_detector(checks, where):
    for line in Program("own_detector").lines(where, {}):
        number, found = parsed(line)
        red = [block[1:] for block in blocks_clip.blocks(number or 0, WIDTH, HEIGHT) if block[0] == 0]
        around = [min(box[i] for box in red) for i in (0, 1)] + [max(box[i] for box in red) for i in (2, 3)]
        near = len(found) == 1 and all(abs(a - b) <= NEAR for a, b in zip(found[0], around))
        checks.check(near, f"own_detector finds {found}, red is {around}")


def check_objects(checks, where, models):
    """The daemon's lines contain the detections that opencv_dnn returns."""
    sender = PROGRAMS["opencv_dnn"].command(where, models)
    with Process(sender, f"{where}/sender.log", framedio_environment()):
        lines = first_lines([sys.executable, f"{ROOT}/examples/read_objects.py", f"{where}/objects.sock"], LINES, 40)
    for line in lines:
        number, found = parsed(line)
        blocks = blocks_clip.blocks(number or 0, WIDTH, HEIGHT)
        near = [any(kind == box[5] and max(abs(a - b) for a, b in zip(box, block)) <= NEAR for box in found)
                for kind, *block in blocks]
        checks.check(len(found) == len(blocks) and all(near), f"read_objects prints {line!r}, there are {blocks}")


def main():
    checks = Checks("recipes")
    check_lengths(checks)
    with folder() as where:
        clip = os.environ.get("BLOCKS") or blocks_clip.write(f"{where}/blocks.mp4", COUNT, WIDTH, HEIGHT)
        capture = cv2.VideoCapture(clip)
        pictures = [capture.read()[1] for _ in range(COUNT)]
        models = {"onnx": blocks_model.write(f"{where}/blocks.onnx"), "torch": None}
        if importlib.util.find_spec("torch"):
            models["torch"] = write_torch(f"{where}/blocks.pt")
        for memory in MEMORIES:
            with Framed(where, CONFIG.format(where=where, clip=clip, backend=BACKEND, memory=memory)):
                until(lambda: os.path.exists(f"{where}/batches.ring"), 20)
                for name in PROGRAMS if memory == "host" else ON_GPU:
                    check_program(checks, name, memory, where, models, pictures)
                for name in PLAIN if memory == "host" else ("ring_cuda",):
                    check_plain(checks, name, where)
                if memory == "host":
                    check_own_detector(checks, where)
                    check_objects(checks, where, models)
    checks.end()


main()
