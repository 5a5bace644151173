"""How fast the machine is, beside how fast it can be: tests/run times a short loop again and again, and a test asks by how
much its time limits must grow. A test that runs without tests/run gets its limits unchanged."""
import contextlib
import multiprocessing
import os
import tempfile
import time

PERIOD_S = 0.05
ROUNDS = 10000  # of the loop: about 0.3 ms
FILE = "TEST_PACE"  # in the environment: where the readings are, a line each: the time by CLOCK_MONOTONIC, seconds of one loop


def loop():
    """Seconds from wanting to start until the end of a loop: waiting for a processor counts."""
    wanted = time.monotonic() + 0.001
    time.sleep(0.001)
    total = 0
    for number in range(ROUNDS):
        total += number
    return time.monotonic() - wanted


def measure(path):
    parent = os.getppid()
    with open(path, "w", buffering=1) as file:
        while os.getppid() == parent:
            file.write(f"{time.monotonic()} {loop()}\n")
            time.sleep(PERIOD_S)


@contextlib.contextmanager
def measured():
    """Measures the pace until the block ends, for the programs that it starts."""
    with tempfile.TemporaryDirectory(prefix="framed-pace-") as folder:
        os.environ[FILE] = os.path.join(folder, "readings")
        process = multiprocessing.Process(target=measure, args=[os.environ[FILE]], daemon=True)
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()
            del os.environ[FILE]


def readings():
    path = os.environ.get(FILE)
    if not path or not os.path.exists(path):
        return []
    with open(path) as file:
        lines = [line.split() for line in file if line.endswith("\n")]
    return [(float(at), float(seconds)) for at, seconds in lines]


def slowness(since):
    """How much longer the loop took on average since that time (CLOCK_MONOTONIC) than it takes on an idle processor; at least 1."""
    every = readings()
    lately = [seconds for at, seconds in every if at >= since]
    if not lately:
        return 1
    return max(1, sum(lately) / len(lately) / min(seconds for _, seconds in every))
