#!/usr/bin/python3
"""SIGHUP: parts that a new configuration leaves unchanged are not disturbed; changes are applied at once; a bad
configuration changes nothing."""
import fcntl
import os
import signal
import socket
import stat
import threading
import time

from framed_client import PATIENCE, Checks, Reader, consume, folder, free_port, make_clip, until
from reloading import Reloaded, Street, camera, check_untouched, config, gaps, output

SMALL = '{{size: 64x64, tensor: {{layout: nhwc}}, sink: "{}"}}'


def connects(path):
    """Returns the error of connecting, or None."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError as error:
            return error
    return None


def frames_of(address, count=5, seconds=5):
    """Returns the first frames, or fewer if they do not arrive in time."""
    reader = Reader(address, count)
    reader.join(seconds * PATIENCE)
    return reader.frames


# --- parts that stay unchanged


def check_cameras_come_and_go(checks, where, street):
    """Adds, changes and removes cameras beside two that stay."""
    plain = {name: street.plain(name) for name in "ab"}
    steps = {
        "a camera added": {**plain, "c": street.plain("c")},
        "a key of it changed": {**plain, "c": street.plain("c", ", damaged: drop")},
        "its output changed": {**plain, "c": camera(street.url("c"), {"o": SMALL.format(street.socket("c"))})},
        "it replaced by another": {**plain, "d": street.plain("c")},
        "all in another order": {"d": street.plain("c"), **dict(reversed(plain.items()))},
        "taken away": plain,
        "another log level": None,
    }
    with Reloaded(where, config(plain)) as framed:
        until(lambda: os.path.exists(f"{where}/b.sock"), 5)
        watchers = {name: street.watch(name) for name in "ab"}
        until(lambda: all(len(watcher.seen) > 5 for watcher in watchers.values()), 5)
        listeners = framed.listeners()
        for what, cameras in steps.items():
            text = config(cameras) if cameras else config(plain, "log: {level: debug}")
            checks.check(framed.reload(text), f"{what}: not applied:\n{framed.errors()}")
            same = {path: framed.listeners().get(path) for path in listeners}
            checks.check(same == listeners, f"{what}: {listeners} became {same}")
            time.sleep(0.4)
        for name, watcher in watchers.items():
            check_untouched(checks, name, street.cameras[name], watcher)
        checks.check(not os.path.exists(f"{where}/c.sock"), "the socket of a camera that is gone is still there")
        checks.check(framed.stop() == 0, f"exit:\n{framed.errors()}")
    for name, watcher in watchers.items():
        watcher.join(5)
        lost = framed.metrics().losses(camera=name)
        checks.check(set(lost) <= {"client", "stopping"}, f"{name}: lost {lost}")
    checks.check("unaccounted" not in framed.errors(), framed.errors())


def check_outputs_come_and_go(checks, where, street):
    """Adds, changes and removes outputs beside one that stays; the camera does not reconnect."""
    url, kept = street.url("e"), output(street.socket("e"))

    def with_outputs(**outputs):
        return config({"e": camera(url, {"o": kept, **outputs})})

    with Reloaded(where, with_outputs()) as framed:
        until(lambda: os.path.exists(f"{where}/e.sock"), 5)
        watcher = street.watch("e")
        until(lambda: len(watcher.seen) > 5, 5)
        checks.check(framed.reload(with_outputs(p=SMALL.format(f"unix:{where}/p.sock"))), "adding is refused")
        frames = frames_of(f"unix:{where}/p.sock")
        checks.check(frames and (frames[0][0].width, frames[0][0].epoch) == (64, 0), f"added: {frames[:1]}")

        listener = framed.listeners()[f"{where}/p.sock"]
        reader = Reader(f"unix:{where}/p.sock")
        until(lambda: reader.count > 2, 5)
        larger = SMALL.format(f"unix:{where}/p.sock").replace("64x64", "96x96")
        checks.check(framed.reload(with_outputs(p=larger)), "changing is refused")
        reader.join(5 * PATIENCE)
        checks.check(not reader.is_alive() and not reader.error, f"its client: {reader.error}")
        checks.check(framed.listeners()[f"{where}/p.sock"] == listener, "the listening socket is another one")
        frames = frames_of(f"unix:{where}/p.sock")
        checks.check(frames and frames[0][0].width == 96, f"changed: {frames[:1]}")

        checks.check(framed.reload(with_outputs()), "taking away is refused")
        checks.check(until(lambda: "output=p offered" in framed.errors(), 5), "no account of what is gone")
        checks.check(not os.path.exists(f"{where}/p.sock"), "its socket is still there")
        check_untouched(checks, "beside other outputs", street.cameras["e"], watcher)
        checks.check(framed.stop() == 0, "exit")
    checks.check("unaccounted" not in framed.errors(), framed.errors())


# --- parts that change


def check_replaced_camera(checks, where, clip):
    """A replaced camera's frames continue in the next epoch, on the same listening socket."""

    def text(more):
        return config({"gate": camera(clip, {"o": SMALL.format(f"unix:{where}/o.sock")}, ", loop: true, pace: realtime" + more)})

    with Reloaded(where, text("")) as framed:
        until(lambda: os.path.exists(f"{where}/o.sock"), 5)
        listener = framed.listeners()[f"{where}/o.sock"]
        for turn, more in enumerate([", damaged: drop", ", fps: 20", ", damaged: hold"]):
            reader = Reader(f"unix:{where}/o.sock")
            until(lambda: reader.count > 2, 5)
            checks.check(framed.reload(text(more)), f"{more} is refused:\n{framed.errors()}")
            reader.join(5 * PATIENCE)
            checks.check(not reader.is_alive() and not reader.error, f"{more}: its client: {reader.error}")
            first = frames_of(f"unix:{where}/o.sock", 1)
            last = reader.frames[-1][0]
            checks.check(
                first and first[0][0].epoch == last.epoch + 1, f"{more}: epoch {last.epoch}, then {first}"
            )
        checks.check(framed.listeners()[f"{where}/o.sock"] == listener, "the listening socket is another one")
        checks.check(framed.stop() == 0, "exit")


