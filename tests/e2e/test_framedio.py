#!/usr/bin/python3
"""framedio, the Python client: with the real daemon it returns the same as a reader of the bytes; with a ring of this test's own it detects torn
frames, and its arrays stay readable. Its structs match the C headers."""
import asyncio
import ctypes
import gc
import itertools
import logging
import os
import re
import subprocess
import sys
import threading
import time

import numpy
from framed_client import PATIENCE, ROOT, Checks, Framed, Reader, consume, folder, framedio_environment, free_port, make_clip, run
from ring_sender import RingSender

if "framedio" not in sys.argv:  # restart: the loader reads its environment only when a process starts
    os.execve(sys.executable, [sys.executable, *sys.argv, "framedio"], framedio_environment())
import framedio
from framedio import dlpack, library

COUNT = 30
CONFIG = """
backend: cpu
defaults: {{overflow: wait, slots: 8}}
cameras:
  clip:
    url: {where}/clip.mp4
    outputs:
      ring: {{size: 320x256, tensor: {{dtype: f16, layout: nhwc}}, sink: "ring:{where}/frames.ring"}}
      unix: {{size: 320x256, tensor: {{dtype: f16, layout: nhwc}}, sink: "unix:{where}/frames.sock"}}
      tcp: {{size: 320x256, tensor: {{dtype: f16, layout: nhwc}}, sink: "tcp:127.0.0.1:{port}"}}
      bytes: {{size: 320x256, tensor: {{dtype: f16, layout: nhwc}}, sink: "unix:{where}/bytes.sock"}}
"""
BATCHES = """
backend: cpu
defaults: {{loop: true, pace: realtime, size: 160x160, slots: 8}}
cameras:
  gate: {{url: {where}/clip.mp4, outputs: {{one: {{sink: "ring:{where}/gate.ring"}}}}}}
  yard: {{url: {where}/clip.mp4}}
batches:
  ring: {{cameras: ["*"], count: 3, tail: zero, wait: 200ms, sink: "ring:{where}/batches.ring"}}
"""
VIEW_FIELDS = "header", "batch", "elements", "ticket", "shared", "reserved"
SIZES = """
#include <stdio.h>
#include "client/framed.h"
#define SIZE(type) printf("%zu ", sizeof(struct type))
#define OFFSET(field) printf("%zu ", offsetof(struct framed_view, field))
int main(void)
{
    SIZE(framed_format); SIZE(framed_model); SIZE(framed_output); SIZE(framed_found);
    SIZE(framed_header); SIZE(framed_element_header); SIZE(framed_batch); SIZE(framed_view); SIZE(framed_counts);
    printf("%zu %zu ", offsetof(struct framed_model, conf), offsetof(struct framed_model, iou));
    printf("%zu ", offsetof(struct framed_found, detections));
    OFFSET(header); OFFSET(batch); OFFSET(elements); OFFSET(ticket); OFFSET(shared); OFFSET(reserved);
}
"""


