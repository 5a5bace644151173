// A program that reads a camera, as a child; this process takes the pictures from it. One thread.
#ifndef FRAMED_TESTS_BENCH_LATENCY_READER_H
#define FRAMED_TESTS_BENCH_LATENCY_READER_H

#include "tests/bench/child.h"
#include "tests/bench/clip_units.h"
#include "tests/bench/ring.h"

enum { TENSOR_SIDE = 640 };

// The same request for every reader.
struct reader_want {
    const char *url;
    enum clip_codec codec;
    bool udp;
    bool decoded;      // decoded planes (yuv420p); else 640x640 RGB, stretched
    int width, height; // of the camera's pictures
    const char *keys;  // additional keys of framed's camera, "demuxer: rtsp"; "": none
    const char *program, *folder;
};

struct picture_seen {
    int number; // -1: none
    int64_t at_ns;
};

struct reader {
    struct reader_want want;
    struct child child;
    char sink[96], config[96], log[96];
    struct ring ring;         // only used by ring readers
    struct picture_seen seen; // set by the ring's look callback
    int fd;                   // picture stream; -1: not open
    uint8_t *bytes;           // one picture of the stream with its header
    size_t used, room;
};

// Returns 0 or a negative errno.
typedef int reader_start_fn(struct reader *, const struct reader_want *);
// Waits some ms at most for a picture. Returns 1 with *ret set, 0 without one, or negative errno.
typedef int reader_take_fn(struct reader *, struct picture_seen *ret);

struct reader_kind {
    const char *name;
    reader_start_fn *start;
    reader_take_fn *take;
};

extern const struct reader_kind reader_framed_ring, reader_framed_socket, reader_gstreamer,
    reader_ffmpeg;

void reader_stop(struct reader *); // of any kind

// Used by the kinds. Reads the number in a picture of the requested form with tight planes.
int reader_number(const struct reader_want *, const uint8_t *bytes);
size_t reader_picture_bytes(const struct reader_want *);
// Reads until `bytes` of a stream are there. Then returns 1 and resets reader->used to 0.
int reader_fill(struct reader *, size_t bytes, int64_t *at_ns);
int reader_wait(int fd); // waits at most 20 ms for input

#endif
