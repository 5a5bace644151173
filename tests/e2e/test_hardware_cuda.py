#!/usr/bin/python3
"""NVIDIA's decoder as generic hardware (`decode: cuda`), on the same path as VAAPI: framed verify finds it and NVDEC equal, `decode: auto` uses it
where the kernels run on the cpu, and cameras get the cpu's bytes, with and without B-frames and with a live camera's pictures ahead of libavcodec's
output. If it fails in mid-stream, the CPU decodes the rest, and the GPU decodes the file again from its start. Needs a GPU.

usage: test_hardware_cuda.py [FOLDER]   with FOLDER only makes the clips there
environment: FRAMED_CLIPS, such a folder, for a box without ffmpeg"""
import concurrent.futures
import hashlib
import json
import os
import re
import socket
import sys
import threading
import time

from framed_client import BINARY, Checks, Framed, consume, folder, free_port, make_clip, run, until

GPU = os.path.exists("/dev/nvidiactl")
SHIM = os.path.join(os.path.dirname(BINARY), "faults", "decoder.so")
FRAMES, RATE = 100, 25
FAULT_AT = 55
FILES = {f"{codec}-{b_frames}.mp4": (codec, "640x360", b_frames) for codec in ("h264", "h265") for b_frames in (0, 2)}
# All pictures of a clip differ, to detect one that comes too early or twice.
CLIPS = {**FILES, "live.ts": ("h264", "320x240", 2), "gate.mp4": ("h264", "320x240", 2)}
CAMERA = """
  {name}:
    url: {url}
    decode: {decode}
    {keys}
    outputs:
      planes: {{kernel: yuv, format: yuv420p, overflow: wait, sink: "{sink}"}}
"""
FAILED = "cuda failed ({}): decoding on the cpu"
FAULTS = {  # fault -> the log's text
    f"copy:{FAULT_AT}": FAILED.format("Input/output error"),
    f"copy-hang:{FAULT_AT}": FAILED.format("no answer for 0.5 s"),
}


def make_clips(where):
    for name, (codec, size, b_frames) in CLIPS.items():
        make_clip(f"{where}/{name}", codec, FRAMES, size, RATE, b_frames)


def config(*cameras):
    return "backend: cpu\ncameras:" + "".join(cameras)


class Reader(threading.Thread):
    """Records the digests of a socket's frames, and their times of arrival."""

    def __init__(self, address, limit=None):
        super().__init__(daemon=True)
        self.address, self.limit = address, limit
        self.digests, self.times = [], []
        self.start()

    def run(self):
        try:
            for _, payload in consume.frames_from(self.address, 10):
                self.digests.append(hashlib.sha256(payload).digest())
                self.times.append(time.monotonic())
                if len(self.digests) == self.limit:
                    return
        except (OSError, ValueError):
            pass

    def longest_gap(self):
        return max((b - a for a, b in zip(self.times, self.times[1:])), default=float("inf"))


class Stream(threading.Thread):
    """A live stream over tcp: sends a clip in real time to each client."""

    def __init__(self, clip):
        super().__init__(daemon=True)
        with open(clip, "rb") as file:
            self.bytes = file.read()
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.url = "tcp://127.0.0.1:{}".format(self.listener.getsockname()[1])
        self.start()

    def run(self):
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self.send, args=[peer], daemon=True).start()

    def send(self, peer):
        begun, piece = time.monotonic(), 188
        try:
            for at in range(0, len(self.bytes), piece):
                peer.sendall(self.bytes[at:at + piece])
                time.sleep(max(0, begun + at / len(self.bytes) * FRAMES / RATE - time.monotonic()))
            peer.close()
        except OSError:
            pass


def check_verify(checks, where):
    code, output, errors = run("verify", "--decoders", env={"STATE_DIRECTORY": where}, timeout=120)
    print(output, end="")  # frames per second
    checks.check(code == 0, f"exit {code}:\n{output}{errors}")
    for decoder in ("nvdec", "cuda"):
        for clip in ("h264  8", "hevc  8", "hevc 10"):
            checks.check(re.search(rf"^{decoder} +{clip} bits .* equal ", output, re.M), f"{decoder} {clip}:\n{output}")
    with open(f"{where}/decoders") as file:
        record = file.read()
    for clip in ("h264 8", "hevc 8", "hevc 10"):
        checks.check(re.search(rf"^decoder cuda {clip} \d", record, re.M), record)
    with open(f"{where}/decoders", "w") as file:  # makes the CPU slow in the record, on any processor
        file.write(re.sub(r"^(decoder cpu \w+ \d+) .*", r"\1 1.0", record, flags=re.M))


def check_files(checks, clips, where):
    cameras = [CAMERA.format(name=f"{clip[:-4]}-{decode}", url=f"{clips}/{clip}", decode=decode, keys="",
                             sink=f"file:{where}/{clip}-{decode}.raw")
               for clip in FILES for decode in ("cpu", "cuda", "auto")]
    with Framed(where, config(*cameras), {"STATE_DIRECTORY": where}) as framed:
        code, log = framed.wait(60), framed.errors()
        metrics = framed.metrics()
    checks.check(code == 0, f"exit {code}:\n{log}")
    checks.check(metrics.sum("framed_decoder_fallbacks_total") == 0, log)
    checks.check(log.count("decoder cuda ") == 8, log)
    for clip in FILES:
        digests = set()
        for decode in ("cpu", "cuda", "auto"):
            with open(f"{where}/{clip}-{decode}.raw", "rb") as file:
                digests.add(hashlib.sha256(file.read()).hexdigest())
        checks.check(len(digests) == 1, f"{clip}: the bytes differ")


