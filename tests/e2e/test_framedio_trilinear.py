#!/usr/bin/python3
"""framedio's trilinear interpolation: numpy arrays against a definition in double; PyTorch tensors, also on a GPU if present, against
torch.nn.functional.grid_sample and autograd's numerical differences."""
import os
import sys
import warnings

import numpy
from framed_client import Checks, framedio_environment

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio


def example(n, f, seed=1):
    random = numpy.random.default_rng(seed)
    return (random.standard_normal((n, 8, f)).astype("f4"), random.uniform(-1, 1, (n, 3)).astype("f4"),
            random.standard_normal((n, f)).astype("f4"))


def weights_of(points):
    """Returns the weights of the corners [x][y][z], n x 2 x 2 x 2, in double."""
    high = (points.astype("f8") + 1) / 2
    x, y, z = (numpy.stack([1 - high[:, axis], high[:, axis]], 1) for axis in range(3))
    return numpy.einsum("nx,ny,nz->nxyz", x, y, z)


def defined(features, points):
    return numpy.einsum("nk,nkf->nf", weights_of(points).reshape(-1, 8), features.astype("f8"))


def check_numpy(checks):
    for n, f in ((1, 1), (50, 3), (9, 16), (7, 33), (0, 4)):
        features, points, grad = example(n, f)
        out = framedio.trilinear(features, points)
        checks.check(out.dtype == "f4" and out.shape == (n, f), f"{out.dtype} {out.shape}")
        checks.check(numpy.allclose(out, defined(features, points), atol=1e-5), f"{n} x {f}: forward")
        of_features, of_points = framedio.trilinear_backward(grad, features, points)
        wanted = weights_of(points).reshape(n, 8, 1) * grad[:, None, :]
        checks.check(numpy.allclose(of_features, wanted, atol=1e-6), f"{n} x {f}: features' gradient")
        for axis in range(3):
            step = numpy.eye(3)[axis] / 4
            slope = (defined(features, points + step) - defined(features, points - step)) * 2
            checks.check(numpy.allclose(of_points[:, axis], (slope * grad).sum(1), atol=1e-4), f"{n} x {f}: slope of {axis}")
        alone, none = framedio.trilinear_backward(grad, None, points)
        checks.check(none is None and numpy.array_equal(alone, of_features), "the features' gradient alone")
    features.flags.writeable = False
    checks.check(framedio.trilinear(features, points).shape == (0, 4), "an array that is read-only")


def refusals():
    features, points, grad = example(5, 3)
    yield "features of <f8", lambda: framedio.trilinear(features.astype("f8"), points)
    yield "points of f16", lambda: framedio.trilinear(features, points.astype("f2"))
    yield "features of 5 x 7 x 3: n x 8 x f is wanted", lambda: framedio.trilinear(features[:, :7].copy(), points)
    yield "features of 8 x 3", lambda: framedio.trilinear(features[0], points)
    yield "points of 4 x 3: 5 x 3 is wanted", lambda: framedio.trilinear(features, points[:4])
    yield "not contiguous", lambda: framedio.trilinear(features, points[:, ::-1])
    yield "grad_out of 5", lambda: framedio.trilinear_backward(grad[:, 0].copy(), features, points)
    yield "features of 5 x 8 x 3: 5 x 8 x 2", lambda: framedio.trilinear_backward(grad[:, :2].copy(), features, points)
    yield "features is a list", lambda: framedio.trilinear([[0] * 8], points)
    yield "Invalid argument", lambda: framedio.trilinear(features[:, :, :0].copy(), points)


def refusals_of_torch(torch):
    features, points, _ = map(torch.from_numpy, example(5, 3))
    yield "features of float64", lambda: framedio.trilinear(features.double(), points)
    yield "not contiguous", lambda: framedio.trilinear(features.transpose(1, 2), points)
    yield "features of torch, points of numpy", lambda: framedio.trilinear(features, points.numpy())
    if torch.cuda.is_available():
        yield "features on GPU 0, points on the host", lambda: framedio.trilinear(features.cuda(), points)


def check_refusals(checks, cases):
    for text, call in cases:
        try:
            call()
            checks.check(False, f"nothing is refused: {text}")
        except (TypeError, ValueError, OSError) as error:
            checks.check(text in str(error), f"{error}, not {text}")


def import_torch():
    try:
        import torch
    except ImportError:
        return None
    return torch


