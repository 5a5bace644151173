// RTCP (RFC 3550, 4585, 5104): what senders report, and what a receiver says. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTCP_H
#define FRAMED_DAEMON_RTSP_RTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rtp_statistics;

struct rtcp_events { // of one compound packet, of the sender that is asked for
    bool report;     // a sender report, with:
    uint64_t ntp;    // 32.32 seconds since 1900
    uint32_t rtp;    // the same time in the stream's clock
    uint32_t ssrc;   // its sender
    bool bye;
};

// Uses what is well formed and of the sender `ssrc`, and skips the rest. `locked` false: a report
// of any sender, and no BYE. A report may come before the first RTP packet: the caller keeps it
// until it knows by that packet's SSRC whether it is of the stream.
void rtcp_read(struct rtcp_events *ret, const uint8_t *data, size_t bytes, bool locked,
               uint32_t ssrc);

struct rtcp_receiver {       // what reports need; zeroed it is ready but for ssrc
    uint32_t ssrc;           // our own
    uint64_t expected, lost; // as of the last report
    uint64_t sr_ntp;         // of the last sender report; 0: none
    int64_t sr_ns;           // when it came
    uint8_t fir_sequence;
};

enum { RTCP_REPORT_MAX = 256 };

// Keeps what the next report says of the sender's last one.
void rtcp_receiver_note(struct rtcp_receiver *, const struct rtcp_events *, int64_t now_ns);
// Each writes a compound packet, which begins with a receiver report, to `to` of RTCP_REPORT_MAX
// bytes and returns its size.
size_t rtcp_receiver_report(struct rtcp_receiver *, const struct rtp_statistics *, int64_t now_ns,
                            uint8_t *to);
size_t rtcp_keyframe_request(struct rtcp_receiver *, const struct rtp_statistics *, bool fir,
                             int64_t now_ns, uint8_t *to);
size_t rtcp_bye(struct rtcp_receiver *, const struct rtp_statistics *, int64_t now_ns, uint8_t *to);

// --- the wall clock of a camera, by its sender reports. Zeroed it is ready.
struct rtcp_clock {
    bool known;
    int64_t wall_ns; // since 1970, of `rtp`
    int64_t rtp;     // unwrapped
    // Private: the report that the rate is measured from.
    int64_t base_wall_ns, base_rtp;
};

// `rtp_unwrapped`: the report's `rtp`, unwrapped as the packets' timestamps are. `realtime_ns`: our
// own wall clock, by which nonsense is refused. Returns whether the report was taken. One that
// steps by 0.5 s, or whose clock runs 1 % faster or slower than the stream's, begins anew;
// what it is off by otherwise is taken over smoothly.
bool rtcp_clock_report(struct rtcp_clock *, const struct rtcp_events *, int64_t rtp_unwrapped,
                       int clock_rate, int64_t realtime_ns);
// The wall time of a picture; INT64_MIN: unknown.
int64_t rtcp_clock_read(const struct rtcp_clock *, int64_t rtp_unwrapped, int clock_rate);

#endif
