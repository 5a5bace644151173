#!/usr/bin/python3
# Reads every frame or batch of an output until Ctrl-C. usage: consume.py unix:PATH | tcp:HOST:PORT | ring:PATH
import sys

import framedio

with framedio.open(sys.argv[1], newest=False) as reader:
    try:
        for frame in reader:
            print(frame, "whole" if frame.whole else "taken away", flush=True)
    except KeyboardInterrupt:
        print(reader.counts())
