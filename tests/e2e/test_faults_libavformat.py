#!/usr/bin/python3
"""The cameras of test_faults.py, read by libavformat's RTSP client."""
from test_faults import main

main("rtsp", "faults_libavformat")
