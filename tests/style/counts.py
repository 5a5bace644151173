#!/usr/bin/python3
"""tests/run counts passed, failed and skipped tests, and fails for a test that hides a result: tried on a copy of it
in a folder of made-up tests. Both test frameworks count as documented."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import Checks

# A test's output and exit code; the last line of tests/run with that test alone, and whether it succeeds.
CASES = {
    "good": ("good: 2 passed, 0 failed, 0 skipped; 3 checks", 0, "2 passed, 0 failed, 0 skipped; 3 checks", True),
    "partly": ("skipped: no card\npartly: 1 passed, 0 failed, 1 skipped; 3 checks", 0,
               "1 passed, 0 failed, 1 skipped; 3 checks", True),
    "wholly": ("skipped: no card\nwholly: 0 passed, 0 failed, 1 skipped; 0 checks", 0,
               "0 passed, 0 failed, 1 skipped; 0 checks", True),
    "many": ("many: 1 passed, 0 failed, 0 skipped; 48084 checks", 0,
             "1 passed, 0 failed, 0 skipped; 48,084 checks", True),
    "silent": ("silent: 3 passed, 0 failed, 1 skipped; 3 checks", 0, "3 passed, 1 failed, 1 skipped; 3 checks", False),
    "unsaid": ("skipped: no card\nunsaid: 3 passed, 0 failed, 0 skipped; 3 checks", 0,
               "3 passed, 1 failed, 0 skipped; 3 checks", False),
    "nothing": ("nothing: 0 passed, 0 failed, 0 skipped; 0 checks", 0, "0 passed, 1 failed, 0 skipped; 0 checks", False),
    "empty": ("empty: 1 passed, 0 failed, 0 skipped; 0 checks", 0, "1 passed, 1 failed, 0 skipped; 0 checks", False),
    "broken": ("oh: 2 passed, 1 failed, 0 skipped; 9 checks", 1, "2 passed, 1 failed, 0 skipped; 9 checks", False),
    "crashed": ("crashed: 2 passed, 0 failed, 0 skipped; 9 checks", 1, "2 passed, 1 failed, 0 skipped; 9 checks", False),
    "old": ("old: 3 passed, 0 failed", 0, "0 passed, 1 failed, 0 skipped; 0 checks", False),
    "mute": ("", 0, "0 passed, 1 failed, 0 skipped; 0 checks", False),
}
# Tests in C that pass (twice, which is one test), fail, are skipped and check nothing; and the same in Python.
PROGRAM = """
#include "tests/test.h"
static void test_one(int good) { CHECK(good, "one"); CHECK(1, "one"); }
static void test_none(void) { SKIP("no card"); }
static void test_nothing(void) {}
int main(void)
{
    CHECK(1, "what all need");
    for (int i = 0; i < 2; i++)
        TEST(test_one(1));
    TEST(test_one(0));
    TEST(test_none());
    TEST(test_nothing());
    return test_end();
}
"""
SCRIPT = """
from checks import Checks
def check_one(checks, good):
    checks.check(good, "one"); checks.check(True, "one")
def check_none(checks):
    checks.skip("no card")
def main():
    checks = Checks("script")
    checks.check(True, "what all need")
    for _ in range(2):
        check_one(checks, True)
    check_one(checks, False)
    check_none(checks)
    checks.end()
main()
"""


def make(where):
    """Copies the runner and writes the cases, and a CUDA test without a program."""
    os.makedirs(f"{where}/tests/style")
    os.makedirs(f"{where}/tests/kernels")
    for name in ("run", "pace.py"):
        shutil.copy(f"{ROOT}/tests/{name}", f"{where}/tests/{name}")
    for name, (says, code, _, _) in CASES.items():
        with open(f"{where}/tests/style/{name}.py", "w") as file:
            file.write(f"print({says!r})\nraise SystemExit({code})\n")
    with open(f"{where}/tests/kernels/device.cu", "w"):
        pass


def run(where, *names):
    environment = {key: value for key, value in os.environ.items() if key != "B"}
    done = subprocess.run([f"{where}/tests/run", *names], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout


def check_runner(checks):
    with tempfile.TemporaryDirectory(prefix="framed-test-") as where:
        make(where)
        for name, (_, _, last, green) in CASES.items():
            code, output = run(where, f"style/{name}.py")
            good = output.splitlines()[-1:] == [last] and (code == 0) == green
            checks.check(good, f"{name}: exit {code}, not {last!r}:\n{output}")
        code, output = run(where, "device.cu", "wholly", "good")
        lines = {"    skipped: no card", "    skipped: no GPU here, or built without CUDA", "2 passed, 0 failed, 2 skipped; 3 checks"}
        checks.check(code == 0 and lines <= {*output.splitlines()}, f"without CUDA: exit {code}:\n{output}")


def check_frameworks(checks):
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "tests")}
    with tempfile.TemporaryDirectory(prefix="framed-test-") as where:
        program = f"{where}/program"
        subprocess.run(["gcc", "-I", ROOT, "-x", "c", "-o", program, "-"], input=PROGRAM, text=True, check=True)
        for command, last in (
            ([program], "<stdin>: 1 passed, 2 failed, 1 skipped; 7 checks"),
            (["/usr/bin/python3", "-c", SCRIPT], "script: 1 passed, 1 failed, 1 skipped; 7 checks"),
        ):
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            lines = done.stdout.splitlines()
            checks.check(done.returncode == 1 and lines[-1:] == [last], f"exit {done.returncode}, not {last!r}: {lines}")


def main():
    checks = Checks("counts")
    check_runner(checks)
    check_frameworks(checks)
    checks.end()


main()
