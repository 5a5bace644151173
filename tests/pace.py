"""How slow the machine is compared with itself when idle: tests/run times a short loop again and again, and tests' time
limits grow with the result. A test without tests/run keeps its limits."""
import contextlib
import multiprocessing
import os
import tempfile
import threading
import time

PERIOD_S = 0.2
ROUNDS = 100000  # of the loop: about 4 ms, longer than a scheduler's time slice
FILE = "TEST_PACE"  # in the environment: the file of readings, one a line: CLOCK_MONOTONIC, seconds of one loop
START = time.monotonic()
FACTOR_MAX = 4  # of a time limit, because tests also wait for some limits to pass


def loop():
    """Returns the loop's seconds, including the time waiting for a processor."""
    began, total = time.monotonic(), 0
    for number in range(ROUNDS):
        total += number
    return time.monotonic() - began


def measure(path, parent):
    with open(path, "w", buffering=1) as file:
        while os.getppid() == parent:
            file.write(f"{time.monotonic()} {loop()}\n")
            time.sleep(PERIOD_S)


@contextlib.contextmanager
def measured():
    """Measures until the block ends, for the programs started in it."""
    with tempfile.TemporaryDirectory(prefix="framed-pace-") as folder:
        os.environ[FILE] = os.path.join(folder, "readings")
        process = multiprocessing.Process(target=measure, args=[os.environ[FILE], os.getpid()], daemon=True)
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()
            del os.environ[FILE]


class Readings:
    """The readings in the file; each is parsed once."""

    def __init__(self):
        self.path, self.offset, self.all, self.fastest, self.lock = None, 0, [], 1e9, threading.Lock()

    def read(self, path):
        """Returns all readings and the fastest."""
        with self.lock:
            if path != self.path:
                self.path, self.offset, self.all, self.fastest = path, 0, [], 1e9
            self.read_more(path)
            return list(self.all), self.fastest

    def read_more(self, path):
        with open(path, "rb") as file:
            file.seek(self.offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.splitlines():
            self.all.append(tuple(map(float, line.split())))
            self.fastest = min(self.fastest, self.all[-1][1])


readings = Readings()


def slowness(since=START):
    """Returns the mean of the slowest quarter of the loops since then, as a multiple of the fastest loop ever; 1 without readings."""
    path = os.environ.get(FILE)
    if not path or not os.path.exists(path):
        return 1
    known, fastest = readings.read(path)
    lately = sorted((seconds for at, seconds in known if at >= since), reverse=True)
    if not lately:
        return 1
    slowest = lately[: (len(lately) + 3) // 4]
    return max(1, sum(slowest) / len(slowest) / fastest)


def is_short():
    """True if other work takes so much of the machine that a camera may lose pictures."""
    return slowness() > 1.5


class Patience:
    """A factor for time limits: a constant times the slowness since the test began."""

    def __init__(self, factor):
        self.factor = factor

    def __mul__(self, limit):
        return limit * self.factor * min(slowness(), FACTOR_MAX)

    __rmul__ = __mul__

    def __rtruediv__(self, limit):
        return limit / (self.factor * min(slowness(), FACTOR_MAX))