def check_addresses_change_hands(checks, where, clip):
    """Two cameras swap sockets, ports and files; the sockets never refuse a connection."""
    ports = [free_port() for _ in range(2)]
    keys = ", loop: true, pace: realtime"

    def text(first, second):
        def of(name, i, width):
            return camera(clip, {
                "u": f'{{size: {width}x32, sink: "unix:{where}/{i}.sock"}}',
                "t": f"{{size: {width}x32, sink: 'tcp:{ports[i]}'}}",
                "f": f'{{size: {width}x32, sink: "file:{where}/{i}.framed"}}',
            }, keys)

        return config({"first": of("first", first, 64), "second": of("second", second, 96)})

    failures, over = [], threading.Event()

    def knock():
        while not over.wait(0.001):
            failures.extend(filter(None, (connects(f"{where}/{i}.sock") for i in range(2))))

    with Reloaded(where, text(0, 1)) as framed:
        until(lambda: os.path.exists(f"{where}/1.sock"), 5)
        files = [f"{where}/{i}.framed" for i in range(2)]
        written = until(lambda: all(os.path.exists(file) and os.path.getsize(file) for file in files), 5)
        checks.check(written, "no frame is in a file")  # an empty file is not kept
        before = framed.listeners()
        knocker = threading.Thread(target=knock)
        knocker.start()
        checks.check(framed.reload(text(1, 0)), f"swapping is refused:\n{framed.errors()}")
        for i, width in enumerate((96, 64)):
            for address in (f"unix:{where}/{i}.sock", f"tcp:127.0.0.1:{ports[i]}"):
                frames = frames_of(address, 1)
                checks.check(frames and frames[0][0].width == width, f"{address}: {frames}")
        over.set()
        knocker.join()
        checks.check(not failures, f"{len(failures)} connections failed: {failures[:3]}")
        checks.check(framed.listeners() == before, f"listening sockets: {before}, then {framed.listeners()}")
        checks.check(until(lambda: os.path.exists(f"{where}/1.1.framed"), 5), "the file before is not kept")
        checks.check(framed.stop() == 0, "exit")
    for i, widths in enumerate(((64, 96), (96, 64))):
        for name, width in zip((f"{i}.1.framed", f"{i}.framed"), widths):
            with open(f"{where}/{name}", "rb") as file:
                shapes = {header.width for header, _ in consume.read_frames(file)}
            checks.check(shapes == {width}, f"{name}: frames of width {shapes}, not {width}")


