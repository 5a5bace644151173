#!/usr/bin/python3
"""Eighteen cameras for FRAMED_SOAK_SECONDS (600): H.264 and H.265, over TCP, UDP and TLS, two of three recorded by kernel:
copy, and in several batches. Twelve have random faults: none of their pictures is doubled, out of order or damaged without a
flag, and each is good at the end; the other six lose nothing, and their recordings match what they sent. Every ledger is
exact, also for batches, and memory, descriptors and threads stay flat."""
import collections
import gc
import glob
import os
import random
import ssl
import threading
import time

from torment import Batches, Holdings, Stage
import batch_client
from batch_client import BatchReader
from certificate import make_certificate
from containers import samples
from faulty_camera import Camera, Connection
from framed_client import Checks, Framed, folder, until
from numbered_clip import GOP, NumberedClip, encode
from watch import OUTPUT, Account, check_ledger, check_steady, reference

SECONDS = float(os.environ.get("FRAMED_SOAK_SECONDS", "600"))
WARM_SECONDS = 60  # after which first use of memory no longer counts
SEED = int(os.environ.get("FRAMED_SOAK_SEED", "1"))
PICTURES = 4000  # of a clip: a watcher may be behind by half of them, 80 s
SIZES = {codec: [(320, 192), (480, 288)] for codec in ("h264", "h265")}
METHODS = ("OPTIONS", "DESCRIBE", "SETUP", "PLAY", "TEARDOWN")

CAMERA = """
  {name}:
    url: {url}
    transport: {transport}
    tls: {{verify: false}}
    rois: {{door: [16, 32, 120, 96], lane: [101, 33, 64, 128]}}
    media_timeout: 2s
    close_timeout: 300ms
    outputs:
      o: {output}, sink: "unix:{where}/{name}.sock"}}
"""
RECORDING = """
      recording: {{kernel: copy, segment: 1m, keep: 5m, sink: "file:{where}/{name}-%Y%m%d-%H%M%S.{container}"}}
"""

# In addition to those of Batches: of regions and tiles, and to a file, which is kept small.
PARTS = """
  regions: {{cameras: ["*tcp*"], roi: all, size: 64x48, count: 8, wait: 20ms, slots: 48, sink: "unix:{where}/regions"}}
  tiles: {{cameras: ["*udp*", "!*udp2"], tiles: {{size: 160}}, size: 64x64, count: 8, slots: 48, fps: 5, sink: "ring:{where}/tiles"}}
  filed: {{cameras: "*", size: 32x32, tensor: {{dtype: u8}}, count: 6, fps: 2, sink: "file:{where}/filed.framed"}}
"""
THINNED = ("tiles", "filed")

# recorded: the container, or ""
Kind = collections.namedtuple("Kind", "codec transport recorded")
FLAPPING = [Kind(codec, transport, recorded) for codec in SIZES for transport in ("tcp", "udp", "tls")
            for recorded in ("", "mp4" if transport == "tcp" else "mkv")]
STEADY = [kind for kind in FLAPPING if kind.recorded]


class Varied(Stage):
    """Cameras of all kinds, the flapping ones first."""

    def __init__(self, where):
        self.where, self.clips, self.digests, self.watchers = where, {}, {}, {}
        for codec, sizes in SIZES.items():
            for size in sizes:
                path = encode(f"{where}/{size[0]}.{codec}", PICTURES, codec, size)
                self.clips.setdefault(codec, []).append(NumberedClip(path, codec))
                self.digests.update(reference(path))
        secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secure.load_cert_chain(make_certificate(where, "camera.pem")[0])
        self.kinds = {f"{kind.codec}-{kind.transport}{i}": kind for i, kind in enumerate(FLAPPING + STEADY)}
        self.flapping, self.cameras = list(self.kinds)[: len(FLAPPING)], {}
        for name, kind in self.kinds.items():
            self.cameras[name] = Camera(self.clips[kind.codec][0], tls=secure if kind.transport == "tls" else None)
            self.cameras[name].clips = self.clips[kind.codec]
        self.batches, self.parts = Batches(where, self.cameras, self.digests), {}

    def watch(self):
        super().watch()
        self.parts = {"regions": BatchReader(f"unix:{self.where}/regions"), "tiles": BatchReader(f"ring:{self.where}/tiles")}

    def config(self):
        text = "log: {level: warning}\ncameras:"
        for name, kind in self.kinds.items():
            url, transport = self.cameras[name].url(), "udp" if kind.transport == "udp" else "tcp"
            text += CAMERA.format(name=name, url=url, transport=transport, output=OUTPUT, where=self.where)
            if kind.recorded:
                text += RECORDING.format(name=name, container=kind.recorded, where=self.where)
        return text + self.batches.text() + PARTS.format(where=self.where)

    def recordings(self, name):
        return sorted(glob.glob(f"{self.where}/{name}-*.{self.kinds[name].recorded}"))


