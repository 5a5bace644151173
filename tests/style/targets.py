#!/usr/bin/python3
"""`make help` lists every target for users: these are the phony ones, and every target without a folder is phony. The
Debians for building and testing packages are in the build folder and contain folders called rc2.d, which make must ignore."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks


def make(*arguments):
    command = ["make", "--no-print-directory", "NVCC=", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"PATH": os.environ["PATH"]}).stdout


def missing(targets, text):
    """Returns the targets without a line of their own and a short description."""
    return set(targets) - set(re.findall(r"^  ([a-z0-9-]+) +\S+ \S", text, re.M))


def check_beside_debians(checks):
    with tempfile.TemporaryDirectory(prefix="framed-targets-") as where:
        for name in ("bookworm/bare", "bookworm/root", "trixie-suite/root", "deb-arm64/root"):
            os.makedirs(f"{where}/{name}/etc/rc2.d")
        checks.check("  deb " in make("help", f"B={where}"), "make fails")


def main():
    checks = Checks("targets")
    check_beside_debians(checks)
    database = make("-pq", "all").split("\n# Files\n", 1)[-1]  # -q: nothing is built
    phony = set(re.search(r"^\.PHONY: (.*)", database, re.M)[1].split())
    named = set(re.findall(r"^([a-z][a-z0-9-]*):", database, re.M))
    text = make("help")
    checks.check({"all", "check", "demo", "deb", "fuzz"} <= phony, f"phony are {phony}")
    for target in sorted(phony | named):
        checks.check(target in phony and not missing([target], text), f"{target}: is not phony, or make help lacks it")
    checks.check(missing(["deb"], text.replace("\n  deb  ", "\n  bed  ")) == {"deb"}, "a target that is left out is not found")
    checks.check(len(text.splitlines()) == len(set(text.splitlines())), "make help lists something twice")
    checks.end()


main()
