"""Clips whose pictures carry their number twice, in black and white blocks along the top and along the bottom, so that a decoded picture shows its
number, and whether both halves belong to one picture."""
import functools
import subprocess

import numpy

GOP = 25  # pictures; decoding can begin at the first of each
RATE = 25
COLUMNS, ROWS = 20, 12  # blocks
BITS = 16  # of a row of blocks: 14 for the number, after a black and a white one
UNKNOWN = -1


def stamp(canvas, number):
    """Draws the number's blocks on a canvas of one byte a pixel."""
    side = canvas.shape[0] // ROWS
    bits = [0, 1, *(number >> i & 1 for i in range(BITS - 2))]
    row = numpy.repeat(numpy.array([235 if bit else 16 for bit in bits], "u1"), side)
    canvas[:side, : len(row)] = row
    canvas[-side:, : len(row)] = row


def read_row(row, side):
    levels = [row[:, i * side + side // 4 : (i + 1) * side - side // 4].mean() for i in range(BITS)]
    if levels[0] > 70 or levels[1] < 180 or any(70 < level < 180 for level in levels):
        return UNKNOWN
    return sum((level > 128) << i for i, level in enumerate(levels[2:]))


def read_numbers(picture):
    """Returns the numbers at the top and at the bottom of a gray picture; UNKNOWN where there is none."""
    side = picture.shape[0] // ROWS
    return read_row(picture[:side], side), read_row(picture[-side:], side)


def drawn(count, width, height):
    """Yields the pictures as planar 4:2:0: a moving texture, predictable from the previous picture, and a band of new noise in every picture."""
    random = numpy.random.default_rng(1)
    texture = numpy.tile(noise(random, height, 2 * width), (1, 2))
    chroma = numpy.full(width * height // 2, 128, "u1").tobytes()
    for number in range(count):
        at = number * 3 % (2 * width)
        canvas = numpy.ascontiguousarray(texture[:, at : at + width])
        canvas[height // 3 : height // 2] = noise(random, height // 2 - height // 3, width)
        stamp(canvas, number)
        yield canvas.tobytes() + chroma


def noise(random, height, width):
    """Returns noise in squares of 4 pixels."""
    return random.integers(60, 200, (height // 4, width // 4), "u1").repeat(4, 0).repeat(4, 1)


CODERS = {
    "h264": ["-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-x264-params",
             f"keyint={GOP}:min-keyint={GOP}:scenecut=0:sliced-threads=0:repeat-headers=1:threads=1", "-f", "h264"],
    "h265": ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
             f"keyint={GOP}:min-keyint={GOP}:scenecut=0:bframes=0:repeat-headers=1:log-level=error", "-f", "hevc"],
    "mjpeg": ["-c:v", "mjpeg", "-q:v", "3", "-huffman", "default", "-color_range", "pc", "-f", "matroska"],
}


def encode(path, count, codec="h264", size=(320, 192), pixels="yuv420p", slices=1):
    """Writes such a clip as an elementary stream; yuvj420p is full range. `slices`: per picture, H.264 only."""
    width, height = size
    coder = [*CODERS[codec], *(["-slices", str(slices)] if slices > 1 else [])]
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s",
               f"{width}x{height}", "-r", str(RATE), "-i", "-", "-pix_fmt", pixels, *coder, path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    for picture in drawn(count, width, height):
        process.stdin.write(picture)
    process.stdin.close()
    if process.wait(120):
        raise RuntimeError(f"ffmpeg made no {path}")
    return path


class NumberedClip:
    """The access units of such a clip: units[number] is a list of NAL units."""

    def __init__(self, path, codec="h264"):
        self.path, self.codec, self.units = path, codec, []
        with open(path, "rb") as file:
            nals = file.read().replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]
        waiting = []
        for nal in nals:
            waiting.append(nal)
            if not self.is_picture(nal):
                continue
            if self.begins_picture(nal):
                self.units.append([])
            self.units[-1] += waiting
            waiting = []

    def type_of(self, nal):
        return nal[0] & 31 if self.codec == "h264" else nal[0] >> 1 & 63

    def is_picture(self, nal):
        return self.type_of(nal) in (1, 5) if self.codec == "h264" else self.type_of(nal) < 32

    def begins_picture(self, nal):
        return bool(nal[1 if self.codec == "h264" else 2] & 128)

    @functools.cached_property
    def parameter_sets(self):
        wanted = (7, 8) if self.codec == "h264" else (32, 33, 34)
        return [nal for nal in self.units[0] if self.type_of(nal) in wanted]
