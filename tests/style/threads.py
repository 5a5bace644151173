#!/usr/bin/python3
"""daemon.h lists every thread of the daemon: by its name, with the file that starts it and what it may block in."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

PLACES = 11
# Programs of their own, which end with their command.
OTHERS = "daemon/cli/"


def listed():
    """Returns {file: its names}; "NAME": a name that is not constant."""
    with open("daemon/daemon.h") as file:
        text = re.sub(r"\n// +", " ", file.read())
    found = {}
    for names, path in re.findall(r'- (NAME|"[^"]+"(?: or "[^"]+")*) \(([a-z_/.]+)\)', text):
        found.setdefault(path, []).append(names)
    return found


def started():
    """Returns {file: (places that start threads, names of threads)}; "": a name that is not constant."""
    found = {}
    for path in [path for folder in ("daemon", "kernels") for ending in ("c", "cu", "h")
                 for path in glob.glob(f"{folder}/**/*.{ending}", recursive=True)]:
        with open(path) as file:
            text = file.read()
        places = len(re.findall(r"\b(?:pthread_create|thrd_create|uv_thread_create\w*)\(", text))
        if places and not path.startswith(OTHERS):
            found[path] = places, re.findall(r'pthread_setname_np\(pthread_self\(\), (?:"([^"]+)"|\w+)\)', text)
    return found


def main():
    os.chdir(ROOT)
    checks = Checks("threads")
    names, files = listed(), started()
    for path in sorted(names.keys() - files.keys()):
        checks.check(False, f"{path} starts no thread, and daemon.h lists one")
    for path, (places, own) in sorted(files.items()):
        told = names.get(path, [])
        checks.check(len(told) == places == len(own),
                     f"{path} starts {places} threads, names {len(own)}, and daemon.h lists {len(told)}")
        for name in own:
            checks.check(not name or f'"{name}"' in told, f"{path} names a thread {name}, and daemon.h {told}")
    places = sum(places for places, _ in files.values())
    checks.check(places == PLACES, f"{places} places start threads, {PLACES} are expected: fewer are better")
    checks.end()


main()
