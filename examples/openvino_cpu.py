# OpenVINO. usage: openvino_cpu.py ring:PATH MODEL.onnx
import sys

import framedio
import openvino

network = openvino.Core().compile_model(sys.argv[2], "CPU")
for frame in framedio.open(sys.argv[1]):
    output = network({0: frame.numpy()[None]}, share_inputs=True)[0]
    found = framedio.detect(output, frame, head="yolov8", conf=0.25, iou=0.45)
    print(frame.camera, frame.sequence, found.tolist(), flush=True)
