#!/usr/bin/python3
"""Cameras recorded on a disk that hangs (tests/faults/disk.c): a recording on another disk, reloads, the removal of a camera and the stop go on, the
memory stays below the sum that `framed check` prints, and the files continue when the disk answers again."""
import glob
import os
import re
import shutil
import signal
import tempfile
import time

import framed_client
from framed_client import BINARY, SANITIZED, Checks, Framed, ffmpeg, folder, run, until

CAMERAS = 20
LOOP = """
  {name}:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs: {{o: {{kernel: copy, sink: "file:{to}/{name}-%s.mp4"}}}}
"""


def config(where, disk, cameras):
    text = f"backend: cpu\ncontrol: {where}/control.sock\ncameras:" + LOOP.format(name="beside", where=where, to=where)
    return text + "".join(LOOP.format(name=f"c{i}", where=where, to=disk) for i in range(cameras))


def make_clip(where):
    """Makes a clip of noise, whose packets have 50 to 100 kB, with one keyframe."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25,noise=alls=100:allf=t", "-frames:v", "100", "-g", "100",
           "-c:v", "libx264", "-preset", "ultrafast", "-qp", "4", "-bf", "0", "-pix_fmt", "yuv420p", f"{where}/clip.mp4")


def own_memory(framed):
    """Returns the process's own memory in MiB, without programs and libraries."""
    with open(f"/proc/{framed.child.pid}/smaps_rollup") as file:
        return sum(int(size) for size in re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB", file.read(), re.M)) / 1024


def threads_of(framed):
    names = []
    for task in os.listdir(f"/proc/{framed.child.pid}/task"):
        with open(f"/proc/{framed.child.pid}/task/{task}/comm") as file:
            names.append(file.read().strip())
    return names


def emitted(framed, camera):
    return framed.live_metrics().account(camera=camera, output="o")[1]


def grows(framed, camera, by, seconds):
    before = emitted(framed, camera)
    return until(lambda: emitted(framed, camera) >= before + by, seconds)


def reload(checks, framed, text, said):
    with open(framed.config, "w") as file:
        file.write(text)
    code, output, errors = run("reload", "-c", framed.config)
    checks.check(code == 0 and said in output, f"reload: exit {code}: {output}{errors}")


def check_beside(checks, where, disk, framed, planned):
    """While the disk hangs, and every recording on it has lost packets."""
    memory = lambda: framed.live_metrics()
    full = until(lambda: all(memory().losses(camera=f"c{i}").get("overflow") for i in range(CAMERAS)), 90)
    checks.check(full, f"not all lose packets: {memory().losses()}\n{framed.errors()}")
    taken = own_memory(framed)
    print(f"{CAMERAS} cameras on a disk that hangs: {taken:.0f} MiB of {planned:.0f} MiB planned")
    checks.check(SANITIZED or CAMERAS * 24 < taken <= planned, f"{taken:.0f} MiB, {planned:.0f} MiB planned")
    disks = [name for name in threads_of(framed) if name.startswith("disk ")]
    checks.check(len(disks) == len(set(disks)) == 2, f"threads that write: {disks}")
    checks.check(grows(framed, "beside", 50, 10), f"the recording beside stands\n{framed.errors()}")
    reload(checks, framed, config(where, disk, CAMERAS), f"{CAMERAS + 1} cameras kept")
    reload(checks, framed, config(where, disk, CAMERAS - 1), "1 camera removed")
    checks.check(grows(framed, "beside", 25, 10), f"the recording beside stands after a reload\n{framed.errors()}")


def main():
    checks = Checks("e2e/test_disk_hangs")
    disk = tempfile.mkdtemp(prefix="framed-test-", dir="/dev/shm")
    sign = f"{disk}/hangs"
    with folder() as where:
        if os.stat(disk).st_dev == os.stat(where).st_dev:
            checks.skip("a second disk: temporary files are on the same")
            checks.end()
        make_clip(where)
        text = config(where, disk, CAMERAS)
        code, output, errors = run("check", "--probe", "-c", "-", stdin=text)
        planned = re.search(r"^sum +([\d.]+)$", output, re.M)
        checks.check(code == 0 and planned, f"check: exit {code}, {output!r}, {errors!r}")
        framed_client.BINARY += "-faults"
        with Framed(where, text, {"FRAMED_DISK_HANGS": sign}) as framed:
            framed_client.BINARY = BINARY
            begun = lambda: sum(os.path.getsize(path) > 0 for path in glob.glob(f"{disk}/c*.part")) == CAMERAS
            checks.check(until(begun, 30), f"not recorded\n{framed.errors()}")
            open(sign, "w").close()
            check_beside(checks, where, disk, framed, float(planned[1]))
            os.unlink(sign)
            for i in (0, CAMERAS - 2):
                checks.check(grows(framed, f"c{i}", 50, 30), f"c{i} does not go on\n{framed.errors()}")
            open(sign, "w").close()
            time.sleep(1.5)
            began = time.monotonic()
            framed.child.send_signal(signal.SIGTERM)
            code = framed.wait(10)
            took = time.monotonic() - began
            checks.check(code == 0 and took < 2.5 * framed_client.PATIENCE, f"stop: exit {code} after {took:.1f} s\n{framed.errors()}")
    shutil.rmtree(disk)
    checks.end()


main()
