#!/usr/bin/python3
"""End to end over RTSP: a client receives the definition applied to the pictures that the ffmpeg program decodes from the
same clip, within one level, and every frame is accounted for. UDP and TCP; H.264 (also with B-frames) and H.265 with
framed's own RTSP client, MPEG-4 and VP8 with libavformat's."""
import os

import definition
import numpy
from certificate import make_certificate
from framed_client import Checks, Framed, Reader, Server, decode_yuv420, folder, footage, make_clip, until

SIZE = (320, 320)
FRAMES = 60  # more than in the generated clips, so that they repeat
SCALE = 1 / 255
MEAN, STD = numpy.array([0.406, 0.456, 0.485]), numpy.array([0.225, 0.224, 0.229])  # b, g, r

CONFIG = """
cameras:
  gate:
    url: {url}
    transport: {transport}
    outputs:
      levels:
        size: 320x320
        slots: 16
        tensor: {{dtype: u8, layout: nhwc, order: rgb, scale: 1}}
        sink: unix:{where}/levels.sock
      floats:
        size: 320x320
        slots: 16
        tensor: {{dtype: f32, layout: nchw, order: bgr, scale: 1/255, mean: [0.406, 0.456, 0.485],
                  std: [0.225, 0.224, 0.229]}}
        sink: unix:{where}/floats.sock
"""


class Expected:
    """Levels of the clip's pictures by the definition, computed on demand."""

    def __init__(self, clip):
        self.pictures, self.made = decode_yuv420(clip), {}

    def levels(self, index):
        index %= len(self.pictures)
        if index not in self.made:
            self.made[index] = definition.rounded(definition.warp_yuv420(self.pictures[index], SIZE))
        return self.made[index]

    def nearest(self, tensor, among):
        """Returns the index of the picture nearest to a received tensor."""
        return min(range(among), key=lambda i: numpy.abs(self.levels(i) - tensor).mean())


def check_sequence(checks, case, frames):
    """Sequence numbers rise, and every gap matches the client's own count of losses."""
    steps = [(b.sequence - a.sequence - 1, b.lost - a.lost) for (a, _), (b, _) in zip(frames, frames[1:])]
    checks.check(all(gap == lost for gap, lost in steps), f"{case}: gaps in sequence are not the losses: {steps}")
    rising = all(a.pts_ns < b.pts_ns for (a, _), (b, _) in zip(frames, frames[1:]) if a.epoch == b.epoch)
    checks.check(rising, f"{case}: pts does not rise")
    times = all(h.received_ns <= h.decoded_ns <= h.finished_ns for h, _ in frames)
    checks.check(times, f"{case}: received, decoded and finished are out of order")


def check_values(checks, case, expected, levels, floats):
    first = expected.nearest(levels[0][1].astype("f8"), min(50, len(expected.pictures)))
    start = levels[0][0].sequence
    worst_level = worst_float = 0
    for header, tensor in levels:
        difference = numpy.abs(tensor - expected.levels(first + header.sequence - start)).max()
        worst_level = max(worst_level, difference)
    for header, tensor in floats:
        wanted = expected.levels(first + header.sequence - start)[:, :, ::-1]
        steps = numpy.abs(tensor.transpose(1, 2, 0) - (wanted * SCALE - MEAN) / STD) / (SCALE / STD)
        worst_float = max(worst_float, steps.max())
    print(f"{case}: {len(levels)} + {len(floats)} frames from picture {first}, largest difference"
          f" {worst_level:.0f} levels, {worst_float:.4f} steps of f32")
    checks.check(worst_level <= 1, f"{case}: u8 differs by {worst_level} levels")
    checks.check(worst_float <= 1.001, f"{case}: f32 differs by {worst_float} steps of 1/255")


def check_account(checks, case, framed, readers):
    metrics = framed.metrics()
    for output, reader in readers.items():
        offered, emitted, lost = metrics.account(camera="gate", output=output)
        checks.check(offered == emitted + lost, f"{case} {output}: {offered} offered, {emitted} emitted, {lost} lost")
        checks.check(emitted == reader.count, f"{case} {output}: {emitted} emitted, {reader.count} received")


def try_case(checks, clip, transport, case):
    expected = Expected(clip)
    with folder() as where, Server(where, clip) as server:
        config = CONFIG.format(url=server.url(), transport=transport, where=where)
        with Framed(where, config) as framed:
            readers = {name: Reader(f"unix:{where}/{name}.sock") for name in ("levels", "floats")}
            enough = until(lambda: all(r.count >= FRAMES for r in readers.values()), 20)
            checks.check(enough, f"{case}: only {[r.count for r in readers.values()]} frames:\n{framed.errors()}")
            code = framed.stop()
            checks.check(code == 0, f"{case}: exit {code}:\n{framed.errors()}")
            for reader in readers.values():
                reader.join(5)
            if not all(r.count for r in readers.values()):
                return
            for name, reader in readers.items():
                check_sequence(checks, f"{case} {name}", reader.frames)
            check_values(checks, case, expected, readers["levels"].tensors(), readers["floats"].tensors())
            check_account(checks, case, framed, readers)


def check_secure(checks, clip):
    """libavformat's client accepts any certificate and sends a password to any server, so the user must allow that."""
    with folder() as where, Server(where, clip, "--auth", "viewer:geheim") as server:
        config = CONFIG.format(url=server.url(user="viewer:geheim@"), transport="tcp", where=where)
        with Framed(where, config) as framed:
            told = until(lambda: "any way to log in: that needs tls: {verify: false}" in framed.errors(), 10)
            checks.check(told, f"login: not said:\n{framed.errors()}")
    with folder() as where:
        certificate, fingerprint = make_certificate(where, "camera.pem")
        with Server(where, clip, "--tls", certificate) as server:
            config = CONFIG.format(url=server.url(), transport="tcp", where=where)
            known, any_ = (config.replace("transport: tcp", f"transport: tcp\n    tls: {{{key}}}")
                           for key in (f'fingerprint: "{fingerprint}"', "verify: false"))
            with Framed(where, known) as framed:
                told = until(lambda: "; libavformat could read it, but takes any certificate" in framed.errors(), 10)
                checks.check(told and "video VP8" in framed.errors(), f"rtsps: not said:\n{framed.errors()}")
            with Framed(where, any_) as framed:
                reader = Reader(f"unix:{where}/levels.sock")
                checks.check(until(lambda: reader.count >= 10, 20), f"rtsps: {reader.count} frames:\n{framed.errors()}")


def main():
    checks = Checks("rtsp")
    with folder() as where:
        plain = make_clip(os.path.join(where, "plain.mp4"), frames=25)  # plays more than twice
        b_frames = make_clip(os.path.join(where, "b_frames.mp4"), b_frames=2)
        h265 = make_clip(os.path.join(where, "h265.mp4"), codec="h265")
        try_case(checks, plain, "tcp", "h264 tcp")
        try_case(checks, plain, "udp", "h264 udp")
        try_case(checks, b_frames, "tcp", "h264 with B-frames tcp")
        try_case(checks, h265, "tcp", "h265 tcp")
        mpeg4 = make_clip(os.path.join(where, "mpeg4.mp4"), codec="mpeg4")
        vp8 = make_clip(os.path.join(where, "vp8.webm"), codec="vp8")
        try_case(checks, mpeg4, "tcp", "mpeg4 tcp")
        try_case(checks, vp8, "udp", "vp8 udp")
        check_secure(checks, vp8)
        if road := footage("car-detection.mp4"):
            try_case(checks, road, "udp", "footage udp")
        else:
            checks.skip("no footage in ../shared/media")
    checks.end()


main()
