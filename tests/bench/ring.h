// A client of one `ring` sink; daemon/wire.h describes the protocol. One thread.
#ifndef FRAMED_TESTS_BENCH_RING_H
#define FRAMED_TESTS_BENCH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/wire.h"

// The reference's results for a clip's frames 0, `apart`, 2 * apart and so on: n results of `bytes`
// bytes, consecutive.
struct expected {
    uint8_t *frames;
    size_t bytes;
    int n, apart;
};

// Called with each frame in host memory before its slot is given back.
typedef void ring_look_fn(void *opaque, const struct framed_header *, const uint8_t *bytes);

// Returns the picture of the clip that a frame shows; negative: unknown.
typedef int64_t ring_picture_fn(void *opaque, const struct framed_header *);

struct ring {
    int fd;                   // -1: not connected
    ring_look_fn *look;       // NULL: no callback
    ring_picture_fn *picture; // NULL: the frame's sequence
    void *opaque;             // passed to look and picture
    struct framed_ring_hello hello;
    const uint8_t *map; // the memfd, hello.memfd_bytes
    bool begun;
    uint64_t before;    // lost count in the previous header
    uint64_t lost;      // since the first frame, without frames thinned to keep `fps`
    uint64_t torn;      // slots overwritten while being read
    int checked, wrong; // frames compared (at most one), and those that differ
    uint64_t touched;   // keeps the reads
};

// Sets the socket path of ring i in a folder.
void ring_path(const char *folder, int i, char path[96]);
int ring_connect(struct ring *, const char *path); // 0 or negative errno
void ring_close(struct ring *);
// Takes one message. Returns 1 for a frame, its header in *header, touched and released; 0 for
// another message; -EAGAIN for none; another negative errno: the ring is closed. Compares the first
// frame found in `expected` (NULL: none): a live camera does not keep its very first frame for a
// later client. A frame in device memory is released unread.
int ring_read(struct ring *, const struct expected *, struct framed_header *header);

#endif
