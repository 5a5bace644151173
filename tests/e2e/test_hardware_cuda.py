#!/usr/bin/python3
"""NVIDIA's decoder as generic hardware (`decode: cuda`), the way of VAAPI and all others: framed verify finds it and NVDEC
equal, `decode: auto` takes it where the kernels run on the cpu, and cameras get the cpu's bytes, with and without B-frames
and a live camera's pictures ahead of libavcodec's output. Wants a GPU."""
import hashlib
import os
import re

from framed_client import Checks, Framed, Reader, Server, folder, make_clip, run

GPU = os.path.exists("/dev/nvidiactl")
FRAMES = 100
CAMERA = """
  {name}:
    url: {url}
    decode: {decode}
    outputs:
      planes: {{kernel: yuv, format: yuv420p, overflow: wait, sink: "{sink}"}}
"""


def check_verify(checks, where):
    code, output, errors = run("verify", "--decoders", env={"STATE_DIRECTORY": where}, timeout=120)
    print(output, end="")  # frames per second, and what a copy takes
    checks.check(code == 0, f"exit {code}:\n{output}{errors}")
    for decoder in ("nvdec", "cuda"):
        for clip in ("h264  8", "hevc  8", "hevc 10"):
            checks.check(re.search(rf"^{decoder} +{clip} bits .* equal ", output, re.M), f"{decoder} {clip}:\n{output}")
    with open(f"{where}/decoders") as file:
        record = file.read()
    checks.check("decoder cuda h264 equal\n" in record and "decoder cuda hevc equal\n" in record, record)


def check_files(checks, where):
    clips = {f"{codec}{b_frames}": make_clip(f"{where}/{codec}{b_frames}.mp4", codec, FRAMES, "1280x720", b_frames=b_frames)
             for codec in ("h264", "h265") for b_frames in (0, 2)}
    cameras = [CAMERA.format(name=f"{clip}-{decode}", url=path, decode=decode, sink=f"file:{where}/{clip}-{decode}.raw")
               for clip, path in clips.items() for decode in ("cpu", "cuda", "auto")]
    config = "backend: cpu\ncameras:" + "".join(cameras)
    with Framed(where, config, {"STATE_DIRECTORY": where}) as framed:
        code, log = framed.wait(60), framed.errors()
        metrics = framed.metrics()
    checks.check(code == 0, f"exit {code}:\n{log}")
    checks.check(metrics.sum("framed_decoder_fallbacks_total") == 0, log)
    checks.check(log.count("decoder cuda ") == 8, log)
    for clip in clips:
        digests = set()
        for decode in ("cpu", "cuda", "auto"):
            with open(f"{where}/{clip}-{decode}.raw", "rb") as file:
                digests.add(hashlib.sha256(file.read()).hexdigest())
        checks.check(len(digests) == 1, f"{clip}: the bytes differ")


def check_live(checks, where):
    """Each picture of the clip is another, so that a picture too early or twice shows."""
    clip = make_clip(f"{where}/live.mp4", "h264", FRAMES, b_frames=2)
    with Server(where, clip) as server:
        cameras = [CAMERA.format(name=decode, url=server.url(), decode=decode, sink=f"unix:{where}/{decode}.sock")
                   for decode in ("cpu", "cuda")]
        with Framed(where, "backend: cpu\ncameras:" + "".join(cameras)) as framed:
            readers = {decode: Reader(f"unix:{where}/{decode}.sock", limit=FRAMES) for decode in ("cpu", "cuda")}
            for reader in readers.values():
                reader.join(30)
            log = framed.errors()
    seen = {decode: [hashlib.sha256(payload).digest() for _, payload in reader.frames] for decode, reader in readers.items()}
    # Both join where they come; what they share must be the same pictures in the same order.
    first = seen["cpu"].index(seen["cuda"][0]) if seen["cuda"] and seen["cuda"][0] in seen["cpu"] else 0
    shared = min(len(seen["cpu"]) - first, len(seen["cuda"]))
    checks.check(shared > FRAMES // 2 and seen["cpu"][first:first + shared] == seen["cuda"][:shared],
                 f"{shared} of {len(seen['cpu'])} and {len(seen['cuda'])}:\n{log}")


def main():
    checks = Checks("hardware_cuda")
    if not GPU:
        checks.skip("no NVIDIA GPU")
        checks.end()
    with folder() as where:
        check_verify(checks, where)
        check_files(checks, where)
        check_live(checks, where)
    checks.end()


main()
