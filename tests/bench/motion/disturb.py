"""Disturbances of a camera, applied to real footage: noise, night, lights, a shaking camera, rain, a low bitrate. Each is
a function from a stream's pictures to the same number of others; all random numbers have fixed seeds."""
import math
import subprocess
import threading

import cv2
import numpy

BLACK = 16  # luma
SWITCHED_S = 8  # between switching a light on and off


def none(pictures, rate):
    yield from pictures


def noise_of(random, shape, sigma, blurred=0.0):
    """Yields signed noise fields without end; `blurred` is the share of its power in blobs, as left by a camera's own filter."""
    height, width = shape
    bank = []
    for _ in range(8):
        white = random.normal(0, sigma, (height + 64, width + 64))
        blobs = cv2.GaussianBlur(random.normal(0, 1, white.shape), (0, 0), 1.5)
        blobs *= sigma / blobs.std()
        mixed = math.sqrt(1 - blurred) * white + math.sqrt(blurred) * blobs
        bank.append(numpy.rint(mixed).astype("i2"))
    while True:
        top, left = random.integers(0, 64, 2)
        yield bank[random.integers(len(bank))][top:top + height, left:left + width]


def with_noise(pictures, random, sigma, blurred=0.0):
    fields = None
    for picture in pictures:
        fields = fields or noise_of(random, picture.shape, sigma, blurred)
        yield cv2.add(picture, next(fields), dtype=cv2.CV_8U)


def noise(pictures, rate):
    """A sensor's noise by day."""
    yield from with_noise(pictures, numpy.random.default_rng(1), 4)


def lit(picture, gain, level=0.0):
    """Returns the picture in another light; `gain` is a number or a picture of numbers."""
    if numpy.isscalar(gain):
        levels = numpy.arange(256, dtype="f4")
        return cv2.LUT(picture, numpy.clip((levels - BLACK) * gain + BLACK + level, 0, 255).astype("u1"))
    return numpy.clip((picture.astype("f4") - BLACK) * gain + BLACK + level, 0, 255).astype("u1")


def night(pictures, rate):
    """A quarter of the light, and strong noise, half of it in blobs."""
    dark = (lit(picture, 0.25) for picture in pictures)
    yield from with_noise(dark, numpy.random.default_rng(2), 8, 0.5)


def on_share(second):
    """Returns 0 to 1: the state of a light that switches every SWITCHED_S, alternately at once and within a second."""
    turn, since = divmod(second, SWITCHED_S)
    gone = min(1.0, since) if int(turn) // 2 % 2 else 1.0
    return gone if int(turn) % 2 else 1.0 - gone


def lights(pictures, rate):
    """The room's light goes off and on: gain and level."""
    for number, picture in enumerate(with_noise(pictures, numpy.random.default_rng(3), 2)):
        off = on_share(number / rate)
        yield lit(picture, 1 - 0.55 * off, -4 * off)


def lamp(pictures, rate):
    """A lamp at the left goes on and off: up to 1.7 times the light there, none at the right."""
    field = None
    for number, picture in enumerate(with_noise(pictures, numpy.random.default_rng(4), 2)):
        if field is None:
            height, width = picture.shape
            y, x = numpy.mgrid[0:height, 0:width].astype("f4")
            field = numpy.exp(-((x / width - 0.2) ** 2 + (y / height - 0.4) ** 2) / 0.12)
        yield lit(picture, 0.8 + 0.7 * on_share(number / rate) * field)


def moved(picture, x, y):
    return cv2.warpAffine(picture, numpy.float32([[1, 0, x], [0, 1, y]]), picture.shape[::-1], flags=cv2.INTER_LINEAR,
                          borderMode=cv2.BORDER_REPLICATE)


def tremble(pictures, rate):
    """A camera that trembles by fractions of a pixel."""
    random = numpy.random.default_rng(5)
    for picture in with_noise(pictures, random, 2):
        yield moved(picture, *random.normal(0, 0.4, 2))


def shake(pictures, rate):
    """A camera in the wind: 1 to 3 pixels off its position, in another direction in each picture."""
    random = numpy.random.default_rng(6)
    for picture in with_noise(pictures, random, 2):
        far, angle = random.uniform(1, 3), random.uniform(0, 2 * math.pi)
        yield moved(picture, far * math.cos(angle), far * math.sin(angle))


def rain(pictures, rate):
    """Heavy rain: bright streaks, different in each picture, and noise."""
    random = numpy.random.default_rng(7)
    for picture in with_noise(pictures, random, 3):
        height, width = picture.shape
        drops = numpy.zeros_like(picture)
        slant = random.normal(0.15, 0.03)
        for _ in range(width * height // 1500):
            x, y, far = random.uniform(0, width), random.uniform(-40, height), random.uniform(0.02, 0.08) * height
            cv2.line(drops, (int(x), int(y)), (int(x + slant * far), int(y + far)), int(random.uniform(40, 130)), 1)
        drops = cv2.blur(drops, (1, 5)).astype("f4") / 255
        yield numpy.rint(picture + drops * (220 - picture.astype("f4"))).astype("u1")


def low_bitrate(pictures, rate):
    """Noise, and then H.264 of 0.015 bits per pixel with a keyframe every 4 s."""
    pictures = with_noise(pictures, numpy.random.default_rng(8), 3)
    first = next(pictures)
    height, width = first.shape
    bits = round(0.015 * width * height * rate)
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{width}x{height}", "-r", f"{rate:.6f}"]
    coder = subprocess.Popen(
        ["ffmpeg", "-v", "error", *raw, "-i", "-", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast",
         "-threads", "1", "-b:v", str(bits), "-maxrate", str(2 * bits), "-bufsize", str(4 * bits), "-g", str(round(4 * rate)),
         "-bf", "0", "-sc_threshold", "0", "-f", "h264", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    decoder = subprocess.Popen(
        ["ffmpeg", "-v", "error", "-threads", "1", "-f", "h264", "-i", "-", "-vf", "extractplanes=y", "-fps_mode",
         "passthrough", "-f", "rawvideo", "-pix_fmt", "gray", "-"], stdin=coder.stdout, stdout=subprocess.PIPE)
    coder.stdout.close()

    def feed():
        with coder.stdin as pipe:
            pipe.write(first.tobytes())
            for picture in pictures:
                pipe.write(picture.tobytes())

    feeder = threading.Thread(target=feed)
    feeder.start()
    while data := decoder.stdout.read(width * height):
        yield numpy.frombuffer(data, "u1").reshape(height, width)
    feeder.join()
    if coder.wait() or decoder.wait():
        raise RuntimeError("ffmpeg failed")


def weather(pictures, rate):
    """A day: noise, sun that changes within minutes, clouds, and a light that is switched now and then."""
    for number, picture in enumerate(with_noise(pictures, numpy.random.default_rng(9), 3)):
        second = number / rate
        sun = 1 + 0.2 * math.sin(second / 61) + 0.1 * math.sin(second / 7.3) * math.sin(second / 97)
        switched = 0.75 if second % 600 > 420 else 1.0
        yield lit(picture, sun * switched)


ALL = {"as it is": none, "noise": noise, "night": night, "lights": lights, "lamp": lamp, "tremble": tremble, "shake": shake,
       "rain": rain, "low bitrate": low_bitrate}
