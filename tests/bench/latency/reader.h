// A program that reads a camera, as a child, and this process as the one that takes the pictures
// from it. One thread.
#ifndef FRAMED_TESTS_BENCH_LATENCY_READER_H
#define FRAMED_TESTS_BENCH_LATENCY_READER_H

#include "tests/bench/child.h"
#include "tests/bench/clip_units.h"
#include "tests/bench/ring.h"

enum { TENSOR_SIDE = 640 };

// What is asked of every reader alike.
struct reader_want {
    const char *url;
    enum clip_codec codec;
    bool udp;
    bool decoded;      // planes as they are decoded (yuv420p); else 640x640 RGB, stretched
    int width, height; // of the camera's pictures
    const char *keys;  // further keys of framed's camera, "demuxer: rtsp"; "": none
    const char *program, *folder;
};

struct picture_seen {
    int number; // -1: it has none
    int64_t at_ns;
};

struct reader {
    struct reader_want want;
    struct child child;
    char sink[96], config[96], log[96];
    struct ring ring;         // of a reader that has one
    struct picture_seen seen; // what the ring's look found
    int fd;                   // of a stream of pictures; -1: not open yet
    uint8_t *bytes;           // of one picture of that stream, with its header
    size_t used, room;
};

// 0 or negative errno.
typedef int reader_start_fn(struct reader *, const struct reader_want *);
// Waits for a picture, some milliseconds at most. 1: it is in *ret; 0: none yet; negative errno.
typedef int reader_take_fn(struct reader *, struct picture_seen *ret);

struct reader_kind {
    const char *name;
    reader_start_fn *start;
    reader_take_fn *take;
};

extern const struct reader_kind reader_framed_ring, reader_framed_socket, reader_gstreamer,
    reader_ffmpeg;

void reader_stop(struct reader *); // of any kind

// For the kinds. The number in a picture that has the form which is wanted, its planes tight.
int reader_number(const struct reader_want *, const uint8_t *bytes);
size_t reader_picture_bytes(const struct reader_want *);
// Reads on what makes up `bytes` of a stream: 1: they are there, and reader->used is 0 again.
int reader_fill(struct reader *, size_t bytes, int64_t *at_ns);
int reader_wait(int fd); // for something to read, at most 20 ms

#endif
