#!/usr/bin/python3
"""The product's size: lines and files of C and CUDA, and files below 50 lines. The limits follow the tree down; raise one
only with the reason in the commit."""
import glob
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

FOLDERS = ("client", "config", "daemon", "kernels")
SHORT = 50  # lines
LIMITS = {"lines": 98_750, "files": 415, "short files": 54}
SLACK = {"lines": 250, "files": 2, "short files": 2}  # by which a limit may lie above the tree


def main():
    os.chdir(ROOT)
    paths = [path for folder in FOLDERS for ending in ("c", "h", "cu", "cuh")
             for path in glob.glob(f"{folder}/**/*.{ending}", recursive=True)]
    lengths = []
    for path in paths:
        with open(path) as file:
            lengths.append(file.read().count("\n"))
    sizes = {"lines": sum(lengths), "files": len(paths), "short files": sum(length < SHORT for length in lengths)}
    checks = Checks("size")
    for what, size in sizes.items():
        limit = LIMITS[what]
        checks.check(size <= limit, f"{size} {what}, {limit} are allowed")
        checks.check(size >= limit - SLACK[what], f"{size} {what}: lower the limit of {limit}")
    print(", ".join(f"{size:,} {what}" for what, size in sizes.items()))
    checks.end()


main()
