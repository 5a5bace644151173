"""Real etcds on loopback: one alone, or the members of a cluster."""
import base64
import contextlib
import json
import shutil
import signal
import subprocess
import time
import urllib.request

from framed_client import PATIENCE, free_port

INSTALLED = shutil.which("etcd")


class Etcd:
    """Keeps its data over stop and start. `options`: further arguments, such as those for TLS with `scheme` https. `peers`: the URLs of a cluster's
    members for each other, by name."""

    def __init__(self, where, name="etcd", scheme="http", options=(), peers=None):
        self.name, self.data, self.log = name, f"{where}/{name}", f"{where}/{name}.log"
        self.url, self.peers = f"{scheme}://127.0.0.1:{free_port()}", peers or {name: f"http://127.0.0.1:{free_port()}"}
        self.options, self.child = options, None
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.child = subprocess.Popen(
                ["etcd", "--name", self.name, "--data-dir", self.data, "--listen-client-urls", self.url,
                 "--advertise-client-urls", self.url, "--listen-peer-urls", self.peers[self.name],
                 "--initial-advertise-peer-urls", self.peers[self.name],
                 "--initial-cluster", ",".join(f"{name}={url}" for name, url in self.peers.items()), *self.options],
                stdout=log, stderr=log)

    def stop(self):
        """Stops like a box that loses its power."""
        self.child.kill()
        self.child.wait()

    def freeze(self):
        """Connections are accepted, but no request is answered."""
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)

    def ask(self, path, body):
        """Returns the answer to a request that the client never makes."""
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5 * PATIENCE) as answer:
            return json.load(answer)

    def metrics(self):
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5 * PATIENCE) as answer:
            return answer.read().decode()

    def wait(self):
        """Waits until it serves; http only."""
        end = time.monotonic() + 20 * PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                return self.ask("kv/range", {"key": "AA=="})
            time.sleep(0.05)
        with open(self.log) as log:
            raise RuntimeError(f"etcd does not begin: {log.read()[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


@contextlib.contextmanager
def cluster(where, n):
    """Yields the members once they serve; the first of the list is the leader."""
    peers = {f"member{i}": f"http://127.0.0.1:{free_port()}" for i in range(n)}
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(Etcd(where, name, options=["--pre-vote"], peers=peers)) for name in peers]
        for member in members:
            member.wait()
        states = [member.ask("maintenance/status", {}) for member in members]
        yield sorted(members, key=lambda member: (state := states[members.index(member)])["leader"] != state["header"]["member_id"])


def code(key):
    return base64.b64encode(key.encode()).decode()


def add_users(etcd):
    """Adds the user framed, who may read and write below /framed/, and turns authentication on: requests without a user are refused."""
    etcd.ask("auth/user/add", {"name": "root", "password": "r00t"})
    etcd.ask("auth/user/grant", {"user": "root", "role": "root"})
    etcd.ask("auth/role/add", {"name": "site"})
    etcd.ask("auth/role/grant", {"name": "site", "perm": {"permType": "READWRITE", "key": code("/framed/"), "range_end": code("/framed0")}})
    etcd.ask("auth/user/add", {"name": "framed", "password": "s3cret"})
    etcd.ask("auth/user/grant", {"user": "framed", "role": "site"})
    etcd.ask("auth/enable", {})
