"""The demo's detector: reads batches of two cameras from a ring, finds coloured blocks with a network, sends the boxes back
to the daemon, and draws them on a picture of the camera `blocks`. Skipped without OpenCV or onnx."""
import collections
import json
import os
import statistics
import sys
import threading
import time

import framedio
import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
import blocks_clip

NEAR = 3  # source pixels between a box and its block


def clips(folder):
    """Returns the paths of two clips of coloured blocks, made once."""
    paths = []
    for name, width, height in (("blocks", 960, 540), ("upright", 540, 720)):
        paths.append(f"{folder}/{name}.mp4")
        if not os.path.exists(paths[-1]):
            blocks_clip.write(f"{folder}/{name}.new.mp4", width=width, height=height)
            os.rename(f"{folder}/{name}.new.mp4", paths[-1])
    return paths


def load(folder):
    """Returns a Detector to start; prints the reason and returns None if a library is missing."""
    try:
        import blocks_model
        import cv2
    except ImportError as error:
        print(f"detector left out: {error} (Debian: python3-opencv, python3-onnx)")
        return None
    cv2.setNumThreads(1)  # the cameras need the other processors
    network = cv2.dnn.readNetFromONNX(blocks_model.write(f"{folder}/blocks.onnx"))
    network.setInput(numpy.zeros((1, 3, blocks_model.SIDE, blocks_model.SIDE), "f4"))
    network.forward()  # the first run takes longest
    return Detector(folder, cv2, network)


class Detector(threading.Thread):
    """Detects in the batches that it has time for, until end(). seconds: of the network for each element; objects: per
    camera, the number of objects found and sent back for each picture; off: the distance of boxes from their blocks."""

    def __init__(self, folder, cv2, network):
        super().__init__(daemon=True)
        self.folder, self.cv2, self.network = folder, cv2, network
        self.batches = framedio.open(f"ring:{folder}/detector.ring")
        self.pictures = framedio.open(f"ring:{folder}/pictures.ring", newest=False)
        self.kept = {}  # pts -> picture as planes
        self.objects, self.seconds, self.off, self.drawn = collections.defaultdict(list), [], None, False
        self.ending = threading.Event()

    def run(self):
        while not self.ending.is_set():
            try:
                batch = self.batches.next(timeout=0.2)
            except framedio.Timeout:
                continue
            for element in batch:
                if not element.empty:
                    self.detect(element)

    def end(self):
        self.ending.set()
        self.join()

    def detect(self, element):
        begun = time.monotonic()
        self.network.setInput(element.numpy()[None])
        output = self.network.forward()
        self.seconds.append(time.monotonic() - begun)
        try:
            found = framedio.detect(output, element, head="yolov8")
        except framedio.Torn:
            return
        if element.send(found):
            self.objects[element.camera].append(len(found))
        if element.camera == "blocks" and not self.drawn:
            self.draw(self.picture(element.header), found)

    def picture(self, header):
        """Returns the camera's picture of the element, in BGR, or None if it has not arrived or was lost."""
        while frame := self.pictures.poll():
            planes = frame.numpy().reshape(-1, frame.header.width).copy()
            if frame.whole:
                self.kept[frame.header.pts_ns] = planes
        for pts in [pts for pts in self.kept if pts < header.pts_ns]:
            del self.kept[pts]
        planes = self.kept.get(header.pts_ns)
        return None if planes is None else self.cv2.cvtColor(planes, self.cv2.COLOR_YUV2BGR_I420)

    def draw(self, picture, found):
        if picture is None or not len(found):
            return
        self.off = self.distance(picture, found)
        for x1, y1, x2, y2, score, kind in found.tolist():
            corners = (round(x1), round(y1)), (round(x2) - 1, round(y2) - 1)
            self.cv2.rectangle(picture, *corners, (255, 255, 255), 2)
            text = f"{blocks_clip.NAMES[int(kind)]} {score:.2f}"
            self.cv2.putText(picture, text, (corners[0][0], corners[0][1] - 6), self.cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1,
                             self.cv2.LINE_AA)
        self.cv2.imwrite(f"{self.folder}/boxes.png", picture)
        self.drawn = True
        self.pictures.close()

    def distance(self, picture, found):
        """Returns the largest distance of a box from the coloured blocks in the picture; the picture's size if the numbers of
        both differ."""
        coloured = (picture.max(axis=2).astype(int) - picture.min(axis=2) > 96).astype("u1")
        count, _, areas, _ = self.cv2.connectedComponentsWithStats(coloured)
        blocks = [(x, y, x + w, y + h) for x, y, w, h, size in areas[1:].tolist() if size > 100]
        if len(blocks) != len(found):
            return max(picture.shape)
        return max(min(max(abs(a - b) for a, b in zip(box, block)) for block in blocks) for box in found[:, :4].tolist())


def lines_of(folder):
    """Returns camera -> the number of objects in each line that the daemon wrote of the results."""
    lines = collections.defaultdict(list)
    with open(f"{folder}/objects.jsonl") as file:
        for line in map(json.loads, file):
            lines[line["camera"]].append(len(line["objects"]))
    return lines


def report(detector, folder):
    """Prints the findings; returns the errors."""
    if not detector.objects:
        return ["the detector saw no picture"]
    milliseconds, lines, wrong = 1000 * statistics.median(detector.seconds), lines_of(folder), []
    print()
    print(f"detector OpenCV, median {milliseconds:.1f} ms a picture, one core")
    for camera, counts in sorted(detector.objects.items()):
        print(f"  {camera:<9}{len(counts)} pictures, {statistics.mean(counts):.2f} objects each, {len(lines[camera])} lines")
        if lines[camera] != counts[: len(lines[camera])] or len(lines[camera]) < len(counts) - 1:  # framed may end before the last
            wrong.append(f"{camera}: {sum(counts)} objects were sent back, {sum(lines[camera])} written")
    print(f"lines    {folder}/objects.jsonl")
    if not detector.drawn:
        return [*wrong, "no picture of blocks has boxes"]
    print(f"boxes    {folder}/boxes.png: at most {detector.off:.1f} pixels beside the camera's blocks")
    if detector.off > NEAR:
        wrong.append(f"a box is {detector.off:.1f} pixels beside its block")
    return wrong
