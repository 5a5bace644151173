"""Shared by the tests of batches: a client that records each element, and checks of its records."""
import collections
import threading

import numpy
from framed_client import PATIENCE, consume

# closed, finished: CLOCK_MONOTONIC in ns, of the batch; lost, sequence, received, decoded: of the element.
Element = collections.namedtuple(
    "Element", "camera sequence lost epoch received decoded region part parts index matrix payload")
Seen = collections.namedtuple("Seen", "sequence lost count capacity closed_by opened closed finished elements")


def element_of(header, payload, keep):
    return Element(
        header["camera"].decode(), int(header["sequence"]), int(header["lost"]), int(header["epoch"]),
        int(header["received_ns"]), int(header["decoded_ns"]), header["region"].decode(), int(header["part"]),
        int(header["parts"]), int(header["batch_index"]), tuple(header["dst_to_src"].tolist()),
        bytes(payload) if keep else b"")


def seen_of(batch, payload, keep=True):
    """Returns a Seen for a batch and its payload, which may lie in a ring."""
    elements = []
    for i in numpy.flatnonzero(batch.headers["flags"] & consume.EMPTY == 0):
        data = payload[i * batch.element_bytes : (i + 1) * batch.element_bytes]
        elements.append(element_of(batch.headers[i], data, keep))
    return Seen(batch.sequence, batch.lost, batch.count, batch.capacity, batch.closed_by, batch.opened_ns,
                batch.closed_ns, batch.finished_ns, elements)


class BatchReader(threading.Thread):
    """Reads batches from a socket or a ring into self.batches until the stream ends."""

    def __init__(self, address, keep=False):
        super().__init__(daemon=True)
        self.address, self.keep, self.batches, self.error = address, keep, [], None
        self.start()

    def run(self):
        try:
            for batch, payload in consume.frames_from(self.address, 10 * PATIENCE):
                self.batches.append(seen_of(batch, payload, self.keep))
        except (OSError, ValueError) as error:
            self.error = error

    def elements(self):
        return [element for batch in self.batches for element in batch.elements]


def read_file(path):
    with open(path, "rb") as file:
        return [seen_of(*frame) for frame in consume.read_frames(file)]


def check_ledger(checks, metrics, output, counts, cameras=None):
    """Checks each camera's share: offered = emitted + lost, and the client received what was emitted. Counts are of pictures. Returns camera ->
    Counter of losses by reason, without "client" and "stopping"."""
    lost = {}
    for name in cameras or counts:
        offered, emitted, gone = metrics.account(camera=name, output=output)
        losses = metrics.losses(camera=name, output=output)
        checks.check(offered == emitted + gone, f"{output}, {name}: {offered} offered, {emitted} emitted, {losses}")
        checks.check(emitted == counts[name], f"{output}, {name}: {emitted} emitted, {counts[name]} received")
        lost[name] = collections.Counter({why: n for why, n in losses.items() if why not in ("client", "stopping")})
    return lost


def check_order(checks, what, batches, thinned=False):
    """Checks that no batch is missing, no element comes twice, and each camera's sequences rise by 1 plus the increase of `lost`; if `thinned`, `fps`
    may leave out more."""
    sequences = [batch.sequence for batch in batches]
    checks.check(sequences == list(range(sequences[0], sequences[0] + len(batches))), f"{what}: batches {sequences}")
    checks.check(all(0 < len(batch.elements) <= batch.capacity for batch in batches), f"{what}: an empty batch")
    last = {}
    for element in (element for batch in batches for element in batch.elements if element.part == 0):
        before = last.get(element.camera)
        last[element.camera] = element
        if before and element.lost >= before.lost and element.sequence > before.sequence:
            left_out = element.sequence - before.sequence - 1
            counted = element.lost - before.lost
            checks.check(counted == left_out or (thinned and counted < left_out), f"{what}: {before[:4]}, then {element[:4]}")
        elif before:  # a member that came back starts over
            checks.check((element.sequence, element.lost) < (before.sequence, 1) and element.lost == 0 and
                         element.received > before.received, f"{what}: {before[:4]}, then {element[:4]}")
