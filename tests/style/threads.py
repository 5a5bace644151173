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
    """Returns {file: name} of the list; None: the name is not constant."""
    with open("daemon/daemon.h") as file:
        text = re.sub(r"\n// +", " ", file.read())
    return {path: name for name, path in re.findall(r'- (?:"([^"]+)"|NAME) \(([a-z_/.]+)\)', text)}


def started():
    """Returns {file: (sites of pthread_create, constant names of threads)}."""
    found = {}
    for path in [path for folder in ("daemon", "kernels") for ending in ("c", "cu", "h")
                 for path in glob.glob(f"{folder}/**/*.{ending}", recursive=True)]:
        with open(path) as file:
            text = file.read()
        sites = len(re.findall(r"\b(?:pthread_create|thrd_create|uv_thread_create\w*)\(", text))
        if sites and not path.startswith(OTHERS):
            found[path] = sites, re.findall(r'pthread_setname_np\(pthread_self\(\), "([^"]+)"\)', text)
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
        checks.check(own == [name for name in [names.get(path)] if name],
                     f"{path} names its thread {own}, and daemon.h {names.get(path)}")
    checks.check(len(files) <= SITES_MAX, f"{len(files)} places start threads, {SITES_MAX} are allowed")
    checks.check(len(files) == SITES_MAX, f"{len(files)} places start threads: lower the limit of {SITES_MAX}")
    checks.end()


main()
