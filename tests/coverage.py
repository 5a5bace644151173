#!/usr/bin/python3
"""Prints the share of lines that ran, per folder and for the files with the smallest share (make coverage).

usage: tests/coverage.py B     B is the folder of a build with --coverage that has run
"""
import collections
import glob
import json
import os
import subprocess
import sys

FEWEST = 20  # files listed


def lines_of(build):
    """Returns file -> line -> execution count."""
    found = collections.defaultdict(collections.Counter)
    for part in ("kernels", "config", "daemon"):
        notes = glob.glob(f"{build}/{part}/**/*.gcno", recursive=True)
        done = subprocess.run(["gcov", "--json-format", "--stdout", *notes], check=True, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            for file in json.loads(line)["files"]:
                if file["file"].startswith(("kernels/", "config/", "daemon/")):
                    for row in file["lines"]:
                        found[file["file"]][row["line_number"]] += row["count"]
    return found


def row(name, counts):
    run = sum(count > 0 for count in counts)
    return f"{100 * run / len(counts):5.1f} %  {run:6} of {len(counts):6}  {name}"


def main():
    files = {path: list(counts.values()) for path, counts in lines_of(sys.argv[1]).items() if counts}
    folders = collections.defaultdict(list)
    for path, counts in files.items():
        folders[os.path.dirname(path)] += counts
    print("lines that ran, by folder")
    for folder in sorted(folders):
        print(row(folder, folders[folder]))
    print(row("all", sum(folders.values(), [])))
    print(f"\nthe {FEWEST} files of which the smallest share ran")
    for path in sorted(files, key=lambda path: sum(map(bool, files[path])) / len(files[path]))[:FEWEST]:
        print(row(path, files[path]))


main()