def check_file_changes_hands(checks, where, street):
    """A camera finishes its file before the next camera begins the same one, however often the owner changes meanwhile."""
    path = f"file:{where}/shared.framed"

    def text(keys):
        outputs = {"o": output(street.socket("b")), "f": SMALL.format(path).replace("sink", f"{keys}, sink")}
        return config({"b": camera(street.url("b"), outputs)})

    before = camera(street.url("a"), {"f": SMALL.format(path)})
    with Reloaded(where, config({"a": before, "b": street.plain("b")})) as framed:
        until(lambda: os.path.exists(f"{where}/shared.framed") and os.stat(f"{where}/shared.framed").st_size, 5)
        watcher = street.watch("b")
        until(lambda: len(watcher.seen) > 5, 5)
        for slots in range(4, 10):
            framed.write(text(f"slots: {slots}"))
            framed.child.send_signal(signal.SIGHUP)
            time.sleep(0.002)
        checks.check(framed.reload(text("slots: 10")), f"refused:\n{framed.errors()}")
        checks.check(framed.reloads()[1] == 0, f"some were refused:\n{framed.errors()}")
        until(lambda: os.path.exists(f"{where}/shared.framed") and os.stat(f"{where}/shared.framed").st_size, 5)
        time.sleep(0.5)
        checks.check("is being written by" not in framed.errors(), framed.errors())
        check_untouched(checks, "beside a file", street.cameras["b"], watcher)
        checks.check(framed.stop() == 0, "exit")
    for name, expected in (("shared.1.framed", "a"), ("shared.framed", "b")):
        with open(f"{where}/{name}", "rb") as file:
            cameras = {header.camera for header, _ in consume.read_frames(file)}
        checks.check(cameras == {expected}, f"{name} is of {cameras}")


def check_permissions(checks, where, clip):
    """A new mode makes a new socket that replaces the old one in one step."""

    def text(mode):
        sink = SMALL.format(f"unix:{where}/m.sock").replace("sink", f"mode: {mode}, sink")
        return config({"gate": camera(clip, {"o": sink}, ", loop: true, pace: realtime")})

    with Reloaded(where, text("0600")) as framed:
        until(lambda: os.path.exists(f"{where}/m.sock"), 5)
        for mode in (0o640, 0o666):
            checks.check(framed.reload(text(f"{mode:04o}")), "refused")
            checks.check(stat.S_IMODE(os.stat(f"{where}/m.sock").st_mode) == mode, f"not {mode:o}")
            checks.check(frames_of(f"unix:{where}/m.sock", 1), "no frame comes")
        # A ring replaces a socket: another kind at the same path.
        ring = text("0666").replace("unix:", "ring:")
        checks.check(framed.reload(ring), f"a ring is refused:\n{framed.errors()}")
        checks.check(frames_of(f"ring:{where}/m.sock", 1), "no frame comes of the ring")
        checks.check(framed.stop() == 0, "exit")
    checks.check(not [name for name in os.listdir(where) if ".sock" in name], f"left: {os.listdir(where)}")


def check_camera_that_waits(checks, where, clip):
    """An output without a reader holds its camera up; without that output the camera continues."""
    outputs = {"o": SMALL.format(f"unix:{where}/o.sock")}
    waits = {**outputs, "w": SMALL.format(f"unix:{where}/w.sock").replace("sink", "overflow: wait, sink")}
    keys = ", loop: true, pace: realtime"
    with Reloaded(where, config({"gate": camera(clip, waits, keys)})) as framed:
        until(lambda: os.path.exists(f"{where}/w.sock"), 5)
        reader = Reader(f"unix:{where}/o.sock", 20)
        time.sleep(1)
        checks.check(reader.count < 3, f"{reader.count} frames beside an output that waits")
        checks.check(framed.reload(config({"gate": camera(clip, outputs, keys)})), "refused")
        reader.join(5 * PATIENCE)
        checks.check(reader.count == 20, f"{reader.count} frames without it")
        checks.check(framed.stop() == 0, "exit")


