"""A camera whose network disturbs UDP, as netem does. It counts every packet that it lost."""
import heapq
import itertools
import random
import threading
import time

from rtsp_camera import Camera, Connection, Datagrams


DELAYED = 0.014  # s behind a later packet: more than any Disturbance here causes


class Disturbance:
    """`loss`: share of packets lost; `delay` and `jitter`: their travel time, s, plus or minus; `early`: share that takes no time, and so overtakes
    others."""

    def __init__(self, loss=0.0, delay=0.0, jitter=0.0, early=0.0, seed=1):
        self.loss, self.delay, self.jitter, self.early, self.chance = loss, delay, jitter, early, random.Random(seed)

    def is_lost(self):
        return self.chance.random() < self.loss

    def takes(self):
        """Returns a travel time in s."""
        if self.chance.random() < self.early:
            return 0.0
        return self.delay + self.chance.uniform(-self.jitter, self.jitter)

    def longest(self):
        return self.delay + self.jitter

    def mixes(self):
        """Returns True if packets may overtake each other."""
        return self.jitter > 0 or self.early > 0


class DisturbedDatagrams(Datagrams):
    """Delays RTP; a thread delivers the packets that arrive."""

    def __init__(self, camera, *arguments):
        super().__init__(*arguments)
        self.camera, self.waiting, self.numbers = camera, [], itertools.count()
        self.passed = {}  # number of a packet on its way -> when a later one arrived before it
        self.changed, self.over = threading.Condition(), False
        camera.spawn(self.deliver)

    def send(self, packets):
        with self.changed:
            for packet in packets:
                if self.camera.disturbance.is_lost():
                    self.camera.withheld += 1
                else:
                    arrives = time.monotonic() + self.camera.disturbance.takes()
                    number = next(self.numbers)
                    self.passed[number] = None
                    heapq.heappush(self.waiting, (arrives, number, packet))
            self.changed.notify()
        return time.monotonic()

    def deliver(self):
        while not self.over:
            with self.changed:
                left = self.waiting[0][0] - time.monotonic() if self.waiting else 0.1
                if left > 0:
                    self.changed.wait(min(left, 0.1))
                    continue
                _, number, packet = heapq.heappop(self.waiting)
                self.note(number, time.monotonic())
            self.deliver_one(packet)

    def note(self, number, now):
        """Counts the packet if it arrives too late behind one that overtook it: this thread may have had to wait for a processor."""
        passed = self.passed.pop(number)
        self.camera.delayed += passed is not None and now - passed > DELAYED
        for other, when in self.passed.items():
            if other < number and when is None:
                self.passed[other] = now

    def deliver_one(self, packet):
        try:
            self.send_to(0, packet)
        except OSError:  # closed meanwhile
            self.over = True

    def close(self):
        self.over = True
        super().close()


class DisturbedConnection(Connection):
    def set_up_udp(self, asked):
        made = super().set_up_udp(asked)
        made.close()
        return DisturbedDatagrams(self.camera, self.camera.host, made.to, made.ports)

    def send_picture(self, number, seconds):
        before = self.camera.withheld
        whole, began = super().send_picture(number, seconds)
        return whole and self.camera.withheld == before, began


class DisturbedCamera(Camera):
    connection = DisturbedConnection

    def __init__(self, clip, disturbance, **options):
        self.disturbance, self.delayed = disturbance, 0
        super().__init__(clip, **options)
