// The time of a stream by its RTP timestamps, whose clock is compared with the time of arrival.
// Pure. One thread uses a clock.
//
// The clock runs at the rate that the SDP says, exactly, as long as the timestamps agree with the
// arrival. Where they do not for 12 s, it runs at the measured rate. Pictures that are late change
// nothing: they come faster afterwards. Pictures that lie ready when they are read tell
// nothing: the box is late, not the camera.
#ifndef FRAMED_DAEMON_RTSP_RTP_CLOCK_H
#define FRAMED_DAEMON_RTSP_RTP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { RTP_CLOCK_BLOCKS = 31 };

struct rtp_clock {
    double rate;   // ticks/s
    int announced; // ticks/s, of the SDP
    int steps;     // from picture to picture, by which one of two rates is chosen; STEPS at most
    int64_t step_ticks, step_ns; // their sums
    bool waited;                 // so was the last picture that was no outlier
    bool begun, has_ticks;
    int pictures;                // two at most: a first timestamp alone proves nothing
    int64_t ticks;               // unwrapped: of the last picture that was no outlier
    int64_t arrived_ns;          // CLOCK_MONOTONIC: of that picture
    int64_t base_ticks, base_ns; // base_ticks are the time base_ns
    int64_t last_ns;             // the last time that was given, and whether it was a guess
    bool last_guessed;
    int64_t interval_ns;   // between pictures, smoothed
    int64_t step_least_ns; // the same, the least of late: pictures may be reordered
    // A timestamp that fits to none before: the next picture tells whether it was an outlier.
    bool doubted;
    int64_t doubted_ticks, doubted_ns; // its timestamp and arrival
    // The least distance from a picture's time to its arrival, block by block, the newest last.
    int64_t block_ns, block_least_ns; // when the block began; its least so far
    int block_pictures, block_waited;
    int64_t nearest_ns; // the least of all blocks but the last
    int n_blocks;
    struct {
        int64_t least_ns, arrived_ns;
    } blocks[RTP_CLOCK_BLOCKS];
};

struct rtp_time {
    int64_t ns;    // rises as the timestamps do; its zero means nothing
    int64_t ticks; // unwrapped, in units of the present rate
    bool guessed;  // by arrival: the timestamp stands still or is an outlier
};

// `rate`: of the SDP, ticks/s; 0 or less: unknown.
void rtp_clock_open(struct rtp_clock *, int rate);
// Returns the time of the next picture. `arrived_ns`: when it was read, by CLOCK_MONOTONIC.
// `waited`: it was waited for; else it may have lain ready before.
struct rtp_time rtp_clock_read(struct rtp_clock *, uint32_t timestamp, int64_t arrived_ns,
                               bool waited);
// The next picture is of a sender that began again, with timestamps of its own.
void rtp_clock_restart(struct rtp_clock *);
// A timestamp of a sender report, in the ticks of struct rtp_time.
int64_t rtp_clock_unwrap(struct rtp_clock *, uint32_t timestamp);
int rtp_clock_rate(const struct rtp_clock *); // ticks/s, as measured so far

#endif
