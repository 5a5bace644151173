# OpenCV's DNN module with batches of several cameras. The model takes any number of pictures. usage: opencv_batch.py ring:PATH MODEL.onnx
import sys

import cv2
import framedio

network = cv2.dnn.readNetFromONNX(sys.argv[2])
for batch in framedio.open(sys.argv[1]):
    network.setInput(batch.numpy())
    for element, found in zip(batch, framedio.detect(network.forward(), batch)):
        if not element.empty:
            print(element.camera, element.sequence, found.tolist(), flush=True)
