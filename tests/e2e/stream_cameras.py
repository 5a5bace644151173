"""Cameras with RTP quirks, each found in some real camera; their RTSP is correct."""
import random
import time

import rtp_payloads
from numbered_clip import GOP, RATE
from rtp_payloads import Packet
from rtsp_camera import LINE, NTP_EPOCH, Camera, Connection, Hangup

SEI = bytes.fromhex("060510") + bytes(16) + b"\x80"  # empty user data


def camera(behaviour, **attributes):
    """Returns a kind of camera whose connections have this behaviour."""
    return type(behaviour.__name__, (Camera,), {"connection": behaviour, **attributes})


class MarksSets(Connection):
    """Sets the marker on SPS, PPS and SEI too, each a packet of its own."""

    stamp_before = False

    def packets(self, number, seconds):
        unit = self.clip.units[number % len(self.clip.units)]
        slices = [nal for nal in unit if self.clip.is_picture(nal)]
        sets = [nal for nal in unit if self.clip.type_of(nal) in (7, 8)] + [SEI]
        stamp = seconds - 1 / RATE if self.stamp_before else seconds
        return [Packet(nal, stamp, True) for nal in sets] + rtp_payloads.packets_of(
            self.clip.codec, slices, seconds, self.camera.payload_max)


class StampsSetsBefore(MarksSets):
    """SPS, PPS and SEI carry the time stamp of the previous picture."""

    stamp_before = True


class MarksSlices(Connection):
    """Sets the marker at the end of every slice."""

    def packets(self, number, seconds):
        return [packet for nal in self.clip.units[number % len(self.clip.units)]
                for packet in rtp_payloads.packets_of(self.clip.codec, [nal], seconds, self.camera.payload_max)]


class MarksNothing(Connection):
    def changed(self, _number, packets):
        return [packet._replace(marker=False) for packet in packets]


class RepeatsStamps(Connection):
    """Three pictures share a time stamp; from picture BACK on, the stamps are 7 s earlier."""

    BACK = 6 * GOP

    def changed(self, number, packets):
        shared = (number - number % 3) / RATE
        own = number / RATE
        shift = shared - own - (7 if number >= self.BACK else 0)
        return [packet._replace(seconds=packet.seconds + shift) for packet in packets]


class JoinsUnits(Connection):
    """Alternates between all NAL units of a picture joined by start codes, also across fragments, and slices whose fragments both begin and end, or
    change their type from the second one on."""

    def packets(self, number, seconds):
        unit = self.clip.units[number % len(self.clip.units)]
        if number % 2:
            payloads = rtp_payloads.fragments(self.clip.codec, b"\0\0\0\1".join(unit), self.camera.payload_max)
            if number % 4 == 1:
                payloads = rtp_payloads.fragments(self.clip.codec, b"\0\0\0\1".join(unit), 1 << 16)
        else:
            payloads = [payload for nal in unit for payload in self.odd_fragments(nal)]
        last = len(payloads) - 1
        return [Packet(payload, seconds, i == last) for i, payload in enumerate(payloads)]

    def odd_fragments(self, nal):
        size = self.camera.payload_max
        head, indicator, kind = rtp_payloads.fragment_head(self.clip.codec, nal)
        if len(nal) <= size:
            return [rtp_payloads.fragment(indicator, kind, nal[head:], True, True)]
        first, *rest = rtp_payloads.fragments(self.clip.codec, nal, size)
        other = 5 if kind == 1 else 1
        return [first, *(payload[:1] + bytes([payload[1] & 0xC0 | other]) + payload[2:] for payload in rest)]