def grid_sample(torch, features, points):
    """Returns PyTorch's own interpolation: a volume of 2 x 2 x 2 for each point, with z as its first axis."""
    n, _, f = features.shape
    volume = features.reshape(n, 2, 2, 2, f).permute(0, 4, 3, 2, 1)
    sample = torch.nn.functional.grid_sample(volume, points.reshape(n, 1, 1, 1, 3), align_corners=True)
    return sample.reshape(n, f)


def gradients(function, features, points, grad):
    leaves = features.detach().clone().requires_grad_(), points.detach().clone().requires_grad_()
    function(*leaves).backward(grad)
    return [leaf.grad for leaf in leaves]


def check_torch(checks, torch, device):
    for n, f in ((60, 3), (1000, 32), (33, 7)):
        features, points, grad = (torch.from_numpy(array).to(device) for array in example(n, f, seed=f))
        out, wanted = framedio.trilinear(features, points), grid_sample(torch, features, points)
        checks.check(out.device == features.device and not out.requires_grad, f"{out.device}")
        checks.check(torch.allclose(out, wanted, atol=1e-5), f"{device}, {n} x {f}: {(out - wanted).abs().max()} from grid_sample")
        found = gradients(framedio.trilinear, features, points, grad)
        theirs = gradients(lambda *of: grid_sample(torch, *of), features, points, grad)
        for name, is_, should in zip(("features", "points"), found, theirs):
            checks.check(torch.allclose(is_, should, atol=1e-4), f"{device}, {n} x {f}: {(is_ - should).abs().max()} in {name}")
        on_host = framedio.trilinear(features.cpu(), points.cpu())
        checks.check(torch.equal(on_host, out.cpu()), f"{device}, {n} x {f}: other bytes than on the host")
        again = gradients(framedio.trilinear, features.cpu(), points.cpu(), grad.cpu())
        checks.check(all(map(torch.equal, again, (one.cpu() for one in found))), f"{device}, {n} x {f}: other gradients")


def check_autograd(checks, torch, device):
    """Checks gradients by differences; they are exact along each coordinate, so that a long step costs no accuracy."""
    features, points, _ = (torch.from_numpy(array).to(device) for array in example(6, 5))
    leaves = features.requires_grad_(), points.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gradcheck warns about float32
        good = torch.autograd.gradcheck(framedio.trilinear, leaves, eps=0.25, atol=1e-4, rtol=1e-4)
    checks.check(good, f"{device}: gradcheck")
    framedio.trilinear(*leaves).sum().backward()  # its gradient is one number, expanded without memory
    wanted = weights_of(points.detach().cpu().numpy()).reshape(6, 8, 1)
    checks.check(numpy.allclose(features.grad.cpu(), wanted.repeat(5, 2), atol=1e-6), f"{device}: a spread gradient")
    fixed = framedio.trilinear(features.detach(), points)
    fixed.sum().backward()
    checks.check(fixed.requires_grad, f"{device}: points alone")
    try:
        once, = torch.autograd.grad(framedio.trilinear(*leaves).square().sum(), points, create_graph=True)
        once.sum().backward()
        checks.check(False, f"{device}: a gradient of a gradient")
    except RuntimeError as error:
        checks.check("once_differentiable" in str(error), f"{error}")


def check_stream(checks, torch):
    """The input is made after long work in its own stream: a reader that does not wait reads zeroes."""
    features, points, _ = (torch.from_numpy(array).cuda() for array in example(500, 16))
    wanted, right = framedio.trilinear(features, points), 0
    heavy = torch.rand(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(10):
            late = torch.zeros_like(features)
            for _ in range(5):
                heavy = (heavy @ heavy).clamp(0, 1)
            late.copy_(features + heavy[0, 0] * 0)
            right += torch.equal(framedio.trilinear(late, points), wanted)
    checks.check(right == 10, f"{right} of 10 in another stream")


def main():
    checks, torch = Checks("framedio_trilinear"), import_torch()
    check_numpy(checks)
    check_refusals(checks, refusals())
    if not torch:
        checks.skip("PyTorch is not installed")
        checks.end()
    check_refusals(checks, refusals_of_torch(torch))
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        check_torch(checks, torch, device)
        check_autograd(checks, torch, device)
    if torch.cuda.is_available():
        check_stream(checks, torch)
    checks.end()


main()
