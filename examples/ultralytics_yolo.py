# Ultralytics' own models. The output has `preset: ultralytics`. usage: ultralytics_yolo.py ring:PATH yolo11n.pt
# Untested here.
import sys

import framedio
from ultralytics import YOLO

model = YOLO(sys.argv[2])
for frame in framedio.open(sys.argv[1]):
    (result,) = model(frame.torch().clone()[None], verbose=False)  # a tensor is taken as it is: no letterbox of theirs
    found = frame.to_source(result.boxes.data.cpu())  # x1 y1 x2 y2 score class
    print(frame.camera, frame.sequence, found.tolist(), flush=True)
