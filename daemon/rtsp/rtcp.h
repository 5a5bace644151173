// RTCP (RFC 3550, 4585, 5104): reads a sender's packets and writes a receiver's. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTCP_H
#define FRAMED_DAEMON_RTSP_RTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rtp_statistics;

struct rtcp_events { // of one compound packet and one sender
    bool report;     // a sender report, with:
    uint64_t ntp;    // 32.32 seconds since 1900
    uint32_t rtp;    // the same time in the stream's clock
    uint32_t ssrc;   // its sender
    bool bye;
};

// Reads well-formed packets of the sender `ssrc`, and skips the rest. `locked` false: reads reports
// of any sender, and no BYE. A report may precede the first RTP packet: the caller keeps it until
// that packet's SSRC shows whether the report belongs to the stream.
void rtcp_read(struct rtcp_events *ret, const uint8_t *data, size_t bytes, bool locked,
               uint32_t ssrc);

struct rtcp_receiver {       // state for our reports; ready when zeroed, except ssrc
    uint32_t ssrc;           // our own
    uint64_t expected, lost; // as of the last report
    uint64_t sr_ntp;         // of the last sender report, set by the owner; 0: none
    int64_t sr_ns;           // when it arrived
    uint8_t fir_sequence;
};

enum rtcp_kind { RTCP_REPORT, RTCP_PICTURE_LOSS, RTCP_FULL_INTRA, RTCP_BYE };
enum { RTCP_REPORT_MAX = 256 };

// Writes a compound packet to `to`, of RTCP_REPORT_MAX bytes, and returns its size: a receiver
// report, our name, and what `kind` names.
size_t rtcp_write(struct rtcp_receiver *, const struct rtp_statistics *, enum rtcp_kind,
                  int64_t now_ns, uint8_t *to);

// --- the wall clock of a camera, by its sender reports. Zeroed it is ready.
struct rtcp_clock {
    bool known;
    int64_t ahead_ns; // from the stream's time to the wall clock's, since 1970
    // Private: start of the rate measurement.
    int64_t base_ns, base_ahead_ns;
};

// Returns true if the report was accepted; one far from `realtime_ns`, our own wall clock, is not.
// `stream_ns`: the stream's time of the report's `rtp`. A step of 0.5 s, or a clock 1 % faster or
// slower than the stream's, restarts the clock; smaller differences are smoothed.
bool rtcp_clock_report(struct rtcp_clock *, const struct rtcp_events *, int64_t stream_ns,
                       int64_t realtime_ns);
// Returns the wall time of a picture; INT64_MIN: unknown.
int64_t rtcp_clock_read(const struct rtcp_clock *, int64_t stream_ns);

#endif
