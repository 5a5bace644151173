# PyTorch with torchvision's own suppression, mapped by the frame. usage: torchvision_nms.py ring:PATH MODEL
import sys, framedio, torch, torchvision.ops as ops

model = torch.jit.load(sys.argv[2])
for frame in framedio.open(sys.argv[1]):
    tensor = frame.torch()
    rows = model.to(tensor.device)(tensor[None])[0].T
    rows = rows[rows[:, 4:].amax(1) > 0.25]
    boxes, (scores, classes) = ops.box_convert(rows[:, :4], "cxcywh", "xyxy"), rows[:, 4:].max(1)
    kept = ops.batched_nms(boxes, scores, classes, 0.45)
    found = torch.column_stack([boxes, scores, classes])[kept]
    print(frame.camera, frame.sequence, frame.to_source(found.cpu()).tolist(), flush=True)
