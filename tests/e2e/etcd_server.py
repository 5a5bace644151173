"""A real etcd on loopback, of one member."""
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request

from framed_client import PATIENCE, free_port

INSTALLED = shutil.which("etcd")


class Etcd:
    """Keeps its data over stop and start. `options`: more of them, as of TLS with `scheme` https."""

    def __init__(self, where, name="etcd", scheme="http", options=()):
        self.data, self.log = f"{where}/{name}", f"{where}/{name}.log"
        self.url, self.peer = f"{scheme}://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        self.options, self.child = options, None
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.child = subprocess.Popen(
                ["etcd", "--name", "one", "--data-dir", self.data, "--listen-client-urls", self.url,
                 "--advertise-client-urls", self.url, "--listen-peer-urls", self.peer,
                 "--initial-advertise-peer-urls", self.peer, "--initial-cluster", f"one={self.peer}", *self.options],
                stdout=log, stderr=log)

    def stop(self):
        """As a box that loses its power."""
        self.child.kill()
        self.child.wait()

    def ask(self, path, body):
        """The answer to a request that the client never makes."""
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5 * PATIENCE) as answer:
            return json.load(answer)

    def wait(self):
        """Until it serves, with http."""
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
