#!/usr/bin/python3
"""scripts/demo from its cameras to its boxes, and without OpenCV, where it reports the omitted parts."""
import os
import re
import subprocess

from framed_client import BINARY, PATIENCE, ROOT, SANITIZED, Checks, folder


def demo(path=""):
    """Returns (exit code, output); `path`: where Python looks for modules first."""
    environment = {**os.environ, "B": os.path.dirname(BINARY), "DEMO_SECONDS": "6", "PYTHONPATH": path}
    environment.pop("URL", None)
    done = subprocess.run([f"{ROOT}/scripts/demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment, timeout=120 * PATIENCE)
    return done.returncode, done.stdout


def check_whole(checks):
    code, said = demo()
    checks.check(code == 0, f"exit {code}:\n{said}")
    for line in (r"tensors( +\d+){4}   .*", r"video .*", r"  blocks +\d+ pictures, 6\.00 objects each, \d+ lines",
                 r"  upright +\d+ pictures, 6\.00 objects each, \d+ lines",
                 r"boxes    build/demo/boxes\.png: at most [012]\.\d pixels beside the camera's blocks"):
        checks.check(re.search(f"^{line}$", said, re.M), f"no line {line} in\n{said}")
    for name in ("video.y4m", "tensor.png", "boxes.png", "objects.jsonl"):
        checks.check(os.path.getsize(f"{ROOT}/build/demo/{name}") > 1000, f"{name} is too small")


def check_without_opencv(checks, where):
    with open(f"{where}/cv2.py", "w") as file:
        file.write('raise ImportError("no OpenCV")\n')
    code, said = demo(where)
    checks.check(code == 0 and "detector left out: no OpenCV" in said and "detector OpenCV" not in said, f"{code}:\n{said}")


def main():
    checks = Checks("demo")
    if SANITIZED:
        checks.skip("the demo's Python has no sanitizer")
    else:
        check_whole(checks)
        with folder() as where:
            check_without_opencv(checks, where)
    checks.end()


main()