def lose_packet(connection):
    def but_one(payloads):
        lost = random.randrange(len(payloads))
        return [None if i == lost else payload for i, payload in enumerate(payloads)]

    connection.mangle = but_one


def lose_picture(connection):
    connection.mangle = lambda payloads: [None] * len(payloads)


def resize(connection):
    """The pictures have another size from the next keyframe on."""
    camera = connection.camera

    def change(connection):
        one, other = camera.clips
        connection.clip = camera.clip = other if connection.clip is one else one

    camera.next(change, (camera.number // GOP + 1) * GOP)


def stray(connection):
    """Sends packets of noise."""
    connection.transport.send([random.randbytes(random.randrange(1, 1400)) for _ in range(20)])


ACTS = {
    "fin": Connection.fin,
    "half a picture": Connection.half,
    "reset": Connection.reset,
    "bye": Connection.bye,
    "mute": Connection.go_mute,
    "frozen": lambda connection: connection.freeze(1),
    "an hour on": lambda connection: connection.jump(3600),
    "a minute back": lambda connection: connection.jump(-60),
    "the sender's clock": lambda connection: connection.wall_step(-3600),
    "a packet lost": lose_packet,
    "a picture lost": lose_picture,
    "begins anew": Connection.restart,
    "babble": lambda connection: connection.babble(100),
    "noise": lambda connection: connection.noise(500),
    "garbage": Connection.garble,
    "another size": resize,
    "stray packets": stray,
}


def note(done, name):
    """Returns an act that first records the number of the picture before which it happens."""

    def act(connection):
        done.append((connection.camera.number, name))
        ACTS[name](connection)

    return act


def fail(camera, chance, over):
    """Hangs up, and refuses streams for a while."""
    way = chance.choice(("refuses", "slams", "is deaf", *METHODS))
    if way == "refuses":
        camera.refuse()
    camera.slam, camera.deaf, camera.mute = way == "slams", way == "is deaf", {way} & set(METHODS)
    camera.next(Connection.fin)
    over.wait(chance.uniform(0.5, 6))
    camera.slam, camera.deaf, camera.mute = False, False, set()
    while camera.held:
        camera.held.pop().close()
    if way == "refuses":
        camera.listen()


def flap(camera, seed, over, done):
    """Causes one fault after another."""
    chance = random.Random(seed)
    while not over.wait(chance.uniform(2, 10)):
        camera.next(note(done, chance.choice(list(ACTS))))
        if chance.random() < 0.2:
            fail(camera, chance, over)


def watch_over(stage, framed, holdings):
    begin = told = time.monotonic()
    while time.monotonic() - begin < SECONDS and framed.child.poll() is None:
        time.sleep(1)
        kib, files, threads = holdings.sample()
        if time.monotonic() - told >= 60:
            told = time.monotonic()
            plays = sum(camera.plays for camera in stage.cameras.values())
            print(f"{told - begin:4.0f} s: {plays} connections, {kib / 1024:.1f} MiB, {files} descriptors, {threads}"
                  " threads", flush=True)


def check_end(checks, stage, framed):
    """Every camera is good within the longest reconnect pause after the end of all faults."""
    numbers = {name: camera.number for name, camera in stage.cameras.items()}
    for name, watcher in stage.watchers.items():
        good = until(lambda: len(watcher.good_after(numbers[name])) > 25, 45)
        checks.check(good, f"{name}: not good at the end:\n{framed.errors()[-2000:]}")


def check_batches(checks, stage, metrics, acts):
    """All sums match, and each picture of a steady camera is in each of its batches."""
    stage.batches.check(checks, metrics)
    for batch, watcher in stage.batches.watchers.items():
        for name in set(stage.batches.members(metrics, batch)) - set(acts):
            check_steady(checks, metrics, name, stage.cameras[name], watcher.shares[name], batch)
    found = {"filed": batch_client.read_file(f"{stage.where}/filed.framed")}
    for name, reader in stage.parts.items():
        reader.join(5)
        checks.check(not reader.error, f"{name}: {reader.error}")
        found[name] = reader.batches
    for name, batches in found.items():
        pictures = collections.Counter(element.camera for batch in batches for element in batch.elements
                                       if element.part == 0)
        elements = [element for batch in batches for element in batch.elements]
        whole = sum(element.part == element.parts - 1 for element in elements)
        checks.check(whole == sum(pictures.values()), f"{name}: {whole} pictures end, {sum(pictures.values())} begin")
        closed = metrics.sum("framed_batches_total", batch=name)
        checks.check(closed == len(batches), f"{name}: {closed} batches closed, {len(batches)} seen")
        lost = batch_client.check_ledger(checks, metrics, name, pictures, stage.batches.members(metrics, name))
        batch_client.check_order(checks, name, batches, name in THINNED)
        print(f"batch {name}: {len(batches)} batches, {len(elements)} elements, lost {dict(sum(lost.values(), collections.Counter()))}")


def check_recordings(checks, stage, metrics, name):
    """Every offered picture is accounted for, and each file can be read; a steady camera's files contain its pictures, each once."""
    offered, emitted, lost = metrics.account(camera=name, output="recording")
    checks.check(offered == emitted + lost > 0, f"{name}: recording: {offered} offered, {emitted} emitted, {lost} lost")
    paths = stage.recordings(name)
    found = [sample for path in paths for sample in samples(path)]
    checks.check(found and not glob.glob(f"{stage.where}/{name}*.part"), f"{name}: {len(found)} pictures in {paths}")
    if name not in stage.flapping:
        known = {tuple(unit): number for number, unit in enumerate(stage.cameras[name].clip.units)}
        numbers = [known.get(tuple(sample.nals)) for sample in found]
        steps = collections.Counter((b - a) % PICTURES for a, b in zip(numbers, numbers[1:]) if None not in (a, b))
        checks.check(None not in numbers and set(steps) == {1} and not lost, f"{name}: steps {steps}, {lost} lost in {paths}")
    return len(paths)


def tell_unflagged(name, account, seen, done):
    """Prints the faults before each unflagged picture, estimated from the pictures around it."""
    for sequence in account.unflagged:
        at = next(i for i, one in enumerate(seen) if one.header.sequence == sequence)
        number = max((one.known for one in seen[max(0, at - 100) : at]), default=0)
        acts = [(when, what) for when, what in done if abs(when - number) < 250]
        print(f"{name}: picture {sequence}, some way behind {number}: {acts}", flush=True)


def check_accounts(checks, stage, metrics, acts):
    totals = {what: collections.Counter() for what in ("flap", "are steady")}
    for name, watcher in stage.watchers.items():
        watcher.join(5)
        check_ledger(checks, metrics, name, watcher.seen)
        files = check_recordings(checks, stage, metrics, name) if stage.kinds[name].recorded else 0
        account = Account(stage.cameras[name].sent, watcher.seen)
        account.check(checks, name)
        if name not in acts:
            check_steady(checks, metrics, name, stage.cameras[name], watcher.seen)
        tell_unflagged(name, account, watcher.seen, acts.get(name, []))
        totals["flap" if name in acts else "are steady"].update(
            {"cameras": 1, "connections": stage.cameras[name].plays, "recordings": files, "seen": account.count,
             "flagged": account.flagged,
             **{what: len(getattr(account, what)) for what in ("missing", "doubled", "disordered", "unflagged")}})
    for what, total in totals.items():
        print(f"cameras that {what}:", ", ".join(f"{count} {which}" for which, count in total.items()), flush=True)


def main():
    checks = Checks("soak")
    over = threading.Event()
    gc.disable()  # millions of pictures are kept here, and scanning them would delay the cameras
    with folder() as where, Varied(where) as stage:
        acts = {name: [] for name in stage.flapping}
        with Framed(where, stage.config()) as framed:
            stage.watch()
            for i, (name, done) in enumerate(acts.items()):
                arguments = stage.cameras[name], SEED * 1000 + i, over, done
                threading.Thread(target=flap, args=arguments, daemon=True).start()
            holdings = Holdings(framed)
            watch_over(stage, framed, holdings)
            over.set()
            time.sleep(5)
            for camera in stage.cameras.values():
                camera.call_off()  # pending acts of a camera that was away
            check_end(checks, stage, framed)
            code = framed.stop()
            checks.check(code == 0, f"exit {code}")
            holdings.tell_ends()
            if SECONDS >= WARM_SECONDS:
                holdings.check_flat(checks)
            check_accounts(checks, stage, framed.metrics(), acts)
            check_batches(checks, stage, framed.metrics(), acts)
    checks.end()


main()
