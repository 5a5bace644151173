"""Environment and files of the libva driver that shows known pictures (tests/faults/va_driver.c)."""
import os
import struct
import subprocess

from framed_client import BINARY, ffmpeg

FAULTS = os.path.join(os.path.dirname(BINARY), "faults")
DRIVER = os.path.join(FAULTS, "fake_drv_video.so")  # a name that libva requires
DEVICE = "/dev/null"


def environment(pictures, fault=""):
    return {"LIBVA_DRIVER_NAME": "fake", "LIBVA_DRIVERS_PATH": FAULTS, "LD_PRELOAD": DRIVER, "FRAMED_VA_PICTURES": pictures,
            "FRAMED_VA": fault}


def write(pictures, name, clip, width, height):
    """Writes the clip's pictures in the order of its packets, as `name`: h264-8, hevc-8 or hevc-10."""
    os.makedirs(pictures, exist_ok=True)
    stamps = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "packet=pts", "-of", "csv=p=0", clip],
                            check=True, capture_output=True, text=True).stdout
    stamps = [int(stamp.strip(",")) for stamp in stamps.split()]
    deep = name.endswith("-10")
    raw = ffmpeg("-i", clip, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "p010le" if deep else "nv12", "-")
    size = width * height * 3 // 2 * (2 if deep else 1)
    shown = {stamp: place for place, stamp in enumerate(sorted(stamps))}
    with open(os.path.join(pictures, name), "wb") as file:
        file.write(struct.pack("<II", width, height))
        for stamp in stamps:
            file.write(raw[shown[stamp] * size:(shown[stamp] + 1) * size])
