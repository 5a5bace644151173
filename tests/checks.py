"""What the tests in Python share: the count of their checks, and the last line that tests/run reads."""
import sys
import threading


class Checks:
    """Counts checks, for any thread, and the tests that make them: a test is what main() calls in one place, however
    often. What main() checks itself is a test only where it fails or is the only one."""

    def __init__(self, name):
        self.name, self.checks, self.failed, self.skipped, self.lock = name, 0, 0, 0, threading.Lock()
        self.tests, self.running = {}, "main"  # test -> whether it is good

    def test(self):
        """The test that calls. A thread of its own belongs to the test that runs."""
        frame, function = sys._getframe(2), ""
        while frame and frame.f_code.co_name != "main":
            frame, function = frame.f_back, frame.f_code.co_name
        if frame:
            self.running = f"{function}, line {frame.f_lineno}" if function else "main"
        return self.running

    def check(self, good, text):
        test = self.test()
        with self.lock:
            self.checks += 1
            self.tests[test] = self.tests.get(test, True) and bool(good)
            if not good:
                self.failed += 1
                print(f"FAILED {self.name}, {test}: {text}", flush=True)
        return bool(good)

    def skip(self, why):
        """A test that this box cannot run."""
        self.skipped += 1
        print(f"skipped: {why}", flush=True)

    def end(self):
        """Prints the line that tests/run reads, and exits."""
        if len(self.tests) > 1 and self.tests.get("main"):
            del self.tests["main"]
        good = sum(self.tests.values())
        print(f"{self.name}: {good} passed, {len(self.tests) - good} failed, {self.skipped} skipped; {self.checks} checks")
        sys.exit(self.failed != 0)
