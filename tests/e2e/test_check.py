#!/usr/bin/python3
"""`framed check` tells every mistake that shows without a camera, each with its place, and `--probe` those that show
with it."""
import os
import re
import socket
import subprocess

from framed_client import BINARY, Checks, Framed, Server, folder, make_clip, run, until

SECRET = "Tr0ub4dor-horse"
GATE = "cameras:\n  gate: {{{camera}, outputs: {{o: {{{output}}}}}}}\n"


def config(camera="url: x.mp4", output='sink: "tcp:0"', top=""):
    return GATE.format(camera=camera, output=output) + top


def column(text, word):
    """line:column of a word."""
    before = text[: text.index(word)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


# What is wrong, the word that the place is of, the key, and how the message begins.
MISTAKES = [
    (config("url: x.nut, demuxer: nutt"), "nutt", "cameras.gate.demuxer", "libavformat has no such demuxer ("),
    (config("url: x.nut, demuxer: nut, options: {frob: 1}"), "frob", "cameras.gate.options.frob",
     "neither the demuxer nor the protocol has such an option ("),
    (config("url: x.nut, options: {frob: 1}"), "frob", "cameras.gate.options.frob", "no demuxer and no protocol "),
    (config("url: 'rtsp://127.0.0.1/x', options: {blocksize: 1}"), "blocksize", "cameras.gate.options.blocksize",
     "no demuxer and no protocol "),
    (config(output='sink: "unix:/tmp/s", group: no-such-group'), "no-such-group", "cameras.gate.outputs.o.group",
     'there is no group "no-such-group" on this machine ('),
    (config(output='sink: "unix:/no/such/s"'), '"unix:/no', "cameras.gate.outputs.o.sink", "its folder /no/such: No such"),
    (config(output='sink: "ring:/no/such/s"'), '"ring:/no', "cameras.gate.outputs.o.sink", "its folder /no/such: No such"),
    (config(output='sink: "file:/no/such/%H%M%S.raw"'), '"file:/no', "cameras.gate.outputs.o.sink",
     "its folder /no/such: No such"),
    (config(output='sink: "unix:/etc/passwd/s"'), '"unix:', "cameras.gate.outputs.o.sink", "/etc/passwd is no folder ("),
    (config(output='sink: "unix:/etc/passwd"'), '"unix:', "cameras.gate.outputs.o.sink",
     "/etc/passwd exists and is not a socket ("),
    (config(output='sink: "file:/tmp/..", protocol: raw'), '"file:', "cameras.gate.outputs.o.sink",
     "/tmp/.. exists and is not a file ("),
    (config(top="control: /no/such/control.sock\n"), "/no/such/c", "control", "its folder /no/such: No such"),
    (config(top="http: unix:/no/such/http\n"), "unix:/no", "http", "its folder /no/such: No such"),
    (config(output='sink: "tcp:0", crop: [0, 0, 1921, 8]'), "[0, 0", "cameras.gate.outputs.o.crop",
     "reaches beyond `picture` of 1920x1080 ("),
    (config("url: x, picture: 64x64", 'sink: "tcp:0", crop: [60, 0, 8, 8]'), "[60", "cameras.gate.outputs.o.crop",
     "reaches beyond `picture` of 64x64 ("),
    (config(output='sink: "tcp:0", size: 4000x10'), "4000x10", "cameras.gate.outputs.o.size",
     "places output pixels more than 32764 pixels away from the first one of `picture` of 1920x1080 ("),
    (config(output='sink: "tcp:0", size: 4000x10, affine: [0.1, 0, 0, 0, 1, 0]'), "[0.1", "cameras.gate.outputs.o.affine",
     "places output pixels more than 32764 pixels away "),
    (config(top="cpu: {pin: '1000-1023'}\n"), "'1000", "cpu.pin", "this process may use none of 1000-1023 ("),
    (config("url: 'pipe:77'"), "'pipe:77", "cameras.gate.url", "framed was started without a descriptor 77 "),
]
# What a run takes, although it looks like some of these.
GOOD = [
    config("url: x.nut, options: {blocksize: 4096, probesize: 5000, rw_timeout: 1}"),
    config("url: x.raw, demuxer: rawvideo, options: {video_size: 64x64, pixel_format: bgra, blocksize: 4096}"),
    config("url: 'tcp://127.0.0.1:5', options: {listen_timeout: 5, video_size: 64x64}"),
    config("url: 'rtsp://127.0.0.1/x', options: {buffer_size: 65536, max_delay: 1}"),
    config(output='sink: "tcp:0", crop: [0, 0, 1920, 1080]'),
    config("url: x, picture: 4096x4096", 'sink: "tcp:0", crop: [0, 0, 1921, 8]'),
    config(output='sink: "tcp:0", size: 3000x10, affine: [0.1, 0, 0, 0, 1, 0]'),
    config("url: 'pipe:0'"),
    config("url: 'pipe:'"),
    config(output='sink: "unix:/run/framed/s"'),
    config(output='sink: "file:/var/lib/framed-yard/%H%M%S.raw"'),
    config(output='sink: "unix:s.sock"'),
]


def check_mistakes(checks, where):
    path = f"{where}/mistake.yaml"
    for text, word, key, message in MISTAKES:
        with open(path, "w") as file:
            file.write(text)
        code, output, errors = run("check", "-c", path)
        lines = errors.splitlines()
        told = len(lines) == 1 and lines[0].startswith(f"{path}:{column(text, word)}: {key}: {message}")
        allowed = told and re.search(r"\(.+\)$", lines[0])
        checks.check(code == 78 and told and allowed and not output, f"{text}: exit {code}, {errors!r}, {output!r}")
    for text in GOOD:
        code, output, errors = run("check", "-c", "-", stdin=text)
        checks.check(code == 0 and not errors, f"{text}: exit {code}, {errors!r}")


def check_together(checks):
    """Mistakes of the text and of the machine come in one run, in the order of their places."""
    text = config("url: x, speed: 3, demuxer: nutt", 'sink: "unix:/no/such/s", slots: 1000', "cpu: {pin: '1000'}\n")
    code, _, errors = run("check", "-c", "-", stdin=text)
    keys = re.findall(r"^stdin:\d+:\d+: (\S+): ", errors, re.M)
    expected = ["cameras.gate.speed", "cameras.gate.demuxer", "cameras.gate.outputs.o.sink",
                "cameras.gate.outputs.o.slots", "cpu.pin"]
    checks.check(code == 78 and keys == expected, f"together: exit {code}, {errors}")


def check_units_folders(checks):
    """The unit makes its folders when it starts: until then they count as there, and check says so once."""
    text = config(output='sink: "unix:/run/framed-none/s"')
    code, output, errors = run("check", "-c", "-", stdin=text)
    said = output.count("/run/framed-none is not there yet: the unit makes it when it starts\n")
    checks.check(code == 0 and said == 1 and not errors, f"a folder of the unit: exit {code}, {output!r}, {errors!r}")
    code, _, errors = run("check", "-c", "-", stdin=text.replace("framed-none", "framed-none/deeper"))
    checks.check(code == 78 and "its folder" in errors, f"below a folder of the unit: exit {code}, {errors!r}")


PIPE = """
cameras:
  std: {{url: "{url}", outputs: {{o: {{sink: "unix:{where}/o.sock"}}}}}}
  gate:
    url: {clip}
    loop: true
    pace: realtime
    outputs: {{o: {{size: 32x32, sink: "unix:{where}/g.sock"}}}}
"""


def check_descriptors(checks, where, clip):
    """`pipe:N` reads what framed was started with, and never what framed has opened itself: there its pipe of signals
    is among the first."""
    path = f"{where}/pipe.yaml"
    for n in range(3, 24):
        with open(path, "w") as file:
            file.write(PIPE.format(url=f"pipe:{n}", where=where, clip=clip))
        for command in ("check", "run"):
            try:
                code, _, errors = run(command, "-c", path, timeout=3)
            except subprocess.TimeoutExpired:
                code, errors = None, "it runs"
            told = errors.startswith(f"{path}:3:14: cameras.std.url: framed was started without a descriptor {n} ")
            if not checks.check(code == 78 and told, f"{command} with pipe:{n}: exit {code}, {errors!r}"):
                return
    with open(clip, "rb") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        with open(path, "w") as file:
            file.write(PIPE.format(url=f"pipe:{inherited.fileno()}", where=where, clip=clip))
        done = subprocess.run([BINARY, "check", "-c", path], pass_fds=[inherited.fileno()], capture_output=True, text=True)
        checks.check(done.returncode == 0, f"check with a descriptor that is inherited: {done}")


def check_reload(checks, where, clip):
    """A reload that brings `pipe:N` is refused, and SIGTERM still ends framed."""
    text = PIPE.format(url=clip, where=where, clip=clip)
    with Framed(where, text) as framed:
        checks.check(until(lambda: os.path.exists(f"{where}/control.sock"), 10), framed.errors())
        with open(framed.config, "w") as file:
            file.write(text.replace(f'url: "{clip}"', 'url: "pipe:7"'))
        code, _, errors = run("reload", "-c", framed.config, env={"RUNTIME_DIRECTORY": where})
        told = "cameras.std.url: framed was started without a descriptor 7 " in errors
        checks.check(code == 78 and told, f"reload with pipe:7: exit {code}, {errors!r}")
        checks.check(framed.stop() == 0, framed.errors())


PROBED = """
cameras:
  file: {{url: {clip}, picture: 64x64, outputs: {{o: {{sink: "tcp:0"}}}}}}
  street: {{url: "{rtsp}", outputs: {{o: {{sink: "tcp:0"}}}}}}
  std: {{url: "pipe:0", outputs: {{o: {{sink: "tcp:0"}}}}}}
{more}
"""
MANY = 20  # cameras that never answer, 1 s each


def check_probe(checks, where, clip):
    with Server(where, clip) as server:
        text = PROBED.format(clip=clip, rtsp=server.url(), more="")
        code, output, errors = run("check", "--probe", "-c", "-", stdin=text)
        rows = dict(re.findall(r"^(\w+) +((?:h264|from).*)$", output, re.M))
        checks.check(code == 0 and not errors, f"probe: exit {code}, {errors!r}")
        checks.check(rows.get("file", "").startswith("h264 320x240 25 fps from a file; larger than `picture`, 64x64"),
                     f"probe: {output}")
        checks.check(re.match(r"h264.* over rtsp/tcp", rows.get("street", "")) and "320x240" in rows["street"],
                     f"probe: {output}")
        checks.check("not opened" in rows.get("std", ""), f"probe: {output}")
        more = f"""
  gone: {{url: {where}/gone.mp4, outputs: {{o: {{sink: "tcp:0"}}}}}}
  refused: {{url: "rtsp://viewer:{SECRET}@127.0.0.1:1/x", outputs: {{o: {{sink: "tcp:0"}}}}}}"""
        text = PROBED.format(clip=clip, rtsp=server.url(), more=more)
        code, output, errors = run("check", "--probe", "-c", "-", stdin=text)
        expected = [r"stdin:7:\d+: cameras\.gone\.url: cannot open .*gone\.mp4: No such file or directory",
                    r"stdin:8:\d+: cameras\.refused\.url: cannot open rtsp://\*\*\*@127\.0\.0\.1:1/x: .*refused"]
        lines = errors.splitlines()
        told = len(lines) == 2 and all(map(re.match, expected, lines))
        checks.check(code == 1 and told and SECRET not in output, f"probe of what is not there: exit {code}, {errors}")


def check_probed_geometry(checks, clip):
    """What fits `picture` and not the camera is a mistake that only a look at the camera shows."""
    text = config(f"url: {clip}", 'sink: "tcp:0", crop: [0, 0, 640, 480]')
    code, _, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 0, f"a crop within `picture`: exit {code}, {errors}")
    code, _, errors = run("check", "--probe", "-c", "-", stdin=text)
    told = f"stdin:{column(text, '[0, 0')}: cameras.gate.outputs.o.crop: reaches beyond the camera's picture of 320x240 ("
    checks.check(code == 78 and errors.startswith(told), f"a crop beyond the camera: exit {code}, {errors}")


def check_probe_is_parallel(checks):
    """Cameras that accept and stay silent cost one deadline, not one each."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(64)
        url = f"rtsp://127.0.0.1:{mute.getsockname()[1]}/x"
        camera = "  c{i}: {{url: '{url}', connect_timeout: 1s, close_timeout: 100ms, outputs: {{o: {{sink: 'tcp:0'}}}}}}\n"
        text = "cameras:\n" + "".join(camera.format(i=i, url=url) for i in range(MANY))
        code, _, errors = run("check", "--probe", "-c", "-", stdin=text, timeout=MANY / 2)
        told = len(re.findall(r"gave no picture within 1 s", errors))
        checks.check(code == 1 and told == MANY, f"silent cameras: exit {code}, {errors}")


def main():
    checks = Checks("check")
    with folder() as where:
        clip = make_clip(os.path.join(where, "clip.mp4"))
        check_mistakes(checks, where)
        check_together(checks)
        check_units_folders(checks)
        check_descriptors(checks, where, clip)
        check_reload(checks, where, clip)
        check_probe(checks, where, clip)
        check_probed_geometry(checks, clip)
        check_probe_is_parallel(checks)
    checks.end()


main()
