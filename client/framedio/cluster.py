"""Readers that follow a camera of a cluster from box to box."""
import os
import re
import time
import urllib.parse

from .etcd import ASK_SECONDS, Etcd, NotThere, context_of, hosts_of, user_of
from .exchange import ask
from .reader import AsyncReader, Gone, Reader, Timeout

LOOK_SECONDS = 1.0  # without a frame, until the cluster is queried again
WAIT_SECONDS = 0.2  # until the next query, while the box does not show the camera
SEARCH_SECONDS = 10.0  # for one query in total
SCHEMES = {"cluster:etcd": False, "cluster:etcds": True}  # True with TLS; named as rediss, amqps and mqtts are
ALLOWED = "cluster:etcd://HOST[:PORT][,HOST[:PORT]...]/SITE/CAMERA/OUTPUT, with TLS cluster:etcds://..."


def newer(epoch, than):
    """Returns True if epoch is not older; epochs are serial numbers of 32 bits."""
    return (epoch - than) & 0xFFFFFFFF < 1 << 31


class Cluster:
    """Finds the cameras of a site."""

    def __init__(self, etcd, site, token):
        self.etcd, self.site, self.token = etcd, site, token

    def value(self, key, end):
        """Returns the object at a key of the site; empty if there is none."""
        found = self.etcd.value(f"/framed/{self.site}/{key}", end)
        return found if isinstance(found, dict) else {}

    def address(self, camera, output, end):
        """Returns the address of the camera's output, as reported by its box."""
        cameras = self.value("plan", end).get("cameras")
        entry = cameras.get(camera) if isinstance(cameras, dict) else None
        name = entry.get("node") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            raise NotThere(f"no box of {self.site} shows {camera}")
        http = self.value(f"node/{name}", end).get("http")
        if not isinstance(http, str) or not http:
            raise NotThere(f"{name} is away, or serves no HTTP")
        sinks = self.sinks(name, http, camera, end)
        if output not in sinks:
            raise ValueError(f"{camera} has no output {output} ({', '.join(sinks) or 'none'})")
        return reachable(sinks[output], urllib.parse.urlsplit(http).hostname)

    def sinks(self, node, http, camera, end):
        """Returns output -> sink of a camera that the node shows."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        until = min(end, time.monotonic() + ASK_SECONDS)
        try:
            url = urllib.parse.urlsplit(http)
            if url.scheme != "http" or not url.hostname or url.username or url.port == 0:
                raise ValueError
            status, found = ask(url.netloc, f"/api/v1/where/{urllib.parse.quote(camera, safe='')}", until, headers=headers)
        except ValueError:
            raise NotThere(f"{node}: its HTTP has a wrong address") from None
        except OSError as error:
            raise NotThere(f"{node}: {http}: {error}") from error
        if status != 200:
            why = {307: "does not show the camera any more", 401: "wants another token (token=, or FRAMED_HTTP_TOKEN)"}
            raise NotThere(f"{node}: {why.get(status, f'HTTP {status}')}")
        try:
            return {str(each["name"]): str(each["sink"]) for each in found["outputs"]}
        except (TypeError, LookupError):
            raise NotThere(f"{node}: {http} is no framed") from None


def reachable(sink, host):
    """Returns the sink; a tcp sink on every interface gets the host of the box's HTTP."""
    if not sink.startswith("tcp:"):
        return sink
    port = sink.rpartition(":")[2]
    listens = sink[len("tcp:"):-len(port) - 1].strip("[]")
    name = host if listens in ("", "0.0.0.0", "::") else listens
    return f"tcp:[{name}]:{port}" if ":" in name else f"tcp:{name}:{port}"


