#!/usr/bin/python3
"""clang takes every C file without a warning, as gcc did when it built them for this machine and for aarch64; each header
stands by itself, those for CUDA with nvcc; and wire.h and framed.h are C++ too."""
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
# What the files for wide registers want beside that, and the machine that they are for.
WIDE = {
    "avx2": ("x86_64", "-mavx2 -mfma -mf16c".split()),
    "avx512": ("x86_64", ["-march=icelake-server"]),
    "neon": ("aarch64", []),
    "x86": ("x86_64", "-mavx2 -mfma -mf16c".split()),
}
TEMPLATE = re.compile(r"kernels/cpu/(vector|fixed_lanes|(warp|yuv|detect|fingerprint|levels|motion|statistics|lut)_[a-z]+)\.h")  # takes what registers it is given


def calls(path, packages, *compilers):
    """The compilers, with their flags, that take a file; those for another machine only where they are installed."""
    here = platform.machine()
    registers = re.search("|".join(WIDE), "avx2" if TEMPLATE.fullmatch(path) and here == "x86_64" else path)
    machine, flags = WIDE[registers[0]] if registers else (here, [])
    flags = [*C, *flags] if path.startswith("kernels/") else [*C, *packages]
    target = f"{machine}-linux-gnu"
    if machine == here:
        return [[compiler, *flags] for compiler in compilers]
    if not shutil.which(f"{target}-gcc"):
        return []
    cross = {"gcc": [f"{target}-gcc"], "clang": ["clang", f"--target={target}"]}
    return [[*cross[compiler], *flags] for compiler in compilers]


def main():
    os.chdir(ROOT)
    with open("Makefile") as file:
        names = re.search(r"^PACKAGES := (.*)", file.read(), re.M)[1].split()
    packages = subprocess.run(["pkg-config", "--cflags", *names], check=True, capture_output=True, text=True).stdout
    packages = packages.split()
    sources = sorted(glob.glob("kernels/**/*.c", recursive=True) + glob.glob("config/*.c") + glob.glob("client/*.c") + glob.glob("daemon/**/*.c", recursive=True))
    headers = sorted(glob.glob("kernels/**/*.h", recursive=True) + glob.glob("config/*.h") + glob.glob("client/*.h") + glob.glob("daemon/**/*.h", recursive=True))
    cuda = sorted(glob.glob("kernels/**/*.cuh", recursive=True)) + [path for path in headers if "cuda" in path]
    headers = [path for path in headers if path not in cuda]
    version = '-DFRAMED_VERSION_TEXT="0"'
    jobs = [
        *([*call, version, path] for path in sources for call in calls(path, packages, "clang")),
        *([*call, "-x", "c", "-include", path, "/dev/null"]
          for path in headers for call in calls(path, packages, "gcc")),
        *(["clang", *CXX, "-I.", "-Wno-pragma-once-outside-header", path] for path in ("daemon/wire.h", "client/framed.h")),
    ]
    checks = Checks("compilers")
    if nvcc := next((path for path in NVCC if path and os.path.exists(path)), None):
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
