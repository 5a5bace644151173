"""Trilinear interpolation and its gradients, by libframed: for numpy arrays, and for PyTorch tensors with autograd."""
import ctypes
import functools
import os
import sys

from .arrays import array_of
from .library import CUDA, HOST, Place, libframed

CORNERS, AXES = 8, 3


def _library_of(name, value):
    library = type(value).__module__.partition(".")[0]
    if library not in ("numpy", "torch"):
        raise TypeError(f"{name} is a {type(value).__name__}: an array of numpy or a tensor of PyTorch is wanted")
    return library


def _arrays_of(**values):
    """Returns the Array of each, n x ... of float32, all of one library and on one device."""
    libraries = {name: _library_of(name, value) for name, value in values.items()}
    if len(set(libraries.values())) > 1:
        raise TypeError("arrays of several libraries: " + ", ".join(f"{name} of {of}" for name, of in libraries.items()))
    arrays = {name: array_of(value) for name, value in values.items()}
    for name, array in arrays.items():
        if array.dtype != "f32":
            raise ValueError(f"{name} of {array.dtype}: float32 is wanted")
    devices = {name: "the host" if array.device is None else f"GPU {array.device}" for name, array in arrays.items()}
    if len(set(devices.values())) > 1:
        raise ValueError("arrays on several devices: " + ", ".join(f"{name} on {on}" for name, on in devices.items()))
    return arrays.values()


def _check_shape(name, array, wanted, *shape):
    if len(array.shape) != len(shape) or any(size not in (-1, is_) for size, is_ in zip(shape, array.shape)):
        raise ValueError(f"{name} of {' x '.join(map(str, array.shape))}: {wanted} is wanted")


def _empty(like, *shape):
    """Returns a float32 array of the same library, on the same device."""
    return like.new_empty(shape) if hasattr(like, "new_empty") else sys.modules["numpy"].empty(shape, "f4")


def _call(function, array, n, f, *values):
    """Calls the function for arrays (or None) on the device of `array`, in the stream that made it."""
    pointers = [None if value is None else array_of(value).pointer for value in values]
    place = Place(HOST if array.device is None else CUDA, array.device or 0, array.stream)
    if function(*pointers, n, f, place) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _forward(features, points):
    corners, places = _arrays_of(features=features, points=points)
    _check_shape("features", corners, "n x 8 x f", -1, CORNERS, -1)
    n, _, f = corners.shape
    _check_shape("points", places, f"{n} x 3", n, AXES)
    out = _empty(features, n, f)
    _call(libframed.framed_trilinear_forward, corners, n, f, out, features, points)
    return out


def _backward(grad_out, features, points, wants_features, wants_points):
    given = {"grad_out": grad_out, "points": points, **({} if features is None else {"features": features})}
    gradient, places, *corners = _arrays_of(**given)
    _check_shape("grad_out", gradient, "n x f", -1, -1)
    n, f = gradient.shape
    _check_shape("points", places, f"{n} x 3", n, AXES)
    for array in corners:
        _check_shape("features", array, f"{n} x 8 x {f}", n, CORNERS, f)
    grad_features = _empty(grad_out, n, CORNERS, f) if wants_features else None
    grad_points = _empty(grad_out, n, AXES) if wants_points else None
    _call(libframed.framed_trilinear_backward, gradient, n, f, grad_features, grad_points, grad_out, features, points)
    return grad_features, grad_points


@functools.lru_cache(maxsize=None)
def _autograd():
    """Returns the function for PyTorch's autograd; made on demand because framedio does not require PyTorch."""
    import torch

    class Trilinear(torch.autograd.Function):
        @staticmethod
        def forward(context, features, points):
            context.save_for_backward(features, points)
            return _forward(features, points)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context, grad_out):
            return _backward(grad_out.contiguous(), *context.saved_tensors, *context.needs_input_grad)

    return Trilinear


def trilinear(features, points):
    """Interpolates at n points, each in its own cell whose 8 corners have f features: returns n x f.

    features: n x 8 x f, the corners in the order of an array [x][y][z] of 2 x 2 x 2, so that z varies fastest.
    points: n x 3, x, y, z from -1 at the first corner of an axis to 1 at the second. It extrapolates outside.

    Both are contiguous float32 arrays of numpy, or tensors of PyTorch on the CPU or on one GPU. Tensors have gradients of
    features and of points, once: there is no gradient of a gradient. On a GPU the work goes to PyTorch's current stream.
    The CPU and the GPU return the same numbers, bit by bit; on the CPU it runs in one thread.
    """
    if _library_of("features", features) == "torch":
        return _autograd().apply(features, points)
    return _forward(features, points)


def trilinear_backward(grad_out, features, points):
    """Returns the gradients of trilinear(features, points) for grad_out, n x f, the gradient of its result: (of features, n
    x 8 x f, of points, n x 3). features: None if the points' gradient is not needed; it is None then."""
    return _backward(grad_out, features, points, True, features is not None)
