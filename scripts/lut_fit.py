#!/usr/bin/python3
"""Fits a colour table that makes the pictures of one camera look like those of another, from pairs of pictures of the same
scene from the same position: a pixel of one picture shows the same as that pixel of the other. The table is written as
.cube, which ffmpeg's lut3d and most image programs read. It needs numpy, OpenCV and framedio (in a checkout:
PYTHONPATH=client LD_LIBRARY_PATH=build).

It searches for the table nearest to the second camera by squared levels: Adam on the nodes, with the gradients of
framedio.trilinear. The table starts as the identity and keeps it far from all colours seen; between them it is smooth. Every
fifth block of 16 x 16 pixels is left out of the fit, and measures the table's quality.

Show the cameras many colours, and no pixels that are too bright or too dark for one of them: a colour card that is moved
about, or a day's pictures.
"""
import argparse
import os
import sys

try:
    import cv2
    import framedio
    import numpy
except ImportError as error:
    sys.exit(f"lut_fit: {error}; it needs Debian's python3-numpy, python3-opencv and python3-framedio")

BLOCK, LEFT_OUT = 16, 5  # pixels; one of this many blocks
BATCH = 1 << 16  # pixels per step, if there are more colours than that; otherwise all
CHUNK = 1 << 18  # pixels looked up at a time
RATE = 0.01  # of Adam at its first step, in parts of the range of colours
FADE = 2.0  # nodes; distance over which a change fades from the colours seen
CORNERS = numpy.array([[k >> 2 & 1, k >> 1 & 1, k & 1] for k in range(8)])  # red, green, blue; framedio's x, y, z


class Mistake(Exception):
    """An error that the user can correct."""


# --- pairs of pictures


def pairs_of(paths):
    """Returns (path, path) of each pair: of the paths in turn, or of equal names in two folders."""
    folders = [os.path.isdir(path) for path in paths]
    if not any(folders):
        if len(paths) % 2:
            raise Mistake(f"{len(paths)} pictures: pairs are wanted, first A1 B1, then A2 B2")
        return list(zip(paths[::2], paths[1::2]))
    if len(paths) != 2 or not all(folders):
        raise Mistake("two folders are wanted, or pictures alone")
    names = sorted(set(os.listdir(paths[0])) & set(os.listdir(paths[1])))
    if not names:
        raise Mistake(f"{paths[0]} and {paths[1]} have no file of the same name")
    return [tuple(os.path.join(folder, name) for folder in paths) for name in names]


def read(path):
    """Returns height x width x red, green, blue."""
    if not os.path.exists(path):
        raise Mistake(f"{path}: there is no such file")
    picture = cv2.imread(path, cv2.IMREAD_COLOR)
    if picture is None:
        raise Mistake(f"{path}: not a picture that OpenCV reads, as PNG, JPEG or PPM")
    return numpy.ascontiguousarray(picture[:, :, ::-1])


