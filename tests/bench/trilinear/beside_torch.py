#!/usr/bin/python3
"""Trilinear interpolation compared with torch.nn.functional.grid_sample in the same run: medians in ms of framedio.trilinear
and of its gradients with autograd, and the share of the memory's speed, as measured with a copy. Each gets its arrays in its
own layout. On the CPU both have one thread.

usage: beside_torch.py [--cuda] [--runs N] [--million N] [--features 3,32,64]
"""
import argparse
import statistics
import time

import framedio
import torch

CORNERS, AXES, FLOAT = 8, 3, 4


def grid_sample(volume, grid):
    return torch.nn.functional.grid_sample(volume, grid, align_corners=True)


def median_ms(call, runs, device):
    """On a GPU the time between two events around several calls, which hides Python's time as in a program."""
    spent, calls = [], 10 if device == "cuda" else 1
    for _ in range(runs + 1):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(calls):
                call()
            end.record()
            end.synchronize()
            spent.append(begin.elapsed_time(end) / calls)
        else:
            begin = time.perf_counter()
            call()
            spent.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(spent[1:])


def times(function, inputs, runs, device):
    """Returns times of (forward, the first input's gradient, both inputs' gradients), and the result."""
    result, spent = function(*inputs), [median_ms(lambda: function(*inputs), runs, device)]
    for wanted in (inputs[:1], inputs):
        leaves = [one.detach().requires_grad_(any(one is other for other in wanted)) for one in inputs]
        out = function(*leaves)
        grad = torch.rand_like(out)
        leaves = [leaf for leaf in leaves if leaf.requires_grad]
        spent.append(median_ms(lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True), runs, device))
    return spent, result


def copied(device, runs):
    """Returns bytes read and written per ms."""
    source = torch.rand(1 << 26, device=device)
    to = torch.empty_like(source)
    return 2 * FLOAT * len(source) / median_ms(lambda: to.copy_(source), runs, device)


def compare(n, f, speed, runs, device):
    features, points = torch.rand(n, CORNERS, f, device=device), torch.rand(n, AXES, device=device) * 2 - 1
    volume = features.reshape(n, 2, 2, 2, f).permute(0, 4, 3, 2, 1).contiguous()
    ours, out = times(framedio.trilinear, [features, points], runs, device)
    theirs, sampled = times(grid_sample, [volume, points.reshape(n, 1, 1, 1, AXES)], runs, device)
    apart = (out - sampled.reshape(n, f)).abs().max().item()
    least = FLOAT * n * ((CORNERS + 1) * f + AXES)  # bytes of the forward pass, and of the features' gradient
    shares = [least / speed / ms for ms in ours[:2]]
    print(f"{n:>9,} {f:>4}  forward {ours[0]:8.3f} {theirs[0]:8.3f} {shares[0]:5.0%}  features {ours[1]:8.3f} {theirs[1]:8.3f} "
          f"{shares[1]:5.0%}  both {ours[2]:8.3f} {theirs[2]:8.3f}  apart {apart:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--cuda", action="store_true", help="on the GPU")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--million", type=float, default=0.25, help="points (default 0.25)")
    parser.add_argument("--features", default="3,32,64")
    arguments = parser.parse_args()
    device = "cuda" if arguments.cuda else "cpu"
    torch.set_num_threads(1)
    speed = copied(device, arguments.runs)
    print(f"{device}, torch {torch.__version__}, a copy {speed / 1e6:.1f} GB/s; ms of framedio, of grid_sample, share of a copy")
    for f in arguments.features.split(","):
        compare(int(arguments.million * 1e6), int(f), speed, arguments.runs, device)


main()
