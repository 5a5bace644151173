#!/usr/bin/python3
"""A cluster at scale: nodes without cameras beside real etcds with their data in memory. Measures how long cameras take
to run, at first and after a node died or drains, and the cost for etcd and the nodes. Exits with 1 if a camera runs
twice, moves without need or never runs.

usage: at_scale.py PROGRAM FRAMED [--cameras 1000] [--nodes 20] [--lease 5] [--members 1] [--rest 20]
  PROGRAM  bench-cluster, a node; FRAMED  writes the cameras; MEMBERS  of etcd, 1 or 3
"""
import argparse
import base64
import collections
import contextlib
import os
import pathlib
import re
import selectors
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
import etcd_server

TICKS = os.sysconf("SC_CLK_TCK")
COUNTERS = {"requests": r"^grpc_server_started_total\{.*\} (\S+)", "in": r"^etcd_network_client_grpc_received_bytes_total (\S+)",
            "out": r"^etcd_network_client_grpc_sent_bytes_total (\S+)"}
CAMERA = """  cam{n:04}:
    url: rtsp://viewer:Zorngiebel@10.1.{high}.{low}:554/Streaming/Channels/101
    outputs:
      detector: {{fps: 5, size: 640x640, tensor: {{dtype: u8}}, sink: 'unix:/run/framed/cam{n:04}-detector.sock'}}
      view: {{kernel: yuv, size: 1280x720, sink: 'unix:/run/framed/cam{n:04}-view.sock'}}
"""


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def encode(text):
    return base64.b64encode(text.encode()).decode()


