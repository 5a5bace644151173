#!/usr/bin/python3
"""The systemd units are valid, are as tight as claimed with and without a GPU, and forbid no system call that framed makes in
a run with all its features."""
import os
import re
import shutil
import signal
import subprocess

from framed_client import BINARY, SANITIZED, Checks, Framed, Reader, Server, folder, free_port, make_clip, until

UNITS = os.path.join(os.path.dirname(BINARY), "systemd")
LIMITS = {(): 1.4, ("gpu.conf",): 1.6, ("decoders.conf",): 1.6, ("gpu.conf", "groups.conf"): 2.0}  # of the exposure score, with these drop-ins
# Calls that may be refused: libnuma, which libx265 loads, probes what is possible.
TRIED_ONLY = {"set_mempolicy"}
# glibc queries the machine's addresses before it sorts those of a name, and works without.
TRIED_FAMILIES = {"AF_NETLINK"}
CONFIG = """
backend: cpu
cpu: {{pin: auto}}
cameras:
  gate:
    url: {where}/clip.mp4
    loop: true
    pace: realtime
    outputs:
      local: {{size: 64x64, group: {group}, sink: "unix:{where}/local.sock"}}
      shared: {{size: 64x64, sink: "ring:{where}/shared.ring"}}
      remote: {{kernel: yuv, protocol: y4m, sink: "tcp:127.0.0.1:{port}"}}
      parts: {{kernel: yuv, segment: 1s, sink: "file:{where}/parts-%H%M%S.y4m"}}
      whole: {{size: 64x64, sink: "file:{where}/whole.npy"}}
  street:
    url: {rtsp}
    outputs: {{a: {{size: 64x64, sink: "unix:{where}/street.sock"}}}}
  lane:
    url: {rtsp}
    transport: udp
    outputs: {{a: {{size: 64x64, sink: "unix:{where}/lane.sock"}}}}
  away:
    url: rtsp://framed.invalid/stream
    connect_timeout: 1s
    outputs: {{a: {{sink: "tcp:0"}}}}
"""


def analyze(*arguments, **options):
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


def text_of(unit):
    with open(os.path.join(UNITS, unit)) as file:
        return file.read()


def settings(unit, key):
    return re.findall(rf"^{key}=(.*)$", text_of(unit), re.M)


def lay_out(where, drop_ins=()):
    """Makes a root folder with the units, these drop-ins and a program at the expected path."""
    units = f"{where}/root/usr/lib/systemd/system"
    shutil.rmtree(f"{where}/root", ignore_errors=True)
    for unit in ("framed.service", "framed@.service"):
        os.makedirs(f"{units}/{unit}.d")
        for name in drop_ins:
            shutil.copy(os.path.join(UNITS, name), f"{units}/{unit}.d/{name}")
        with open(f"{units}/{unit}", "w") as file:
            file.write(re.sub(r"(?<=^ExecStart=)\S+", BINARY, text_of(unit), flags=re.M))
    return units


