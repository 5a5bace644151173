#!/usr/bin/python3
"""`make help` lists every target that a user may call: the phony ones, and there is no other without a folder."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks


def make(*arguments):
    command = ["make", "--no-print-directory", "NVCC=", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"PATH": os.environ["PATH"]}).stdout


def missing(targets, text):
    """Which of them have no line of their own with a few words."""
    return set(targets) - set(re.findall(r"^  ([a-z0-9-]+) +\S+ \S", text, re.M))


def main():
    checks = Checks("targets")
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
