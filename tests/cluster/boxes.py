"""Boxes and cameras on one machine: a switch and a host for each in the test's own network namespaces, with cables that
can be pulled. Cameras and consumers are on a separate host, `outside`, on the same switch."""
import ctypes
import os
import random
import subprocess

CLONE_NEWNET = 0x40000000


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check).stdout


def enter(descriptor):
    """Moves this thread, and threads that it starts later, to the network."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


class Host:
    def __init__(self, network, name, number):
        self.network, self.name = network, name
        self.namespace = f"{network.name}-{name}"
        self.address = f"{network.net}.{number}"
        self.cable = f"c{number}"
        self.prefix = ["ip", "netns", "exec", self.namespace]

    def open(self):
        ip("netns", "add", self.namespace)
        ip("-netns", self.network.switch, "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns",
           self.namespace)
        ip("-netns", self.network.switch, "link", "set", self.cable, "master", "switch", "up")
        for arguments in (("address", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
                          ("link", "set", "lo", "up")):
            ip("-netns", self.namespace, *arguments)

    def ip(self, *arguments):
        ip("-netns", self.namespace, *arguments)

    def pull(self):
        ip("-netns", self.network.switch, "link", "set", self.cable, "down")

    def plug(self):
        ip("-netns", self.network.switch, "link", "set", self.cable, "up")


class Network:
    """`boxes`, and `outside`, which the process enters for the duration of the with-block."""

    def __init__(self, count):
        self.name = f"fc{os.getpid()}"
        self.switch = f"{self.name}-switch"
        self.net = f"10.{random.randrange(150, 200)}.{random.randrange(256)}"
        self.boxes = [Host(self, f"box{i + 1}", i + 1) for i in range(count)]
        self.outside = Host(self, "outside", 100)

    def __enter__(self):
        self.own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            ip("netns", "add", self.switch)
            ip("-netns", self.switch, "link", "add", "switch", "type", "bridge", "forward_delay", "0")
            ip("-netns", self.switch, "link", "set", "switch", "up")
            for host in (*self.boxes, self.outside):
                host.open()
            outside = os.open(f"/run/netns/{self.outside.namespace}", os.O_RDONLY)
            enter(outside)
            os.close(outside)
        except (OSError, subprocess.CalledProcessError):
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        enter(self.own)
        os.close(self.own)
        for name in (*(host.namespace for host in (*self.boxes, self.outside)), self.switch):
            ip("netns", "del", name, check=False)
