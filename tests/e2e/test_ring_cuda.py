#!/usr/bin/python3
"""The ring without a copy: in host memory the client's pages are the daemon's, by their physical numbers; in device
memory a PyTorch tensor lies in the slot itself. Both have the same bytes as the sockets beside them, with each
decoder, and a client killed while it holds every slot costs the others nothing. Parts that need a GPU and PyTorch are
skipped without them."""
import os
import signal
import struct
import sys
import threading
import time

import numpy
from cuda_client import BACKEND, DECODERS, MEMORIES, Digests, clip, ring_cuda, torch
from framed_client import PATIENCE, ROOT, Checks, Framed, Process, folder, until

FRAMES = 60
SLOTS = 16  # the other client may stall for half a second on a busy machine
PAGE = os.sysconf("SC_PAGE_SIZE")

VALUES = """
backend: {backend}
defaults: {{overflow: wait}}
cameras:
  clip:
    url: {clip}
    decode: {decode}
    loop: true
    outputs:
      u8: {{size: 640x640, sink: "unix:{where}/u8.sock"}}
      u8_ring: {{size: 640x640, memory: {memory}, sink: "ring:{where}/u8.ring"}}
      f32: {{size: 320x256, tensor: {{dtype: f32, scale: 1/255}}, sink: "unix:{where}/f32.sock"}}
      f32_ring:
        {{size: 320x256, tensor: {{dtype: f32, scale: 1/255}}, memory: {memory}, sink: "ring:{where}/f32.ring"}}
"""

KILLED = """
backend: {backend}
defaults: {{loop: true, pace: realtime}}
cameras:
  drops:
    url: {clip}
    outputs:
      ring: {{size: 640x640, memory: {memory}, slots: {slots}, sink: "ring:{where}/drops.ring"}}
  waits:
    url: {clip}
    outputs:
      ring: {{size: 640x640, memory: {memory}, slots: {slots}, overflow: wait, sink: "ring:{where}/waits.ring"}}
"""

# Returns no slot: a generator dropped before its second step does not.
HOARDER = """
import sys
sys.path.insert(0, {here!r})
import consume, ring_cuda
kind = ring_cuda.Ring if sys.argv[2] == "cuda" else consume.Ring
ring, held = kind(consume.connect("ring:" + sys.argv[1])), []
while True:
    held.append(next(ring.frames()))
    print("frame", file=sys.stderr, flush=True)
"""


# --- the same memory


def mappings(pid, of_file):
    """Returns (address, file offset) of the process's mappings of the file."""
    with open(f"/proc/{pid}/maps") as maps:
        rows = [line.split() for line in maps]
    return [(int(row[0].split("-")[0], 16), int(row[2], 16)) for row in rows if row[3:5] == of_file]


