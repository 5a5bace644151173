#!/usr/bin/python3
"""Fingerprints of 165 cameras on a GPU compared with torch: one cuBLAS product of 165 x 1024 and 1024 x 64, the same with
the bits, and that as a CUDA graph. Microseconds, by events; the first column is for 200 of them back to back.

usage: beside_torch.py [PROGRAM]    build/bench-fingerprint
"""
import subprocess
import sys

import torch

PICTURES, BEHIND, RUNS = 165, 200, 100


def transform():
    """Returns 64 x 1024: the weight of each pixel in each coefficient."""
    frequencies = torch.arange(1, 9, dtype=torch.float64)[:, None] * (2 * torch.arange(32, dtype=torch.float64) + 1)
    rows = torch.cos(torch.pi * frequencies / 64)
    return torch.einsum("uy,vx->uvyx", rows, rows).reshape(64, 1024)


def microseconds(call, calls):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    spent = []
    for _ in range(RUNS):
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        spent.append(begin.elapsed_time(end) * 1e3 / calls)
    return sorted(spent)[RUNS // 2]


def graph_of(call):
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def main():
    subprocess.run([sys.argv[1] if len(sys.argv) > 1 else "build/bench-fingerprint", "cuda", str(PICTURES)], check=True)
    luma = torch.randint(0, 256, (PICTURES, 1024), device="cuda", dtype=torch.uint8)
    weights = transform().T.contiguous().cuda()
    for dtype in (torch.float32, torch.float16):
        weight, pixels = weights.to(dtype), luma.to(dtype)
        out = torch.empty(PICTURES, 64, device="cuda", dtype=dtype)

        def product():
            torch.mm(pixels, weight, out=out)

        def bits():
            numbers = luma.to(dtype) @ weight
            return numbers > numbers.kthvalue(32, dim=1, keepdim=True).values

        for name, call in (("product", product), ("product in a graph", graph_of(product)), ("from bytes to bits", bits),
                           ("from bytes to bits in a graph", graph_of(bits))):
            print(f"torch {str(dtype)[6:]}, {name}: {microseconds(call, BEHIND):.2f} one behind the other,"
                  f" {microseconds(call, 1):.2f} alone", flush=True)


main()
