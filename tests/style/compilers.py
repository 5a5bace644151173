#!/usr/bin/python3
"""gcc and clang both take every C file without a warning, each header stands by itself, and wire.h is C++ too."""
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = "libavformat libavcodec libswscale libavutil libuv yaml-0.1".split()
C = "-std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only".split()
CXX = "-std=c++11 -x c++ -Wall -Wextra -Werror -fsyntax-only".split()


def main():
    os.chdir(ROOT)
    flags = subprocess.run(["pkg-config", "--cflags", *PACKAGES], check=True, capture_output=True, text=True).stdout
    sources = sorted(glob.glob("kernels/*.c") + glob.glob("config/*.c") + glob.glob("daemon/**/*.c", recursive=True))
    headers = sorted(glob.glob("kernels/*.h") + glob.glob("config/*.h") + glob.glob("daemon/**/*.h", recursive=True))
    headers = [path for path in headers if "cuda" not in path]  # those want CUDA's
    version = '-DFRAMED_VERSION_TEXT="0"'
    jobs = [
        *([compiler, *C, version, *flags.split(), path] for compiler in ("gcc", "clang") for path in sources),
        *(["gcc", *C, *flags.split(), "-x", "c", "-include", path, "/dev/null"] for path in headers),
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
