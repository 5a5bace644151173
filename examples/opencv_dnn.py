# OpenCV's DNN module. usage: opencv_dnn.py ring:PATH MODEL.onnx
import sys

import cv2
import framedio

network = cv2.dnn.readNetFromONNX(sys.argv[2])
for frame in framedio.open(sys.argv[1]):
    network.setInput(frame.numpy()[None])
    found = framedio.detect(network.forward(), frame, head="yolov8", conf=0.25, iou=0.45)
    frame.send(found)  # for the daemon's JSON lines
    print(frame.camera, frame.sequence, found.tolist(), flush=True)