class Follower:
    """Base of both readers: frames of one camera, on any box. Drops old frames that a box sends after it was frozen."""

    def __init__(self, address, newest=True, timeout=None, token=None, user=None, password=None, ca=None, certificate=None,
                 keyfile=None):
        scheme, _, rest = address.partition("://")
        hosts, _, path = rest.partition("/")
        parts = path.split("/")
        self.address = re.sub("//.*@", "//***@", address)
        if scheme not in SCHEMES or not hosts_of(hosts) or len(parts) != 3 or not all(parts):
            raise ValueError(f"{self.address}: is not {ALLOWED}")
        site, self.camera, self.output = parts
        etcd = Etcd(hosts_of(hosts), user_of(user, password), context_of(SCHEMES[scheme], ca, certificate, keyfile))
        self._cluster = Cluster(etcd, site, token or os.environ.get("FRAMED_HTTP_TOKEN"))
        self.newest, self.timeout = newest, timeout
        self._reader, self._at, self._epoch, self.error = None, None, None, ""

    def _ask(self, end):
        """Returns the camera's current address, or None if no box reports one. It takes a while."""
        try:
            return self._cluster.address(self.camera, self.output, min(end, time.monotonic() + SEARCH_SECONDS))
        except NotThere as error:
            if not self.error or time.monotonic() < end:  # otherwise the query was cut short, and the earlier error says more
                self._note(error)
            return None
        except ValueError as error:  # waiting does not help
            raise ValueError(f"{self.address}: {error}") from None

    def _go(self, at, kind):
        """Connects to a box, unless the reader is connected to it. Returns False without an address."""
        if at and not (self._reader and at == self._at):
            self._leave()
            self._at, self._reader = at, kind(at, self.newest, reconnect=False)
        return bool(at)

    def _note(self, error):
        if str(error) != self.error:
            import logging

            logging.getLogger("framedio").warning("%s: %s", self.address, error)
        self.error = str(error)

    def _leave(self):
        if self._reader:
            self._reader.close()
        self._reader = None

    def _left(self, end):
        """Returns seconds until the cluster is queried again."""
        left = end - time.monotonic()
        if left <= 0:
            raise Timeout(f"{self.address}: no frame in time. {self.error}".rstrip(". "))
        return min(left, LOOK_SECONDS)

    def _accept(self, frame):
        """Returns True if the frame is not older than an earlier one."""
        if self._epoch is not None and not newer(frame.epoch, self._epoch):
            return False
        self._epoch, self.error = frame.epoch, ""
        return True

    def close(self):
        self._leave()


def end_of(timeout):
    return float("inf") if timeout is None else time.monotonic() + timeout


class ClusterReader(Follower):
    """An iterator that never ends by itself."""

    def next(self, timeout=None):
        """Returns the next Frame. Timeout: none arrived for this many seconds."""
        end = end_of(timeout)
        while True:
            left, frame = self._left(end), None
            if self._reader:
                try:
                    frame = self._reader.next(left)
                except Timeout:
                    pass  # the camera may have moved
                except Gone as error:
                    self._note(error)
                    self._leave()
                    time.sleep(min(left, WAIT_SECONDS))
                    continue
            if frame is not None and self._accept(frame):
                return frame
            if not self._go(self._ask(end), Reader):
                time.sleep(min(left, WAIT_SECONDS))

    def __iter__(self):
        return self

    def __next__(self):
        return self.next(self.timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class AsyncClusterReader(Follower):
    """The same for `async for`. A thread queries the cluster; it may continue for some seconds after close()."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        import asyncio

        end = end_of(self.timeout)
        while True:
            left, frame = self._left(end), None
            if self._reader:
                self._reader.timeout = left
                try:
                    frame = await self._reader.__anext__()
                except Timeout:
                    pass  # the camera may have moved
                except Gone as error:
                    self._note(error)
                    self._leave()
                    await asyncio.sleep(min(left, WAIT_SECONDS))
                    continue
            if frame is not None and self._accept(frame):
                return frame
            if not self._go(await asyncio.to_thread(self._ask, end), AsyncReader):
                await asyncio.sleep(min(left, WAIT_SECONDS))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()
