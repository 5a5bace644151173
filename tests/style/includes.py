#!/usr/bin/python3
"""Include rules: daemon -> config -> kernels, client -> wire.h, one module for each foreign library, wire.h alone.

Inside daemon/ and kernels/ a folder includes itself and the folders before it in RANKS, in a frame's order; inside
config/ a file includes only the files before it. No file includes itself indirectly: a header counts together with the .c
of its name.
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

LIBC = {
    "arpa/inet.h", "assert.h", "ctype.h", "dirent.h", "dlfcn.h", "endian.h", "err.h", "errno.h", "fcntl.h", "fenv.h",
    "float.h", "fnmatch.h", "getopt.h", "glob.h", "grp.h", "ifaddrs.h", "inttypes.h", "libgen.h", "limits.h", "locale.h", "malloc.h", "math.h", "net/if.h", "netdb.h",
    "netinet/in.h", "netinet/tcp.h", "poll.h", "pthread.h", "pwd.h", "sched.h", "semaphore.h", "setjmp.h", "signal.h", "spawn.h",
    "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "strings.h", "sys/epoll.h", "sys/eventfd.h", "sys/file.h", "sys/ioctl.h", "sys/mman.h", "sys/prctl.h", "sys/random.h",
    "sys/resource.h", "sys/socket.h", "sys/stat.h", "sys/syscall.h", "sys/sysmacros.h", "sys/time.h", "sys/timerfd.h", "sys/types.h", "sys/uio.h",
    "sys/un.h", "sys/utsname.h", "sys/wait.h", "syslog.h", "termios.h", "time.h", "ucontext.h", "unistd.h",
}

# Folder -> our folders that its files may include, and foreign headers (a name, or a prefix that ends in /).
FOLDERS = {
    "kernels": (["kernels"], ["arm_neon.h", "cpuid.h", "immintrin.h"]),
    "config": (["config", "kernels"], ["yaml.h"]),
    "daemon": (["daemon", "config", "kernels"], ["uv.h"]),
    "client": (["client", "kernels"], []),
    "tests": (
        ["tests", "client", "daemon", "config", "kernels"],
        ["uv.h", "yaml.h", "libavcodec/", "libavformat/", "libavutil/"],
    ),
    "tests/kernels": (["tests", "kernels"], ["immintrin.h"]),
    "tests/client": (["tests", "client", "kernels"], []),
    "tests/config": (["tests", "config", "kernels"], ["yaml.h"]),
    "tests/bench": (["tests", "daemon", "config", "kernels"], []),
    "tests/bench/analysis": (["tests", "kernels"], []),
    "tests/bench/crops": (["client"], []),
    "tests/bench/lut": (["tests", "kernels"], []),
    "tests/bench/cuda": (["tests", "kernels"], []),
    "tests/bench/cuvid": (["tests"], ["ffnvcodec/"]),
    "tests/bench/detect": (["tests", "kernels"], []),
    "tests/bench/fingerprint": (["tests", "kernels"], []),
    "tests/bench/motion": (["tests", "kernels"], []),
    "tests/bench/latency": (["tests", "daemon"], []),
    "tests/bench/peers": (["tests", "kernels"], []),
    "tests/bench/statistics": (["tests", "kernels"], []),
}
# The folders of a part in a frame's order: each may include those before it. The part's own files are last, except in
# kernels/, where they are first because every folder there uses them. config/ has no folders, so its files are listed.
RANKS = {
    "daemon": ["base", "bitstream", "rtsp", "source", "codec", "device", "scene", "output", "work", "view", "camera", "supervisor", "alert", "cluster", "service", "onvif", "cli", ""],
    "kernels": ["", "cpu", "cuda"],
    "config": ["url", "address", "expand", "mistakes", "cube", "types", "value", "config", "schema", "value_print", "object", "print", "reader", "check", "check_output", "check_links", "mapping", "load"],
}
# Additional includes of single files: the one module of each foreign library.
FILES = [
    (r"((tests/)?kernels|tests/bench)/cuda/.*", ["cuda.h", "cuda_runtime_api.h"]),
    (r"daemon/source/demux_libav\.c", ["libavformat/", "libavutil/"]),
    (r"daemon/source/libav_version\.h", ["libavcodec/", "libavformat/"]),
    (r"daemon/source/rtsp_video\.c", ["libavcodec/"]),
    (r"daemon/source/libav_log\.c", ["libavutil/log.h"]),
    (r"daemon/cli/(stream_)?probe\.c", ["libavcodec/"]),
    (r"daemon/cli/discover\.c", ["curl/curl.h"]),
    (r"daemon/onvif/\w+\.[ch]", ["libxml/"]),
    (r"daemon/onvif/soap\.c", ["curl/curl.h", "openssl/"]),
    (r"daemon/codec/\w+\.[ch]", ["libavcodec/", "libavutil/", "libswscale/"]),
    (r"daemon/(source/login_pause|rtsp/(connection|messages)|cli/verify(_decoders)?)\.c", ["openssl/"]),
    (r"daemon/output/socket\.c", ["linux/"]),
    (r"daemon/output/(muxer|packet_queue|copier)\.c", ["libavcodec/"]),
    (r"daemon/output/muxer\.c", ["libavformat/"]),
    (r"daemon/output/gate\.c", ["libavutil/rational.h"]),
    (r"daemon/(service|cli)/\w+\.c", ["jansson.h"]),
    (r"daemon/cluster/(documents|etcd_json)\.c", ["jansson.h"]),
    (r"daemon/alert/(outbox|mqtt)\.c", ["jansson.h"]),
    (r"daemon/(base/secrets|rtsp/sdp|service/control_commands|cli/orders|cluster/etcd_json)\.c", ["libavutil/base64.h"]),
    (r"daemon/cluster/etcd(_call)?\.c", ["curl/curl.h"]),
    (r"daemon/service/http_client\.h", ["microhttpd.h"]),
    (r"daemon/alert/webhook\.c", ["curl/"]),
    (r"daemon/alert/mqtt\.c", ["mosquitto.h"]),
    (r"daemon/service/notify\.c", ["systemd/sd-daemon.h"]),
    (r"(tests/)?daemon/view/jpeg\.c", ["jpeglib.h"]),
    (r"tests/daemon/(service/(status|history|openapi)|alert/mqtt_topics)\.c", ["jansson.h"]),
    (r"tests/daemon/rtsp/connection\.c", ["openssl/"]),
    (r"tests/faults/va_driver\.c", ["va/va_backend.h"]),
    (r"tests/bench/latency/gstreamer\.c", ["gst/"]),
    (r"tests/bench/clip_units\.c", ["libavformat/", "libavcodec/"]),
    (r"tests/bench/latency/decoding\.c", ["libavcodec/"]),
    (r"tests/bench/peers/clip\.c", ["libavformat/", "libavcodec/", "libswscale/"]),
    (r"tests/bench/peers/libyuv\.c", ["libyuv.h"]),
    (r"tests/bench/peers/swscale\.c", ["libswscale/"]),
    (r"tests/bench/(statistics|peers)/opencv\.cpp", ["opencv2/imgproc.hpp"]),
    (r"tests/bench/peers/opencv\.cpp", ["vector"]),
]
# Files that others include without the rest of the tree.
ALONE = {"daemon/wire.h": ["stdint.h"]}
WIRE = r"(tests/)?client/.*"  # these include the first of them, and no other file of its folder


def unit_of(path):
    return os.path.splitext(path)[0]


def rank_of(path):
    """Returns (part, rank) of a file in a part whose folders or files have an order, else None."""
    part, _, rest = path.partition("/")
    name = unit_of(rest) if part == "config" else rest.rpartition("/")[0]
    return (part, RANKS[part].index(name)) if part in RANKS and name in RANKS[part] else None


def keeps_rank(path, header):
    ours, theirs = rank_of(path), rank_of(header)
    return header in ALONE or not ours or not theirs or ours[0] != theirs[0] or theirs[1] <= ours[1]


def may(path, bracket, header):
    if path in ALONE:
        return header in ALONE[path]
    if bracket == '"' and not keeps_rank(path, header):
        return False
    folder = next(f for f in (os.path.dirname(path), path.split("/")[0]) if f in FOLDERS)
    ours, others = FOLDERS[folder]
    if header == "daemon/wire.h" and re.fullmatch(WIRE, path):
        return True
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


def circles(texts):
    """Returns groups of units that include each other, from {path: text}; a unit is a .c with its header."""
    units = {}
    for path, text in texts.items():
        own = units.setdefault(unit_of(path), set())
        own |= {unit_of(match[2]) for match in map(INCLUDE.match, text.splitlines()) if match and match[1] == '"'}
        own.discard(unit_of(path))
    reached = {unit: set() for unit in units}
    for unit in units:
        ahead = [unit]
        while ahead:
            fresh = units.get(ahead.pop(), set()) - reached[unit]
            reached[unit] |= fresh
            ahead += fresh
    groups = {tuple(sorted(other for other in reached[unit] if unit in reached.get(other, ())))
              for unit in units if unit in reached[unit]}
    return [list(group) for group in sorted(groups)]


def sources():
    for folder in ("kernels", "config", "daemon", "client", "tests"):
        for ending in ("c", "h", "cu", "cuh", "cpp"):
            yield from sorted(glob.glob(f"{folder}/**/*.{ending}", recursive=True))


def needless(texts):
    """Returns the rows of FILES that no file needs."""
    included = {path: [match[2] for match in map(INCLUDE.match, text.splitlines()) if match] for path, text in texts.items()}
    return [(pattern, name) for pattern, names in FILES for name in names
            if not any(header.startswith(name) for path in included if re.fullmatch(pattern, path) for header in included[path])]


# Lines that the rules must refuse; they detect a rule that allows everything.
REFUSED = [
    ("kernels/warp.c", '#include "config/config.h"'),
    ("kernels/warp.c", "#include <libavutil/frame.h>"),
    ("kernels/warp.c", "#include <cuda_runtime.h>"),
    ("config/load.c", '#include "daemon/base/log.h"'),
    ("config/load.c", "#include <uv.h>"),
    ("config/value.c", '#include "config/schema.h"'),
    ("daemon/rtsp/session.c", '#include "daemon/source/demux.h"'),
    ("daemon/codec/decoder.c", '#include "daemon/device/devices.h"'),
    ("daemon/base/log.c", '#include "daemon/daemon.h"'),
    ("kernels/ops.c", '#include "kernels/cpu/versions.h"'),
    ("kernels/cpu/backend.c", '#include "kernels/cuda/cuda.h"'),
    ("daemon/camera/camera.c", "#include <libavcodec/avcodec.h>"),
    ("daemon/codec/decoder.c", "#include <libavformat/avformat.h>"),
    ("daemon/base/log.c", "#include <libavutil/log.h>"),
    ("daemon/output/sink.c", '#include "slots.h"'),
    ("daemon/wire.h", "#include <stdbool.h>"),
    ("client/reader.c", '#include "daemon/base/clock.h"'),
    ("client/reader.c", "#include <uv.h>"),
    ("daemon/output/ring.c", '#include "client/framed.h"'),
    ("tests/kernels/warp.c", '#include "daemon/codec/frame.h"'),
    ("tests/bench/peers/race.c", '#include "daemon/wire.h"'),
    ("tests/bench/main.c", "#include <libavutil/frame.h>"),
]


# A circle that must be found, with an include into it and one out of it.
CIRCLE = {
    "daemon/a.c": '#include "daemon/a.h"\n#include "daemon/b.h"',
    "daemon/b.h": '#include "daemon/c.h"\n#include "daemon/e.h"',
    "daemon/c.c": '#include "daemon/b.h"',
    "daemon/e.h": "",
}


def main():
    os.chdir(ROOT)
    checks, texts = Checks("includes"), {}
    for path in sources():
        with open(path) as file:
            texts[path] = file.read()
        found = violations(path, texts[path])
        checks.check(not found, "\n".join(found))
    for part in ("daemon", "kernels", "config", "client", "tests/bench"):
        found = circles({path: text for path, text in texts.items() if path.startswith(part + "/")})
        checks.check(not found, f"{part}: circles: {found}")
    checks.check(not needless(texts), f"no file needs {needless(texts)}")
    found = circles(CIRCLE)
    checks.check(found == [["daemon/b", "daemon/c"]], f"the circle that is there on purpose was not found: {found}")
    for path, line in REFUSED:
        checks.check(violations(path, line), f"the rules let {path} have {line}")
    checks.end()


main()
