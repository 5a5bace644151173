# ONNX Runtime on the frame where it lies, by its address: with `memory: cuda` nothing is copied but the boxes.
# usage: onnxruntime_binding.py ring:PATH MODEL.onnx
import sys

import framedio
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[2], providers=onnxruntime.get_available_providers())
for frame in framedio.open(sys.argv[1]):
    binding, device = session.io_binding(), "cuda" if frame.on_gpu else "cpu"
    binding.bind_input("images", device, 0, "float32", (1, *frame.shape), frame.pointer)
    binding.bind_output("output0", device)
    session.run_with_iobinding(binding)
    print(frame.camera, frame.sequence, framedio.detect(binding.get_outputs()[0], frame).tolist(), flush=True)
