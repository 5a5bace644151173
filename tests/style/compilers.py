#!/usr/bin/python3
"""gcc and clang both take every C file without a warning, each header stands by itself, and wire.h is C++ too."""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = "libavformat libavcodec libswscale libavutil libuv yaml-0.1".split()
C = "-std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only".split()
# What the files for wide registers want beside that, and the machine that they are for.
WIDE = {
    "_avx2": ("x86_64", ["-march=x86-64-v3"]),
    "_avx512": ("x86_64", ["-march=icelake-server"]),
    "_neon": ("aarch64", []),
}
CXX = "-std=c++11 -x c++ -Wall -Wextra -Werror -fsyntax-only".split()


def calls(path, *compilers):
    """The compilers, with their flags, that take a file: those named, or for another machine its own where it is."""
    suffix = re.search(r"_[a-z0-9]+(?=\.[ch]$)", path)
    machine, flags = WIDE.get(suffix[0] if suffix else "", (platform.machine(), []))
    if machine != platform.machine():
        cross = f"{machine}-linux-gnu-gcc"
        compilers = [cross] if shutil.which(cross) else []
    return [[compiler, *flags] for compiler in compilers]


def main():
    os.chdir(ROOT)
    flags = subprocess.run(["pkg-config", "--cflags", *PACKAGES], check=True, capture_output=True, text=True).stdout
    sources = sorted(glob.glob("kernels/*.c") + glob.glob("config/*.c") + glob.glob("daemon/**/*.c", recursive=True))
    headers = sorted(glob.glob("kernels/*.h") + glob.glob("config/*.h") + glob.glob("daemon/**/*.h", recursive=True))
    headers = [path for path in headers if "cuda" not in path]  # those want CUDA's
    version = '-DFRAMED_VERSION_TEXT="0"'
    jobs = [
        *([*call, *C, version, *flags.split(), path] for path in sources for call in calls(path, "gcc", "clang")),
        *([*call, *C, *flags.split(), "-x", "c", "-include", path, "/dev/null"]
          for path in headers for call in calls(path, "gcc")),
        ["clang", *CXX, "-Wno-pragma-once-outside-header", "daemon/wire.h"],
    ]
    passed = failed = 0
    for job in jobs:
        done = subprocess.run(job, capture_output=True, text=True)
        if done.returncode:
            failed += 1
            print(" ".join(job), done.stderr, sep="\n")
        else:
            passed += 1
    print(f"compilers: {passed} passed, {failed} failed")
    sys.exit(failed != 0)


main()
