// The media of one RTSP track: turns packets into pictures with times, and writes reports to the
// camera. Pure but for the wall clock, which checks the camera's. One thread uses a track.
#ifndef FRAMED_DAEMON_RTSP_RTSP_TRACK_H
#define FRAMED_DAEMON_RTSP_RTSP_TRACK_H

#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/rtcp.h"
#include "daemon/rtsp/rtp_clock.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

struct rtsp_unit {
    struct access_unit unit;
    int64_t time_ns;    // from its timestamp (rtp_clock.h)
    int64_t capture_ns; // since 1970, from sender reports; INT64_MIN: unknown
    bool guessed;       // time_ns is a guess: the timestamp is an outlier, or stands still
    bool waited;        // the owner waited for it; else it may have been ready for long
};

enum rtsp_track_got {
    RTSP_TRACK_NOTHING, // neither RTP nor RTCP of ours
    RTSP_TRACK_MEDIA,
    RTSP_TRACK_REPORT, // RTCP
    RTSP_TRACK_BYE,    // RTCP: the source ended, and another one may follow
};

struct rtsp_report { // of a sender
    struct rtcp_events events;
    int64_t now_ns, realtime_ns; // when it arrived
};

struct rtsp_track {
    struct rtp_receiver receiver; // the session reads its statistics, and sets `lose`
    struct rtcp_receiver reports;
    struct depacketizer *depacketizer; // with the parameter sets, and a complaint for people
    bool ending; // set by the session: no packet follows, and the open unit is complete
    // Packets arrived for a second without loss and completed no unit: they are not of the codec in
    // the SDP.
    bool barren;
    // Private.
    struct rtcp_clock wall_clock;
    struct rtp_clock clock;
    struct rtsp_report early; // before the first packet
    bool begun;               // a unit came
    bool flushed;
    // Packets in a row, without loss, that completed no unit:
    int stamps; // number of timestamps
    uint32_t stamp;
    int64_t first_ns; // when the first arrived
};

// Returns 0, -ENOMEM or -EIO.
int rtsp_track_open(struct rtsp_track **ret, const struct rtsp_track_options *);
void rtsp_track_close(struct rtsp_track *); // accepts NULL
// The caller has read all complete units before. Returns enum rtsp_track_got or -ENOMEM.
int rtsp_track_put(struct rtsp_track *, const uint8_t *data, size_t bytes, int64_t now_ns);
// Returns the next unit, valid until the next call: 0 or -EAGAIN. `waited`: the owner has waited
// for packets since the previous unit.
int rtsp_track_read(struct rtsp_track *, int64_t now_ns, bool waited, struct rtsp_unit *ret);
int64_t rtsp_track_due_ns(const struct rtsp_track *); // when to read without new packets
// Writes a compound RTCP packet to `to`, of RTCP_REPORT_MAX bytes, and returns its size.
size_t rtsp_track_write(struct rtsp_track *, enum rtcp_kind, int64_t now_ns, uint8_t *to);

#endif
