"""The steps of Ultralytics' non_max_suppression as its documentation and users describe them, rewritten with torch and
torchvision: the chain of a consumer without framed."""
import torch
import torchvision


def corners_of(boxes):
    half = boxes[:, 2:] / 2
    return torch.cat((boxes[:, :2] - half, boxes[:, :2] + half), 1)


def suppress(prediction, classes, conf, iou, agnostic=False, multi_label=False, keep_classes=None, max_det=300,
             max_nms=30000):
    """Returns for each picture of (pictures, 4 + classes + extra, anchors) an array (n, 6 + extra): corners, score, class."""
    found = []
    for picture, is_candidate in zip(prediction, prediction[:, 4:4 + classes].amax(1) > conf):
        rows = picture.transpose(0, -1)[is_candidate]
        boxes, scores, extra = rows[:, :4], rows[:, 4:4 + classes], rows[:, 4 + classes:]
        boxes = corners_of(boxes)
        if multi_label:
            i, label = torch.where(scores > conf)
            rows = torch.cat((boxes[i], scores[i, label, None], label[:, None].float(), extra[i]), 1)
        else:
            score, label = scores.max(1, keepdim=True)
            rows = torch.cat((boxes, score, label.float(), extra), 1)[score.view(-1) > conf]
        if keep_classes is not None:
            rows = rows[(rows[:, 5:6] == keep_classes).any(1)]
        if len(rows) > max_nms:
            rows = rows[rows[:, 4].argsort(descending=True)[:max_nms]]
        apart = rows[:, 5:6] * (0 if agnostic else 7680)
        found.append(rows[torchvision.ops.nms(rows[:, :4] + apart, rows[:, 4], iou)[:max_det]])
    return found
