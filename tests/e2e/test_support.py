#!/usr/bin/python3
"""`framed support`: the bundle's contents with and without a running daemon, and that it contains no secret from the
configuration, its drop-ins, the environment or the log."""
import base64
import io
import json
import os
import stat
import tarfile
import urllib.parse

from framed_client import BINARY, Checks, Framed, folder, free_port, run, until
import subprocess

SECRETS = {
    "camera": "Zorngiebel:1@/", "parameter": "Plattfisch2", "option": "Optionskarpfen3", "sink": "Senkenaal4",
    "token": "Tokentaube5-0123456", "webhook": "Hakenlachs6", "path": "T0123/B4567/Slackschleie7", "mqtt": "Moskitomast8",
    "default": "Vorgabeforelle9", "drop_in": "Nachtragsneunauge11",
    "argument": "Argumentaal12", "credential": "Vertrauenswels13",
}
CONFIG = """
control: {where}/own.sock
http: unix:{where}/http.sock
http_token: ${{SUPPORT_TOKEN}}
notify:
  webhook: "http://hook:{webhook}@127.0.0.1:{port}/services/{path}"
  command: [/bin/true, --key, {argument}]
  mqtt: {{server: "mqtt://127.0.0.1:{port}", user: framed, password: "{mqtt}"}}
cameras:
  gate:
    url: "rtsp://viewer:{quoted}@127.0.0.1:{port}/stream?password={parameter}"
    outputs:
      o: {{size: 64x64, sink: "unix:{where}/gate.sock"}}
      copy: {{kernel: copy, sink: "rtsp://publisher:{sink}@127.0.0.1:{port}/gate"}}
  yard:
    url: "tcp://127.0.0.1:{port}?user=u&password=${{SUPPORT_YARD}}"
    demuxer: mpegts
    options: {{token: "{option}"}}
    outputs: {{o: {{size: 64x64, sink: "unix:{where}/yard.sock"}}}}
  door:
    url: "rtsp://viewer:${{SUPPORT_NOT_SET:-{default}}}@127.0.0.1:{port}/door"
    outputs: {{o: {{size: 64x64, sink: "unix:{where}/door.sock"}}}}
"""
DROP_IN = """
cameras:
  lane: {{url: "rtsp://viewer:{drop_in}@127.0.0.1:{port}/lane", outputs: {{o: {{size: 64x64, sink: "unix:{where}/lane.sock"}}}}}}
"""
ENVIRONMENT = {"SUPPORT_TOKEN": SECRETS["token"], "SUPPORT_YARD": SECRETS["credential"]}
FILES = {"effective.yaml", "check.txt", "status.json", "metrics.txt", "version.txt", "journal.txt",
         "service.txt", "packages.txt", "kernel.txt", "system.txt", "processors.txt", "memory.txt", "disks.txt", "gpu.txt"}


def forms():
    """Yields name -> a secret as written, as in a URL, and as HTTP sends it."""
    for name, secret in SECRETS.items():
        yield name, secret
        yield f"{name}, quoted", urllib.parse.quote(secret, safe="")
    yield "camera in base64", base64.b64encode(f"viewer:{SECRETS['camera']}".encode()).decode()


def support(where, *arguments):
    """Returns (exit code, the bundle's files by name, the output)."""
    path = f"{where}/bundle.tar.gz"
    environment = {**ENVIRONMENT, "PATH": f"{where}/bin:{os.environ['PATH']}", "TMPDIR": where}
    code, output, errors = run("support", "-c", f"{where}/framed.yaml", "-o", path, *arguments, env=environment)
    if code != 0:
        return code, {}, output + errors
    with open(path, "rb") as file:
        return code, unpacked(file.read()), output + errors


