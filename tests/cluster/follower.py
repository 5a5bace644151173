#!/usr/bin/python3
"""Reads one camera of a cluster with framedio until it is stopped: prints a line "MONOTONIC EPOCH SEQUENCE" per frame."""
import sys
import time

import framedio

for frame in framedio.open(sys.argv[1], newest=False, token=sys.argv[2]):
    print(time.monotonic(), frame.epoch, frame.sequence, flush=True)
