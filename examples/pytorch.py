# PyTorch, where the ring is: in host memory or on the GPU. usage: pytorch.py ring:PATH MODEL (of torch.jit.save)
import sys

import framedio
import torch

model = torch.jit.load(sys.argv[2])
for frame in framedio.open(sys.argv[1]):
    tensor = frame.torch()  # read-only: the ring's own memory
    with torch.inference_mode():
        output = model.to(tensor.device)(tensor[None])
    print(frame.camera, frame.sequence, framedio.detect(output, frame).tolist(), flush=True)
