#!/usr/bin/python3
"""A network that finds the blocks of blocks_clip.py, written as an ONNX file. Its weights are set by hand. Its output has YOLOv8's shape, 1 x (4 + 3)
x 6400: centre, width and height of a box in input pixels, then three scores.

How it works: a mask, computed from the colour alone, is 1 in a block and 0 outside, and crosses 1/2 at the edge. In each cell of 8 x 8 pixels, the
sums of the mask to the left, right, top and bottom are the distances to the block's edges. The score falls with the distance from the block's middle,
so that suppression has something to choose from.

usage: blocks_model.py FILE
"""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE, STRIDE = 640, 8
CELLS = SIDE // STRIDE
REACH = 48  # a block ends, and no other begins, within so many pixels to each side
FULL = (224 - 32) / 255  # how much redder the red block is than green and blue


def colour_weights():
    """1 x 1. For each class c: a value u(c), at least 1 inside and at most 0 outside, then u(c) - 1 for each class. Mask: relu(u) - relu(u - 1)."""
    gain = 4.0
    difference = 1.5 * numpy.eye(3) - 0.5  # red - (green + blue) / 2
    weights = numpy.tile(gain * difference, (2, 1))
    bias = numpy.repeat([0.5 - gain * FULL / 2, -0.5 - gain * FULL / 2], 3)
    return weights.reshape(6, 3, 1, 1), bias


def mask_weights(kernels):
    """Applies kernels to the classes' masks, given the six outputs of colour_weights(): out x 3 x height x width."""
    return numpy.concatenate([kernels, -kernels], axis=1)


def run_weights():
    """Sums the mask of all classes to the left and to the right of a cell's middle, in rows 3 and 4 of its 8."""
    line = numpy.zeros((2, 3, STRIDE, 2 * REACH))
    line[0, :, 3:5, :REACH] = line[1, :, 3:5, REACH:] = 0.5
    return mask_weights(line)


def inside_weights():
    """For each class: 1 where all of the middle 6 x 6 pixels of the cell are in a block, 0 where one is not."""
    square = numpy.zeros((3, 3, STRIDE, STRIDE))
    square[range(3), range(3), 1:7, 1:7] = 1
    return mask_weights(square), numpy.full(3, -35.0)


def box_weights():
    """Turns the distances to the left, right, top and bottom into the centre, relative to the cell's, and the size."""
    return numpy.array([[-0.5, 0.5, 0, 0], [0, 0, -0.5, 0.5], [1, 1, 0, 0], [0, 0, 1, 1]])


def score_weights():
    """Subtracts the offsets from the middle (left over right and so on) from the inside values."""
    return numpy.hstack([numpy.full((3, 4), -0.004), 0.9 * numpy.eye(3)])


def difference_weights():
    """right - left, left - right, bottom - top, top - bottom, and the unchanged inside values. The Relu behind keeps the positive ones."""
    weights = numpy.zeros((7, 7))
    weights[:4, :4] = [[-1, 1, 0, 0], [1, -1, 0, 0], [0, 0, -1, 1], [0, 0, 1, -1]]
    weights[4:, 4:] = numpy.eye(3)
    return weights


def count_weights():
    """Turns ones into the middles of the cells in one direction: the number of cells up to each, times the stride, less half a stride."""
    weights = numpy.zeros((4, 1, 1, 2 * CELLS - 1))
    weights[0, ..., :CELLS] = STRIDE
    return weights, numpy.array([-STRIDE / 2, 0, 0, 0])


class Graph:
    """Nodes and constants, each named after its output."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, array, kind="f4"):
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(array, kind), name))
        return name

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def convolution(self, source, output, weights, bias=None, **attributes):
        weights = numpy.atleast_3d(weights)[..., None] if weights.ndim == 2 else weights
        inputs = [source, self.constant(f"{output}_weights", weights)]
        inputs += [self.constant(f"{output}_bias", bias)] if bias is not None else []
        return self.node("Conv", inputs, output, kernel_shape=weights.shape[2:], **attributes)


def build():
    graph = Graph()
    colours = graph.convolution("images", "colours", *colour_weights())
    masks = graph.node("Relu", [colours], "masks")
    cells, reach = {"strides": [STRIDE] * 2}, REACH - STRIDE // 2
    horizontal = graph.convolution(masks, "horizontal", run_weights(), pads=[0, reach, 0, reach], **cells)
    vertical = graph.convolution(masks, "vertical", run_weights().swapaxes(2, 3), pads=[reach, 0, reach, 0], **cells)
    full = graph.convolution(masks, "full", *inside_weights(), **cells)
    inside = graph.node("Relu", [full], "inside")
    distances = graph.node("Concat", [horizontal, vertical], "distances", axis=1)
    offsets = graph.convolution(distances, "offsets", box_weights())
    # The middles of the cells are not a constant: OpenCV does not add a constant to each picture of a batch.
    ones = graph.convolution("images", "ones", numpy.zeros((1, 3, 1, 1)), numpy.ones(1), **cells)
    weights, bias = count_weights()
    x = graph.convolution(ones, "x", weights, bias, pads=[0, CELLS - 1, 0, CELLS - 1])
    y = graph.convolution(ones, "y", weights.swapaxes(2, 3)[[1, 0, 2, 3]], bias[[1, 0, 2, 3]], pads=[CELLS - 1, 0, CELLS - 1, 0])
    boxes = graph.node("Add", [graph.node("Add", [offsets, x], "across"), y], "boxes")
    known = graph.node("Concat", [distances, inside], "known", axis=1)
    differences = graph.convolution(known, "differences", difference_weights())
    apart = graph.node("Relu", [differences], "apart")
    raw = graph.convolution(apart, "raw", score_weights())
    scores = graph.node("Relu", [raw], "scores")
    found = graph.node("Concat", [boxes, scores], "found", axis=1)
    shape = graph.constant("shape", [0, 7, CELLS * CELLS], "i8")
    graph.node("Reshape", [found, shape], "output0")
    return graph


def write(path):
    """Writes the model; its input is a batch of any size of RGB tensors, f32, 0..1."""
    graph = build()
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])
    output = helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", 7, CELLS * CELLS])
    made = helper.make_graph(graph.nodes, "blocks", [images], [output], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


if __name__ == "__main__":
    write(sys.argv[1])
