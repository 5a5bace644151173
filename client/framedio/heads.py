"""The output format of each head, and the layout derived from an output's shape."""
HEADS = ("yolov8", "yolov5", "yolox", "end2end", "detr", "efficientnms", "tflite")
FIRST = {"yolov8": 4, "yolov5": 5, "yolox": 5}  # columns before the scores
FINISHED_COLUMNS = 6
CLASSES_MAX = 4096
NAMES = ("boxes", "scores", "classes", "count")  # in libframed's order
ORDERS = {  # in the networks' order
    "detr": ("boxes", "scores"),
    "efficientnms": ("count", "boxes", "scores", "classes"),
    "tflite": ("boxes", "classes", "scores", "count"),
}
STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32), (16, 32))


def tensors_of(head, output):
    """Returns the tensors of a head in libframed's order. For a head of one tensor the first of several, since masks follow it."""
    if head not in ORDERS:
        return [output[0] if isinstance(output, (list, tuple)) else output]
    wanted = [name for name in NAMES if name in ORDERS[head]]
    if not isinstance(output, dict):
        if not isinstance(output, (list, tuple)) or len(output) < len(wanted):
            raise ValueError(f"{head} has {len(wanted)} tensors: {', '.join(ORDERS[head])}")
        output = dict(zip(ORDERS[head], output))
    lacking = [name for name in wanted if name not in output]
    if lacking:
        raise ValueError(f"{head}: the output has no {', '.join(lacking)}")
    return [output[name] for name in wanted]


def _text_of(shape):
    return " x ".join(map(str, shape))


def _usual_anchors(head, size):
    """Returns the usual numbers of anchors of networks with such an input."""
    cells = {sum((size[0] // stride) * (size[1] // stride) for stride in strides) for strides in STRIDES}
    return cells | {3 * n for n in cells} if head in ("yolov5", "yolox") else cells


def _columns_layout(head, shape, size, classes, planes, extra):
    """Returns (pictures, anchors, classes, planes) of one tensor."""
    if len(shape) not in (2, 3):
        raise ValueError(f"{head}: an output of {_text_of(shape)}, not of pictures x anchors x columns")
    pictures, ways = shape[0] if len(shape) == 3 else 1, []
    for is_planes in (False, True) if planes is None else (bool(planes),):
        columns, anchors = shape[-2:] if is_planes else (shape[-1], shape[-2])
        if head == "end2end":
            number = (classes or CLASSES_MAX) if columns == FINISHED_COLUMNS + extra else 0
        else:
            number = columns - FIRST[head] - extra
        if 0 < number <= CLASSES_MAX and (classes is None or number == classes):
            ways.append((pictures, anchors, number, is_planes))
    usual = _usual_anchors(head, size)
    for way in ways:
        if head == "yolov8" and classes is None and way[1] in {3 * n for n in usual} - usual:
            raise ValueError(f"{head}: an output of {_text_of(shape)} has three anchors a cell, as head=\"yolov5\" has; if it "
                             f"is yolov8, classes={way[2]} is wanted")
    if len(ways) == 2:
        ways = [way for way in ways if way[1] in usual]
        if len(ways) != 1:
            other = ', or head="end2end"' if FINISHED_COLUMNS in shape[-2:] else ""
            raise ValueError(f"{head}: an output of {_text_of(shape)} can be read in two ways: classes= or planes= is wanted{other}")
    if not ways:
        first = FINISHED_COLUMNS if head == "end2end" else f"{FIRST[head]} + {'classes' if classes is None else classes}"
        raise ValueError(f"{head}: an output of {_text_of(shape)} has no {first} + {extra} columns")
    return ways[0]


def layout_of(head, arrays, size, classes, planes, is_softmax, extra):
    """Returns (pictures, anchors, classes, planes) of a head's arrays. size: of the network's input. ValueError: they do not
    fit the head, or fit in two ways."""
    if head not in ORDERS:
        return _columns_layout(head, arrays[0].shape, size, classes, planes, extra)
    boxes = arrays[0].shape
    if planes:
        raise ValueError(f"{head}: planes= is of heads of one tensor")
    if len(boxes) not in (2, 3) or boxes[-1] != 4:
        raise ValueError(f"{head}: boxes of {_text_of(boxes)}, not of pictures x N x 4")
    pictures, anchors = boxes[0] if len(boxes) == 3 else 1, boxes[-2]
    if head == "detr":
        scores = arrays[1].shape
        if scores[:-1] != boxes[:-1]:
            raise ValueError(f"detr: boxes of {_text_of(boxes)} and scores of {_text_of(scores)}")
        number = scores[-1] - is_softmax
        if classes not in (None, number):
            raise ValueError(f"detr: scores of {number} classes, not of {classes}")
        return pictures, anchors, number, False
    for name, array, each in zip(NAMES[1:], arrays[1:], (anchors, anchors, 1)):
        elements = 1
        for side in array.shape:
            elements *= side
        if elements != pictures * each:
            raise ValueError(f"{head}: {name} of {_text_of(array.shape)} beside boxes of {_text_of(boxes)}")
    return pictures, anchors, classes or CLASSES_MAX, False
