#!/usr/bin/python3
"""Formatting: clang-format for C and CUDA; no tabs, no trailing spaces, a newline at the end of each file."""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks
FOLDERS = ("kernels", "config", "daemon", "client", "examples", "tests", "scripts", "systemd")
VERSION = 14  # of clang-format: others break some lines differently
CORPUS = re.compile("tests/fuzz/[a-z]+/")  # arbitrary bytes
TABBED = (b"#!/bin/sh", b"#!/usr/bin/make")  # here-documents and recipes require tabs


def text_files():
    for folder in FOLDERS:
        for path in sorted(glob.glob(f"{folder}/**/*", recursive=True)):
            if os.path.isfile(path) and "__pycache__" not in path and not CORPUS.match(path):
                yield path
    yield "README.md"


def blemishes(path):
    with open(path, "rb") as file:
        data = file.read()
    if b"\0" in data:  # not text
        return
    tabs = not data.startswith(TABBED) and not path.endswith(".mk")
    for number, line in enumerate(data.split(b"\n"), 1):
        if tabs and b"\t" in line:
            yield f"{path}:{number}: tab"
        if line != line.rstrip():
            yield f"{path}:{number}: space at the end of the line"
    if data and not data.endswith(b"\n"):
        yield f"{path}: no newline at the end"


def main():
    os.chdir(ROOT)
    checks, files = Checks("format"), list(text_files())
    for path in files:
        wrong = list(blemishes(path))
        checks.check(not wrong, "\n".join(wrong))
    code = [path for path in files if path.endswith((".c", ".h", ".cu", ".cuh", ".cpp"))]
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    if f"version {VERSION}." in version:
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", *code], capture_output=True, text=True)
        checks.check(done.returncode == 0, done.stderr)
    else:
        checks.skip(f"C and CUDA: they are formatted by clang-format {VERSION}, this is {version.strip()}")
    checks.end()


main()