def ticks(path):
    """Returns processor time in seconds, from a process's or a thread's stat."""
    with open(path) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Node:
    """A node's process, and the cameras that it reports: camera -> (generation, since)."""

    def __init__(self, options, where, urls, name):
        self.name, self.running = name, {}
        room = 1.6 * options.cameras / options.nodes
        with open(f"{where}/{name}.log", "a") as log:
            self.child = subprocess.Popen([options.program, ",".join(urls), name, str(room), str(options.lease)],
                                          stdout=subprocess.PIPE, stderr=log, text=True)
        os.set_blocking(self.child.stdout.fileno(), False)
        self.rest = ""

    def seconds(self):
        """Returns processor time of the member's thread, and of the process."""
        threads = [f"/proc/{self.child.pid}/task/{task}/stat" for task in os.listdir(f"/proc/{self.child.pid}/task")
                   if int(task) != self.child.pid]
        return sum(map(ticks, threads)), ticks(f"/proc/{self.child.pid}/stat")

    def memory(self):
        with open(f"/proc/{self.child.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def end(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()


class Site:
    def __init__(self, options, where, etcds):
        self.options, self.where, self.etcds = options, where, etcds
        self.urls = [etcd.url for etcd in etcds]
        self.nodes, self.selector = {}, selectors.DefaultSelector()
        self.started = collections.defaultdict(list)  # camera -> [(when, node)]
        self.twice = 0
        self.config = self.write("framed.yaml", f"cluster: {{etcd: [{', '.join(self.urls)}], site: bench}}\n")

    def write(self, name, text):
        path = f"{self.where}/{name}"
        with open(path, "w") as file:
            file.write(text)
        return path

    def cameras(self, numbers):
        return self.write("cameras.yaml", "cameras:\n" + "".join(
            CAMERA.format(n=n, high=n // 250, low=n % 250 + 1) for n in numbers))

    def run(self, *words):
        subprocess.run([self.options.framed, "cluster", *words, "-c", self.config], check=True, stdout=subprocess.DEVNULL,
                       timeout=60)
        return now()

    def add_node(self, name):
        node = self.nodes[name] = Node(self.options, self.where, self.urls, name)
        self.selector.register(node.child.stdout, selectors.EVENT_READ, node)

    def kill(self, name):
        """Kills the node; returns its cameras, which end with it."""
        node = self.nodes.pop(name)
        self.selector.unregister(node.child.stdout)
        node.end()
        return set(node.running)

    def stop(self, name):
        """Stops the node, which revokes its lease; returns its cameras."""
        node = self.nodes.pop(name)
        self.selector.unregister(node.child.stdout)
        node.child.terminate()
        return set(node.running)

    def lost(self):
        return sum(path.read_text().count("this box is out") for path in pathlib.Path(self.where).glob("node*.log"))

    def read(self, node):
        lines = (node.rest + (node.child.stdout.read() or "")).split("\n")
        node.rest = lines.pop()
        for line in lines:
            what, camera, *numbers = line.split()
            if what == "stop":
                del node.running[camera]
                continue
            if camera not in node.running:
                self.started[camera].append((int(numbers[1]) / 1e9, node.name))
                self.twice += sum(camera in other.running for other in self.nodes.values())
            node.running[camera] = int(numbers[0])

    def wait(self, done, seconds):
        """Reads the nodes' reports until done() or the timeout; returns done()."""
        end = time.monotonic() + seconds
        while not (good := done()) and time.monotonic() < end:
            for key, _ in self.selector.select(0.02):
                self.read(key.data)
        return good

    def n_running(self):
        return sum(len(node.running) for node in self.nodes.values())

    def count(self, kind):
        answer = self.etcds[0].ask("kv/range", {"key": encode(f"/framed/bench/{kind}/"), "range_end": encode(f"/framed/bench/{kind}0"),
                                                "count_only": True})
        return int(answer.get("count", 0))

    def get(self, key):
        return base64.b64decode(self.etcds[0].ask("kv/range", {"key": encode(f"/framed/bench/{key}")})["kvs"][0]["value"]).decode()

    def put(self, key, value):
        self.etcds[0].ask("kv/put", {"key": encode(f"/framed/bench/{key}"), "value": encode(value)})

    def revision(self):
        return int(self.etcds[0].ask("kv/range", {"key": "AA=="})["header"]["revision"])

    def counters(self):
        sums = collections.Counter({"revisions": self.revision(), "time": time.monotonic()})
        for etcd in self.etcds:
            sums["etcd"] += ticks(f"/proc/{etcd.child.pid}/stat")
            text = etcd.metrics()
            for name, pattern in COUNTERS.items():
                sums[name] += sum(float(number) for number in re.findall(pattern, text, re.M))
        return sums, {name: node.seconds() for name, node in self.nodes.items()}


class Table:
    """Prints a line per phase: how long its cameras took, and the usage per second meanwhile."""

    HEAD = ("phase", "cameras", "p50 s", "max s", "never", "moved", "lasted s", "requests/s", "writes/s", "in kB/s", "out kB/s",
            "etcd %", "member %", "most %", "loop %")

    def __init__(self, site):
        self.site, self.bad = site, 0
        self.print(self.HEAD)

    @staticmethod
    def print(fields):
        print(f"{fields[0]:34}" + "".join(f"{field:>10}" for field in fields[1:]), flush=True)

    @contextlib.contextmanager
    def phase(self, name):
        """Yields a result to fill: `took`, seconds per camera; `moved`, cameras that started without need; `never`."""
        sums, nodes = self.site.counters()
        result = {"took": [], "moved": 0, "never": 0}
        yield result
        sums_after, nodes_after = self.site.counters()
        used = {key: sums_after[key] - sums[key] for key in sums_after}
        seconds, took = used["time"], sorted(result["took"])
        pairs = [[after - before for after, before in zip(nodes_after[node], nodes.get(node, (0, 0)))] for node in nodes_after]
        members = [100 * pair[0] / seconds for pair in pairs]
        loops = [100 * (pair[1] - pair[0]) / seconds for pair in pairs]
        rates = [f"{used[key] / seconds / unit:.{digits}f}" for key, unit, digits in
                 (("requests", 1, 0), ("revisions", 1, 1), ("in", 1000, 0), ("out", 1000, 0), ("etcd", 0.01, 1))]
        self.print((name, len(took) or "", f"{statistics.median(took):.2f}" if took else "", f"{took[-1]:.2f}" if took else "",
                    result["never"], result["moved"], f"{seconds:.1f}", *rates, f"{statistics.mean(members):.2f}", f"{max(members):.2f}",
                    f"{statistics.mean(loops):.2f}"))
        self.bad += result["moved"] + result["never"]


def watch_starts(site, result, cameras, since, seconds):
    """Fills the result with each camera's delay after `since`, within `seconds`; other cameras that start moved without need."""
    before = {camera: len(starts) for camera, starts in site.started.items()}
    due = set(cameras)

    def news(camera):
        return len(site.started[camera]) > before.get(camera, 0)

    site.wait(lambda: all(map(news, due)), seconds)
    site.wait(lambda: False, 1)  # for late and unneeded starts
    result["never"] = sum(not news(camera) for camera in due)
    result["took"] = [max(0, site.started[camera][before.get(camera, 0)][0] - since) for camera in filter(news, due)]
    result["moved"] = sum(len(site.started[camera]) - before.get(camera, 0) - (camera in due) for camera in filter(news, list(site.started)))


def add_one_by_one(site, result, numbers, pause):
    """Writes each camera once the previous one runs, or `pause` seconds after it."""
    before, written = sum(map(len, site.started.values())), {}
    document = site.get("camera/cam0001")

    def all_run():
        return all(site.started.get(camera) for camera in written)

    for n in numbers:
        if pause is None:
            written[f"cam{n:04}"] = site.run("add", site.cameras([n]))
            site.wait(all_run, 10)
        else:
            site.put(f"camera/cam{n:04}", document.replace("cam0001", f"cam{n:04}"))
            written[f"cam{n:04}"] = now()
            site.wait(lambda: False, pause)
    site.wait(all_run, 20)
    ran = [camera for camera in written if site.started.get(camera)]
    result["never"] = len(written) - len(ran)
    result["took"] = [max(0, site.started[camera][0][0] - written[camera]) for camera in ran]
    result["moved"] = sum(map(len, site.started.values())) - before - len(ran)


def measure(site, table):
    options = site.options
    names = [f"node{i:02}" for i in range(options.nodes)]
    with table.phase("nodes join"):
        for name in names:
            site.add_node(name)
        if not site.wait(lambda: site.count("node") == options.nodes, 30):
            raise SystemExit("not all nodes joined")
    with table.phase("no cameras: rest"):
        site.wait(lambda: False, 5)
    numbers = range(1, options.cameras + 1)
    with table.phase("first cameras, from the last write") as result:
        before = now()
        written = site.run("apply", "-f", site.cameras(numbers))
        watch_starts(site, result, [f"cam{n:04}" for n in numbers], written, 60)
    print(f"  applied in {written - before:.2f} s; on a node: {min(len(node.running) for node in site.nodes.values())} to "
          f"{max(len(node.running) for node in site.nodes.values())}")
    site.wait(lambda: False, 5)
    with table.phase("rest"):
        site.wait(lambda: False, options.rest)
    with table.phase("rest, others write ten keys a second"):
        for _ in range(100):
            site.etcds[0].ask("kv/put", {"key": encode("/others/key"), "value": encode("1")})
            site.wait(lambda: False, 0.1)
    with table.phase("a node dies") as result:
        watch_starts(site, result, site.kill(names[7]), now(), 30)
    with table.phase("it comes back"):
        started = sum(map(len, site.started.values()))
        site.add_node(names[7])
        site.wait(lambda: site.count("node") == options.nodes, 30)
        site.wait(lambda: False, 3)
        table.bad += sum(map(len, site.started.values())) != started
    with table.phase("the first by name dies") as result:
        watch_starts(site, result, site.kill(names[0]), now(), 30)
    with table.phase("one is added, five times") as result:
        add_one_by_one(site, result, range(options.cameras + 1, options.cameras + 6), None)
    with table.phase("50 are added, five a second") as result:
        add_one_by_one(site, result, range(options.cameras + 6, options.cameras + 56), 0.2)
    with table.phase("a node drains") as result:
        cameras = set(site.nodes[names[9]].running)
        site.run("drain", names[9])
        watch_starts(site, result, cameras, now(), 30)
    with table.phase("a node is stopped") as result:
        watch_starts(site, result, site.stop(names[11]), now(), 30)
    memory = sorted(node.memory() for node in site.nodes.values())
    print(f"resident: a node {memory[0]:.1f} to {memory[-1]:.1f} MiB; cameras: {site.n_running()} of {options.cameras + 55}, "
          f"{site.twice} were shown twice; nodes lost their lease {site.lost()} times")
    return table.bad + site.twice


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("framed")
    for name, value in (("cameras", 1000), ("nodes", 20), ("lease", 5), ("members", 1), ("rest", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="framed-cluster-", dir="/dev/shm") as where:
        with etcd_server.cluster(where, options.members) as etcds:
            site = Site(options, where, etcds)
            try:
                bad = measure(site, Table(site))
            finally:
                for node in site.nodes.values():
                    node.end()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
