#!/usr/bin/python3
"""The faults of tests/e2e/fault_cases.py, each with its own camera and framed: seconds from service to the first good picture
read by a client, counts of bad pictures, and the packets that framed reports missing beside those that the camera held back.
Prints a Markdown table. FRAMED_FAULTS="NAME..." selects faults, FRAMED_AT_ONCE=6 is how many run at a time."""
import concurrent.futures
import contextlib
import os
import time

import torment  # makes the next imports possible
from fault_cases import CLIPS, REFUSED, camera_of, cases, make_clips, refused
from framed_client import Framed, folder, status
from watch import UNKNOWN, Account, Watcher, reference

AT_ONCE = int(os.environ.get("FRAMED_AT_ONCE", "6"))
BOUND = 45.0  # s after which a good picture counts as never


class Reader(Watcher):
    """Uses the time when pictures were read, not the time in their headers."""

    def good_after(self, number):
        good = [s for s in list(self.seen) if s.known != UNKNOWN]
        late = next((i + 1 for i in reversed(range(len(good))) if good[i].known < number), 0)
        return [s.read for s in good[late:]]


def good_again(case, back):
    """Returns seconds, "never", or "-" if service never stopped and still runs at the end."""
    if case.fault is refused:
        return f"{len(case.camera.calls)} connection{'s' * (len(case.camera.calls) != 1)} in {REFUSED:g} s"
    first = case.wait_good(back, seconds=BOUND) if back is not None else None
    last = case.wait_good(time.monotonic(), seconds=BOUND) if first or back is None else None
    return "never" if not last else "-" if back is None else f"{first - back:.2f}"


def measure(where, case, digests):
    """Returns [good again, lost/doubled/torn/unflagged, flagged, packets]. Lost are pictures that were sent whole before the
    last received one."""
    os.mkdir(where)
    with contextlib.closing(camera_of(case)) as case.camera:
        if case.camera.starts:
            case.camera.listen()
        with Framed(where, "log: {level: error}\ncameras:" + case.text(where)) as framed:
            case.watcher = Reader(f"unix:{where}/{case.name}.sock", digests)
            again = good_again(case, case.fault(case))
            told = status(where).get(case.name, {}).get("network") or {}
            framed.stop()
            case.watcher.join(5)
        account = Account(case.camera.sent, case.watcher.seen)
        counts = [len(getattr(account, what)) for what in ("missing", "doubled", "torn", "unflagged")]
        shown = told.get("lost", "-")
        return [again, "/".join(map(str, counts)), str(account.flagged), f"{shown}/{case.camera.withheld}"]


def line(cells):
    print("|", " | ".join(cells), "|", flush=True)


def main():
    wanted = os.environ.get("FRAMED_FAULTS", "").split()
    heads = ["fault", "good again, s", "lost/doubled/torn/unflagged", "flagged", "packets missed: shown/kept back"]
    with folder() as where, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        make_clips(where)
        digests = {}
        for clip in CLIPS.values():
            digests.update(reference(clip.path))
        print(f"{AT_ONCE} faults at a time; never: not within {BOUND:g} s\n")
        line(heads)
        print("|---" * len(heads) + "|", flush=True)
        trials = {case.name: pool.submit(measure, f"{where}/{case.name}", case, digests)
                  for case in cases() if not wanted or case.name in wanted}
        for name, trial in trials.items():
            line([name, *trial.result()])


if __name__ == "__main__":
    main()