def check_valid(checks, where):
    for drop_ins in LIMITS:
        units = lay_out(where, drop_ins)
        for unit in ("framed.service", "framed@gate.service"):
            code, said = analyze("verify", "--man=no", unit, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"})
            said = [line for line in said.splitlines() if "framed" in line]  # without messages about other units
            checks.check(code == 0 and not said, f"verify {unit} {drop_ins}: {code} {said}")


def check_exposure(checks, where):
    for drop_ins, limit in LIMITS.items():
        lay_out(where, drop_ins)
        for unit in ("framed.service", "framed@.service"):
            _, said = analyze(f"--root={where}/root", "security", "--offline=true", "--no-pager", unit)
            score = re.search(r"Overall exposure level for .*: ([\d.]+)", said)
            print(f"{unit} {' '.join(drop_ins)}: exposure {score and score[1]}, limit {limit}")
            checks.check(score and float(score[1]) <= limit, f"{unit} {drop_ins}: {said}")


def check_reasons(checks):
    """A drop-in has a reason before each of its lines."""
    for drop_in in ("gpu.conf", "groups.conf", "decoders.conf"):
        said = False
        for line in text_of(drop_in).partition("[Service]")[2].strip().splitlines():
            said = said and not line.startswith("#") and "=" in line or line.startswith("#")
            checks.check(said, f"{drop_in}: {line}: no reason")


def check_instance(checks):
    """framed@.service is framed.service with its own names."""
    pairs = zip(text_of("framed.service").splitlines(), text_of("framed@.service").splitlines(), strict=True)
    changed = [new for old, new in pairs if new != old]
    expected = ["Description=", "ExecStart=", "RuntimeDirectory=framed-%i", "StateDirectory=framed-%i",
                "ReadWritePaths=-/etc/framed/%i.d"]
    alike = len(changed) == len(expected) and all(new.startswith(old) for new, old in zip(changed, expected))
    checks.check(alike and "/etc/framed/%i.yaml" in changed[1], f"framed@.service: {changed}")


def check_secrets(checks):
    """No core dump, which would contain every password; and clients' groups are visible."""
    for unit in ("framed.service", "framed@.service"):
        checks.check(settings(unit, "LimitCORE") == ["0"], f"{unit}: LimitCORE={settings(unit, 'LimitCORE')}")
        checks.check(not settings(unit, "PrivateUsers"), f"{unit} hides the groups of clients")


def members(name):
    """Returns all system calls of a set, or the call itself."""
    if not name.startswith("@"):
        return {name}
    listed = re.findall(r"^    ([@\w-]+)$", analyze("syscall-filter", "--no-pager", name)[1], re.M)
    return set().union(*(members(one) for one in listed))


def allowed_calls(unit):
    allowed = set()
    for line in settings(unit, "SystemCallFilter"):
        named = set().union(*(members(one) for one in line.lstrip("~").split()))
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


class Traced(Framed):
    """A `framed run` under strace."""

    def __init__(self, where, config):
        super().__init__(where, config)
        self.trace = f"{where}/trace"
        # -D: the child is framed itself; the tracer ends a moment later.
        self.arguments = ["strace", "-D", "-f", "-s", "0", "-o", self.trace, *self.arguments]

    def read(self):
        with open(self.trace) as file:
            return file.read()

    def calls(self):
        """Returns (name, rest of the line) of each call."""
        until(lambda: f"\n{self.child.pid} +++ exited" in self.read(), 10)
        return re.findall(r"^\d+ +(\w+)\((.*)$", self.read(), re.M)


def record(checks, where, server):
    group = subprocess.run(["id", "-gn"], capture_output=True, text=True, check=True).stdout.strip()
    rtsp = server.url().replace("127.0.0.1", "localhost")
    config = CONFIG.format(where=where, group=group, port=free_port(), rtsp=rtsp)
    with Traced(where, config) as framed:
        readers = [Reader(address) for address in (f"unix:{where}/local.sock", f"ring:{where}/shared.ring",
                                                   f"unix:{where}/street.sock", f"unix:{where}/lane.sock")]
        seen = until(lambda: all(reader.count > 30 for reader in readers), 30)
        checks.check(seen, f"frames: {[reader.count for reader in readers]}\n{framed.errors()}")
        checks.check(until(lambda: "away" in framed.errors(), 10), framed.errors())
        framed.live_metrics()
        framed.child.send_signal(signal.SIGHUP)
        checks.check(until(lambda: "reloaded" in framed.errors(), 10), framed.errors())
        checks.check(framed.stop() == 0, framed.errors())
        return framed.calls()


def check_calls(checks, where):
    with Server(where, f"{where}/clip.mp4") as server:
        calls = record(checks, where, server)
    used = {name for name, _ in calls}
    allowed = allowed_calls("framed.service")
    checks.check({"memfd_create", "sched_setaffinity", "sendmsg", "flock"} <= used, f"the run is too small: {used}")
    checks.check(used <= allowed | TRIED_ONLY, f"framed.service forbids {sorted(used - allowed - TRIED_ONLY)}")
    checks.check("ptrace" not in allowed and "mount" not in allowed, "framed.service allows everything")
    families = {match[0] for name, rest in calls if name == "socket" and (match := re.match(r"AF_\w+", rest))}
    may = set(" ".join(settings("framed.service", "RestrictAddressFamilies")).split())
    checks.check({"AF_UNIX", "AF_INET"} <= families <= may | TRIED_FAMILIES, f"families {families}, allowed {may}")
    code = [f"{name}({rest}" for name, rest in calls if
            name in ("mmap", "mprotect") and "PROT_EXEC" in rest and ("PROT_WRITE" in rest or name == "mprotect")]
    checks.check(not code, f"memory that is written and run: {code[:3]}")


def main():
    checks = Checks("unit")
    with folder() as where:
        make_clip(f"{where}/clip.mp4")
        check_valid(checks, where)
        check_exposure(checks, where)
        check_reasons(checks)
        check_instance(checks)
        check_secrets(checks)
        if SANITIZED:
            checks.skip("the system calls: a sanitizer does what framed never does")
        else:
            check_calls(checks, where)
    checks.end()


main()
