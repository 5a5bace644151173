// Converts RTP timestamps to a stream's time, and compares their clock with the arrivals. Pure. One
// thread uses a clock.
//
// The clock runs at exactly the SDP's rate while the timestamps agree with the arrivals, and at the
// measured rate if they disagree for 12 s. Late pictures change nothing: the next ones come faster.
// Pictures that were ready before they were read do not count: the box is late, not the camera.
#ifndef FRAMED_DAEMON_RTSP_RTP_CLOCK_H
#define FRAMED_DAEMON_RTSP_RTP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { RTP_CLOCK_BLOCKS = 31 };

struct rtp_clock {
    double rate;   // ticks/s
    int announced; // ticks/s, of the SDP
    int steps;     // intervals counted for the choice of one of two rates; STEPS at most
    int64_t step_ticks, step_ns; // sums over these intervals
    bool waited;                 // the last picture that was no outlier was waited for
    bool begun;                  // `ticks` and the base are set
    int pictures;                // counted up to two: one timestamp alone proves nothing
    int64_t ticks;               // unwrapped: of the last picture that was no outlier
    int64_t arrived_ns;          // CLOCK_MONOTONIC: of that picture
    int64_t base_ticks, base_ns; // the time of base_ticks is base_ns
    int64_t moved_ns;            // what the time of all timestamps has grown by
    int64_t last_ns;             // the last time returned; last_guessed: it was a guess
    bool last_guessed;
    int64_t interval_ns;   // between pictures, smoothed
    int64_t step_least_ns; // recent minimum of the same: pictures may be reordered
    // A timestamp that fits no earlier one: the next picture shows whether it was an outlier.
    bool doubted;
    int64_t doubted_ticks, doubted_ns; // its timestamp and arrival
    // The minimum distance from a picture's time to its arrival per block, the newest last.
    int64_t block_ns, block_least_ns; // start of the present block; its minimum so far
    int block_pictures, block_waited;
    int64_t nearest_ns; // minimum of all blocks but the last
    int n_blocks;
    struct {
        int64_t least_ns, arrived_ns;
    } blocks[RTP_CLOCK_BLOCKS];
};

struct rtp_time {
    int64_t ns;   // rises with the timestamps; its zero is arbitrary
    bool guessed; // from the arrival: the timestamp stands still or is an outlier
};

// `rate`: from the SDP, ticks/s; 0 or less: unknown.
void rtp_clock_open(struct rtp_clock *, int rate);
// Returns the time of the next picture. `arrived_ns`: when it was read, by CLOCK_MONOTONIC.
// `waited`: the reader waited for it; else it may have been ready before.
struct rtp_time rtp_clock_read(struct rtp_clock *, uint32_t timestamp, int64_t arrived_ns,
                               bool waited);
// Restarts the clock: the sender restarted, with new timestamps.
void rtp_clock_restart(struct rtp_clock *);
// Converts a sender report's timestamp to the same time, less `moved_ns`.
int64_t rtp_clock_convert(struct rtp_clock *, uint32_t timestamp);
int rtp_clock_rate(const struct rtp_clock *); // ticks/s, as measured so far

#endif