def check_camera_that_ended(checks, where, clip):
    """An ended camera restarts only if it is changed."""
    live = camera(clip, {"o": SMALL.format(f"unix:{where}/o.sock")}, ", loop: true, pace: realtime")

    def text(size):
        once = camera(clip, {"f": f'{{size: {size}, sink: "file:{where}/once.framed"}}'})
        return config({"live": live, "once": once})

    with Reloaded(where, text("64x64")) as framed:
        until(lambda: "camera=once ended" in framed.errors(), 10)
        checks.check(framed.reload() and framed.reload(), "refused")
        time.sleep(0.3)
        checks.check(not os.path.exists(f"{where}/once.1.framed"), "a camera that ended began anew")
        checks.check(framed.reload(text("96x96")), "refused")
        checks.check(until(lambda: framed.errors().count("camera=once ended") == 2, 10), framed.errors())
        checks.check(os.path.exists(f"{where}/once.1.framed"), "its file before is not kept")
        checks.check(framed.stop() == 0, "exit")


# --- bad configurations


def bad_files(where, clip, taken_port, holder):
    """Returns what: (text, messages expected in the log)."""

    def good(more="", sink=f"unix:{where}/new.sock", keys="", top=""):
        return config(
            {
                "gate": camera(clip, {"o": SMALL.format(f"unix:{where}/o.sock")}, ", loop: true, pace: realtime"),
                "new": camera(clip, {"o": f'{{size: 64x64{keys}, sink: "{sink}"}}'}, ", loop: true" + more),
            },
            top,
        )

    os.makedirs(f"{where}/folder", exist_ok=True)
    return {
        "no YAML": ("cameras: [", ["yaml:"]),
        "empty": ("", ["cameras: is missing"]),
        "unknown keys": (good(", colour: red", keys=", wings: 2"), [":4:", "cameras.new.colour", "outputs.o.wings"]),
        "out of range": (good(keys=", slots: 1"), ["slots: '1' is out of range"]),
        "a name too long": (good().replace("new:", "n" * 24 + ":"), ["too long"]),
        "no variable": (good(sink="unix:${NOWHERE_TO_BE_FOUND}"), ["NOWHERE_TO_BE_FOUND"]),
        "one sink twice": (good(sink=f"unix:{where}/o.sock"), ["is already the sink of cameras.gate.outputs.o"]),
        "needs a restart": (
            good(top="backend: cpu\ncpu: {workers: 7}\ncuda: {streams: 3}"),
            [":1:10: backend: needs a restart", ":2:16: cpu.workers: needs", ":3:17: cuda.streams: needs"],
        ),
        "a taken port": (good(sink=f"tcp:{taken_port}"), ["cameras.new.outputs.o.sink: cannot listen", "in use"]),
        "a taken socket": (good(sink=f"unix:{holder}"), ["another program listens"]),
        "no socket there": (good(sink=f"unix:{where}/folder"), ["exists and is not a socket"]),
        "no folder": (good(sink=f"file:{where}/nowhere/a.framed"), ["No such file or directory"]),
        "no folder for a socket": (good(sink=f"unix:{where}/nowhere/a.sock"), ["No such file or directory"]),
        "no file": (good(sink=f"file:{where}/folder", keys=", protocol: framed"), ["exists and is not a file"]),
        "a file that is written": (good(sink=f"file:{where}/held.framed"), ["is being written by another"]),
        "no group": (good(keys=", group: nobody-is-in-it"), ['no group "nobody-is-in-it"']),
        "too much memory": (good(", picture: 16384x16384, decode_threads: 64", keys=", slots: 256"), ["cameras need"]),
        "no NVDEC": (good(", decode: nvdec"), ["NVDEC, which camera new demands, is missing"]),
    }


def picture_of(folder_of):
    """Returns name -> inode of a folder's files that a refused reload could change."""
    return {name: os.stat(f"{folder_of}/{name}").st_ino for name in os.listdir(folder_of) if "framed." not in name}


