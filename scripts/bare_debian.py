"""Bare Debians: folders that debootstrap fills once, and copies of them that run systemd as containers."""
import glob
import os
import re
import shutil
import subprocess
import time

INCLUDED = ["dbus", "python3-minimal", "systemd", "systemd-sysv"]
SOURCES = ("/etc/apt/sources.list.d/*.sources", "/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list")


def call(*arguments):
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not (said := condition()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return said


def has_text(path, text):
    if not os.path.exists(path):
        return False
    with open(path) as file:
        return file.read() == text


def mirror():
    """Returns the environment's MIRROR, else the first archive of this machine's apt."""
    for path in (path for pattern in SOURCES for path in sorted(glob.glob(pattern)) if "MIRROR" not in os.environ):
        with open(path) as file:
            found = re.search(r"^(?:URIs:\s*|deb\s+(?:\[[^]]*\]\s*)?)(https?://\S+)", file.read(), re.M)
        if found:
            return found[1]
    if "MIRROR" not in os.environ:
        raise SystemExit("apt has no archive here: MIRROR=URL says where Debian's is")
    return os.environ["MIRROR"]


def bare_debian(names, bare, suite="bookworm", included=INCLUDED):
    """Returns the folder of a Debian of that suite with these packages, made once."""
    text, made = ",".join(sorted({*included, *names})), f"{bare}.packages"
    if not has_text(made, text):
        shutil.rmtree(bare, ignore_errors=True)
        os.makedirs(os.path.dirname(bare), exist_ok=True)
        print("debootstrap: this takes minutes, once", flush=True)
        call("debootstrap", "--variant=minbase", f"--include={text}", suite, bare, mirror())
        with open(made, "w") as file:
            file.write(text)
    return bare


class Container:
    """A running copy of a folder, in its own network or in the host's."""

    def __init__(self, bare, where, private=True):
        self.root, self.network = f"{where}/root", ["--private-network"] if private else []
        shutil.rmtree(self.root, ignore_errors=True)
        call("cp", "-a", "--reflink=auto", bare, self.root)
        self.write("/etc/machine-id", "")  # makes a new one
        self.write("/etc/hosts", "127.0.0.1 localhost\n")
        self.log = open(f"{where}/nspawn.log", "w")

    def __enter__(self):
        self.child = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", *self.network, "--boot", "-D", self.root],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.leader = until(self.first_process, 20)
        if not until(lambda: self("systemctl", "is-system-running")[1] in ("running", "degraded"), 60):
            self.child.kill()
            raise SystemExit(f"systemd does not start in a container here: {self.log.name} may say why")
        return self

    def __exit__(self, *_):
        self("systemctl", "poweroff")
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()

    def first_process(self):
        """Returns the pid of the container's systemd, or None until it runs."""
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children") as children:
            found = children.read().split()
        return next((pid for pid in found if os.readlink(f"/proc/{pid}/exe").endswith("/systemd")), None)

    def inside(self, *arguments):
        """Returns the command that runs a command in the container."""
        return ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--", *arguments]

    def __call__(self, *arguments, text=None):
        """Runs a command in the container; returns (exit code, output)."""
        done = subprocess.run(self.inside(*arguments), input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout.strip()

    def show(self, unit, key):
        return self("systemctl", "show", "--value", "-p", key, unit)[1]

    def state(self, unit):
        return self("systemctl", "is-active", unit)[1]

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        with open(self.root + path, "w") as file:
            file.write(text)

    def drop_in(self, name, text):
        self.write(f"/etc/systemd/system/framed.service.d/{name}", text)
        self("systemctl", "daemon-reload")

    def journal(self):
        return self("journalctl", "--no-pager", "-o", "cat", "-u", "framed*")[1]
