#!/usr/bin/python3
# The mean of every frame by PyTorch, on the GPU where the ring has `memory: cuda`. usage: ring_cuda.py ring:PATH
import sys

import framedio

for frame in framedio.open(sys.argv[1]):
    tensor = frame.torch()  # the ring's own memory: valid until the next frame, and read-only
    mean = tensor.float().mean().item()  # waits for the GPU
    if frame.whole:
        print(frame.sequence, tensor.device, mean, flush=True)
