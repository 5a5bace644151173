#!/usr/bin/python3
"""Nothing of framed's own has the name of something in a library that it is linked with: the library would get it, or
framed the library's, and no linker says so."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

LINKER = {"_init", "_fini", "_start", "_edata", "_end", "__bss_start", "__data_start", "data_start"}


def defined(path, *options):
    """Names and, behind them, versions; a program has those of what it copies from a library, like stderr."""
    out = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True).stdout
    return re.findall(r" [TDBRWVi] ([^\s@]+)(@\S*)?$", out, re.M)


def main():
    framed = os.environ["FRAMED"]
    programs = (framed, f"{framed}-bench")
    ours = {name for program in programs for name, version in defined(program) if not version} - LINKER
    checks = Checks("symbols")
    listed = subprocess.run(["ldd", framed], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"=> (/\S+)", listed):
        if re.search(r"san\.so|/libgcc_s", library):  # a sanitizer's stand in for others; the compiler adds its own
            continue
        clashes = ours & {name for name, _ in defined(library, "-D")}
        checks.check(not clashes, f"{library} has {', '.join(sorted(clashes))} too")
    checks.end()


main()