def check_bad_files(checks, where, clip):
    text = config({"gate": camera(clip, {"o": SMALL.format(f"unix:{where}/o.sock")}, ", loop: true, pace: realtime")})
    holder = socket.socket(socket.AF_UNIX)
    holder.bind(f"{where}/holder.sock")
    holder.listen()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    with open(f"{where}/held.framed", "w") as held, Reloaded(where, text) as framed:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("not ours")
        held.flush()
        until(lambda: os.path.exists(f"{where}/o.sock"), 5)
        reader = Reader(f"unix:{where}/o.sock", keep=False)
        files = bad_files(where, clip, taken.getsockname()[1], f"{where}/holder.sock")
        before, listeners = picture_of(where), framed.listeners()
        for what, (bad, expected) in files.items():
            told = len(framed.errors())
            checks.check(not framed.reload(bad), f"{what}: applied")
            said = framed.errors()[told:]
            for words in expected:
                checks.check(words in said, f"{what}: no '{words}' in\n{said}")
            checks.check(picture_of(where) == before, f"{what}: {before} became {picture_of(where)}")
            checks.check(framed.listeners() == listeners, f"{what}: {listeners} became {framed.listeners()}")
        os.rename(framed.config, framed.config + ".away")
        checks.check(not framed.reload(), "no file at all: applied")
        os.mkdir(framed.config)
        checks.check(not framed.reload(), "a folder: applied")
        os.rmdir(framed.config)
        checks.check("Is a directory" in framed.errors(), framed.errors())
        metrics = framed.live_metrics()
        checks.check(metrics.sum("framed_config_last_reload_successful") == 0, "the metric does not say so")
        checks.check(framed.reload(text), "a good file after bad ones is refused")
        checks.check(framed.live_metrics().sum("framed_config_last_reload_successful") == 1, "the metric stays bad")
        checks.check(reader.is_alive() and not reader.error, f"the client lost its connection: {reader.error}")
        numbers = [header.sequence for header, _ in reader.frames]
        checks.check(not gaps(numbers), f"gaps {gaps(numbers)}")
        checks.check(framed.stop() == 0, "exit")
    holder.close()
    taken.close()


def check_another_host(checks, where, clip):
    """An output cannot move to another host on a port that another output has: the error names the owner."""
    port = free_port()
    gate = {"kept": SMALL.format("tcp:0"), "o": SMALL.format(f"tcp:{port}")}
    with Reloaded(where, config({"gate": camera(clip, gate, ", loop: true, pace: realtime")})) as framed:
        until(lambda: "running" in framed.errors(), 5)
        moved = {"kept": gate["kept"], "moved": SMALL.format(f"tcp:0.0.0.0:{port}").replace("sink:", "open: true, sink:")}
        checks.check(not framed.reload(config({"gate": camera(clip, moved, ", loop: true, pace: realtime")})), "applied")
        told = f"gate.outputs.moved.sink: cameras.gate.outputs.o listens on 127.0.0.1 port {port}, whose host no reload"
        checks.check(told in framed.errors() and "in use" not in framed.errors(), framed.errors())
        checks.check(len(frames_of(f"tcp:127.0.0.1:{port}")) == 5, "the output that stays gives nothing")
        checks.check(framed.stop() == 0, "exit")


def check_standard_input(checks, where, clip):
    text = config({"gate": camera(clip, {"o": SMALL.format(f"unix:{where}/o.sock")}, ", loop: true, pace: realtime")})
    with open(f"{where}/in.yaml", "w") as file:
        file.write(text)
    with Reloaded(where, text) as framed:
        framed.child.kill()
        framed.child.wait()
    framed.arguments = ["sh", "-c", 'exec "$@" < ' + f"{where}/in.yaml", "sh", *framed.arguments]
    framed.arguments[framed.arguments.index("-c", 5) + 1] = "-"
    with framed:
        until(lambda: os.path.exists(f"{where}/o.sock"), 5)
        until(lambda: "running" in framed.errors(), 5)
        checks.check(not framed.reload(), "applied")
        checks.check("cannot be read again" in framed.errors(), framed.errors())
        checks.check(frames_of(f"unix:{where}/o.sock", 1), "no frame comes")
        checks.check(framed.stop() == 0, "exit")


