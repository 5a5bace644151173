"""Random outputs in the form of a detector of 640 x 640 pixels."""
import numpy as np


def aligned(shape):
    """Returns f32 zeroes aligned to 64 bytes, as runtimes align their outputs."""
    block = np.zeros(int(np.prod(shape)) + 16, np.float32)
    first = -block.ctypes.data // 4 % 16
    return block[first:first + int(np.prod(shape))].reshape(shape)


def scene(random, candidates, each=15, classes=80, anchors=8400):
    """Returns (4 + classes, anchors) f32: objects, each seen by `each` anchors, with `candidates` anchors in total."""
    output = aligned((4 + classes, anchors))
    output[4:] = random.random((classes, anchors), np.float32) * 0.05
    output[:2] = random.random((2, anchors), np.float32) * 640
    output[2:4] = random.random((2, anchors), np.float32) * 100 + 10
    places = random.permutation(anchors)[:candidates]
    for i in range(0, candidates, each):
        at = places[i:i + each]
        middle, side = random.random(2) * 600 + 20, random.random(2) * 80 + 20
        output[:2, at] = middle[:, None] + random.normal(0, 1.5, (2, len(at)))
        output[2:4, at] = side[:, None] * random.uniform(0.9, 1.1, (2, len(at)))
        output[4 + random.integers(classes), at] = random.uniform(0.3, 0.95, len(at))
    return output