class Taker(threading.Thread):
    """Records the first frames of a sink, read by framedio."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.frames = address, []
        self.start()

    def run(self):
        with framedio.open(self.address, newest=False, timeout=20 * PATIENCE) as reader:
            for frame in itertools.islice(reader, COUNT):
                array = frame.numpy()
                facts = frame.camera, frame.sequence, frame.epoch, frame.source_size, frame.age < 10 * PATIENCE
                box = frame.to_source([[10, 20, 30, 40, 0.5]], clip=False)
                self.frames.append((facts, array.tobytes(), array.shape, array.dtype, array.flags.writeable, frame.whole, box))


def check_frames(checks, where):
    port = free_port()
    plain = Reader(f"unix:{where}/bytes.sock", COUNT)
    takers = {kind: Taker(address) for kind, address in (
        ("ring", f"ring:{where}/frames.ring"), ("unix", f"unix:{where}/frames.sock"), ("tcp", f"tcp:127.0.0.1:{port}"))}
    with Framed(where, CONFIG.format(where=where, port=port)):
        plain.join(30 * PATIENCE)
        for kind, taker in takers.items():
            taker.join(30 * PATIENCE)
            checks.check(len(taker.frames) == COUNT == plain.count, f"{kind}: {len(taker.frames)} of {plain.count} frames")
            for (header, payload), seen in zip(plain.frames, taker.frames):
                facts, data, shape, dtype, writeable, whole, box = seen
                expected = "clip", header.sequence, header.epoch, (header.source_width, header.source_height), True
                checks.check(facts == expected and data == payload, f"{kind}: {facts}, not {expected}")
                checks.check(shape == (256, 320, 3) and dtype == "f2" and writeable == (kind != "ring") and whole,
                             f"{kind}: {shape} {dtype} writeable {writeable} whole {whole}")
                corners = [*consume.corner_in_source(header, 10, 20), *consume.corner_in_source(header, 30, 40), 0.5]
                checks.check(numpy.allclose(box, [corners], atol=1e-3), f"{kind}: {box}, not {corners}")


def check_batches(checks, where):
    with Framed(where, BATCHES.format(where=where)):
        with framedio.open(f"ring:{where}/batches.ring", newest=False, timeout=20 * PATIENCE) as reader:
            for batch in itertools.islice(reader, 10):
                array = batch.numpy()
                checks.check(array.shape == (len(batch), 3, 160, 160) == batch.shape and batch.capacity == 3, f"{batch}")
                filled = [element for element in batch if not element.empty]
                checks.check(1 <= len(filled) <= 2 and {e.camera for e in filled} <= {"gate", "yard"}, f"{batch.cameras}")
                boxes = batch.to_source([[[0, 20, 160, 140]]] * len(batch))
                for element in filled:
                    checks.check(numpy.shares_memory(element.numpy(), array[element.index]), f"{element}: another memory")
                    checks.check((element.numpy() == array[element.index]).all(), f"{element}: other bytes")
                    checks.check(boxes[element.index] == [[0, 0, 320, 240]], f"{element}: {boxes}")
                    matrix = batch.matrices[element.index]
                    checks.check(numpy.allclose(matrix, [[2, 0, 0.5], [0, 2, -39.5]]), f"{element}: {matrix}")
                kept, before = batch.keep(), array.copy()
            reader.close()
            checks.check((kept.numpy() == before).all() and kept[0].camera == batch.cameras[0], "a batch that was kept")


def check_async(checks, where):
    """Three outputs at once on one thread; a timeout."""

    async def take(address, count):
        seen = []
        async with framedio.aopen(address, timeout=20 * PATIENCE) as reader:
            async for frame in reader:
                seen.append((frame.numpy().mean(), frame.whole))
                if len(seen) == count:
                    return seen

    async def take_all():
        addresses = [f"ring:{where}/gate.ring", f"ring:{where}/batches.ring", f"ring:{where}/gate.ring"]
        taken = await asyncio.gather(*(take(address, 20) for address in addresses))
        for address, seen in zip(addresses, taken):
            checks.check(len(seen) == 20 and all(whole and 25 < mean < 230 for mean, whole in seen), f"{address}: {seen}")
        begun = time.monotonic()
        try:
            await anext(framedio.aopen(f"unix:{where}/nothing.sock", timeout=0.3))
            checks.check(False, "a frame from nowhere")
        except framedio.Timeout as error:
            took = time.monotonic() - begun
            checks.check(took >= 0.29 and "No such file" in str(error), f"{error} after {took} s")
        checks.check(threading.active_count() == 1, f"{threading.enumerate()}")

    async def take_slowly(address, seen):
        """Handles a frame more slowly than the camera sends."""
        async for frame in framedio.aopen(address):
            seen.append(frame.sequence)
            time.sleep(0.1)
            if len(seen) == 15:
                return

    async def share():
        taken = [], []
        await asyncio.wait([asyncio.create_task(take_slowly(f"ring:{where}/gate.ring", seen)) for seen in taken],
                           return_when=asyncio.FIRST_COMPLETED)
        checks.check(min(map(len, taken)) > 5, f"of two slow readers one has {min(map(len, taken))} frames behind 15 of the other")

    with Framed(where, BATCHES.format(where=where)):
        asyncio.run(asyncio.wait_for(take_all(), 60 * PATIENCE))
        asyncio.run(share())


def check_torn(checks, where):
    sender = RingSender(where)
    with framedio.open(f"ring:{sender.path}", timeout=10 * PATIENCE) as reader:
        checks.check(reader.poll() is None, "a frame from nowhere")
        sender.accept()
        for slot, level in enumerate((10, 20, 30)):
            sender.send(slot, level, slot + 1)
        frame = next(reader)
        checks.check(frame.sequence == 3 and reader.skipped == 2 and frame.whole and frame.valid, f"{frame}")
        checks.check(frame.shape == frame.numpy().shape == (3, 4, 16), f"{frame}")
        boxes = frame.to_source([[-5, 1, 20, 99]]), frame.to_source([[-5, 1, 20, 99]], clip=False)
        checks.check(boxes == ([[0, 1, 16, 4]], [[-5, 1, 20, 99]]), f"{boxes}")
        array, kept, memory = frame.numpy(), frame.keep(), frame.data
        sender.send(2, 35, 4, tell=False)
        checks.check(not frame.whole, "a frame that was taken away is whole")
        try:
            frame.keep()
            checks.check(False, "a torn frame was kept")
        except framedio.Torn:
            pass
        checks.check((kept.numpy() == 30).all() and kept.whole and kept.sequence == 3, "the copy has changed")
        sender.send(0, 40, 5)
        second = next(reader)
        checks.check(reader.torn == 1 and not frame.valid and not frame.whole and second.whole, f"{reader.counts()}")
        second.release()
        second.release()
        checks.check(not second.valid, "released, but valid")
        returned = consume.SLOT.iter_unpack(sender.peer.recv(4096) + sender.peer.recv(4096) + sender.peer.recv(4096))
        checks.check([ticket for *_, ticket in returned] == [1, 2, 3, 5], "the slots that were given back")
        sender.hang_up()
        checks.check(reader.poll() is None and "closed the connection" in reader.error, reader.error)
        threading.Timer(0.05, sender.accept).start()
        time.sleep(0.1)
        threading.Timer(0.3, lambda: sender.send(1, 50, 6)).start()
        checks.check(next(reader).numpy()[0, 0, 0] == 50, "the next daemon's frame")
        gc.collect()
        checks.check((array == 35).all() and bytes(memory) == bytes([35]) * 192, "the first daemon's memory")
    checks.check((array == 35).all(), "memory behind the reader's end")
    sender.hang_up()


def check_errors(checks, where):
    for address in ("gate.ring", "tcp:host", f"unix:{'x' * 200}"):
        try:
            framedio.open(address)
            checks.check(False, f"{address}: was opened")
        except ValueError as error:
            checks.check(address in str(error), str(error))
    try:
        next(framedio.open(f"unix:{where}/nothing.sock", reconnect=False))
        checks.check(False, "a frame from nowhere")
    except framedio.Gone as error:
        checks.check("No such file" in str(error), str(error))
    logged, handler = [], logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger("framedio").addHandler(handler)
    try:
        framedio.open(f"unix:{where}/nothing.sock").next(timeout=0.4)
        checks.check(False, "a frame from nowhere")
    except framedio.Timeout:
        pass
    logging.getLogger("framedio").removeHandler(handler)
    checks.check(logged == [f"unix:{where}/nothing.sock: No such file or directory"], f"logged {logged}")


def check_closed(checks, where):
    """A closed reader still returns its counts, and refuses the rest."""
    sender = RingSender(where, "closed")
    with framedio.open(f"ring:{sender.path}", timeout=10 * PATIENCE) as reader:
        reader.poll()
        sender.accept()
        sender.send(0, 10, 1)
        frame = next(reader)
    reader.close()
    checks.check(reader.counts()["frames"] == 1 and reader.skipped == reader.torn == 0 and reader.error == "", "its counts")
    frame.release()
    checks.check(not frame.valid and not frame.whole, "a frame outlives its reader")
    for refused in (reader.poll, reader.next, reader.fileno, lambda: next(reader), lambda: frame.send([])):
        try:
            refused()
            checks.check(False, "a closed reader reads")
        except ValueError as error:
            checks.check("closed" in str(error), str(error))
    sender.hang_up()


def check_threads(checks, where):
    """Detections sent by threads while another one reads reach the daemon whole, and so does every slot."""
    sender = RingSender(where, "threads")
    messages, kept = [], []
    results_left, frames_left = threading.Semaphore(20), threading.Semaphore(20)  # a full socket accepts neither

    def read_messages():
        while message := sender.peer.recv(65536):
            messages.append(message)
            if message.startswith(b"FRRS"):
                results_left.release()
            else:
                frames_left.release(len(message) // consume.SLOT.size)

    def send():
        for _ in range(2000):
            results_left.acquire(timeout=10 * PATIENCE)
            kept[0].send([[1, 2, 3, 4, 0.5, 7]] * 10)

    with framedio.open(f"ring:{sender.path}", newest=False, timeout=10 * PATIENCE) as reader:
        reader.poll()
        sender.accept()
        sender.send(0, 10, 1)
        kept.append(next(reader).keep())
        threads = [threading.Thread(target=send) for _ in range(2)]
        daemon = threading.Thread(target=read_messages)
        for thread in (daemon, *threads):
            thread.start()
        count = 1
        while any(thread.is_alive() for thread in threads):
            count += 1
            frames_left.acquire(timeout=10 * PATIENCE)
            sender.send(count % 3, 10, count)
            next(reader)
        sent = reader.counts()["results"]
    daemon.join(10 * PATIENCE)
    results = [message for message in messages if message.startswith(b"FRRS")]
    returned = [ticket for message in messages if not message.startswith(b"FRRS")
                for *_, ticket in consume.SLOT.iter_unpack(message)]
    checks.check(returned == list(range(1, count)), f"{len(returned)} slots came back of {count - 1}")
    checks.check(len(results) == sent and {len(message) for message in results} == {32 + 10 * 32}, f"{len(results)} of {sent}")
    sender.hang_up()


def check_dlpack(checks):
    """Tests the capsules that export GPU memory, here around host memory, which numpy can read."""
    array = numpy.arange(24, dtype="f4").reshape(2, 3, 4)

    class Payload:
        pointer, shape = array.ctypes.data, array.shape

        def __dlpack_device__(self):
            return dlpack.CPU, 0

        def __dlpack__(self, stream=None):
            return dlpack.capsule_of(self, "<f4", None)

    read = numpy.from_dlpack(Payload())
    checks.check(read.shape == (2, 3, 4) and (read == array).all() and numpy.shares_memory(read, array), f"{read}")
    del read
    gc.collect()
    capsule = dlpack.capsule_of(Payload(), "<f4", (1, 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    made = dlpack.Versioned.from_address(get(capsule, b"dltensor_versioned"))
    checks.check((made.major, made.flags, made.tensor.ndim, made.tensor.data) == (1, 1, 3, array.ctypes.data), "versioned")


def check_dlpack_arguments(checks, where):
    """A consumer may request only this device, and gets a copy of a ring's frame unless it can receive read-only memory."""
    sender = RingSender(where, "dlpack")
    reader = framedio.open(f"ring:{sender.path}", timeout=10 * PATIENCE)
    reader.poll()
    sender.accept()
    sender.send(0, 10, 1)
    frame = next(reader)
    for asked in ({"dl_device": (2, 0)}, {"dl_device": (1, 1)}, {"copy": False}, {"copy": False, "max_version": (0, 8)}):
        try:
            frame.__dlpack__(**asked)
            checks.check(False, f"a capsule for {asked}")
        except BufferError as error:
            checks.check("device" in str(error) or "read-only" in str(error), str(error))
    lent, kept = frame.numpy(), frame.keep()
    for asked in ({}, {"copy": True}, {"dl_device": (1, 0), "copy": None}):
        for read, payload in ((lent, frame), (kept.numpy(), kept)):
            form = type("Form", (), {"__dlpack__": lambda self, payload=payload, **_: payload.__dlpack__(**asked),
                                     "__dlpack_device__": lambda self: (1, 0)})()
            array = numpy.from_dlpack(form)
            same = numpy.shares_memory(array, read)
            checks.check((array == read).all() and same == (payload is kept and not asked.get("copy")), f"{asked} {same}")
    child = os.fork()
    if child == 0:
        try:
            reader.poll()
        except framedio.Gone as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    checks.check(os.waitpid(child, 0)[1] == 0, "a child reads with its parent's reader")
    checks.check(frame.whole and frame.valid, "the parent's frame")
    reader.close()
    sender.hang_up()


