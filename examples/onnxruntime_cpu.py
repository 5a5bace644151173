# ONNX Runtime. usage: onnxruntime_cpu.py ring:PATH MODEL.onnx
import sys

import framedio
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[2], providers=["CPUExecutionProvider"])
for frame in framedio.open(sys.argv[1]):
    output, *_ = session.run(None, {"images": frame.numpy()[None]})
    found = framedio.detect(output, frame, head="yolov8", conf=0.25, iou=0.45)
    print(frame.camera, frame.sequence, found.tolist(), flush=True)
