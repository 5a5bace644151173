// Reads all rings of a folder in this process: maps the slots, touches each frame (one byte of
// every 4 KiB page; one of a camera's first frames is compared whole) and releases the slot. It
// uses threads of its own; the functions below are for one thread.
#ifndef FRAMED_TESTS_BENCH_CONSUMER_H
#define FRAMED_TESTS_BENCH_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/ring.h"
#include "tests/bench/rtsp_server.h"

struct consumer;

// Totals of rings 0 to n - 1 since consumer_reset.
struct consumed {
    uint64_t frames;
    double p50_ms, p99_ms, max_ms;         // received to finished, by the frames' headers
    double decoded_p50_ms, decoded_p99_ms; // received to decoded
    // Cameras of our own server: from the sending of a picture's last packet to finished.
    double sent_p50_ms, sent_p99_ms, sent_max_ms;
    uint64_t timed;     // frames with these three; others had no capture time of the camera
    uint64_t unseen;    // since the first frames: sent pictures that became no frame
    uint64_t lost;      // since the first frames, by their headers
    uint64_t torn;      // slots overwritten while being read
    int checked, wrong; // rings with a frame compared with the reference; rings that differ
};

// Reads rings 0 to n - 1 of `folder` as they appear. `expected`: reference frames of every ring;
// NULL: no comparison. `server`: its camera i feeds ring i; NULL: the cameras are files. All three
// stay the caller's.
int consumer_open(struct consumer **ret, const char *folder, int n, const struct expected *,
                  const struct rtsp_server *server);
void consumer_close(struct consumer *); // accepts NULL
// Returns how many of the first n rings have delivered; *last_ns: time of the last one's first.
int consumer_up(struct consumer *, int n, int64_t *last_ns);
void consumer_reset(struct consumer *);
int consumer_result(struct consumer *, int n, struct consumed *ret); // 0 or -ENOMEM

#endif
