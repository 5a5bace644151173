#!/usr/bin/python3
"""A GPU fails in mid-stream while cameras are decoded by the cpu and by NVDEC, each with a socket, a ring, a file and a ring in device memory: the
cpu takes over, the device comes back or stays away, every frame has the bytes of an undisturbed run on the cpu alone, and only frames counted as lost
are missing. One failure is simulated (tests/faults/faults.c); in the other the device writes to an invalid address, which spoils its context for the
whole process. Without a GPU the cpu stands in for one and only the simulated failure is tested."""
import itertools

import framed_client
from cuda_client import DECODERS, GPU, MEMORIES, Digests, clip, digests_of_file, torch
from framed_client import PATIENCE, Checks, Framed, folder, until

AT_ONCE = 4 + 1  # frames of one camera that fail together: in the backend, and on the way there
SLOTS = 6
AFTER = 50  # frames that must come after the recovery
STOP_S = 2.5

CAMERA = """
  {name}:
    url: {clip}
    decode: {decode}
    {pace}
    outputs:
      socket: {{kernel: yuv, format: yuv420p, sink: "unix:{where}/{name}.sock"}}
      ring: {{size: 640x640, slots: {slots}, sink: "ring:{where}/{name}.ring"}}
      file: {{size: 224x224, tensor: {{dtype: f32, scale: 1/255}}, sink: "file:{where}/{name}.framed"}}
"""
DEVICE = """
      device: {{size: 416x416, slots: {slots}, memory: {memory}, sink: "ring:{where}/{name}.device"}}
"""


def config(where, source, decoders, backend, pace):
    text = CAMERA.rstrip() + (DEVICE if "cuda" in MEMORIES else "\n")
    memory = "host" if backend == "cpu" else "cuda"
    cameras = [
        text.format(name=decode, clip=source, decode=decode, pace=pace, slots=SLOTS, memory=memory, where=where)
        for decode in decoders
    ]
    return f"backend: {backend}\ndefaults: {{overflow: wait}}\ncameras:{''.join(cameras)}"


def readers_of(where, decode, memory):
    readers = {
        "socket": Digests(f"unix:{where}/{decode}.sock"),
        "ring": Digests(f"ring:{where}/{decode}.ring"),
    }
    if "cuda" in MEMORIES:
        readers["device"] = Digests(f"ring:{where}/{decode}.device", memory)
    return readers


def sound(checks, where, source):
    """Returns output -> digests of the clip's frames, from an undisturbed run on the cpu alone."""
    with Framed(where, config(where, source, ("cpu",), "cpu", "pace: full")) as framed:
        readers = readers_of(where, "cpu", "host")
        code = framed.wait(60)
        checks.check(code == 0, f"undisturbed: exit {code}:\n{framed.errors()}")
        for reader in readers.values():
            reader.join(5)
    frames = {output: reader.frames for output, reader in readers.items()}
    frames["file"] = digests_of_file(f"{where}/cpu.framed")
    count = len(frames["file"])
    for output, of in frames.items():
        checks.check(list(of) == list(range(count)) and count > 0, f"undisturbed: {output} has {len(of)} of {count}")
    return {output: list(of.values()) for output, of in frames.items()}


class Failing:
    """A run whose device fails, with the frames of its readers."""

    def __init__(self, checks, where, source, faults):
        self.checks, self.faults = checks, faults
        text = config(where, source, DECODERS, "cuda", "pace: realtime\n    loop: true")
        self.framed = Framed(where, text, {"FRAMED_FAULTS": faults})
        with self.framed:
            self.readers = {decode: readers_of(where, decode, "cuda") for decode in DECODERS}
            self.go_through()
            self.log = self.framed.errors()
        for reader in self.all():
            reader.join(5 * PATIENCE)
        self.metrics = self.framed.metrics()
        self.files = {decode: digests_of_file(f"{where}/{decode}.framed") for decode in DECODERS}

    def check(self, good, text):
        self.checks.check(good, f"{self.faults}: {text}")

    def all(self):
        return [reader for readers in self.readers.values() for reader in readers.values()]

    def said(self, text):
        return self.framed.errors().count(text)

    def frames_on(self, at_least, seconds):
        """Checks that every reader gets at least so many more frames."""
        before = [len(reader.order) for reader in self.all()]
        until(lambda: all(len(r.order) >= n + at_least for r, n in zip(self.all(), before)), seconds)
        grown = [len(r.order) - n for r, n in zip(self.all(), before)]
        errors = [reader.error for reader in self.all()]
        self.check(min(grown) >= at_least, f"only {grown} frames more: {errors}\n{self.framed.errors()}")

    def decoded_by(self, decode):
        return any(has["decoder"].startswith(decode)
                   for has, _ in self.framed.live_metrics().all("framed_camera_info", camera=decode))

    def go_through(self):
        self.frames_on(10, 30)
        for decode in DECODERS:
            self.check(self.decoded_by(decode), f"{decode} does not decode:\n{self.framed.errors()}")
        self.check(until(lambda: self.said("cpu takes over"), 20), "the device did not fail")
        self.frames_on(10, 20)
        settled = until(lambda: self.said("backend cuda is back") or self.said("later tries are not logged"), 30)
        self.check(settled, f"the device neither came back nor was given up:\n{self.framed.errors()}")
        self.back = self.said("backend cuda is back")
        self.frames_on(AFTER, 20)
        if self.back:
            for decode in DECODERS:
                self.check(until(lambda: self.decoded_by(decode), 15), f"{decode} does not decode again")
        works = self.framed.live_metrics().sum("framed_backend", backend="cuda" if self.back else "cpu")
        self.check(works == 1, "the metrics name another backend")
        code = self.framed.stop(STOP_S)
        self.check(code == 0, f"exit {code} after SIGTERM:\n{self.framed.errors()[-2000:]}")