def check_structs(checks, where):
    with open(f"{where}/sizes.c", "w") as file:
        file.write(SIZES)
    subprocess.run(["cc", "-I", ROOT, "-o", f"{where}/sizes", f"{where}/sizes.c"], check=True)
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    said = subprocess.run([f"{where}/sizes"], check=True, capture_output=True, text=True, env=plain).stdout
    kinds = (library.Format, library.Model, library.Output, library.Found, library.Header, library.ElementHeader,
             library.BatchHeader, library.View, library.Counts)
    inner = [library.Model.conf.offset, library.Model.iou.offset, library.Found.detections.offset]
    offsets = inner + [getattr(library.View, name).offset for name in VIEW_FIELDS]
    ours = [*map(ctypes.sizeof, kinds), *offsets]
    checks.check(list(map(int, said.split())) == ours, f"in C {said}, here {ours}")


def check_package(checks, where):
    """pip installs it from the tree without a network; it imports neither numpy nor asyncio."""
    with open(f"{ROOT}/client/pyproject.toml") as file:
        version = re.search(r'^version = "(.*)"$', file.read(), re.M)[1]
    checks.check(f"framed {version}" in run("version")[1], f"version {version}, not that of framed")
    tree = f"{where}/client"
    subprocess.run(["cp", "-r", f"{ROOT}/client", tree], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--root-user-action",
           "ignore", "--target", f"{where}/site", tree]
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(pip, capture_output=True, text=True, env=plain)
    if not checks.check(done.returncode == 0, done.stderr):
        return
    ask = "import sys, framedio; print(framedio.__file__, {'numpy', 'asyncio', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, cwd=where,
                          env={**os.environ, "PYTHONPATH": f"{where}/site"})
    checks.check(done.stdout == f"{where}/site/framedio/__init__.py set()\n", done.stdout + done.stderr)


def main():
    checks = Checks("framedio")
    with folder() as where:
        make_clip(os.path.join(where, "clip.mp4"))
        check_frames(checks, where)
        check_batches(checks, where)
        check_async(checks, where)
        check_torn(checks, where)
        check_errors(checks, where)
        check_closed(checks, where)
        check_threads(checks, where)
        check_dlpack(checks)
        check_dlpack_arguments(checks, where)
        check_structs(checks, where)
        check_package(checks, where)
    checks.end()


main()
