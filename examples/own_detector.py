# A detector of your own in numpy: one box around all that is red. usage: own_detector.py ring:PATH
import sys

import framedio
import numpy

for frame in framedio.open(sys.argv[1]):
    red, green, blue = frame.numpy()
    y, x = numpy.nonzero(red - (green + blue) / 2 > 0.375)
    boxes = [[x.min(), y.min(), x.max() + 1, y.max() + 1, 1, 0]] if len(x) else []  # corners are edges, so + 1
    print(frame.camera, frame.sequence, frame.to_source(boxes), flush=True)
