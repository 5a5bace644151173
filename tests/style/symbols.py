#!/usr/bin/python3
"""No symbol of framed has the name of a symbol in a library that it is linked with: one would silently replace the
other. libframed needs only libc, and exports only the names of its header."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

LINKER = {"_init", "_fini", "_start", "_edata", "_end", "__bss_start", "__data_start", "data_start",
          "_IO_stdin_used"}  # the last one is also in libraries that are programs


def defined(path, *options):
    """Returns names with their versions; a program also has those copied from a library, like stderr."""
    out = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True).stdout
    return re.findall(r" [TDBRWVi] ([^\s@]+)(@\S*)?$", out, re.M)


def check_client(checks, folder):
    listed = subprocess.run(["readelf", "-d", f"{folder}/libframed.so.1"], capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listed)
    others = [name for name in needed if not re.match(r"libc\.so|ld-linux", name)]
    checks.check(needed and not others, f"libframed.so.1 needs {', '.join(needed) or 'nothing, or is not built'}")
    with open(os.path.join(ROOT, "client", "framed.h")) as file:
        declared = set(re.findall(r"\b(framed_\w+)\(", file.read()))
    for name, *options in (("libframed.so.1", "-D"), ("libframed.a", "-g")):
        names = {name for name, _ in defined(f"{folder}/{name}", *options)} - {"FRAMED_1"}
        checks.check(names <= declared and "framed_open" in names, f"{name} has {', '.join(sorted(names - declared))}")


def main():
    framed = os.environ["FRAMED"]
    programs = (framed, f"{framed}-bench")
    ours = {name for program in programs for name, version in defined(program) if not version} - LINKER
    checks = Checks("symbols")
    listed = subprocess.run(["ldd", framed], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"=> (/\S+)", listed):
        if re.search(r"san\.so|/libgcc_s", library):  # sanitizers replace other symbols; the compiler adds its own library
            continue
        clashes = ours & {name for name, _ in defined(library, "-D")}
        checks.check(not clashes, f"{library} has {', '.join(sorted(clashes))} too")
    if os.environ.get("SAN"):
        checks.skip("a sanitizer's libframed wants its library")
    else:
        check_client(checks, os.path.dirname(framed))
    checks.end()


main()
