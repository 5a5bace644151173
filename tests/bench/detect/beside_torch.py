#!/usr/bin/python3
"""Detection compared with torch and torchvision in the same run, on one core: medians in ms from the raw output of 84 x
8400 f32 to boxes, ours in source pixels too: the kernel alone, libframed's framed_detect_headers and framedio.detect. Both
keep the same boxes; a row says so if they do not.

usage: beside_torch.py [--core N] [--runs N] [--candidates 60,300,1200,3750] [--cut N] [--cuda]
"""
import argparse
import os
import statistics
import time

import framedio
import numpy as np
import torch
from framedio import detection
from framedio.arrays import array_of
from framedio.library import Header

import outputs
import program
import torch_chain

MATRIX = (3, 0, 1, 0, 3, -419)  # 1920 x 1080 in the middle of 640 x 640
SIZE = (1920, 1080)


def torch_ms(tensor, runs):
    """Includes copying results to the host, which users of a GPU also need."""
    return median_ms(lambda: [found.cpu() for found in torch_chain.suppress(tensor, 80, 0.25, 0.45)], runs)


def median_ms(call, runs):
    spent = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        spent.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(spent[runs // 4:])


def client_ms(output, cut, runs):
    """Returns (libframed's, framedio's) time for one picture."""
    header = Header(width=640, height=640, source_width=SIZE[0], source_height=SIZE[1])
    header.dst_to_src[:] = MATRIX
    framedio.detect(output, header, candidates=cut)
    detector, arrays = next(reversed(detection.OWN.detectors.values())), [array_of(output)]
    address = detection._headers_of(header)[1]
    return (median_ms(lambda: detector.run(arrays, address, 0, 1, None), runs),
            median_ms(lambda: framedio.detect(output, header, candidates=cut), runs))


def compare(server, output):
    """Returns True if both chains keep the same scores, classes and corners."""
    theirs = torch_chain.suppress(torch.from_numpy(output)[None], 80, 0.25, 0.45)[0].numpy()
    _, ours, _, _ = server.detect("yolov8", [output], 80, planes=True, compat_ultralytics=True)
    return (len(ours) == len(theirs) and np.array_equal(ours["score"], theirs[:, 4])
            and np.array_equal(ours["label"], theirs[:, 5]) and np.abs(ours["box"] - theirs[:, :4]).max(initial=0) < 1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--candidates", default="60,300,1200,3750")
    parser.add_argument("--cut", type=int, default=8192, help="candidates that go on")
    parser.add_argument("--cuda", action="store_true", help="also batches on a GPU, beside torch on it")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    torch.set_num_threads(1)
    random, server = np.random.default_rng(1), program.Program()
    print("pictures  candidates  kept  framed ms  libframed ms  framedio ms  torch ms  share  of framedio  on")
    for candidates in map(int, options.candidates.split(",")):
        output = outputs.scene(random, candidates)
        client = client_ms(output, options.cut, options.runs)
        same = "" if compare(server, output) else "  (not the same boxes)"
        for pictures in (0, 1, 8, 32) if options.cuda else (0,):
            theirs = torch.from_numpy(output)[None]
            if pictures:
                theirs = theirs.repeat(pictures, 1, 1).cuda()
            params = program.params_of("yolov8", [output], 80, planes=True, clip=True, candidates=options.cut)
            request = program.request_of(params, [output], MATRIX, SIZE)
            theirs = torch_ms(theirs, max(options.runs // (pictures or 1), 8))
            ours, found, kept, processor = server.time(request, options.runs, pictures)
            ends = [f"{ms:.3f}" for ms in client] + [f"{client[1] / theirs:.2f}"] if not pictures else ["-"] * 3
            print(f"{pictures or 1:8}  {found:10}  {kept:4}  {ours:9.3f}  {ends[0]:>12}  {ends[1]:>11}  {theirs:8.3f}"
                  f"  {ours / theirs:5.2f}  {ends[2]:>11}  {processor}{same}")
    server.close()


if __name__ == "__main__":
    main()
