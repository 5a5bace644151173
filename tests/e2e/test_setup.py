#!/usr/bin/python3
"""Runs scripts/setup with a fake apt-get in a fake Debian: which services the packages' scripts start and enable, and
what remains after a kill."""
import os
import signal
import subprocess

from framed_client import ROOT, Checks, folder, until

# An apt-get that runs the commands of maintainer scripts, with dpkg's path.
APT = """#!/bin/sh
[ "$1 $2" = "-q -y" ] || exit 100
for word; do case $word in DPkg::Path=*) path=${word#DPkg::Path=} ;; esac; done
export PATH="${path%%:*}:$FAKES:/usr/bin:/bin"
sh -e "$SCRIPT"
echo done >>"$LOG"
[ -z "$HANGS" ] || sleep 30
"""
RECORDER = '#!/bin/sh\necho "${0##*/} $*" >>"$LOG"\n'
SERVICES = "#!/bin/sh\necho ' [ + ]  nginx'\necho ' [ - ]  cron'\n"
# Commands of a maintainer script, and the command that is passed on for each; None: unchanged.
SCRIPT = {
    "deb-systemd-invoke start mosquitto.service": "",
    "deb-systemd-invoke restart nginx.service": None,
    "deb-systemd-invoke restart nginx": None,
    "deb-systemd-invoke --no-dbus start mosquitto.service nginx.service": "deb-systemd-invoke --no-dbus start nginx.service",
    "deb-systemd-invoke try-restart etcd.service": "",
    "deb-systemd-invoke start mosquitto.socket": "",
    "deb-systemd-invoke stop mosquitto.service": None,
    "deb-systemd-invoke daemon-reload": None,
    "invoke-rc.d mosquitto start": "",
    "invoke-rc.d --skip-systemd-native cron restart": "",
    "invoke-rc.d --skip-systemd-native nginx restart": None,
    "invoke-rc.d mosquitto stop": None,
    "deb-systemd-helper enable mosquitto.service": "deb-systemd-helper update-state mosquitto.service",
    "deb-systemd-helper --quiet was-enabled mosquitto.service": None,
    "deb-systemd-helper unmask mosquitto.service": None,
    "deb-systemd-helper --user enable a.service": None,
    "deb-systemd-helper enable apt-daily.timer": None,
}


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)


class Debian:
    """A Debian without any package."""

    def __init__(self, where):
        self.where = where
        os.mkdir(f"{where}/fakes")
        os.mkdir(f"{where}/tmp")
        os.mkdir(f"{where}/sbin")
        for name, text in (("dpkg-query", "#!/bin/sh\n"), ("apt-get", APT), ("sudo", '#!/bin/sh\nexec "$@"\n'), ("service", SERVICES),
                           *((name, RECORDER) for name in ("deb-systemd-invoke", "invoke-rc.d", "deb-systemd-helper"))):
            write(f"{where}/fakes/{name}", text)
        write(f"{where}/script", "\n".join(SCRIPT) + "\n")

    def start(self, hangs=""):
        """Starts setup in its own process group, with an empty log."""
        write(f"{self.where}/log", "")
        env = {**os.environ, "PATH": f"{self.where}/fakes:{os.environ['PATH']}", "FAKES": f"{self.where}/fakes", "HANGS": hangs,
               "LOG": f"{self.where}/log", "SCRIPT": f"{self.where}/script", "TMPDIR": f"{self.where}/tmp"}
        # With an empty /usr/sbin: Debian containers have a policy-rc.d there.
        own = ["unshare", "--mount", "sh", "-c", f"mount --bind {self.where}/sbin /usr/sbin && exec $0 $@"]
        return subprocess.Popen([*own, f"{ROOT}/scripts/setup", "build"], env=env, start_new_session=True,
                                stdout=subprocess.DEVNULL)

    def log(self):
        with open(f"{self.where}/log") as log:
            return log.read().splitlines()


def system(debian):
    """Returns the entries of the folders that could contain a program that forbids services."""
    return {path: [(entry.name, entry.stat(follow_symlinks=False).st_mtime_ns) for entry in sorted(os.scandir(path), key=lambda e: e.name)]
            for path in (f"{debian.where}/sbin", "/usr/sbin", "/usr/local/sbin", "/etc/systemd/system") if os.path.isdir(path)}


def check_services(checks, debian):
    """In a Debian without systemd only the running nginx is restarted, and nothing is enabled."""
    before = system(debian)
    with debian.start() as setup:
        code = setup.wait(60)
    expected = [line if passed is None else passed for line, passed in SCRIPT.items() if passed != ""]
    checks.check(code == 0 and debian.log() == [*expected, "done"], f"exit {code}, {debian.log()}")
    checks.check(system(debian) == before and not os.listdir(f"{debian.where}/tmp"), "something is left")


def check_killed(checks, debian):
    before = system(debian)
    with debian.start(hangs="yes") as setup:
        there = until(lambda: "done" in debian.log(), 20)
        during = system(debian)
        os.killpg(setup.pid, signal.SIGKILL)
    checks.check(there and during == before, "the system's folders change while packages are installed")
    checks.check(system(debian) == before, "the system's folders are changed after a kill")


def main():
    checks = Checks("setup")
    if os.geteuid() != 0 or os.path.isdir("/run/systemd/system") or subprocess.run(["unshare", "--mount", "true"]).returncode:
        checks.skip("only root without systemd can have a Debian that is made up")
        checks.end()
    with folder() as where:
        debian = Debian(where)
        check_services(checks, debian)
        check_killed(checks, debian)
    checks.end()


main()
