"""A site: framed and a member of etcd at each box, with cameras and their consumers outside, all running."""
import base64
import contextlib
import json
import time

from consumers import Watch
from processes import Etcd, Framed

LEASE = 5
PROMISE = 2 * LEASE  # seconds that a camera may be without pictures
PORT = 20000  # of the first camera's output

CAMERA = """\
cameras:
  {name}:
    url: {url}
    transport: tcp
    outputs:
      pictures: {{kernel: warp, size: 64x64, sink: "tcp:0.0.0.0:{port}", open: true, overflow: drop_oldest}}
"""


def text(data):
    return base64.b64encode(data.encode()).decode()


def until(condition, seconds, what):
    """Waits for the condition; `what` returns the text of the error."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what())
        time.sleep(0.05)


class Site:
    """The whole site, running, with every camera shown."""

    def __init__(self, where, network, cameras, program, alone="stop", quota=0):
        self.network, self.cameras = network, cameras
        self.etcd = [Etcd(box, where, network.boxes, quota=quota) for box in network.boxes]
        self.framed = [Framed(box, where, network.boxes, program, lease=LEASE, alone=alone) for box in network.boxes]
        self.ports = {name: PORT + i for i, name in enumerate(cameras)}
        self.watch = Watch(self.addresses())

    def __enter__(self):
        for each in self.etcd:
            each.start()
        until(lambda: any(each.leads() for each in self.etcd), 15, lambda: "no leader")
        for name, camera in self.cameras.items():
            self.put(name, CAMERA.format(name=name, url=camera.url(), port=self.ports[name]))
        for each in self.framed:
            each.start()
        self.watch.__enter__()
        self.settle()
        return self

    def __exit__(self, *_):
        self.watch.__exit__()
        for each in (*self.framed, *self.etcd):
            with contextlib.suppress(OSError):
                each.stop()

    # --- what etcd has

    def ask(self, path, body):
        for each in self.etcd:
            with contextlib.suppress(OSError):
                return each.ask(path, body)
        raise OSError("no etcd answers")

    def put(self, name, config):
        self.ask("kv/put", {"key": text(f"/framed/yard/camera/{name}"), "value": text(json.dumps({"schema": 1, "text": config}))})

    def keys(self, folder):
        prefix = f"/framed/yard/{folder}"
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self.ask("kv/range", {"key": text(prefix), "range_end": text(after)})
        return {base64.b64decode(pair["key"]).decode()[len("/framed/yard/"):]: base64.b64decode(pair.get("value", "")).decode()
                for pair in answer.get("kvs", [])}

    def plan(self):
        return json.loads(self.keys("plan").get("plan", "{}"))

    def nodes(self):
        return {key[len("node/"):]: json.loads(value) for key, value in self.keys("node/").items()}

    def placed(self):
        """Returns node -> cameras, by the plan."""
        found = {}
        for camera, entry in self.plan().get("cameras", {}).items():
            found.setdefault(entry["node"], []).append(camera)
        return found

    def box_of(self, camera):
        return self.plan()["cameras"][camera]["node"]

    def leader(self):
        return next(i for i, each in enumerate(self.etcd) if each.leads())

    # --- the site's state

    def addresses(self):
        return {name: {box.name: (box.address, port) for box in self.network.boxes} for name, port in self.ports.items()}

    def settle(self, without=(), seconds=30):
        """Waits until every camera is shown by exactly one box, outside `without`."""
        gone = {self.framed[i].box.name for i in without}

        def settled():
            where = self.watch.where(0.6)
            return all(len(where.get(name, ())) == 1 and not gone & where[name] for name in self.cameras)

        until(settled, seconds, lambda: f"cameras shown: {dict(self.watch.where(0.6))}")

    def is_whole(self):
        """True if every box is in the cluster and has applied the plan."""
        with contextlib.suppress(OSError, ValueError):
            nodes, version = self.nodes(), self.plan().get("version")
            return len(nodes) == len(self.framed) and all(node.get("obeys") == version for node in nodes.values())
        return False

    def heal(self, seconds=30):
        """Waits until the site is as before a fault."""
        until(self.is_whole, seconds, lambda: f"nodes: {self.nodes()}")
        self.settle()
