#!/usr/bin/python3
"""daemon.h lists every thread of the daemon: by its name, with the file that starts it and what it may block in."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

SITES_MAX = 13
# Programs of their own, which end with their command.
OTHERS = "daemon/cli/"


def listed():
    """Returns {file: names} of the list; "NAME": the name is not constant."""
    with open("daemon/daemon.h") as file:
        text = re.sub(r"\n// +", " ", file.read())
    return {path: names for names, path in re.findall(r'- (NAME|"[^"]+"(?: or "[^"]+")*) \(([a-z_/.]+)\)', text)}


def started():
    """Returns {file: (sites of pthread_create, names of threads)}; a name that is not constant is None."""
    found = {}
    for path in [path for folder in ("daemon", "kernels") for ending in ("c", "cu", "h")
                 for path in glob.glob(f"{folder}/**/*.{ending}", recursive=True)]:
        with open(path) as file:
            text = file.read()
        sites = len(re.findall(r"\b(?:pthread_create|thrd_create|uv_thread_create\w*)\(", text))
        if sites and not path.startswith(OTHERS):
            names = re.findall(r'pthread_setname_np\(pthread_self\(\), (?:"([^"]+)"|\w+)\)', text)
            found[path] = sites, names
    return found


def main():
    os.chdir(ROOT)
    checks = Checks("threads")
    names, files = listed(), started()
    for path in sorted(files.keys() - names.keys()):
        checks.check(False, f"{path} starts a thread that daemon.h does not list")
    for path in sorted(names.keys() - files.keys()):
        checks.check(False, f"{path} starts no thread, and daemon.h lists one")
    for path, (sites, own) in sorted(files.items()):
        checks.check(sites == 1, f"{path} starts threads in {sites} places")
        checks.check(len(own) == 1, f"{path} names its thread {len(own)} times")
        checks.check(not own or not own[0] or f'"{own[0]}"' == names.get(path),
                     f"{path} names its thread {own}, and daemon.h {names.get(path)}")
    checks.check(len(files) <= SITES_MAX, f"{len(files)} places start threads, {SITES_MAX} are allowed")
    checks.check(len(files) == SITES_MAX, f"{len(files)} places start threads: lower the limit of {SITES_MAX}")
    checks.end()


main()
