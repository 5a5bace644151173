"""A reader that follows a camera of a cluster from box to box."""
import base64
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

from .reader import Gone, Reader, Timeout

LOOK_SECONDS = 1.0  # without a frame, until the cluster is asked again
WAIT_SECONDS = 0.2  # from a box that does not show the camera yet to the next look
ASK_SECONDS = 2.0
SCHEME = "cluster:etcd://"
ALLOWED = "cluster:etcd://HOST[:PORT][,HOST[:PORT]...]/SITE/CAMERA/OUTPUT"


def newer(epoch, than):
    """Whether it is at least that one: they are serial numbers of 32 bits."""
    return (epoch - than) & 0xFFFFFFFF < 1 << 31


class NotThere(Exception):
    """The cluster does not say where the camera is, or nobody answers."""


class Cluster:
    """Where the cameras of a site are."""

    def __init__(self, hosts, site, token):
        self.hosts, self.site, self.token = hosts, site, token

    def value(self, key):
        """Of a key of the site; None: there is none."""
        body = json.dumps({"key": base64.b64encode(f"/framed/{self.site}/{key}".encode()).decode()}).encode()
        for host in self.hosts:
            try:
                with urllib.request.urlopen(f"http://{host}/v3/kv/range", body, timeout=ASK_SECONDS) as answer:
                    pairs = json.load(answer).get("kvs", [])
                return json.loads(base64.b64decode(pairs[0]["value"])) if pairs else None
            except (OSError, ValueError):
                continue
        raise NotThere(f"no etcd answers at {', '.join(self.hosts)}")

    def address(self, camera, output):
        """Of the camera's output, as the box that shows it says."""
        entry = ((self.value("plan") or {}).get("cameras") or {}).get(camera)
        if not entry or not entry.get("node"):
            raise NotThere(f"no box of {self.site} shows {camera}")
        node = self.value(f"node/{entry['node']}")
        if not node or not node.get("http"):
            raise NotThere(f"{entry['node']} is away, or serves no HTTP")
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(f"{node['http']}/api/v1/where/{urllib.parse.quote(camera)}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ASK_SECONDS) as answer:
                found = json.load(answer)
        except (OSError, ValueError) as error:
            raise NotThere(f"{entry['node']}: {error}") from error
        sinks = {each["name"]: each["sink"] for each in found["outputs"]}
        if output not in sinks:
            raise ValueError(f"{camera} has no output {output} ({', '.join(sinks) or 'none'})")
        return reachable(sinks[output], urllib.parse.urlsplit(node["http"]).hostname)


def reachable(sink, host):
    """A tcp sink on every interface is reached where the box's HTTP is."""
    if not sink or not sink.startswith("tcp:"):
        return sink
    port = sink.rpartition(":")[2]
    listens = sink[len("tcp:"):-len(port) - 1].strip("[]")
    name = host if listens in ("", "0.0.0.0", "::") else listens
    return f"tcp:[{name}]:{port}" if ":" in name else f"tcp:{name}:{port}"


class ClusterReader:
    """Frames of one camera, wherever it is; frames that a box which was frozen still sends are left out. An iterator that
    never ends by itself."""

    def __init__(self, address, newest=True, timeout=None, token=None):
        hosts, _, path = address[len(SCHEME):].partition("/")
        parts = path.split("/")
        if not address.startswith(SCHEME) or not hosts or len(parts) != 3 or not all(parts):
            raise ValueError(f"{address}: is not {ALLOWED}")
        hosts = [host if ":" in host else f"{host}:2379" for host in hosts.split(",")]
        site, self.camera, self.output = parts
        self.address, self.newest, self.timeout = address, newest, timeout
        self._cluster = Cluster(hosts, site, token or os.environ.get("FRAMED_HTTP_TOKEN"))
        self._reader, self._at, self._epoch, self.error = None, None, None, ""

    def _look(self):
        """Moves to where the camera is now."""
        try:
            at = self._cluster.address(self.camera, self.output)
        except NotThere as error:
            self.error = str(error)
            time.sleep(WAIT_SECONDS)
            return
        if self._reader and at == self._at:
            return
        self._leave()
        self._at, self._reader = at, Reader(at, self.newest, reconnect=False)

    def _leave(self):
        if self._reader:
            self._reader.close()
        self._reader = None

    def _frame(self, seconds):
        """The next frame of its present box that is not older than what came before; or None."""
        try:
            frame = self._reader.next(seconds)
        except Timeout:
            self._look()
            return None
        except Gone as error:
            self.error = str(error)
            self._leave()
            time.sleep(WAIT_SECONDS)
            return None
        if self._epoch is not None and not newer(frame.epoch, self._epoch):
            self._look()
            return None
        self._epoch = frame.epoch
        return frame

    def next(self, timeout=None):
        """The next Frame. Timeout: there was none for so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LOOK_SECONDS if end is None else min(end - time.monotonic(), LOOK_SECONDS)
            if left <= 0:
                raise Timeout(f"{self.address}: no frame for {timeout} s {self.error}".rstrip())
            if not self._reader:
                self._look()
            elif frame := self._frame(left):
                return frame

    def __iter__(self):
        return self

    def __next__(self):
        return self.next(self.timeout)

    def close(self):
        self._leave()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