class LosesPackets(Connection):
    """Loses packets of a picture in the middle of each group: a middle fragment, the last, the first, or all."""

    WAYS = (slice(1, 2), slice(-1, None), slice(0, 1), slice(None))

    def changed(self, number, packets):
        if number < GOP or number % GOP != 12:
            return packets
        lost = range(len(packets))[self.WAYS[number // GOP % len(self.WAYS)]]
        return [None if i in lost else packet for i, packet in enumerate(packets)]


class SharesChannel(Connection):
    """Another session's packets arrive on our channel, before PLAY and all the time."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.other_sequence, self.other_ssrc, self.strangers = random.randrange(65536), random.randrange(2**32), 0

    def send_strangers(self, count):
        noise = random.Random(self.other_sequence)
        packets = []
        for _ in range(count):
            self.other_sequence += 1
            packets.append(rtp_payloads.rtp(b"\x61" + noise.randbytes(200), self.other_sequence,
                                            self.other_sequence * 3600, self.other_ssrc, True))
        self.transport.send(packets)
        self.camera.strangers += count

    def on_describe(self, request):
        super().on_describe(request)
        self.transport = self.set_up_tcp("")
        self.send_strangers(5)

    def on_setup(self, request):
        super().on_setup(request)
        self.send_strangers(5)

    def before(self, number, _seconds):
        if number % 10 == 5:
            self.send_strangers(3)


class CutsFrames(Connection):
    """Omits 37 bytes in the middle of a picture, three times."""

    CUTS = (3 * GOP + 10, 5 * GOP + 10, 7 * GOP + 10)

    def write(self, data):
        if self.camera.number - 1 in self.CUTS and data[:1] == b"$" and not self.cut:
            data = data[:500] + data[537:]
            self.cut = True
        super().write(data)

    def before(self, number, _seconds):
        self.cut = number not in self.CUTS

    def send_picture(self, number, seconds):
        whole, began = super().send_picture(number, seconds)
        return whole and number not in self.CUTS, began


class SmallWindow(Connection):
    """By UDP: packets of up to 10,000 bytes, some pairs swapped, every third packet twice, and server ports of 0-1."""

    def transport_reply(self):
        ports = self.transport.ports
        return f"RTP/AVP;unicast;client_port={ports[0]}-{ports[1]};server_port=0-1"

    def wrap_all(self, packets):
        wrapped = super().wrap_all(packets)
        for i in range(0, len(wrapped) - 1, 4):
            wrapped[i], wrapped[i + 1] = wrapped[i + 1], wrapped[i]
        return [again for i, data in enumerate(wrapped) for again in [data] * (2 if i % 3 == 0 else 1)]


class Reports(Connection):
    """A sender with its own clock."""

    def sender_report(self, seconds):
        return rtp_payloads.sender_report(self.ssrc, self.wall(), self.rtp_time(seconds))

    def wall(self):
        return time.time() + NTP_EPOCH


class ReportsNoClock(Reports):
    def wall(self):
        return 0


class Reports1970(Reports):
    def wall(self):
        return NTP_EPOCH + time.monotonic() - self.started


class StepsClock(Reports):
    """Its clock jumps an hour ahead in mid-stream."""

    STEP = 5 * GOP

    def wall(self):
        return super().wall() + (3600 if self.camera.number >= self.STEP else 0)


class CutsReports(Reports):
    """The SDES behind the report claims to be longer than it is."""

    def sender_report(self, seconds):
        return super().sender_report(seconds) + bytes.fromhex("81ca0006") + self.ssrc.to_bytes(4, "big") + b"\1\6cam"


class ReportsOfOthers(Reports):
    """Sends reports of a sender that is not in this session, five hours ahead."""

    def sender_report(self, seconds):
        return rtp_payloads.sender_report(self.ssrc ^ 0x5A5A, self.wall() + 18000, self.rtp_time(seconds) + 12345)


class SaysGoodbye(Connection):
    """Sends BYE before picture LAST, then nothing more; a group earlier, BYE for another sender."""

    LAST = 5 * GOP + 5

    def before(self, number, _seconds):
        if number == self.LAST - GOP:
            self.transport.send_rtcp(rtp_payloads.goodbye(self.ssrc ^ 1))
        if number >= self.LAST and self.serial == 1:
            self.transport.send_rtcp(rtp_payloads.goodbye(self.ssrc))
            self.camera.parted = time.monotonic()
            while not self.camera.over.wait(0.1):
                self.receive(0.01)
            raise Hangup


class ChangesSize(Connection):
    """Switches to another clip at picture CHANGE, with the parameter sets in the stream alone."""

    CHANGE = 6 * GOP

    def before(self, number, _seconds):
        if number >= self.CHANGE:
            self.clip = self.camera.other_clip


class OffersKeyframes(Camera):
    """Announces that it sends a keyframe on request."""

    connection = LosesPackets

    def description(self, url):
        return super().description(url) + "a=rtcp-fb:96 nack pli" + LINE


class OddDescription(Camera):
    """No o= line, no parameter sets, other media's tracks first, all with one payload type, and no last line end."""

    connection = ChangesSize

    def description(self, _url):
        return LINE.join((
            "v=0", "s=live", "t=0 0",
            "m=application/TP-LINK 0 RTP/AVP smart/1/90000", "a=rtpmap:95 TP-LINK/90000", "a=control:track9",
            "m=audio 0 RTP/AVP 96", "a=rtpmap:96 PCMU/8000", "a=control:track1", "a=sendonly",
            "m=video 0 RTP/AVP 96", "a=rtpmap:96 H264/90000 ", "a=sendonly", "a=control:track2"))


MarkingCamera = camera(MarksSets)
LateStampCamera = camera(StampsSetsBefore)
SliceMarkingCamera = camera(MarksSlices)
MarklessCamera = camera(MarksNothing)
RepeatingCamera = camera(RepeatsStamps)
JoiningCamera = camera(JoinsUnits)
LossyCamera = camera(LosesPackets)
SharedCamera = camera(SharesChannel, strangers=0)
CuttingCamera = camera(CutsFrames)
LargePacketCamera = camera(SmallWindow, payload_max=10000)
PartingCamera = camera(SaysGoodbye, parted=None)
