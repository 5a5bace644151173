// The reader of all rings in a folder, in this process: maps the slots, touches each frame (a byte
// of every 4 KiB page; one of a camera's first frames is compared whole) and gives the slot back.
// Threads of its own do that; the functions are for one thread.
#ifndef FRAMED_TESTS_BENCH_CONSUMER_H
#define FRAMED_TESTS_BENCH_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/ring.h"
#include "tests/bench/rtsp_server.h"

struct consumer;

// What came in since consumer_reset of rings 0 to n - 1.
struct consumed {
    uint64_t frames;
    double p50_ms, p99_ms, max_ms;         // received to finished, by the frames' headers
    double decoded_p50_ms, decoded_p99_ms; // received to decoded
    // Of cameras of a server of ours: from the sending of a picture's last packet to finished.
    double sent_p50_ms, sent_p99_ms, sent_max_ms;
    uint64_t timed;     // frames of these three; others had no capture time by the camera's clock
    uint64_t unseen;    // since the first frames: pictures that were sent and were no frame
    uint64_t lost;      // since the first frames, by their headers
    uint64_t torn;      // slots taken back while they were read
    int checked, wrong; // rings with a frame compared with the reference; those that differ
};

// The rings 0 to n - 1 of `folder`, whenever they appear. `expected`: of every ring; NULL: frames
// are not compared. `server`: ring i is of its camera i; NULL: the cameras are files. The caller
// keeps all three.
int consumer_open(struct consumer **ret, const char *folder, int n, const struct expected *,
                  const struct rtsp_server *server);
void consumer_close(struct consumer *); // accepts NULL
// Rings of the first n that have delivered; *last_ns: when the last of them did so first.
int consumer_up(struct consumer *, int n, int64_t *last_ns);
void consumer_reset(struct consumer *);
int consumer_result(struct consumer *, int n, struct consumed *ret); // 0 or -ENOMEM

#endif