def file_at(address):
    """Returns device and inode of the file mapped at this address of ours, as /proc writes them."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            row = line.split()
            first, end = (int(part, 16) for part in row[0].split("-"))
            if first <= address < end:
                return row[3:5]
    raise OSError(f"nothing is mapped at {address:x}")


def page_frames(pid, address, size):
    """Returns physical page numbers; 0 where the kernel hides them. The top bit of an entry means that the page is present."""
    first, n = address // PAGE, (address + size - 1) // PAGE - address // PAGE + 1
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap:
        entries = struct.unpack(f"<{n}Q", os.pread(pagemap.fileno(), 8 * n, 8 * first))
    return [entry & (1 << 55) - 1 if entry >> 63 else 0 for entry in entries]


class HostLook:
    """Compares the pages of every slot, once each."""

    def __init__(self, checks, pid):
        self.checks, self.pid, self.slots, self.compared = checks, pid, set(), 0

    def __call__(self, ring, header, payload):
        if ring.held[0] in self.slots:
            return
        self.slots.add(ring.held[0])
        array = numpy.frombuffer(payload, "u1")
        array[::PAGE].sum()  # brings the pages in
        base, address = numpy.frombuffer(ring.memory, "u1").ctypes.data, array.ctypes.data
        theirs = mappings(self.pid, file_at(address))
        if not self.checks.check(len(theirs) == 1, f"mapped by the daemon at {theirs}"):
            return
        start, skipped = theirs[0]
        try:
            ours = page_frames("self", address, array.size)
            same = page_frames(self.pid, start - skipped + address - base, array.size)
        except OSError:
            return  # no pagemap in this kernel
        if any(ours) and any(same):
            self.compared += 1
            self.checks.check(all(ours) and ours == same, f"slot {ring.held[0]}: not the daemon's pages")

    def end(self):
        self.checks.check(len(self.slots) > 1, f"slots {self.slots}")
        if not self.compared:
            self.checks.skip("physical page numbers, which the kernel does not tell here")


class DeviceLook:
    """Makes tensors of every frame, one at a time because PyTorch counts memory per process."""

    LOCK = threading.Lock()

    def __init__(self, checks):
        self.checks, self.tensors, self.reused = checks, {}, 0

    def __call__(self, ring, header, payload):
        with self.LOCK:
            self.look(ring, header, payload)

    def look(self, ring, header, payload):
        check, (slot, _), hello = self.checks.check, ring.held, ring.hello
        if not check(isinstance(payload, ring_cuda.DeviceArray), "the slots are not on the device"):
            return
        check(ring.is_whole(), f"{header.sequence}: no ticket before")
        before = torch.cuda.memory_allocated()
        first, second = (torch.as_tensor(payload, device="cuda") for _ in range(2))
        copied = torch.cuda.memory_allocated() - before
        check(copied == 0, f"{header.sequence}: {copied} bytes were allocated for tensors")
        place = ring.device.address.value + hello.slot_offset + slot * hello.slot_stride
        addresses = {first.data_ptr(), second.data_ptr(), payload.__cuda_array_interface__["data"][0]}
        check(addresses == {place}, f"{header.sequence}: tensors at {addresses}, the slot at {place}")
        size = first.numel() * first.element_size()
        check(size == header.payload_bytes, f"a tensor of {size} bytes, a frame of {header.payload_bytes}")
        end = hello.slot_offset + slot * hello.slot_stride + size
        check(end <= ring.device.size.value == hello.device_bytes, f"slot {slot} ends behind the allocation")
        if slot in self.tensors:  # an earlier frame's tensor at the same address
            self.reused += 1
            check(torch.equal(self.tensors[slot], first), f"{header.sequence}: an older tensor is a copy")
        self.tensors[slot] = first
        check(ring.is_whole(), f"{header.sequence}: no ticket behind")

    def end(self):
        self.checks.check(self.reused > 0, "no slot was seen twice")
        self.tensors.clear()


# --- with the daemon


def check_values(checks, where, source, memory, decode):
    what = f"memory {memory}, decode {decode}"
    text = VALUES.format(backend=BACKEND, clip=source, decode=decode, memory=memory, where=where)
    with Framed(where, text) as framed:
        looks = [DeviceLook(checks) if memory == "cuda" else HostLook(checks, framed.child.pid) for _ in range(2)]
        pairs = [
            (Digests(f"unix:{where}/{name}.sock", limit=FRAMES),
             Digests(f"ring:{where}/{name}.ring", memory, limit=FRAMES, look=look))
            for name, look in zip(("u8", "f32"), looks)
        ]
        for reader in sum(pairs, ()):
            reader.join(30 * PATIENCE)
            checks.check(reader.order == list(range(FRAMES)) and reader.lost == 0,
                         f"{what}: {reader.address}: {reader.order}, {reader.lost} lost, {reader.error}")
        for plain, ring in pairs:
            wrong = [n for n in plain.order if plain.frames[n] != ring.frames.get(n)]
            checks.check(not wrong, f"{what}: {ring.address}: frames {wrong} differ")
            checks.check(len(set(plain.frames.values())) > FRAMES // 2, f"{what}: {plain.address}: a still picture")
        for look in looks:
            look.end()
        checks.check(f"decoder {decode}" in framed.errors(), f"{what}: another decoder:\n{framed.errors()}")
        checks.check(framed.stop() == 0, framed.errors())


def check_killed(checks, where, source, memory):
    text = KILLED.format(backend=BACKEND, clip=source, memory=memory, slots=SLOTS, where=where)
    with Framed(where, text) as framed:
        for name in ("drops", "waits"):
            path, what = f"{where}/{name}.ring", f"memory {memory}, {name}"
            good = Digests(f"ring:{path}", memory)
            checks.check(until(lambda: good.order, 20), f"{what}: no frames")
            hoard(checks, where, path, memory, good, what)
            count = len(good.order)
            until(lambda: len(good.order) > count + 30 or not good.is_alive(), 20)
            order = list(good.order)
            checks.check(len(order) > count + 30, f"{what}: {len(order) - count} frames behind the kill: {good.error}")
            checks.check(order == list(range(order[0], order[0] + len(order))), f"{what}: the other one got {order}")
            checks.check((good.lost, good.gone) == (0, 0), f"{what}: the other one lost {good.lost}, {good.gone}")
            late = Digests(f"ring:{path}", memory, limit=10)
            late.join(20 * PATIENCE)
            checks.check(len(late.order) == 10, f"{what}: who comes later gets {len(late.order)}: {late.error}")
            losses = framed.live_metrics().losses(camera=name)
            checks.check(set(losses) <= {"client"}, f"{what}: {losses}")  # before the first client connected
        checks.check(framed.stop() == 0, framed.errors())


def stands_still(client):
    """Returns True if the client gets no more frames; it may still have some to read."""
    before = len(client.order)
    time.sleep(0.4)
    return len(client.order) == before


def hoard(checks, where, path, memory, good, what):
    """A client takes all available frames and is killed. With overflow wait it then holds every slot, and all others wait for it."""
    program = HOARDER.format(here=os.path.join(ROOT, "tests", "e2e"))
    with Process([sys.executable, "-c", program, path, memory], f"{where}/hoarder.log") as hoarder:
        took = until(lambda: hoarder.errors().count("frame") >= SLOTS, 20)
        checks.check(took, f"{what}: the hoarder has too little:\n{hoarder.errors()}")
        if what.endswith("waits"):
            checks.check(until(lambda: stands_still(good), 5), f"{what}: frames although a client has every slot")
        hoarder.child.send_signal(signal.SIGKILL)
        hoarder.wait(5)


def main():
    checks = Checks("ring_cuda")
    with folder() as where:
        source = clip(where)
        for memory in MEMORIES:
            for decode in DECODERS:
                check_values(checks, where, source, memory, decode)
            check_killed(checks, where, source, memory)
    if not torch:
        checks.skip("device memory: no GPU or no PyTorch")
    checks.end()


main()
