#!/usr/bin/python3
"""Checks beyond the build. clang compiles the C files of clients and kernels without a warning; wire.h and framed.h are also
valid C++. A header that its own source includes first is proven self-contained by the build; the others are compiled alone
here. With LONG set, clang compiles every C file, and CUDA's headers are also compiled alone."""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks
C = "-std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only".split()
CXX = "-std=c++11 -x c++ -Wall -Wextra -Werror -fsyntax-only".split()
CUDA = "-std=c++17 -I. -Xcompiler -Wall,-Wextra,-Werror -x cu -G -ptx -o /dev/null".split()
NVCC = [shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"]
# The machine and compiler flags of the files for wide registers.
WIDE = {
    "avx2": ("x86_64", "-mavx2 -mfma -mf16c".split()),
    "avx512": ("x86_64", ["-march=icelake-server"]),
    "neon": ("aarch64", []),
    "x86": ("x86_64", "-mavx2 -mfma -mf16c".split()),
}
TEMPLATE = re.compile(r"kernels/cpu/(vector|fixed_lanes|(warp|yuv|detect|motion|statistics|lut)_[a-z]+)\.h")  # for any registers
INCLUDE = re.compile(r'^#include "(.*)"', re.M)


def is_proven(header, sources):
    """True if the header's own source includes it first."""
    for ending in sources:
        source = os.path.splitext(header)[0] + ending
        if os.path.exists(source):
            with open(source) as file:
                first = INCLUDE.search(file.read())
            return bool(first) and first[1] == header
    return False


def calls(path, packages, compiler):
    """Returns the compiler commands for a file; none for another machine without an installed cross compiler."""
    here = platform.machine()
    registers = re.search("|".join(WIDE), "avx2" if TEMPLATE.fullmatch(path) and here == "x86_64" else path)
    machine, flags = WIDE[registers[0]] if registers else (here, [])
    flags = [*C, *flags] if path.startswith("kernels/") else [*C, *packages]
    target = f"{machine}-linux-gnu"
    if machine == here:
        return [[compiler, *flags]]
    if not shutil.which(f"{target}-gcc"):
        return []
    cross = {"gcc": [f"{target}-gcc"], "clang": ["clang", f"--target={target}"]}
    return [[*cross[compiler], *flags]]


def main():
    os.chdir(ROOT)
    with open("Makefile") as file:
        names = re.search(r"^PACKAGES := (.*)", file.read(), re.M)[1].split()
    packages = subprocess.run(["pkg-config", "--cflags", *names], check=True, capture_output=True, text=True).stdout
    packages = packages.split()
    sources, headers = (sorted(path for part in ("kernels", "config", "client", "daemon")
                               for path in glob.glob(f"{part}/**/*.{ending}", recursive=True)) for ending in "ch")
    cuda = sorted(glob.glob("kernels/**/*.cuh", recursive=True)) + [path for path in headers if "cuda" in path]
    cuda = [path for path in cuda if not is_proven(path, [".cu"])]
    headers = [path for path in headers if "cuda" not in path and not is_proven(path, [".c"])]
    by_clang = [path for path in sources if os.environ.get("LONG") or path.startswith(("client/", "kernels/"))]
    version = '-DFRAMED_VERSION_TEXT="0"'
    jobs = [
        *([*call, version, path] for path in by_clang for call in calls(path, packages, "clang")),
        *([*call, "-x", "c", "-include", path, "/dev/null"] for path in headers for call in calls(path, packages, "gcc")),
        *(["clang", *CXX, "-I.", "-Wno-pragma-once-outside-header", path] for path in ("daemon/wire.h", "client/framed.h")),
    ]
    checks = Checks("compilers")
    if not os.environ.get("LONG"):
        print("compilers: make check-long reads more: every C file by clang, and CUDA's headers")
    elif nvcc := next((path for path in NVCC if path and os.path.exists(path)), None):
        jobs += [[nvcc, *CUDA, "-include", path, "/dev/null"] for path in cuda]
    else:
        checks.skip("the headers for CUDA: no nvcc")
    for job in jobs:
        done = subprocess.run(job, capture_output=True, text=True)
        checks.check(done.returncode == 0, " ".join([*job, done.stderr]))
    for path in sources:
        if not calls(path, packages, "clang"):
            checks.skip(f"{path}: no compiler for its machine")
    checks.end()


main()
