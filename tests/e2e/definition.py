"""The pixel contract of a warp output, evaluated in double by numpy: the source position of each output pixel, bilinear on every plane, colour
conversion, blend with the fill colour by coverage. It shares no code and no integer arithmetic with kernels/, so what both agree on is what the
contract says."""
import numpy

# Weights of R and B in luma.
MATRICES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def letterbox(source, target):
    """Returns src_to_dst for (width, height) sizes, 2x3, integers at pixel centres."""
    (sw, sh), (dw, dh) = source, target
    s = min(dw / sw, dh / sh)
    return numpy.array(
        [[s, 0, -s * sw / 2 + dw / 2 + s / 2 - 0.5], [0, s, -s * sh / 2 + dh / 2 + s / 2 - 0.5]]
    )


def inverse(m):
    return numpy.linalg.inv(numpy.vstack([m, [0, 0, 1]]))[:2]


def positions(dst_to_src, target):
    """Returns the source position of every output pixel: two arrays of height x width."""
    dx, dy = numpy.meshgrid(numpy.arange(target[0], dtype="f8"), numpy.arange(target[1], dtype="f8"))
    return tuple(row[0] * dx + row[1] * dy + row[2] for row in dst_to_src)


def bilinear(plane, x, y):
    """Samples a plane (height x width, or x channels) at the given positions, with edge clamp."""
    height, width = plane.shape[:2]
    left, top = numpy.floor(x).astype(int), numpy.floor(y).astype(int)
    wx, wy = x - left, y - top
    if plane.ndim == 3:
        wx, wy = wx[..., None], wy[..., None]
    x0, x1 = numpy.clip(left, 0, width - 1), numpy.clip(left + 1, 0, width - 1)
    y0, y1 = numpy.clip(top, 0, height - 1), numpy.clip(top + 1, 0, height - 1)
    plane = plane.astype("f8")
    upper = plane[y0, x0] * (1 - wx) + plane[y0, x1] * wx
    lower = plane[y1, x0] * (1 - wx) + plane[y1, x1] * wx
    return upper * (1 - wy) + lower * wy


def coverage(x, size):
    """Returns the share of the two taps at position x that lies inside 0..size-1."""
    tap = numpy.floor(x)
    w = x - tap
    return (1 - w) * ((tap >= 0) & (tap < size)) + w * ((tap + 1 >= 0) & (tap + 1 < size))


def rgb_of(y, u, v, matrix, full):
    kr, kb = MATRICES[matrix]
    kg = 1 - kr - kb
    y = y if full else (y - 16) * 255 / 219
    u, v = ((c - 128) * (1 if full else 255 / 224) for c in (u, v))
    r = y + 2 * (1 - kr) * v
    b = y + 2 * (1 - kb) * u
    g = y - 2 * (1 - kr) * kr / kg * v - 2 * (1 - kb) * kb / kg * u
    return numpy.stack([r, g, b], axis=-1)


def sample_yuv420(planes, x, y, matrix, full):
    """Returns RGB levels at luma positions; chroma is sited left, the default of H.264 and H.265."""
    luma, u, v = planes
    chroma = (x / 2, (y - 0.5) / 2)
    return rgb_of(bilinear(luma, x, y), bilinear(u, *chroma), bilinear(v, *chroma), matrix, full)


def warp(sample, source, target, fill=114):
    """Returns levels before rounding, height x width x channels; `sample(x, y)` reads the picture."""
    x, y = positions(inverse(letterbox(source, target)), target)
    covered = (coverage(x, source[0]) * coverage(y, source[1]))[..., None]
    return numpy.clip(sample(x, y), 0, 255) * covered + fill * (1 - covered)


def warp_yuv420(planes, target, matrix="bt601", full=False):
    height, width = planes[0].shape
    return warp(lambda x, y: sample_yuv420(planes, x, y, matrix, full), (width, height), target)


def warp_gray420(planes, target, full=False):
    """Gray of a YUV picture is its luma, scaled to 0..255."""
    luma = planes[0]

    def sample(x, y):
        level = bilinear(luma, x, y)[..., None]
        return level if full else (level - 16) * 255 / 219

    return warp(sample, luma.shape[::-1], target)


def rounded(levels):
    """Rounds half up, as the contract says."""
    return numpy.floor(levels + 0.5)
