"""The compared detectors: framed's kernel, and two OpenCV recipes as usually written. Each takes a picture's luma and
returns boxes of changes, [x1, y1, x2, y2] in source pixels."""
import json
import subprocess
import time

import cv2
import numpy

# The smallest area of a change as a share of the picture: the recipes' usual 500 pixels of a picture 500 pixels wide.
USUAL = 500 / (500 * 281)


class Kernel:
    """framed's kernel, in the program bench-motion-clip. `moving`: the kernel's own result for each picture."""

    def __init__(self, program, width, height, rate, least=0.0):
        area = ["50", str(round(least * width * height))]
        self.process = subprocess.Popen([program, str(width), str(height), f"{rate:.6f}", *area], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.spent, self.moving = [], []

    def feed(self, picture):
        self.process.stdin.write(picture.tobytes())
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        self.spent.append(found["ns"])
        self.moving.append(found["moving"])
        return [box[:4] for box in found["boxes"]]

    def close(self):
        self.process.stdin.close()
        if self.process.wait(60):
            raise RuntimeError("bench-motion-clip failed")


class Recipe:
    """A mask of changed pixels of a small picture, and its contours above the smallest area."""

    def __init__(self, size, least):
        self.size, self.least, self.spent = size, least * size[0] * size[1], []

    def feed(self, picture):
        begin = time.thread_time_ns()
        small = cv2.resize(picture, self.size, interpolation=cv2.INTER_AREA)
        contours, _ = cv2.findContours(self.mask(small), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        across, down = picture.shape[1] / self.size[0], picture.shape[0] / self.size[1]
        boxes = []
        for contour in contours:
            if cv2.contourArea(contour) >= self.least:
                x, y, width, height = cv2.boundingRect(contour)
                boxes.append([x * across, y * down, (x + width) * across, (y + height) * down])
        self.spent.append(time.thread_time_ns() - begin)
        return boxes

    def close(self):
        pass


class Mog2(Recipe):
    """Mixture of Gaussians with OpenCV's own parameters, without shadows, opened by 3 x 3."""

    def __init__(self, size, least):
        super().__init__(size, least)
        self.model = cv2.createBackgroundSubtractorMOG2(history=500, varThreshold=16, detectShadows=True)
        self.shape = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3))

    def mask(self, small):
        found = self.model.apply(small)
        _, found = cv2.threshold(found, 200, 255, cv2.THRESH_BINARY)
        return cv2.morphologyEx(found, cv2.MORPH_OPEN, self.shape)


class Average(Recipe):
    """Blur, a running average, a threshold of 25 levels, dilated twice."""

    def __init__(self, size, least):
        super().__init__(size, least)
        self.mean = None

    def mask(self, small):
        small = cv2.GaussianBlur(small, (13, 13), 0)
        if self.mean is None:
            self.mean = small.astype(numpy.float32)
        apart = cv2.absdiff(small, cv2.convertScaleAbs(self.mean))
        cv2.accumulateWeighted(small, self.mean, 0.05)
        _, found = cv2.threshold(apart, 25, 255, cv2.THRESH_BINARY)
        return cv2.dilate(found, None, iterations=2)


def make(program, width, height, rate, least, alone=False):
    """Returns all detectors, or framed's alone, for one camera: by name."""
    cv2.setNumThreads(1)
    kernel = {"framed": Kernel(program, width, height, rate, least)}
    recipes = {"MOG2 320x180": Mog2((320, 180), least), "MOG2 640x360": Mog2((640, 360), least),
               "average 320x180": Average((320, 180), least)}
    return kernel if alone else kernel | recipes
