#!/usr/bin/python3
"""Twenty kinds of cameras that RTSP clients meet, with variants, all at once in one framed: each behaves as some camera
does, and a client checks the result. Prints a row for each. They keep an idle machine of two processors busy: on a loaded
machine they run in groups."""
import math
import os
import threading
import time

from camera_rows import DIGESTS, HEAD, IPV6, SECONDS, Result, ask, line, make_clips, rows
from framed_client import Checks, Framed, folder
from pace import slowness
from rtsp_camera import why_no_ipv6
from watch import Watcher, check_ledger


def listed(why_not):
    """Returns the rows whose names contain a word of FRAMED_CAMERAS (comma-separated), or all; those of IPv6 only if the
    machine has it."""
    wanted = [word for word in os.environ.get("FRAMED_CAMERAS", "").split(",") if word]
    return [row for row in rows() if not wanted or any(word in row.name for word in wanted)
            if row.host != IPV6 or not why_not]


def group_count():
    """Returns the number of groups: how many times slower the machine is than when idle."""
    began = time.monotonic()
    time.sleep(2)
    return min(math.ceil(slowness(began) - 0.2), 4)


def log_of(framed, row):
    return "\n".join(text for text in framed.errors().splitlines() if f"camera={row.key} " in text)


def play(checks, where, played):
    """Plays all rows, checks that every frame is accounted for, and returns the results."""
    config = "log: {level: info}\ncameras:\n" + "".join(row.text(where) for row in played)
    with Framed(where, config) as framed:
        for row in played:
            row.watcher = Watcher(f"unix:{where}/{row.key}.sock", DIGESTS)
        framed.watch(SECONDS)
        told = ask(where, played)
        results = [Result(row, told.get(row.key, {}), log_of(framed, row)) for row in played]
        code = framed.stop(10)
        checks.check(code == 0, f"exit {code}:\n{framed.errors()[-2000:]}")
        for row in played:
            row.sent = len(row.camera.sent)
        metrics = framed.metrics()
        for row in played:
            row.watcher.join(5)
            check_ledger(checks, metrics, row.key, row.watcher.seen)
        return results


def play_group(checks, group):
    """Returns the results of (index, row) pairs that play at once."""
    rows = [row for _, row in group]
    with folder() as where:
        for index, row in group:
            row.start(index)
        try:
            return play(checks, where, rows)
        finally:
            closing = [threading.Thread(target=row.camera.close) for row in rows]
            for thread in closing:
                thread.start()
            for thread in closing:
                thread.join()


def check_rows(checks, count):
    why_not = why_no_ipv6()
    if why_not:
        checks.skip(why_not)
    wanted = list(enumerate(listed(why_not)))
    results = [result for i in range(count) for result in play_group(checks, wanted[i::count])]
    print(HEAD)
    for result in results:
        result.row.judge(result)
        print(line(result), flush=True)
        checks.check(not result.problems, f"{result.row.name}: {'; '.join(result.problems)}\n{result.log[-1500:]}")
    good = sum(not result.problems for result in results)
    print(f"{good} of {len(results)} as they should")


def main():
    checks = Checks("twenty_cameras")
    count = group_count()
    with folder() as where:
        make_clips(where)
        check_rows(checks, count)
    checks.end()


main()
