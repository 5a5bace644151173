// A client of one `ring` sink: daemon/wire.h says how it goes. One thread.
#ifndef FRAMED_TESTS_BENCH_RING_H
#define FRAMED_TESTS_BENCH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/wire.h"

// What the reference makes of a clip's frames 0, `apart`, 2 * apart and so on: n results of `bytes`
// bytes, one behind the other.
struct expected {
    uint8_t *frames;
    size_t bytes;
    int n, apart;
};

// Called with each frame in host memory before its slot is given back.
typedef void ring_look_fn(void *opaque, const struct framed_header *, const uint8_t *bytes);

// Which picture of the clip a frame shows; below 0: not known.
typedef int64_t ring_picture_fn(void *opaque, const struct framed_header *);

struct ring {
    int fd;                   // -1: not connected
    ring_look_fn *look;       // NULL: nobody else looks at the frames
    ring_picture_fn *picture; // NULL: that of the frame's own number
    void *opaque;             // look's and picture's
    struct framed_ring_hello hello;
    const uint8_t *map; // the memfd, hello.memfd_bytes
    bool begun;
    uint64_t before;    // what the header of the frame before said was lost
    uint64_t lost;      // since the first frame, but for those that were thinned to keep `fps`
    uint64_t torn;      // slots taken back while they were read
    int checked, wrong; // frames compared (one, once it has come), and those that differ
    uint64_t touched;   // keeps the reads
};

// Where ring i of those in a folder listens.
void ring_path(const char *folder, int i, char path[96]);
int ring_connect(struct ring *, const char *path); // 0 or negative errno
void ring_close(struct ring *);
// Takes one message: 1: a frame, its header in *header, touched and given back; 0: something else;
// -EAGAIN: none is there; other negative errno: the ring is closed. The first frame of those that
// are expected is compared: a live camera does not keep its very first one for a client to come.
// `expected` NULL: none is. A frame in device memory is given back unread.
int ring_read(struct ring *, const struct expected *, struct framed_header *header);

#endif
