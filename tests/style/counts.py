#!/usr/bin/python3
"""tests/run counts what passed, failed and was skipped, and is red for a test that hides something: tried on a copy of
it in a folder of tests made up."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What a test says and its exit code; the last line of tests/run with that test alone, and whether it is green.
CASES = {
    "old": ("old: 3 passed, 0 failed", 0, "3 passed, 0 failed, 0 skipped", True),
    "good": ("good: 3 passed, 0 failed, 0 skipped", 0, "3 passed, 0 failed, 0 skipped", True),
    "partly": ("skipped: no card\npartly: 3 passed, 0 failed, 1 skipped", 0, "3 passed, 0 failed, 1 skipped", True),
    "wholly": ("skipped: no card\nwholly: 0 passed, 0 failed, 1 skipped", 0, "0 passed, 0 failed, 1 skipped", True),
    "silent": ("silent: 3 passed, 0 failed, 1 skipped", 0, "3 passed, 1 failed, 1 skipped", False),
    "unsaid": ("skipped: no card\nunsaid: 3 passed, 0 failed", 0, "3 passed, 1 failed, 0 skipped", False),
    "nothing": ("nothing: 0 passed, 0 failed, 0 skipped", 0, "0 passed, 1 failed, 0 skipped", False),
    "broken": ("oh: 2 passed, 1 failed, 0 skipped", 1, "2 passed, 1 failed, 0 skipped", False),
    "crashed": ("crashed: 2 passed, 0 failed, 0 skipped", 1, "2 passed, 1 failed, 0 skipped", False),
    "mute": ("", 0, "0 passed, 1 failed, 0 skipped", False),
}


def make(where):
    """The runner with the cases, and a test for CUDA whose program is not there."""
    os.makedirs(f"{where}/tests/style")
    os.makedirs(f"{where}/tests/kernels")
    shutil.copy(f"{ROOT}/tests/run", f"{where}/tests/run")
    for name, (says, code, _, _) in CASES.items():
        with open(f"{where}/tests/style/{name}.py", "w") as file:
            file.write(f"print({says!r})\nraise SystemExit({code})\n")
    with open(f"{where}/tests/kernels/device.cu", "w"):
        pass


def run(where, *names):
    environment = {key: value for key, value in os.environ.items() if key != "B"}
    done = subprocess.run([f"{where}/tests/run", *names], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout


def main():
    wrong = []
    with tempfile.TemporaryDirectory(prefix="framed-test-") as where:
        make(where)
        for name, (_, _, last, green) in CASES.items():
            code, output = run(where, f"style/{name}.py")
            if output.splitlines()[-1:] != [last] or (code == 0) != green:
                wrong.append(f"{name}: exit {code}, not {last!r}:\n{output}")
        code, output = run(where, "device.cu", "wholly", "good")
        expected = {"    skipped: no card", "    skipped: built without CUDA", "3 passed, 0 failed, 2 skipped"}
        if code != 0 or not expected <= set(output.splitlines()):
            wrong.append(f"without CUDA: exit {code}:\n{output}")
    print("\n".join(wrong), f"counts: {len(CASES) + 1 - len(wrong)} passed, {len(wrong)} failed", sep="\n")
    sys.exit(bool(wrong))


main()
