"""RTP packets of a picture: H.264 by RFC 6184, H.265 by RFC 7798, and their header (RFC 3550)."""
import struct
import typing

PAYLOAD_TYPE = 96


class Packet(typing.NamedTuple):
    """One packet of a picture; `seconds`: its time stamp."""

    payload: bytes
    seconds: float
    marker: bool = False


def fragments(codec, nal, size):
    """Returns the payloads of one NAL unit: the unit itself, or fragmentation units with at most `size` bytes of it each."""
    if len(nal) <= size:
        return [nal]
    head, indicator, kind = fragment_head(codec, nal)
    pieces = [nal[i : i + size] for i in range(head, len(nal), size)]
    last = len(pieces) - 1
    return [fragment(indicator, kind, piece, i == 0, i == last) for i, piece in enumerate(pieces)]


def fragment_head(codec, nal):
    """Returns (bytes of its header, the header that replaces it in fragments, its type)."""
    if codec == "h264":
        return 1, bytes([nal[0] & 0xE0 | 28]), nal[0] & 31
    return 2, bytes([nal[0] & 0x81 | 49 << 1, nal[1]]), nal[0] >> 1 & 63


def fragment(indicator, kind, piece, start, end):
    return indicator + bytes([start << 7 | end << 6 | kind]) + piece


def packets_of(codec, unit, seconds, size):
    """Returns a picture's packets, the last one marked."""
    payloads = [payload for nal in unit for payload in fragments(codec, nal, size)]
    last = len(payloads) - 1
    return [Packet(payload, seconds, i == last) for i, payload in enumerate(payloads)]


def rtp(payload, sequence, stamp, ssrc, marker=False, kind=PAYLOAD_TYPE):
    return struct.pack(">BBHII", 0x80, marker << 7 | kind, sequence & 0xFFFF, stamp & 0xFFFFFFFF, ssrc) + payload


def sender_report(ssrc, wall, stamp):
    """`wall`: seconds since 1900; 0: the sender has no clock."""
    fraction = int(wall % 1 * 2**32)
    return struct.pack(">BBHIIIIII", 0x80, 200, 6, ssrc, int(wall) & 0xFFFFFFFF, fraction, stamp & 0xFFFFFFFF, 0, 0)


def goodbye(ssrc):
    return struct.pack(">BBHI", 0x81, 203, 1, ssrc)