def check_live(checks, clips, where):
    stream = Stream(f"{clips}/live.ts")
    cameras = [CAMERA.format(name=decode, url=stream.url, decode=decode, keys="", sink=f"unix:{where}/{decode}.sock")
               for decode in ("cpu", "cuda")]
    with Framed(where, config(*cameras)) as framed:
        readers = {decode: Reader(f"unix:{where}/{decode}.sock", FRAMES) for decode in ("cpu", "cuda")}
        for reader in readers.values():
            reader.join(30)
        log = framed.errors()
    seen = {decode: reader.digests for decode, reader in readers.items()}
    # They may join at different pictures; the part common to both must have the same pictures in the same order.
    first = seen["cpu"].index(seen["cuda"][0]) if seen["cuda"] and seen["cuda"][0] in seen["cpu"] else 0
    shared = min(len(seen["cpu"]) - first, len(seen["cuda"]))
    checks.check(shared > FRAMES // 2 and seen["cpu"][first:first + shared] == seen["cuda"][:shared],
                 f"{shared} of {len(seen['cpu'])} and {len(seen['cuda'])}:\n{log}")
    checks.check("decoder cuda " in log, log)


def gate(where, clips, decode, keys="pace: realtime", fault=""):
    """Returns a framed with one camera, and the address of its output."""
    os.mkdir(where)
    sink = f"unix:{where}/gate.sock"
    text = config(CAMERA.format(name="gate", url=f"{clips}/gate.mp4", decode=decode, keys=keys, sink=sink))
    return Framed(where, text, {"LD_PRELOAD": SHIM, "FRAMED_DECODER": fault}), sink


def warnings(framed):
    return [line.split("camera=gate ")[-1] for line in framed.errors().splitlines() if line.startswith("warning")]


def whole(checks, where, clips):
    """Returns the digests of the cpu's pictures."""
    framed, sink = gate(f"{where}/gate-cpu", clips, "cpu", "pace: full")
    with framed:
        reader = Reader(sink)
        checks.check(framed.wait(20) == 0, framed.errors())
        reader.join(5)
    checks.check(len(reader.digests) == FRAMES, f"{len(reader.digests)} frames:\n{framed.errors()}")
    return reader.digests


def check_faults(checks, where, clips, wanted):
    for fault, said in FAULTS.items():
        framed, sink = gate(f"{where}/{fault.replace(':', '')}", clips, "cuda", fault=fault)
        with framed:
            reader = Reader(sink)
            code = framed.wait(30)
            reader.join(5)
        gap, fallbacks = reader.longest_gap(), framed.metrics().sum("framed_decoder_fallbacks_total", camera="gate")
        print(f"{fault}: {gap:.3f} s between two pictures at most", flush=True)
        checks.check(code == 0 and reader.digests == wanted, f"{fault}: exit {code}, {len(reader.digests)} frames:\n{framed.errors()}")
        checks.check(gap < (4 if "hang" in fault else 1), f"{fault}: {gap} s without a picture")
        checks.check(warnings(framed) == [said] and fallbacks == 1, f"{fault}: {fallbacks} fallbacks:\n{framed.errors()}")


def check_return(checks, where, clips, wanted):
    """One copy fails: the CPU decodes until the file starts again."""
    here, fault = f"{where}/return", f"copy:{FAULT_AT}-{FAULT_AT}"
    framed, sink = gate(here, clips, "cuda", "pace: realtime\n    loop: true", fault)
    with framed:
        reader, decoders = Reader(sink), []
        for pictures in (FAULT_AT + 20, FRAMES + 20):
            until(lambda: len(reader.digests) >= pictures, 20)
            told = json.loads(run("status", "-c", f"{here}/framed.yaml", "--json", env={"RUNTIME_DIRECTORY": here})[1])
            decoders.append(told["cameras"][0]["decoder"])
        framed.stop()
    print(f"{reader.longest_gap():.3f} s between two pictures at most", flush=True)
    checks.check(warnings(framed) == [FAILED.format("Input/output error")], framed.errors())
    checks.check(decoders == ["cpu", "cuda"], str(decoders))
    differ = [i for i, digest in enumerate(reader.digests) if digest != wanted[i % FRAMES]]
    checks.check(len(reader.digests) >= FRAMES + 20 and not differ, f"{len(reader.digests)} frames, other bytes in {differ[:9]}")
    checks.check(reader.longest_gap() < 1, f"{reader.longest_gap()} s without a picture")


def main():
    checks = Checks("hardware_cuda")
    if not GPU:
        checks.skip("no NVIDIA GPU")
        checks.end()
    with folder() as where:
        clips = os.environ.get("FRAMED_CLIPS", where)
        if clips == where:
            make_clips(where)
        wanted = whole(checks, where, clips)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            returned = pool.submit(check_return, checks, where, clips, wanted)
            check_verify(checks, where)
            check_files(checks, clips, where)
            check_live(checks, clips, where)
            check_faults(checks, where, clips, wanted)
            returned.result()
    checks.end()


if len(sys.argv) > 1:
    os.makedirs(sys.argv[1], exist_ok=True)
    make_clips(sys.argv[1])
else:
    main()
