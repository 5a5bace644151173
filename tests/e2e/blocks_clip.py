"""A clip of coloured blocks that move over a gray ground, with their position in each picture: the ground truth for a detector."""
import subprocess

import numpy

NAMES = ["red", "green", "blue"]  # of the classes
COLOURS = [(224, 32, 32), (32, 224, 32), (32, 32, 224)]
RATE = 25
# Per lane: its middle, then each block's class and its distance behind the lane's first block; in parts of the picture. Lanes are further apart than
# a block is large.
LANES = [(1 / 6, [(0, 0.0), (1, 0.5)]), (1 / 2, [(2, 0.0), (0, 0.55)]), (5 / 6, [(1, 0.0), (2, 0.45)])]
SIZES = [(0.07, 0.06), (0.05, 0.07), (0.06, 0.05)]  # width and height of each class, in parts of the picture's width


def even(x):
    """Returns the nearest even number, where a chroma sample begins as well."""
    return 2 * round(x / 2)


def blocks(number, width, height):
    """Returns (class, x1, y1, x2, y2) of each block of a picture, by edges: x1 is the first column inside, x2 the first one outside."""
    found = []
    for lane, (middle, members) in enumerate(LANES):
        phase = (number * (lane + 2) / 400) % 1
        shift = width * (0.02 + 0.34 * (1 - abs(2 * phase - 1)))  # to the right and back
        for kind, behind in members:
            w, h = (even(part * width) for part in SIZES[kind])
            x, y = even(shift + behind * width), even(middle * height - h / 2)
            found.append((kind, x, y, x + w, y + h))
    return found


def drawn(number, width, height):
    """Returns the picture, height x width x RGB. The ground moves slowly."""
    ground = 128 + 40 * numpy.outer(numpy.cos(numpy.arange(height) / 23), numpy.sin((numpy.arange(width) + number) / 37))
    picture = numpy.repeat(ground.astype("u1")[:, :, None], 3, axis=2)
    for kind, x1, y1, x2, y2 in blocks(number, width, height):
        picture[y1:y2, x1:x2] = COLOURS[kind]
    return picture


def write(path, count=200, width=1280, height=720):
    """Writes the clip, H.264 with a keyframe each second; 200 pictures end where they begin."""
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r",
               str(RATE), "-i", "-", "-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-g", str(RATE), "-bf", "0",
               "-pix_fmt", "yuv420p", path]
    coder = subprocess.Popen(command, stdin=subprocess.PIPE)
    for number in range(count):
        coder.stdin.write(drawn(number, width, height).tobytes())
    coder.stdin.close()
    if coder.wait(120):
        raise RuntimeError(f"ffmpeg made no {path}")
    return path