def check_output(run, decode, output, received, expected):
    what = f"{decode}.{output}"
    order = list(received)
    offered, emitted, lost = run.metrics.account(camera=decode, output=output)
    reasons = run.metrics.losses(camera=decode, output=output)
    wrong = [n for n in order if received[n] != expected[n % len(expected)]]
    run.check(not wrong, f"{what}: {len(wrong)} of {len(order)} frames differ: {wrong[:20]}")
    run.check(order == sorted(order), f"{what}: not in order: {order}")
    run.check(offered == emitted + lost, f"{what}: {offered} offered, {emitted} emitted, {lost} lost")
    run.check(emitted <= len(order) <= offered, f"{what}: {len(order)} frames came, {emitted} emitted of {offered}")
    run.check(set(reasons) <= {"backend", "stopping"}, f"{what}: {reasons}")
    missing = sorted(set(range(order[-1] + 1)) - set(order)) if order else []
    if output == "device":  # frames on the device are lost with it, even if a client holds them
        run.check(len(missing) <= reasons["backend"] <= AT_ONCE + SLOTS, f"{what}: {missing} missing, {reasons}")
    else:
        run.check(len(missing) == reasons["backend"] <= AT_ONCE, f"{what}: {missing} missing, {reasons}")
    run.check(len(missing) == 0 or missing[-1] - missing[0] <= AT_ONCE + SLOTS, f"{what}: {missing} missing")


def check_fault(checks, where, source, expected, faults):
    run = Failing(checks, where, source, faults)
    for decode in DECODERS:
        for output, reader in run.readers[decode].items():
            check_output(run, decode, output, reader.frames, expected[output])
        check_output(run, decode, "file", run.files[decode], expected["file"])
    lost = run.metrics.losses()["backend"]
    run.check(lost > 0, "nothing failed")
    refused = faults.count("open") if run.back else 2  # as many are logged
    texts = {"cpu takes over": 1, "backend cuda is back": run.back, "backend cuda cannot be opened": refused}
    for text, times in texts.items():
        run.check(run.log.count(text) == times, f"{run.log.count(text)} times '{text}':\n{run.log}")
    run.check(run.metrics.sum("framed_backend_fallbacks_total") == 1, "not one fallback counted")
    for decode in DECODERS:
        if "cuda" in MEMORIES:
            places = [on_device for on_device, _ in itertools.groupby(run.readers[decode]["device"].on_device)]
            run.check(places == [True, False, True][: 2 + run.back], f"{decode}.device: on the device: {places}")
    if not faults.startswith("trap"):
        run.check(run.back == 1, f"cuda is not back:\n{run.log}")
    print(f"fallback_cuda: {faults}: {lost} results lost, cuda "
          f"{'is back' if run.back else 'stays away'}", flush=True)


def main():
    checks = Checks("fallback_cuda")
    with folder() as where:
        source = clip(where)
        expected = sound(checks, where, source)
        framed_client.BINARY += "-faults"
        for faults in ("job:200,open:1", "trap:200,open:1") if GPU else ("job:60,open:1",):
            check_fault(checks, where, source, expected, faults)
    if not GPU:
        checks.skip("a fault inside a kernel: no GPU, the cpu poses as one")
    elif not torch:
        checks.skip("device memory: no PyTorch")
    checks.end()


main()