def unpacked(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {os.path.basename(member.name): archive.extractfile(member).read().decode(errors="replace")
                for member in archive if member.isfile()}


def check_no_secret(checks, texts, what):
    for name, secret in forms():
        found = [file for file, text in texts.items() if secret.lower() in text.lower()]
        checks.check(not found, f"{what}: the secret of {name} is in {found}")


def check_running(checks, where, framed):
    code, files, said = support(where)
    checks.check(code == 0, said)
    checks.check(FILES <= set(files), f"not there: {FILES - set(files)}")
    told = json.loads(files["status.json"])
    checks.check([camera["name"] for camera in told["cameras"]] == ["gate", "yard", "door", "lane"], f"{told['cameras']}")
    checks.check('framed_camera_up{camera="gate"} 0' in files["metrics.txt"], files["metrics.txt"][:500])
    checks.check(files["check.txt"] == "no mistakes\n" and "  yard:\n" in files["effective.yaml"] and "  lane:\n" in files["effective.yaml"], files["check.txt"])
    checks.check("camera=gate" in files["journal.txt"], files["journal.txt"])
    checks.check(stat.S_IMODE(os.stat(f"{where}/bundle.tar.gz").st_mode) == 0o600, "everybody can read it")
    checks.check(not [name for name in os.listdir(where) if name.startswith("framed-support.")], os.listdir(where))
    check_no_secret(checks, {**files, "what it printed": said}, "a daemon that runs")


def check_alone(checks, where):
    """Without a daemon, and with a configuration that has mistakes, even invalid YAML."""
    text = open(f"{where}/framed.yaml").read()
    for what, broken in (("no daemon", text), ("a mistake", text.replace("http:", "htpt:")),
                         ("no YAML", text + "\n  - {[\n"), ("an empty file", "")):
        with open(f"{where}/framed.yaml", "w") as file:
            file.write(broken)
        code, files, said = support(where)
        checks.check(code == 0 and files["status.json"] == "no daemon answers\n", f"{what}: {said}")
        checks.check((files["check.txt"] == "no mistakes\n") == (what in ("no daemon", "an empty file")), f"{what}: {files['check.txt']}")
        checks.check(("effective.yaml" in files) == (files["check.txt"] == "no mistakes\n"), f"{what}: {set(files)}")
        if what != "an empty file":  # which says nothing about secrets that an older one left in the log
            check_no_secret(checks, {**files, "what it printed": said}, what)
    os.unlink(f"{where}/framed.yaml")
    code, files, said = support(where)
    checks.check(code == 0 and "No such file or directory" in files["check.txt"], f"no file: {said}")


def check_output(checks, where):
    done = subprocess.run([BINARY, "support", "-c", f"{where}/framed.yaml", "-o", "-"], capture_output=True, timeout=60)
    checks.check(done.returncode == 0 and "version.txt" in unpacked(done.stdout), done.stderr)
    code, _, errors = run("support", "-c", f"{where}/framed.yaml", "-o", f"{where}/nowhere/x.tar.gz")
    checks.check(code == 1 and "nowhere/x.tar.gz: No such file" in errors, errors)


def main():
    checks = Checks("support")
    with folder() as where:
        values = {"where": where, "port": free_port(), "quoted": urllib.parse.quote(SECRETS["camera"], safe=""), **SECRETS}
        os.makedirs(f"{where}/bin")
        os.makedirs(f"{where}/framed.d")
        with open(f"{where}/framed.d/lane.yaml", "w") as file:
            file.write(DROP_IN.format(**values))
        with open(f"{where}/bin/journalctl", "w") as file:  # the log also has other programs' lines, which hide nothing
            file.write("#!/bin/sh\ncat <<'END'\nerror camera=gate it says:\n"
                       + "".join(f"{name}: {secret}\n" for name, secret in forms()) + "END\n")
        os.chmod(file.name, 0o755)
        with Framed(where, CONFIG.format(**values), ENVIRONMENT) as framed:
            until(lambda: "camera=lane" in framed.errors() and os.path.exists(f"{where}/own.sock"), 10)
            check_running(checks, where, framed)
            check_no_secret(checks, {"the log": framed.errors()}, "the daemon")
            framed.stop()
        check_alone(checks, where)
        check_output(checks, where)
    checks.end()


main()
