"""Samples of a file of MP4 fragments or of Matroska, read by the standards' own rules and without a library, to compare their bytes with the
camera's."""
import collections
import struct

Sample = collections.namedtuple("Sample", "pts nals keyframe")  # pts in seconds from the file's start


def boxes(data, at=0, end=None):
    """Yields (type, begin, end of the payload) of each whole box."""
    end = len(data) if end is None else end
    while at + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, at + 8)[0], 16
        if size < head or at + size > end:
            return
        yield kind.decode("latin-1"), at + head, at + size
        at += size


def find(data, path, at=0, end=None):
    for kind, begin, stop in boxes(data, at, end):
        if kind == path[0]:
            if len(path) == 1:
                return begin, stop
            return find(data, path[1:], begin, stop)
    return None


def mp4_samples(data):
    begin, _ = find(data, ["moov", "trak", "mdia", "mdhd"])
    timescale = struct.unpack_from(">I", data, begin + (20 if data[begin] else 12))[0]
    edits, shift = find(data, ["moov", "trak", "edts", "elst"]), 0
    if edits:
        version, count = data[edits[0]], struct.unpack_from(">I", data, edits[0] + 4)[0]
        assert count == 1
        shift = struct.unpack_from(">q" if version else ">i", data, edits[0] + (16 if version else 12))[0]
    fragment = None
    for kind, begin, end in boxes(data):
        if kind == "moof":
            fragment = begin, end
        elif kind == "mdat" and fragment:
            yield from fragment_samples(data, *fragment, begin, timescale, shift)


def fragment_samples(data, begin, end, mdat, timescale, shift):
    def one(name):
        return find(data, ["traf", name], begin, end)

    flags = struct.unpack_from(">I", data, one("tfhd")[0])[0] & 0xFFFFFF
    at, default = one("tfhd")[0] + 8, {}
    for bit, name, size in ((1, "base", 8), (2, "description", 4), (8, "duration", 4), (16, "size", 4), (32, "flags", 4)):
        if flags & bit:
            default[name] = int.from_bytes(data[at : at + size], "big")
            at += size
    decode = struct.unpack_from(">Q" if data[one("tfdt")[0]] else ">I", data, one("tfdt")[0] + 4)[0]
    offset = mdat
    for kind, at, _ in [box for box in boxes(data, *find(data, ["traf"], begin, end)) if box[0] == "trun"]:
        word, count = struct.unpack_from(">II", data, at)
        at += 8 + 4 * bool(word & 1)
        first = None
        if word & 4:
            first = struct.unpack_from(">I", data, at)[0]
            at += 4
        for i in range(count):
            values = dict(default)
            for bit, name in ((0x100, "duration"), (0x200, "size"), (0x400, "flags"), (0x800, "composition")):
                if word & bit:
                    values[name] = struct.unpack_from(">i" if name == "composition" else ">I", data, at)[0]
                    at += 4
            sample_flags = first if i == 0 and first is not None else values.get("flags", 0)
            pts = (decode + values.get("composition", 0) - shift) / timescale
            yield Sample(pts, lengths(data[offset : offset + values["size"]]), not sample_flags & 0x10000)
            offset += values["size"]
            decode += values["duration"]


def lengths(data):
    """Returns the NAL units that follow lengths of four bytes."""
    nals, at = [], 0
    while at < len(data):
        size = struct.unpack_from(">I", data, at)[0]
        assert at + 4 + size <= len(data), "a NAL unit is cut"
        nals.append(bytes(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return nals


def element(data, at):
    """Returns (id, begin, size) of an EBML element; size None: up to the end."""
    id_bytes = 9 - data[at].bit_length()
    size_bytes = 9 - data[at + id_bytes].bit_length()
    begin = at + id_bytes + size_bytes
    size = int.from_bytes(data[at + id_bytes : begin], "big") & ((1 << 7 * size_bytes) - 1)
    unknown = size == (1 << 7 * size_bytes) - 1
    return int.from_bytes(data[at : at + id_bytes], "big"), begin, None if unknown else size


def mkv_samples(data):
    at = 0
    while at < len(data):
        kind, begin, size = element(data, at)
        at = begin if kind == 0x18538067 else begin + size  # a segment is entered
        if kind == 0x1F43B675:
            yield from cluster_samples(data, begin, begin + size)


def cluster_samples(data, at, end):
    time = 0
    while at < end:
        kind, begin, size = element(data, at)
        at = begin + size
        if kind == 0xE7:
            time = int.from_bytes(data[begin : begin + size], "big")
        elif kind == 0xA0:  # a group, which contains a block
            inner, within, length = element(data, begin)
            assert inner == 0xA1
            yield block(data, within, within + length, time, False)
        elif kind == 0xA3:
            yield block(data, begin, begin + size, time, True)


def block(data, begin, end, time, simple):
    relative, flags = struct.unpack_from(">hB", data, begin + 1)
    return Sample((time + relative) / 1000, lengths(data[begin + 4 : end]), bool(simple and flags & 0x80))


def samples(path):
    with open(path, "rb") as file:
        data = file.read()
    return list((mkv_samples if ".mkv" in path else mp4_samples)(data))
