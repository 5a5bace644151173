# Reads what detectors send back, as the daemon's JSON lines: `detections: {sink: "unix:PATH"}`. usage: read_objects.py PATH
import json
import socket
import sys

peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
for line in peer.makefile():
    seen = json.loads(line)
    found = [[*thing["box"], thing["score"], thing["class"]] for thing in seen["objects"]]
    print(seen["camera"], seen["seq"], found, flush=True)
