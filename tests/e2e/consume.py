"""Reads the wire in Python alone, field by field. It shares no code with libframed, so what both agree on is what daemon/wire.h says."""
import collections
import mmap
import os
import socket
import struct
import sys
import time

import numpy

# daemon/wire.h, field by field.
WIRE = struct.Struct("<4sHHQQQqIIqqqqIIII8s4s4sII4Q4I6f6f24s16s")
Header = collections.namedtuple(
    "Header",
    "magic version header_bytes payload_bytes sequence lost pts_ns epoch flags capture_ns received_ns decoded_ns"
    " finished_ns width height source_width source_height format dtype layout planes batch_index plane_offset"
    " plane_stride src_to_dst dst_to_src camera output",
)
HELLO = struct.Struct("<4sHHII6Q16s28xI88xQ48x")  # of a ring, except for the shape
Hello = collections.namedtuple(
    "Hello",
    "magic version hello_bytes slots memory slot_offset slot_stride slot_bytes state_offset memfd_bytes device_bytes"
    " device_uuid batch header_offset",
)
BATCH = struct.Struct("<4sHHIIIIQQQQqqqIIQ32x")
Batch = collections.namedtuple(
    "Batch",
    "magic version bytes count capacity closed_by header_bytes element_bytes payload_bytes sequence lost opened_ns"
    " closed_ns finished_ns slot elements ticket headers",  # headers: an array of ELEMENT, `count` of them
)
ELEMENT = numpy.dtype(
    [("magic", "S4"), ("version", "<u2"), ("header_bytes", "<u2"), ("payload_bytes", "<u8"), ("sequence", "<u8")]
    + [("lost", "<u8"), ("pts_ns", "<i8"), ("epoch", "<u4"), ("flags", "<u4"), ("capture_ns", "<i8")]
    + [("received_ns", "<i8"), ("decoded_ns", "<i8"), ("finished_ns", "<i8"), ("width", "<u4"), ("height", "<u4")]
    + [("source_width", "<u4"), ("source_height", "<u4"), ("format", "S8"), ("dtype", "S4"), ("layout", "S4")]
    + [("planes", "<u4"), ("batch_index", "<u4"), ("plane_offset", "<u8", 4), ("plane_stride", "<u4", 4)]
    + [("src_to_dst", "<f4", 6), ("dst_to_src", "<f4", 6), ("camera", "S24"), ("output", "S16"), ("region", "S24")]
    + [("parent_sequence", "<u8"), ("object", "<u4"), ("part", "<u4"), ("parts", "<u4"), ("scene", "<u4"), ("fingerprint", "<u8")]
    + [("luma_mean", "<f4"), ("sharpness", "<f4")]
)
EMPTY = 64  # a flag: the element was not filled
SLOT = struct.Struct("<IIQ")  # slot, 0, ticket: follows the header of a ring's frame; a return consists of it alone
DTYPES = {"u8": "<u1", "s8": "<i1", "f16": "<f2", "f32": "<f4"}


def header_of(data):
    fields = WIRE.unpack(data)
    head, rest = fields[:22], fields[22:]
    text = [value.rstrip(b"\0").decode() if isinstance(value, bytes) else value for value in head]
    names = [value.rstrip(b"\0").decode() for value in rest[20:]]
    return Header(*text, rest[:4], rest[4:8], rest[8:14], rest[14:20], *names)


def batch_of(data, headers):
    """Returns a Batch made of its bytes and the bytes of its headers."""
    head, *fields = BATCH.unpack(data)
    headers = numpy.frombuffer(headers, ELEMENT, fields[2])
    return Batch(head.decode(), *fields, headers)


def element_of(batch, index):
    """Returns the Header of an element of a batch, for that element's own payload."""
    element = batch.headers[index].tobytes()[: WIRE.size]
    return header_of(element)._replace(plane_offset=tuple(int(x) for x in batch.headers[0]["plane_offset"]))


def elements_of(header, payload):
    """Yields (Header, payload) of each filled element of a batch, or the single frame."""
    if not isinstance(header, Batch):
        yield header, payload
        return
    for index in numpy.flatnonzero(header.headers["flags"] & EMPTY == 0):
        start = int(index) * header.element_bytes
        yield element_of(header, index), payload[start : start + header.element_bytes]


def shape_of(header):
    """Returns the shape and dtype of a payload: C x H x W or H x W x C for a `warp` output, else its bytes; N times that for a batch."""
    is_batch = isinstance(header, Batch)
    first = element_of(header, 0) if is_batch else header
    channels = 1 if first.format == "gray" else 3
    shape = {
        "nchw": (channels, first.height, first.width),
        "nhwc": (first.height, first.width, channels),
    }.get(first.layout, (first.payload_bytes,))
    return ((header.count, *shape) if is_batch else shape), DTYPES[first.dtype]


