"""The sample clips' luma, their moving objects from labels.json, and streams made of them: a clip with longer stillness,
once or repeated."""
import json
import os
import subprocess

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
FADE_S = 2.0  # from a clip's end to its start


class Clip:
    """A clip's luma, pictures x height x width, and its labels."""

    def __init__(self, folder, name):
        with open(os.path.join(HERE, "labels.json")) as file:
            labels = json.load(file)["clips"][name]
        self.name, self.width, self.height = name, labels["width"], labels["height"]
        self.rate = labels["rate"][0] / labels["rate"][1]
        self.events, self.doubtful, self.still = labels["events"], labels["doubtful"], labels["still"]
        done = subprocess.run(["ffmpeg", "-v", "error", "-i", os.path.join(folder, name), "-map", "0:v", "-vf",
                               "format=yuv420p,extractplanes=y", "-f", "rawvideo", "-pix_fmt", "gray", "-fps_mode",
                               "passthrough", "-"], check=True, stdout=subprocess.PIPE)
        self.luma = numpy.frombuffer(done.stdout, "u1").reshape(-1, self.height, self.width)
        if len(self.luma) != labels["frames"]:
            raise RuntimeError(f"{name} has {len(self.luma)} pictures, its labels are of {labels['frames']}")

    def box(self, event, index):
        """Returns [x1, y1, x2, y2] around the moving object in a picture of the event."""
        at = sorted(int(number) for number in event["boxes"])
        corners = [event["boxes"][str(number)] for number in at]
        return [numpy.interp(index, at, [corner[side] for corner in corners]) for side in range(4)]


class Stream:
    """Pictures of a clip in another order: `order` has the clip's picture numbers. The first `learning` are stillness in
    which detectors learn; they are not scored."""

    def __init__(self, clip, order, learning, fades=None):
        self.clip, self.order, self.learning, self.fades = clip, order, learning, fades or {}

    def pictures(self):
        for place, index in enumerate(self.order):
            picture = self.clip.luma[index]
            if place in self.fades:
                other, part = self.fades[place]
                mixed = (1 - part) * picture + part * self.clip.luma[other]
                picture = numpy.rint(mixed).astype("u1")
            yield picture

    def passages(self):
        """Yields each occurrence of each event, including its shadow: (event, first place, place after the last)."""
        order = numpy.array(self.order)
        for event in self.clip.events:
            inside = (order >= event["from"]) & (order <= event["to"])
            edges = numpy.flatnonzero(numpy.diff(inside.astype("i1"), prepend=0, append=0))
            yield from ((event, int(begin), int(end)) for begin, end in edges.reshape(-1, 2))

    def excused(self):
        """Returns an array: True where an alarm is right or doubtful."""
        order = numpy.array(self.order)
        spans = [(event["from"], event["to"]) for event in self.clip.events] + self.clip.doubtful
        return numpy.any([(order >= first) & (order <= last) for first, last in spans], axis=0)


def there_and_back(first, last, least):
    """Returns at least `least` numbers from first to last, back and forth, each a neighbour of the previous one."""
    numbers = list(range(first, last + 1))
    while len(numbers) < least:
        numbers += [*range(last - 1, first - 1, -1), *range(first + 1, last + 1)]
    return numbers


def stretched(clip, lasting):
    """Returns a clip's picture numbers with each still stretch at least as many pictures long as `lasting` has."""
    order, at = [], 0
    for (first, last), least in zip(clip.still, lasting):
        order += [*range(at, first), *there_and_back(first, last, least)]
        at = last + 1
    return order + list(range(at, len(clip.luma)))


def once(clip, learn_s, still_s):
    """Returns a stream of the clip once, its longest stillness lasting still_s."""
    longest = max(clip.still, key=lambda span: span[1] - span[0])
    learning = round(learn_s * clip.rate)
    lasting = [round(still_s * clip.rate) if span == longest else 0 for span in clip.still]
    before = there_and_back(*clip.still[0], learning)[::-1]
    before = before[len(before) - learning:]
    return Stream(clip, before + stretched(clip, lasting), learning)


def again(clip, learn_s, seconds, rounds, seed):
    """Returns a stream of the clip `rounds` times, with random stillness between its events and `seconds` in total."""
    random = numpy.random.default_rng(seed)
    learning, fade = round(learn_s * clip.rate), round(FADE_S * clip.rate)
    busy = len(clip.luma) - sum(last - first + 1 for first, last in clip.still)
    share = random.exponential(size=(rounds, len(clip.still)))
    share *= max(0, seconds * clip.rate - rounds * busy) / share.sum()
    order = there_and_back(*clip.still[0], learning)
    order, fades = order[len(order) - learning:], {}
    for turn, lasting in enumerate(share):
        if turn:
            for step in range(fade):
                fades[len(order) + step] = (clip.still[0][0], (step + 1) / (fade + 1))
            order += there_and_back(*clip.still[-1], fade)[-fade:]
        order += stretched(clip, lasting)
    return Stream(clip, order, learning, fades)
