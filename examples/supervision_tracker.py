# Supervision's tracker behind any network, here OpenCV's. usage: supervision_tracker.py ring:PATH MODEL.onnx
import sys, cv2, framedio, supervision

network, tracker = cv2.dnn.readNetFromONNX(sys.argv[2]), supervision.ByteTrack()
for frame in framedio.open(sys.argv[1], newest=False):
    network.setInput(frame.numpy()[None])
    found = framedio.detect(network.forward(), frame)
    seen = supervision.Detections(xyxy=found[:, :4], confidence=found[:, 4], class_id=found[:, 5].astype(int))
    seen = tracker.update_with_detections(seen)
    print(frame.camera, frame.sequence, seen.tracker_id, seen.xyxy.tolist(), flush=True)
