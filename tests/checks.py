"""Check counting shared by the Python tests, with the last line that tests/run reads."""
import sys
import threading


class Checks:
    """Counts checks, from any thread, and tests. A test is one call in main(), however often it runs. Checks made by
    main() itself count as a test only if one fails or there is no other test."""

    def __init__(self, name):
        self.name, self.checks, self.failed, self.skipped, self.lock = name, 0, 0, 0, threading.Lock()
        self.tests, self.running = {}, "main"  # test -> True while all its checks passed

    def test(self):
        """Returns the name of the calling test. A check in another thread belongs to the test that is running."""
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
        """Counts a test that cannot run on this machine."""
        self.skipped += 1
        print(f"skipped: {why}", flush=True)

    def end(self):
        """Prints the line that tests/run reads, and exits."""
        if len(self.tests) > 1 and self.tests.get("main"):
            del self.tests["main"]
        good = sum(self.tests.values())
        print(f"{self.name}: {good} passed, {len(self.tests) - good} failed, {self.skipped} skipped; {self.checks} checks")
        sys.exit(self.failed != 0)