def tensor_of(header, payload):
    """Returns the payload as an array of its shape, without a copy."""
    shape, dtype = shape_of(header)
    return numpy.frombuffer(payload, dtype).reshape(shape)


def corner_in_source(header, x, y):
    """Returns where a box's corner (x, y) of the payload lies in the camera's picture. Corners are edges, from 0 to the width; the matrix uses pixel
    centres."""
    a, b, c, d, e, f = header.dst_to_src
    x, y = x - 0.5, y - 0.5
    return a * x + b * y + c + 0.5, d * x + e * y + f + 0.5


def connect(address, patience=10.0):
    """Returns a socket connected to the address; retries for `patience` seconds."""
    kind, _, where = address.partition(":")
    host, _, port = where.rpartition(":")
    deadline = time.monotonic() + patience
    while True:
        try:
            if kind == "tcp":
                return socket.create_connection((host, int(port)))
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if kind == "ring" else socket.SOCK_STREAM)
            peer.connect(where)
            return peer
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def frames_from(address, patience=10.0):
    """Yields (Header, payload) of every whole frame, or (Batch, payload) of every batch, until the sink closes."""
    peer = connect(address, patience)
    return Ring(peer).frames() if address.startswith("ring:") else read_frames(peer.makefile("rb"))


class Ring:
    """A ring's frames in place, without a copy. A slot that is kept for too long is reused: call is_whole() after reading, before using the result.
    `torn` counts the frames taken away before the next one was requested."""

    def __init__(self, peer):
        self.peer, self.torn = peer, 0

    def map(self, hello, files):
        """Handles a hello: from now on, frames lie in its memory."""
        if hello.memory > 1:
            raise ValueError("the ring's memory is cuda-ipc, which framedio reads")
        self.hello = hello
        self.memory = mmap.mmap(files[0], hello.memfd_bytes, prot=mmap.PROT_READ)

    def headers(self, slot):
        """Returns the headers of a batch's elements, in place as well."""
        size = self.hello.batch * ELEMENT.itemsize
        start = self.hello.header_offset + slot * size
        return memoryview(self.memory)[start : start + size]

    def payload(self, header, slot):
        start = self.hello.slot_offset + slot * self.hello.slot_stride
        return memoryview(self.memory)[start : start + header.payload_bytes]

    def is_there(self, slot, ticket):
        """Returns True if the slot still holds the frame and has held it all the time."""
        return struct.unpack_from("<Q", self.memory, self.hello.state_offset + 8 * slot)[0] == ticket

    def is_whole(self):
        """Returns True if all that was read of the latest frame so far belongs to that frame."""
        return self.is_there(*self.held)

    def frames(self):
        """Yields (Header, payload), or (Batch, payload). A slot goes back to framed when the next frame is requested, the very last one too: copy
        what you need for longer, including the headers of a batch."""
        while True:
            message, files, _, _ = socket.recv_fds(self.peer, WIRE.size + SLOT.size, 2)
            if not message:
                return
            if message.startswith(b"FRNG"):
                self.map(Hello(*HELLO.unpack_from(message)), files)
                for file in files:
                    os.close(file)
                continue
            if message.startswith(b"FRBT"):
                *_, slot, _, ticket = BATCH.unpack(message)
                header = batch_of(message, self.headers(slot))
            else:
                header = header_of(message[: WIRE.size])
                slot, _, ticket = SLOT.unpack_from(message, WIRE.size)
            self.held = slot, ticket
            if self.is_whole():
                yield header, self.payload(header, slot)
                if not self.is_whole():
                    self.torn += 1
                    print(f"consume: frame {header.sequence} was taken away while it was read", file=sys.stderr)
            self.peer.send(SLOT.pack(slot, 0, ticket))


def read_header(stream):
    """Returns a Header or a Batch, or None at the end of the stream."""
    data = stream.read(BATCH.size)
    if len(data) < BATCH.size:
        return None
    magic, version, size = struct.unpack_from("<4sHH", data)
    if (magic, version, size) == (b"FRBT", 1, BATCH.size):
        headers = stream.read(struct.unpack_from("<I", data, 8)[0] * ELEMENT.itemsize)
        return batch_of(data, headers) if headers else None
    if (magic, version, size) != (b"FRMD", 1, WIRE.size):
        raise ValueError(f"no framed header: {data[:8]!r}")
    data += stream.read(WIRE.size - BATCH.size)
    return header_of(data) if len(data) == WIRE.size else None


def read_frames(stream):
    """Yields (Header, payload) of every whole frame, or (Batch, payload) of every batch, until the stream ends."""
    while header := read_header(stream):
        payload = stream.read(header.payload_bytes)
        if len(payload) < header.payload_bytes:
            return
        yield header, payload