# --- timing


def check_storm(checks, where, clip):
    """Signals arrive faster than cameras can stop: the last file counts, and an unchanged camera is not disturbed.
    SIGTERM in between ends framed as usual."""
    keys = ", loop: true, pace: realtime"
    kept = camera(clip, {"o": SMALL.format(f"unix:{where}/kept.sock")}, keys)

    def text(i):
        others = {
            f"c{n}": camera(clip, {
                "o": SMALL.format(f"unix:{where}/{(n + i) % 4}.sock"),
                "f": SMALL.format(f"file:{where}/{(n + i) % 4}.framed"),
            }, keys)
            for n in range(4)
        }
        return config({"kept": kept, **others})

    with Reloaded(where, text(0)) as framed:
        until(lambda: os.path.exists(f"{where}/kept.sock"), 5)
        reader = Reader(f"unix:{where}/kept.sock", keep=False)
        for i in range(100):
            framed.write(text(i))
            framed.child.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        checks.check(framed.reload(text(2)), f"the last is refused:\n{framed.errors()[-3000:]}")
        for n in range(4):
            frames = frames_of(f"unix:{where}/{n}.sock", 1)
            name = f"c{(n - 2) % 4}"
            checks.check(frames and frames[0][0].camera == name, f"{n}.sock has {frames and frames[0][0].camera}")
        numbers = [header.sequence for header, _ in reader.frames]
        checks.check(not gaps(numbers), f"gaps {gaps(numbers)}")
        checks.check(framed.reloads()[1] == 0, f"some were refused:\n{framed.errors()[-3000:]}")
        framed.write(text(3))
        framed.child.send_signal(signal.SIGHUP)
        begin = time.monotonic()
        checks.check(framed.stop(3) == 0, "exit")
        checks.check(time.monotonic() - begin < 2 * PATIENCE, f"gone after {time.monotonic() - begin:.1f} s")
    checks.check("unaccounted" not in framed.errors(), framed.errors()[-3000:])


def check_during_start(checks, where, clip):
    """While thirty cameras start one after another, the last ten are removed and the rest renamed."""
    keys = ", loop: true, pace: realtime"

    def text(prefix, count):
        return config({
            f"{prefix}{i}": camera(clip, {"o": SMALL.format(f"unix:{where}/{i}.sock")}, keys) for i in range(count)
        })

    with Reloaded(where, text("c", 30)) as framed:
        until(lambda: os.path.exists(f"{where}/29.sock"), 5)
        checks.check(framed.reload(text("c", 20)), "refused")
        checks.check(framed.reload(text("d", 20)), "refused")
        up = until(lambda: framed.live_metrics().sum("framed_camera_up") == 20, 20)
        checks.check(up, f"{framed.live_metrics().sum('framed_camera_up')} of 20 cameras run")
        checks.check(until(lambda: framed.errors().count("offered=") == 30, 5), "accounts of cameras are missing")
        checks.check(framed.stop() == 0, "exit")


def check_pipe(checks, where, clip):
    """A configuration path that is no longer a file is refused at once: the loop does not wait for a writer."""
    with Reloaded(where, config({"gate": camera(clip, {"o": SMALL.format("tcp:0")}, ", loop: true")})) as framed:
        until(lambda: "running" in framed.errors(), 5)
        os.unlink(framed.config)
        os.mkfifo(framed.config)
        checks.check(not framed.reload(), "applied")
        checks.check("is not a file, which alone can be read again" in framed.errors(), framed.errors())
        checks.check(framed.stop() == 0, "exit")


def main():
    checks = Checks("reload")
    for check in (check_cameras_come_and_go, check_outputs_come_and_go, check_file_changes_hands):
        with folder() as where, Street(where, "abce") as street:
            check(checks, where, street)
    for check in (check_replaced_camera, check_addresses_change_hands, check_permissions, check_camera_that_waits,
                  check_camera_that_ended, check_bad_files, check_another_host, check_standard_input, check_pipe, check_storm,
                  check_during_start):
        with folder() as where:
            check(checks, where, make_clip(f"{where}/clip.mp4"))
    checks.end()


main()