def split(shape, number):
    """Returns a mask of the pixels to leave out of the picture with that number."""
    rows, columns = (numpy.arange(size) // BLOCK for size in shape)
    return (3 * rows[:, None] + columns[None, :] + number) % LEFT_OUT == 0


def counted(one, other):
    """Returns each colour of `one`, its count, and the sum of the colours of `other` at the same pixels."""
    codes, inverse, counts = numpy.unique(one.astype("u4") @ numpy.array([1 << 16, 1 << 8, 1], "u4"),
                                          return_inverse=True, return_counts=True)
    sums = [numpy.bincount(inverse.ravel(), other[:, channel], len(codes)) for channel in range(3)]
    return codes, counts.astype("f8"), numpy.stack(sums, 1)


def merged(parts):
    """Returns the same for several pictures."""
    codes, inverse = numpy.unique(numpy.concatenate([part[0] for part in parts]), return_inverse=True)
    add = lambda values: numpy.bincount(inverse.ravel(), values, len(codes))
    counts, sums = (numpy.concatenate([part[at] for part in parts]) for at in (1, 2))
    return codes, add(counts), numpy.stack([add(sums[:, channel]) for channel in range(3)], 1)


def load(pairs):
    """Returns (colours 0 to 1, their counts, the other camera's mean colours for them, 0 to 1), and the pixels left out, of
    both."""
    parts, left = [], []
    for number, paths in enumerate(pairs):
        one, other = map(read, paths)
        if one.shape != other.shape:
            sizes = (f"{picture.shape[1]}x{picture.shape[0]}" for picture in (one, other))
            raise Mistake(f"{' and '.join(paths)} have {' and '.join(sizes)} pixels: both must have the same")
        out = split(one.shape[:2], number)
        left.append((one[out], other[out]))
        if not out.all():
            parts.append(counted(one[~out], other[~out]))
    if not parts:
        raise Mistake(f"pictures larger than {BLOCK}x{BLOCK} pixels are wanted")
    codes, counts, sums = merged(parts)
    colours = numpy.stack([codes >> 16, codes >> 8 & 255, codes & 255], 1) / 255
    return (colours, counts, sums / counts[:, None] / 255), [numpy.concatenate(side) for side in zip(*left)]


# --- tables: points x points x points x 3 of float32, by red, green, blue


def identity(points):
    axis = numpy.linspace(0, 1, points, dtype="f4")
    return numpy.stack(numpy.meshgrid(axis, axis, axis, indexing="ij"), -1)


def cells(colours, points):
    """Returns the numbers of the 8 nodes around each colour, and its position between them, -1 to 1."""
    position = colours * (points - 1)
    low = numpy.minimum(position.astype("i8"), points - 2)
    nodes = (low[:, None, :] + CORNERS) @ numpy.array([points * points, points, 1])
    return nodes, ((position - low) * 2 - 1).astype("f4")


def look_up(table, colours):
    """Returns the table's values for colours 0 to 1."""
    nodes, places = cells(colours, len(table))
    return framedio.trilinear(table.reshape(-1, 3)[nodes], places)


def roughness(change):
    """Returns the gradient of half the sum of squares of all second differences."""
    gradient = numpy.zeros_like(change)
    for axis in range(3):
        along, to = numpy.moveaxis(change, axis, 0), numpy.moveaxis(gradient, axis, 0)
        bend = along[2:] - 2 * along[1:-1] + along[:-2]
        to[2:] += bend
        to[1:-1] -= 2 * bend
        to[:-2] += bend
    return gradient


def fit(colours, counts, targets, points, smooth, steps, seed):
    """Returns the table, fitted by Adam, with steps that shrink along a cosine."""
    start = identity(points)
    table, mean, square = start.copy(), numpy.zeros_like(start), numpy.zeros_like(start)
    nodes, places = cells(colours, points)
    share = (counts / counts.sum()).astype("f4")
    until = numpy.cumsum(share, dtype="f8")
    random, few, batch = numpy.random.default_rng(seed), len(share) <= BATCH, slice(None)
    for step in range(1, steps + 1):
        if not few:
            batch = numpy.minimum(until.searchsorted(random.random(BATCH)), len(share) - 1)
        around, where = nodes[batch], places[batch]
        off = framedio.trilinear(table.reshape(-1, 3)[around], where) - targets[batch].astype("f4")
        weight = share[:, None] if few else numpy.float32(1 / BATCH)
        back, _ = framedio.trilinear_backward(off * weight * points ** 3, None, where)
        gradient = numpy.stack([numpy.bincount(around.ravel(), back[:, :, channel].ravel(), points ** 3)
                                for channel in range(3)], 1).reshape(start.shape)
        change = table - start
        gradient += smooth * (roughness(change) + change / FADE ** 4)
        mean += 0.1 * (gradient - mean)
        square += 0.01 * (gradient ** 2 - square)
        rate = RATE * (1 + numpy.cos(numpy.pi * step / steps)) / 2
        table -= rate * (mean / (1 - 0.9 ** step)) / (numpy.sqrt(square / (1 - 0.99 ** step)) + 1e-8)
        numpy.clip(table, 0, 1, out=table)
    return table


def check_output(path):
    """Checks the path before the work, not after it."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise Mistake(f"{path}: a file in a folder that can be written to is wanted")


def write(path, table, title, comments):
    comments = ("".join(letter if letter.isprintable() else "?" for letter in comment) for comment in comments)
    lines = [*(f"# {comment}" for comment in comments), f'TITLE "{title}"', f"LUT_3D_SIZE {len(table)}"]
    rows = table.transpose(2, 1, 0, 3).reshape(-1, 3)  # red is the fastest
    lines += ("%.6f %.6f %.6f" % tuple(row) for row in rows.tolist())
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror}") from None


# --- quality


def error_of(made, wanted):
    """Returns (mean absolute levels, PSNR in dB)."""
    off = made.astype("f8") - wanted
    square = (off ** 2).mean()
    return numpy.abs(off).mean(), 10 * numpy.log10(255 ** 2 / square) if square else numpy.inf


def levels(table, picture):
    parts = [look_up(table, picture[at:at + CHUNK] / 255) for at in range(0, len(picture), CHUNK)]
    return numpy.rint(numpy.concatenate(parts) * 255)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", metavar="PICTURE", help="pairs A1 B1 A2 B2 ..., or a folder of A and one of "
                        "B, of whose files those with the same name are pairs; A is to look like B")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.cube")
    parser.add_argument("--points", type=int, default=17, help="nodes along each colour, 2 to 65 (default 17)")
    parser.add_argument("--smooth", type=float, default=0.01, help="how much smoothness counts beside likeness; more where "
                        "pictures are noisy or few (default 0.01)")
    parser.add_argument("--steps", type=int, default=300, help="of the fit (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of pixels for each step (default 1)")
    parser.add_argument("--title", help="in the file (default: its name)")
    options = parser.parse_args()
    if not 2 <= options.points <= 65:
        parser.error(f"--points: 2 to 65, not {options.points}")
    if not options.smooth >= 0:
        parser.error(f"--smooth: 0 or more, not {options.smooth}")
    if options.steps < 1:
        parser.error(f"--steps: 1 or more, not {options.steps}")
    options.title = options.title or os.path.splitext(os.path.basename(options.output))[0]
    if '"' in options.title or not options.title.isprintable():
        parser.error("--title: one line without quotes")
    return options


def main():
    options = parse()
    try:
        check_output(options.output)
        pairs = pairs_of(options.pictures)
        (colours, counts, targets), (one, other) = load(pairs)
        table = fit(colours, counts, targets, options.points, options.smooth, options.steps, options.seed)
        before, after = error_of(one, other), error_of(levels(table, one), other)
        results = [f"{name}: {mean:.2f} levels from B in the mean, PSNR {psnr:.1f} dB"
                   for name, (mean, psnr) in (("before", before), ("after", after))]
        made = f"{len(pairs)} pairs, {int(counts.sum()):,} pixels of {len(colours):,} colours, {len(one):,} pixels left out"
        write(options.output, table, options.title,
              ["made by lut_fit.py so that A looks like B", made, *results, *(f"{a} like {b}" for a, b in pairs)])
    except Mistake as mistake:
        sys.exit(f"lut_fit: {mistake}")
    print(f"{options.output}: of {made}", *results, sep="\n")


if __name__ == "__main__":
    main()
