#!/usr/bin/python3
"""Detection beside torch and torchvision in the same run, on one core: medians in ms of the raw output of 84 x 8400 f32
to boxes, ours in source pixels too. Both keep the same boxes, or this says how many pictures differ.

usage: beside_torch.py [--core N] [--runs N] [--candidates 60,300,1200,3750] [--cut N] [--cuda]
"""
import argparse
import os
import statistics
import time

import numpy as np
import torch

import outputs
import program
import torch_chain

MATRIX = (3, 0, 1, 0, 3, -419)  # 1920 x 1080 in the middle of 640 x 640
SIZE = (1920, 1080)


def torch_ms(tensor, runs):
    """With the results on the host, as who has a GPU wants them, too."""
    spent = []
    for _ in range(runs):
        begin = time.perf_counter()
        for found in torch_chain.suppress(tensor, 80, 0.25, 0.45):
            found.cpu()
        spent.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(spent[runs // 4:])


def compare(server, output):
    """Whether both chains keep the same anchors' scores, classes and corners."""
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
    print("pictures  candidates  kept  framed ms  torch ms  share  version")
    for candidates in map(int, options.candidates.split(",")):
        output = outputs.scene(random, candidates)
        same = "" if compare(server, output) else "  (not the same boxes)"
        for pictures in (0, 1, 8, 32) if options.cuda else (0,):
            theirs = torch.from_numpy(output)[None]
            if pictures:
                theirs = theirs.repeat(pictures, 1, 1).cuda()
            params = program.params_of("yolov8", [output], 80, planes=True, clip=True, candidates=options.cut)
            request = program.request_of(params, [output], MATRIX, SIZE)
            theirs = torch_ms(theirs, max(options.runs // (pictures or 1), 8))
            ours, found, kept, version = server.time(request, options.runs, pictures)
            print(f"{pictures or 1:8}  {found:10}  {kept:4}  {ours:9.3f}  {theirs:8.3f}  {ours / theirs:5.2f}  {version}{same}")
    server.close()


if __name__ == "__main__":
    main()
