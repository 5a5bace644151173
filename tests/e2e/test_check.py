#!/usr/bin/python3
"""`framed check` reports every mistake that can be found without a camera, each with its position; `--probe` adds mistakes that need the camera."""
import os
import re
import socket
import subprocess

from framed_client import BINARY, ROOT, Checks, Framed, Server, folder, make_clip, run, until

SECRET = "Tr0ub4dor-horse"
GATE = "cameras:\n  gate: {{{camera}, outputs: {{o: {{{output}}}}}}}\n"


def config(camera="url: x.mp4", output='sink: "tcp:0"', top=""):
    return GATE.format(camera=camera, output=output) + top


def column(text, word):
    """Returns line:column of a word."""
    before = text[: text.index(word)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


# Configuration, word at the reported position, key, start of the message.
MISTAKES = [
    (config("url: x.nut, demuxer: nutt"), "nutt", "cameras.gate.demuxer", "is not a demuxer of libavformat ("),
    (config("url: x.nut, demuxer: nut, options: {frob: 1}"), "frob", "cameras.gate.options.frob",
     "is not an option of the demuxer or the protocol ("),
    (config("url: x.nut, options: {frob: 1}"), "frob", "cameras.gate.options.frob", "is not an option of any demuxer or protocol "),
    (config(output='sink: "unix:/tmp/s", group: no-such-group'), "no-such-group", "cameras.gate.outputs.o.group",
     'there is no group "no-such-group" on this machine ('),
    (config(output='sink: "unix:/no/such/s"'), '"unix:/no', "cameras.gate.outputs.o.sink", "its folder /no/such: No such"),
    (config(output='sink: "ring:/no/such/s"'), '"ring:/no', "cameras.gate.outputs.o.sink", "its folder /no/such: No such"),
    (config(output='sink: "file:/no/such/%H%M%S.raw"'), '"file:/no', "cameras.gate.outputs.o.sink",
     "its folder /no/such: No such"),
    (config(output='sink: "unix:/etc/passwd/s"'), '"unix:', "cameras.gate.outputs.o.sink", "/etc/passwd is not a folder ("),
    (config(output='sink: "unix:/etc/passwd"'), '"unix:', "cameras.gate.outputs.o.sink",
     "/etc/passwd exists and is not a socket ("),
    (config(output='sink: "file:/tmp/..", protocol: raw'), '"file:', "cameras.gate.outputs.o.sink",
     "/tmp/.. exists and is not a file ("),
    (config(top="control: /no/such/control.sock\n"), "/no/such/c", "control", "its folder /no/such: No such"),
    (config(top="http: unix:/no/such/http\n"), "unix:/no", "http", "its folder /no/such: No such"),
    (config("url: x, picture: 64x64", 'sink: "tcp:0", crop: [60, 0, 8, 8]'), "[60", "cameras.gate.outputs.o.crop",
     "reaches beyond `picture` of 64x64 ("),
    (config("url: x, picture: 640x480", 'sink: "tcp:0", size: 4000x10'), "4000x10", "cameras.gate.outputs.o.size",
     "places output pixels more than 32764 pixels away from the first pixel of `picture` of 640x480 ("),
    (config(output='sink: "tcp:0", size: 4000x10, affine: [0.1, 0, 0, 0, 1, 0]'), "[0.1", "cameras.gate.outputs.o.affine",
     "places output pixels more than 32764 pixels away from the source's first pixel ("),
    (config("url: x, picture: 64x64, rois: {in: [0, 0, 8, 8], out: [60, 0, 8, 8]}", 'sink: "tcp:0", roi: out'), "out}",
     "cameras.gate.outputs.o.roi", "region out reaches beyond `picture` of 64x64 ("),
    (config("url: x, picture: 64x64, rois: {in: [0, 0, 8, 8], out: [60, 0, 8, 8]}", top='batches: {b: {cameras: gate, roi: all, sink: "tcp:0"}}\n'),
     "all,", "cameras.gate.outputs.b.roi", "region out reaches beyond `picture` of 64x64 ("),
    (config("url: x, picture: 640x640", top='batches: {b: {cameras: gate, tiles: {size: 64}, sink: "tcp:0"}}\n'), "64}, s",
     "cameras.gate.outputs.b.tiles.size", "cuts `picture` of 640x640 into more than 64 parts ("),
    (config(top='batches: {b: {cameras: gate, sink: "unix:/no/such/b"}}\n'), '"unix:/no', "batches.b.sink", "its folder /no/such: No such"),
    (config(top='batches: {b: {cameras: gate, sink: "unix:/tmp/b", group: no-such-group}}\n'), "no-such-group", "batches.b.group",
     'there is no group "no-such-group" on this machine ('),
    (config(top="cpu: {pin: '1000-1023'}\n"), "'1000", "cpu.pin", "this process may use none of 1000-1023 ("),
    (config("url: 'pipe:77'"), "'pipe:77", "cameras.gate.url", "framed was started without a readable descriptor 77 "),
]
# Accepted by a run, although similar to some of these.
GOOD = [
    config("url: x.nut, options: {blocksize: 4096, probesize: 5000, rw_timeout: 1}"),
    config("url: x.raw, demuxer: rawvideo, options: {video_size: 64x64, pixel_format: bgra, blocksize: 4096}"),
    config("url: 'tcp://127.0.0.1:5', options: {listen_timeout: 5, video_size: 64x64}"),
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


# Mistakes between two cameras or outputs.
PAIRS = [
    ("  b: {{url: 'pipe:0', outputs: {{o: {{sink: 'tcp:0'}}}}}}\n  c: {{url: 'PIPE:', outputs: {{o: {{sink: 'tcp:0'}}}}}}\n",
     "cameras.c.url: is already read by cameras.b: pipe:0 ("),
    ("  b: {{url: x, outputs: {{o: {{sink: 'unix:{where}/s'}}}}}}\n  c: {{url: x, outputs: {{o: {{sink: 'unix:{where}/./s'}}}}}}\n",
     "cameras.c.outputs.o.sink: is already the sink of cameras.b.outputs.o ("),
    ("  b: {{url: x, outputs: {{o: {{sink: 'unix:{where}/s'}}}}}}\n  c: {{url: x, outputs: {{o: {{sink: 'unix:{where}/link/s'}}}}}}\n",
     "cameras.c.outputs.o.sink: is already the sink of cameras.b.outputs.o ("),
    ("  b: {{url: x, outputs: {{o: {{sink: 'unix:/run/s'}}}}}}\n  c: {{url: x, outputs: {{o: {{sink: 'ring:/run//./s'}}}}}}\n",
     "cameras.c.outputs.o.sink: is already the sink of cameras.b.outputs.o ("),
]


def check_pairs(checks, where):
    os.symlink(where, f"{where}/link")
    for cameras, message in PAIRS:
        code, _, errors = run("check", "-c", "-", stdin="cameras:\n" + cameras.format(where=where))
        told = re.match(r"stdin:3:\d+: (.*)\n$", errors)
        checks.check(code == 78 and told and told[1].startswith(message), f"{cameras}: exit {code}, {errors!r}")
    os.unlink(f"{where}/link")


UNKNOWN = """
http: 127.0.0.1:0
http_token: ${{HTTP_TOKEN}}
cameras:
  gate:
    url: rtsp://viewer:${{GATE_PASSWORD}}@127.0.0.1:1/x
    fps: ${{GATE_FPS}}
    outputs: {{o: {{sink: "${{GATE_SINK}}", size: "${{GATE_SIZE:-64x64}}"}}}}
{more}"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def check_credentials(checks, where):
    """Credentials that only the unit can read count as set, in every key; check reports them in one line."""
    units = f"{where}/units"
    write(f"{units}/framed.service", "[Service]\nLoadCredential=GATE_PASSWORD:/etc/framed/credentials/gate\n")
    write(f"{units}/framed.service.d/more.conf",
          "[Service]\nLoadCredentialEncrypted=HTTP_TOKEN\n  SetCredential=GATE_SINK:unix:/x\nLoadCredential=GATE_FPS\n"
          "SetCredential=GATE_SIZE:8x8\n#LoadCredential=GONE:/x\n")
    write(f"{units}/framed@.service", "[Service]\nLoadCredential=GATE_PASSWORD:/x\n")
    path, env = f"{where}/framed.yaml", {"SYSTEMD_UNIT_PATH": units}
    write(path, UNKNOWN.format(more=""))
    code, output, errors = run("check", "-c", path, env=env)
    said = output.splitlines()[0] if output else ""
    expected = "credentials that only framed.service can read count as set: "
    named = set(said.removeprefix(expected).split(", "))
    everything = {"GATE_PASSWORD", "HTTP_TOKEN", "GATE_SINK", "GATE_FPS", "GATE_SIZE"}
    checks.check(code == 0 and not errors and said.startswith(expected) and named == everything,
                 f"credentials of the unit: exit {code}, {said!r}, {errors!r}")
    write(path, UNKNOWN.format(more="    pace: ${GONE}\n"))
    code, _, errors = run("check", "-c", path, env=env)
    told = f"{path}:{column(UNKNOWN.format(more='    pace: ${GONE}'), '${GONE}')}: cameras.gate.pace: GONE is not set ("
    checks.check(code == 78 and errors.startswith(told) and errors.count("\n") == 1, f"one that is not set: {errors}")
    code, _, errors = run("run", "-c", path, env=env)
    checks.check(code == 78 and "GATE_PASSWORD is not set" in errors, f"run takes what it does not have: {code}, {errors}")
    yard = f"{where}/yard.yaml"
    write(yard, config("url: 'rtsp://u:${GATE_PASSWORD}@127.0.0.1/x'"))
    code, output, errors = run("check", "-c", yard, env=env)
    told = output.startswith("credentials that only framed@yard.service can read count as set: GATE_PASSWORD\n")
    checks.check(code == 0 and told, f"an instance: exit {code}, {output!r}, {errors!r}")
    code, output, errors = run("check", "--probe", "-c", yard, env=env)
    checks.check(code == 0 and "gate                     not opened" in output, f"probe without the password: {output}{errors}")
    code, _, errors = run("check", "-c", yard, env={"SYSTEMD_UNIT_PATH": f"{where}/none"})
    checks.check(code == 78 and "GATE_PASSWORD is not set" in errors, f"no unit at all: exit {code}, {errors}")


OPEN = [  # keys with secrets in the file itself, for a camera and for the top level
    ("url: 'rtsp://viewer:hunter2@127.0.0.1:1/x'", ""),
    ("url: 'rtsp://viewer:${PASSWORD:-hunter2}@127.0.0.1:1/x'", ""),
    ("url: 'rtsp://127.0.0.1:1/x?password=hunter2'", ""),
    ("url: x, options: {decryption_key: hunter2}", ""),
    ("url: x", "http_token: sixteen-and-more-of-hunter2\n"),
]
CLOSED = [
    ("url: 'rtsp://viewer:${PASSWORD}@127.0.0.1:1/x'", "http_token: ${TOKEN}\n"),
    ("url: 'rtsp://viewer@127.0.0.1:1/x'", ""),
    ("url: x, options: {decryption_key: '${PASSWORD}'}", ""),
]


def check_readers(checks, where, clip):
    """A secret in a world-readable file is a warning, not a mistake."""
    path, env = f"{where}/open.yaml", {"PASSWORD": SECRET, "TOKEN": SECRET * 2}
    for cases, mode, expected in ((OPEN, 0o644, 1), (OPEN, 0o640, 0), (CLOSED, 0o644, 0)):
        for camera, top in cases:
            write(path, config(camera, top=top))
            os.chmod(path, mode)
            code, _, errors = run("check", "-c", path, env=env)
            warnings = len(re.findall(rf"^warning: {path}:\d+:\d+: everybody on this machine can read", errors, re.M))
            checks.check(code == 0 and warnings == expected and "hunter2" not in errors,
                         f"{camera} {top} {mode:o}: exit {code}, {errors!r}")
    write(path, config(f"url: {clip}", f'size: 8x8, sink: "file:{where}/o.raw"', OPEN[-1][1]))
    os.chmod(path, 0o644)
    code, _, errors = run("run", "-c", path)
    checks.check(code == 0 and "everybody on this machine can read this secret" in errors, f"run: exit {code}, {errors!r}")
    os.chmod(path, 0o600)
    code, _, errors = run("run", "-c", path)
    checks.check(code == 0 and "everybody" not in errors, f"run of a closed file: exit {code}, {errors!r}")


def check_words(checks, where, clip):
    """false means off, and URL schemes are case-insensitive."""
    with Server(where, clip) as server:
        text = config(f"url: '{server.url().replace('rtsp:', 'RTSP:')}'", top="http: false\ncontrol: false\n")
        code, output, errors = run("check", "--probe", "-c", "-", stdin=text)
        checks.check(code == 0 and "over rtsp/tcp" in output and not errors, f"RTSP://: exit {code}, {output}{errors}")
    for url in (f"FILE:{clip}", f"File:{clip}"):
        code, output, errors = run("check", "--probe", "-c", "-", stdin=config(f"url: '{url}'"))
        checks.check(code == 0 and "from a file" in output, f"{url}: exit {code}, {output}{errors}")
    for command in ("defaults", "schema", "keys", "version", "--help"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, command], stdout=full, stderr=subprocess.PIPE, text=True)
        told = f"framed {command}: cannot write to standard output: No space left on device\n"
        checks.check(done.returncode == 1 and done.stderr == told, f"{command} to a full disk: {done}")


def check_package(checks, where):
    """Owners and modes set by earlier packages change, so that only root and the service can read; an administrator's choice stays. All
    configurations and drop-in folders are handled, not only the first."""
    script = os.path.join(ROOT, "scripts", "debian", "framed.postinst")
    for name, body in (("stat", 'case $3 in *.d) echo $FOLDER;; *) echo "$FILE";; esac'),
                       ("chown", 'echo chown "$@" >>$LOG'), ("chmod", 'echo chmod "$@" >>$LOG'),
                       ("install", 'echo install "$@" >>$LOG')):
        write(f"{where}/bin/{name}", f"#!/bin/sh\n{body}\n")
        os.chmod(f"{where}/bin/{name}", 0o755)
    etc = f"{where}/root/etc/framed"
    write(f"{etc}/framed.yaml", "")
    write(f"{etc}/yard.yaml", "")
    ours = "".join(f"chmod 600 {etc}/{name}.yaml\nchown framed:framed {etc}/{name}.yaml\n" for name in ("framed", "yard"))
    made, closed = f"install -d -o framed -g framed -m 700 {etc}/framed.d\n", f"chmod 700 {etc}/framed.d\n"
    own, others = ("root:framed 640", "root:root 640", "root:root 644"), ("root:staff 644", "root:root 600", "root:framed 644",
                                                                           "root:staff 640", "framed:framed 640")
    cases = [(file, "", ours * (file in own) + made) for file in own + others]
    cases += [(file, folder, ours * (file in own) + closed * (folder == "framed:framed 750"))
              for file in (own[0], others[0]) for folder in ("framed:framed 750", "root:framed 750", "framed:framed 755")]
    for file, folder, expected in cases:
        if folder:
            os.makedirs(f"{etc}/framed.d", exist_ok=True)
        log = f"{where}/postinst.log"
        write(log, "")
        env = {**os.environ, "PATH": f"{where}/bin:{os.environ['PATH']}", "DPKG_ROOT": f"{where}/root",
               "FILE": file, "FOLDER": folder, "LOG": log}
        code = subprocess.run(["sh", script, "configure", ""], env=env).returncode
        with open(log) as log:
            said = log.read()
        checks.check(code == 0 and said == expected, f"postinst on {file}, {folder}: exit {code}, {said!r}, not {expected!r}")


def check_batches(checks):
    """check lists the members of a batch, which the file does not name, and does not count them as outputs."""
    text = """cameras:
  gate: {url: 'tcp://127.0.0.1:1'}
  gate2: {url: 'tcp://127.0.0.1:1', outputs: {o: {sink: 'tcp:0'}}}
  yard-1: {url: 'tcp://127.0.0.1:1'}
  yard-9: {url: 'tcp://127.0.0.1:1', outputs: {o: {sink: 'tcp:0'}}}
batches:
  b: {cameras: ["gate*", "yard-?", "!yard-9"], count: 16, sink: "tcp:0"}
"""
    code, out, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 0 and "good: 4 cameras, 2 outputs, 1 batch\nbatch b, 16 elements: gate gate2 yard-1\n" in out, f"batches: {code}, {out}, {errors}")


def check_together(checks):
    """Mistakes of the text and of the machine come in one run, in the order of their positions."""
    text = config("url: x, speed: 3, demuxer: nutt", 'sink: "unix:/no/such/s", slots: 1000', "cpu: {pin: '1000'}\n")
    code, _, errors = run("check", "-c", "-", stdin=text)
    keys = re.findall(r"^stdin:\d+:\d+: (\S+): ", errors, re.M)
    expected = ["cameras.gate.speed", "cameras.gate.demuxer", "cameras.gate.outputs.o.sink",
                "cameras.gate.outputs.o.slots", "cpu.pin"]
    checks.check(code == 78 and keys == expected, f"together: exit {code}, {errors}")


def check_units_folders(checks):
    """The unit creates its folders when it starts: until then they count as existing, and check says so once."""
    text = config(output='sink: "unix:/run/framed-none/s"')
    twice = config(output='sink: "unix:/run/framed-none/s"}, p: {sink: "unix:/var/lib/framed-none/s"}, '
                          'q: {sink: "unix:/run/framed-none/t"')
    code, output, errors = run("check", "-c", "-", stdin=twice)
    said = output.count("/run/framed-none does not exist yet: the unit makes it when it starts\n")
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
    """`pipe:N` reads an inherited descriptor, never one that framed opened itself; its signal pipe is among the first of those."""
    path = f"{where}/pipe.yaml"
    for n in range(3, 24):
        with open(path, "w") as file:
            file.write(PIPE.format(url=f"pipe:{n}", where=where, clip=clip))
        for command in ("check", "run"):
            try:
                code, _, errors = run(command, "-c", path, timeout=3)
            except subprocess.TimeoutExpired:
                code, errors = None, "it runs"
            told = errors.startswith(f"{path}:3:14: cameras.std.url: framed was started without a readable descriptor {n} ")
            if not checks.check(code == 78 and told, f"{command} with pipe:{n}: exit {code}, {errors!r}"):
                return
    with open(clip, "rb") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        with open(path, "w") as file:
            file.write(PIPE.format(url=f"pipe:{inherited.fileno()}", where=where, clip=clip))
        done = subprocess.run([BINARY, "check", "-c", path], pass_fds=[inherited.fileno()], capture_output=True, text=True)
        checks.check(done.returncode == 0, f"check with a descriptor that is inherited: {done}")


def check_reload(checks, where, clip):
    """A reload that adds `pipe:N` is refused, and SIGTERM still ends framed."""
    text = PIPE.format(url=clip, where=where, clip=clip)
    with Framed(where, text) as framed:
        checks.check(until(lambda: os.path.exists(f"{where}/control.sock"), 10), framed.errors())
        with open(framed.config, "w") as file:
            file.write(text.replace(f'url: "{clip}"', 'url: "pipe:7"'))
        code, _, errors = run("reload", "-c", framed.config, env={"RUNTIME_DIRECTORY": where})
        told = "cameras.std.url: framed was started without a readable descriptor 7 " in errors
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
        planned = dict(re.findall(r"^(\w+) +(\d+x\d+\*?) +[\d.]+$", output, re.M))
        checks.check(planned == {"file": "320x240", "street": "320x240", "std": "1920x1080*"}, f"probe plans: {output}")
        more = f"""
  gone: {{url: {where}/gone.mp4, outputs: {{o: {{sink: "tcp:0"}}}}}}
  refused: {{url: "rtsp://viewer:{SECRET}@127.0.0.1:1/x", outputs: {{o: {{sink: "tcp:0"}}}}}}"""
        text = PROBED.format(clip=clip, rtsp=server.url(), more=more)
        code, output, errors = run("check", "--probe", "-c", "-", stdin=text)
        expected = [r"stdin:7:\d+: cameras\.gone\.url: cannot open .*gone\.mp4: No such file or directory",
                    r"stdin:8:\d+: cameras\.refused\.url: cannot open rtsp://127\.0\.0\.1:1/x: .*refused"]
        lines = errors.splitlines()
        told = len(lines) == 2 and all(map(re.match, expected, lines))
        checks.check(code == 1 and told and SECRET not in output, f"probe of what is not there: exit {code}, {errors}")


# For the assumed size of 1920x1080, which need not be the camera's: keys, word at the position, key and message of the warning.
DOUBTFUL = [
    ("crop: [0, 0, 3840, 2160]", "[0, 0", "crop", "reaches beyond the assumed picture of 1920x1080 ("),
    ("size: 640x10", "640x10", "size", "places output pixels more than 32764 pixels away from the first pixel of the assumed "),
]


def check_auto_geometry(checks, clip):
    """Without `picture`, the assumed size makes no geometry a mistake."""
    for keys, word, key, message in DOUBTFUL:
        text = config("url: 'rtsp://127.0.0.1:1/x'", f'sink: "tcp:0", {keys}')
        code, output, errors = run("check", "-c", "-", stdin=text)
        told = f"warning: stdin:{column(text, word)}: cameras.gate.outputs.o.{key}: {message}"
        checks.check(code == 0 and "good" in output and errors.startswith(told) and errors.count("\n") == 1,
                     f"{keys} of an unknown camera: exit {code}, {errors}")
        code, _, errors = run("check", "--probe", "-c", "-", stdin=text)
        checks.check(code == 1 and "warning" not in errors, f"{keys} of a camera that was asked: exit {code}, {errors}")
    text = config(f"url: {clip}", 'sink: "tcp:0", crop: [0, 0, 640, 480]')
    code, _, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 0 and not errors, f"a crop beyond a file that nobody opened: exit {code}, {errors}")
    code, _, errors = run("check", "--probe", "-c", "-", stdin=text)
    told = f"stdin:{column(text, '[0, 0')}: cameras.gate.outputs.o.crop: reaches beyond the camera's picture of 320x240 ("
    checks.check(code == 78 and errors.startswith(told), f"a crop beyond a file: exit {code}, {errors}")


def check_probed_geometry(checks, clip):
    """Geometry that fits `picture` but not the camera is a mistake that only `--probe` can find."""
    text = config(f"url: {clip}, picture: 640x480", 'sink: "tcp:0", crop: [0, 0, 640, 480]')
    code, _, errors = run("check", "-c", "-", stdin=text)
    checks.check(code == 0 and not errors, f"a crop within `picture`: exit {code}, {errors}")
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
        check_pairs(checks, where)
        check_batches(checks)
        check_together(checks)
        check_credentials(checks, where)
        check_readers(checks, where, clip)
        check_words(checks, where, clip)
        check_package(checks, where)
        check_units_folders(checks)
        check_descriptors(checks, where, clip)
        check_reload(checks, where, clip)
        check_probe(checks, where, clip)
        check_auto_geometry(checks, clip)
        check_probed_geometry(checks, clip)
        check_probe_is_parallel(checks)
    checks.end()


main()
