#!/usr/bin/python3
"""Outputs that cannot work: a missing sink does not block others under `overflow: wait` and is retried; a run that ends by itself names the outputs
that emitted nothing, and exits with 1."""
import os
import signal
import time

from framed_client import Checks, Framed, Metrics, folder, make_clip, until

FRAMES = 50  # two seconds
CAMERA = """
backend: cpu
defaults: {{overflow: wait}}
cameras:
  clip:
    url: {where}/{clip}
    pace: {pace}
    outputs:
      good: {{kernel: yuv, sink: "file:{where}/good.framed"}}
"""
OUTPUT = "      {name}: {{{keys}, kernel: yuv}}\n"


def config(where, pace="full", clip="clip.mp4", **outputs):
    lines = "".join(OUTPUT.format(name=name, keys=keys.format(where=where)) for name, keys in outputs.items())
    return CAMERA.format(where=where, pace=pace, clip=clip) + lines


def check_held(checks, where):
    """Two sinks come late or disappear, one never comes: the output beside them gets every picture."""
    os.mkdir(f"{where}/goes")
    text = config(
        where, "realtime",
        never='sink: "unix:{where}/never/n.sock"',
        comes='sink: "file:{where}/comes/c.framed"',
        goes='segment: 1s, sink: "file:{where}/goes/g-%s.framed"',
    )
    with Framed(where, text) as framed:
        until(lambda: os.path.exists(f"{where}/good.framed"), 10)
        time.sleep(0.5)
        os.mkdir(f"{where}/comes")
        os.rename(f"{where}/goes", f"{where}/gone")
        code = framed.wait(20)
        metrics, log = Metrics(framed.counters), framed.errors()
    checks.check(code == 1, f"sinks that are not there: exit {code}\n{log}")
    account = metrics.account(output="good")
    checks.check(account == (FRAMES, FRAMES, 0), f"beside sinks that are not there: {account}\n{log}")
    checks.check(metrics.losses(output="never") == {"sink": FRAMES}, f"never: {metrics.losses(output='never')}")
    for name in ("comes", "goes"):
        offered, emitted, lost = metrics.account(output=name)
        good = offered == FRAMES == emitted + lost and emitted > 0 and set(metrics.losses(output=name)) == {"sink"}
        checks.check(good, f"{name}: {offered} offered, {emitted} emitted, {metrics.losses(output=name)}\n{log}")


def silent(log):
    """Returns the outputs that emitted nothing according to the log: name -> line with the reason."""
    lines = [line.split(" output=")[1] for line in log.splitlines() if line.startswith("error") and "emitted nothing" in line]
    return {line.split()[0]: line for line in lines}


def check_exit(checks, where, case, text, expected, *names):
    with Framed(where, text) as framed:
        code = framed.wait(20)
        log = framed.errors()
    checks.check(code == expected, f"{case}: exit {code}, not {expected}\n{log}")
    told = silent(log)
    checks.check(set(told) == set(names), f"{case}: told of {set(told)}\n{log}")
    return told


def check_silent(checks, where):
    told = check_exit(
        checks, where, "sink and config",
        config(where, never='sink: "unix:{where}/never/n.sock"')
        + f'      outside: {{crop: [4000, 0, 64, 64], sink: "file:{where}/outside.framed"}}\n',
        1, "never", "outside",
    )
    checks.check("never/n.sock" in told.get("never", ""), f"no reason: {told}")
    checks.check("config=50" in told.get("outside", ""), f"no reason: {told}")
    unread = 'overflow: drop_oldest, sink: "unix:{where}/u.sock"'
    check_exit(checks, where, "no client", config(where, unread=unread), 1, "unread")
    thinned = 'fps: 0.1, sink: "file:{where}/thinned.framed"'
    check_exit(checks, where, "thinned", config(where, thinned=thinned), 0)
    with open(f"{where}/none.y4m", "w") as file:
        file.write("YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n")
    check_exit(checks, where, "no picture", config(where, clip="none.y4m"), 1, "good")


def check_stopped(checks, where):
    """Outputs without frames are not reported if the run is stopped or a reload removes them."""
    never = config(where, "realtime", never='sink: "unix:{where}/never/n.sock"')
    with Framed(where, never) as framed:
        until(lambda: "running:" in framed.errors(), 10)
        code = framed.stop()
        checks.check(code == 0 and not silent(framed.errors()), f"stopped: exit {code}\n{framed.errors()}")
    with Framed(where, never) as framed:
        until(lambda: "running:" in framed.errors(), 10)
        with open(framed.config, "w") as file:
            file.write(config(where, "realtime"))
        framed.child.send_signal(signal.SIGHUP)
        code = framed.wait(20)
        checks.check(code == 0 and not silent(framed.errors()), f"taken away: exit {code}\n{framed.errors()}")


def main():
    checks = Checks("missing_sinks")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"), frames=FRAMES)
        check_held(checks, where)
        check_silent(checks, where)
        check_stopped(checks, where)
    checks.end()


main()
