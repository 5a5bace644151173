#!/usr/bin/python3
"""Who may include whom: daemon -> config -> kernels, one module for each foreign library, wire.h alone."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

LIBC = {
    "arpa/inet.h", "assert.h", "ctype.h", "dirent.h", "dlfcn.h", "endian.h", "err.h", "errno.h", "fcntl.h", "fenv.h",
    "float.h", "fnmatch.h", "getopt.h", "glob.h", "grp.h", "inttypes.h", "libgen.h", "limits.h", "locale.h", "malloc.h", "math.h", "netdb.h",
    "netinet/in.h", "netinet/tcp.h", "poll.h", "pthread.h", "pwd.h", "sched.h", "semaphore.h", "signal.h",
    "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "strings.h", "sys/epoll.h", "sys/eventfd.h", "sys/file.h", "sys/ioctl.h", "sys/mman.h", "sys/prctl.h", "sys/random.h",
    "sys/resource.h", "sys/socket.h", "sys/stat.h", "sys/syscall.h", "sys/time.h", "sys/timerfd.h", "sys/types.h", "sys/uio.h",
    "sys/un.h", "sys/wait.h", "syslog.h", "termios.h", "time.h", "unistd.h",
}

# Folder -> folders of ours that its files may include, and headers of others (a name, or a prefix that ends in /).
FOLDERS = {
    "kernels": (["kernels"], ["arm_neon.h", "cpuid.h", "immintrin.h"]),
    "config": (["config", "kernels"], ["yaml.h"]),
    "daemon": (["daemon", "config", "kernels"], ["uv.h"]),
    "tests": (
        ["tests", "daemon", "config", "kernels"],
        ["uv.h", "yaml.h", "libavcodec/", "libavformat/", "libavutil/"],
    ),
    "tests/kernels": (["tests", "kernels"], ["immintrin.h"]),
    "tests/config": (["tests", "config", "kernels"], ["yaml.h"]),
    "tests/bench": (["tests", "kernels"], []),
}
# What single files may include beyond that: the one module of each foreign library.
FILES = [
    (r"(tests/)?kernels/cuda/.*", ["cuda.h", "cuda_fp16.h", "cuda_runtime.h", "cuda_runtime_api.h"]),
    (r"daemon/camera/(demuxer|ingest)\.c", ["libavformat/", "libavcodec/", "libavutil/"]),
    (
        r"daemon/camera/(backlog|buffers|codec|decode|dpb|facts|mapping|nvdec|picture|picture_hash|scaler)\.[ch]",
        ["libavcodec/", "libavutil/", "libswscale/"],
    ),
    (r"daemon/service/log\.c", ["libavutil/log.h"]),
    (r"daemon/sink/unread\.c", ["linux/"]),
    (r"daemon/(service/status(_bound|_camera)?|service/answer|client/\w+)\.c", ["jansson.h"]),
    (r"tests/daemon/service/status\.c", ["jansson.h"]),
    (r"daemon/service/http\.c", ["microhttpd.h"]),
    (r"daemon/service/notify\.c", ["systemd/sd-daemon.h"]),
    (r"tests/bench/clip\.c", ["libavformat/", "libavcodec/", "libswscale/"]),
    (r"tests/bench/libyuv\.c", ["libyuv.h"]),
    (r"tests/bench/swscale\.c", ["libswscale/"]),
    (r"tests/bench/opencv\.cpp", ["opencv2/imgproc.hpp", "vector"]),
]
# Files that others include without the rest of the tree.
ALONE = {"daemon/wire.h": ["stdint.h"]}


def may(path, bracket, header):
    if path in ALONE:
        return header in ALONE[path]
    folder = next(f for f in (os.path.dirname(path), path.split("/")[0]) if f in FOLDERS)
    ours, others = FOLDERS[folder]
    if bracket == '"':
        return header.split("/")[0] in ours and "/" in header
    others = others + [name for pattern, names in FILES if re.fullmatch(pattern, path) for name in names]
    return header in LIBC or any(header == name or name.endswith("/") and header.startswith(name) for name in others)


def violations(path, text):
    return [
        f"{path}:{number}: must not include {match[2]}"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := INCLUDE.match(line)) and not may(path, match[1], match[2])
    ]


def sources():
    for folder in ("kernels", "config", "daemon", "tests"):
        for ending in ("c", "h", "cu", "cpp"):
            yield from sorted(glob.glob(f"{folder}/**/*.{ending}", recursive=True))


# Lines that the rules must refuse, so that a rule that lets all through is seen.
REFUSED = [
    ("kernels/warp.c", '#include "config/config.h"'),
    ("kernels/warp.c", "#include <libavutil/frame.h>"),
    ("kernels/warp.c", "#include <cuda_runtime.h>"),
    ("config/load.c", '#include "daemon/service/log.h"'),
    ("config/load.c", "#include <uv.h>"),
    ("daemon/camera/camera.c", "#include <libavcodec/avcodec.h>"),
    ("daemon/camera/decode.c", "#include <libavformat/avformat.h>"),
    ("daemon/service/log.c", "#include <libavutil/frame.h>"),
    ("daemon/sink/sink.c", '#include "slots.h"'),
    ("daemon/wire.h", "#include <stdbool.h>"),
    ("tests/kernels/warp.c", '#include "daemon/frame.h"'),
]


def main():
    os.chdir(ROOT)
    passed, wrong = 0, []
    for path in sources():
        with open(path) as file:
            found = violations(path, file.read())
        passed += not found
        wrong += found
    for path, line in REFUSED:
        if violations(path, line):
            passed += 1
        else:
            wrong.append(f"the rules let {path} have {line}")
    print("\n".join(wrong))
    print(f"includes: {passed} passed, {len(wrong)} failed")
    sys.exit(bool(wrong))


main()
