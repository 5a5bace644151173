"""A network of the test's own: a namespace connected to this host by a pair of interfaces, removed when the with-block ends. Processes inside act as
a second host, as a camera does; packets on the way can be lost and reordered (tc's netem)."""
import contextlib
import ctypes
import os
import random
import re
import shutil
import subprocess

CLONE_NEWNET = 0x40000000
NAMESPACES = "/run/netns"


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


def enter(descriptor):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


class Namespace:
    """`outer` and `inner`: the addresses here and inside."""

    def __init__(self):
        self.name = f"framed-{os.getpid()}-{random.randrange(1000)}"
        self.prefix = ["ip", "netns", "exec", self.name]
        net = f"10.{random.randrange(200, 250)}.{random.randrange(256)}"
        self.outer, self.inner = f"{net}.1", f"{net}.2"
        self.link = f"fr{random.randrange(10**8)}"
        self.inner_link = self.link + "i"

    def __enter__(self):
        """For the first namespace of a box, `ip` mounts their folder over itself; __exit__ then unmounts it."""
        self.mounts = not os.path.ismount(NAMESPACES)
        try:
            ip("netns", "add", self.name)
            ip("link", "add", self.link, "type", "veth", "peer", "name", self.inner_link, "netns", self.name)
            ip("address", "add", f"{self.outer}/24", "dev", self.link)
            ip("link", "set", self.link, "up")
            for arguments in (("address", "add", f"{self.inner}/24", "dev", self.inner_link),
                              ("link", "set", self.inner_link, "up"), ("link", "set", "lo", "up")):
                ip("-netns", self.name, *arguments)
        except subprocess.CalledProcessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """The interfaces disappear with the namespace."""
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)
        if self.mounts:
            subprocess.run(["umount", NAMESPACES], capture_output=True, check=False)

    @contextlib.contextmanager
    def entered(self):
        """Sockets and threads created here belong to the namespace, and so does everything that these threads create."""
        own, other = (os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", f"/run/netns/{self.name}"))
        try:
            enter(other)
            yield
        finally:
            enter(own)
            os.close(own)
            os.close(other)

    def tc(self, *arguments):
        return subprocess.run(["tc", "-netns", self.name, *arguments], capture_output=True, text=True, check=True).stdout

    def disturb(self, *how):
        """Disturbs packets that leave the namespace with netem: "loss", "1%", "delay", "10ms" and so on."""
        self.tc("qdisc", "replace", "dev", self.inner_link, "root", "netem", "limit", "10000", *how)

    def dropped(self):
        """Returns the number of packets that netem has lost so far."""
        return int(re.search(r"dropped (\d+)", self.tc("-s", "qdisc", "show", "dev", self.inner_link))[1])


def why_no_namespace():
    """Returns the reason why there is no namespace here, or ""."""
    if os.geteuid() != 0:
        return "a network namespace needs root"
    if not shutil.which("ip"):
        return "iproute2 is not installed"
    try:
        with Namespace():
            return ""
    except subprocess.CalledProcessError as error:
        return f"no network namespace here: {error.stderr.strip()}"


def why_no_netem():
    if why := why_no_namespace():
        return why
    if not shutil.which("tc"):
        return "iproute2 has no tc"
    try:
        with Namespace() as network:
            network.disturb("loss", "1%")
            return ""
    except subprocess.CalledProcessError as error:
        return f"this kernel has no netem: {error.stderr.strip()}"
