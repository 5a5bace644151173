#include "tests/bench/latency/reader.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/bench/latency/picture_number.h"

enum { WAIT_MS = 20 };

int reader_number(const struct reader_want *want, const uint8_t *bytes)
{
    const int width = want->decoded ? want->width : TENSOR_SIDE;
    const size_t step = want->decoded ? 1 : 3;
    return picture_number(&(struct picture_view){
        .data = bytes,
        .stride = (size_t)width * step,
        .step = step,
        .width = width,
        .height = want->decoded ? want->height : TENSOR_SIDE,
    });
}

size_t reader_picture_bytes(const struct reader_want *want)
{
    return want->decoded ? (size_t)want->width * (size_t)want->height * 3 / 2
                         : (size_t)TENSOR_SIDE * TENSOR_SIDE * 3;
}

int reader_wait(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, WAIT_MS) > 0;
}

int reader_fill(struct reader *reader, size_t bytes, int64_t *at_ns)
{
    if (bytes > reader->room) {
        uint8_t *grown = realloc(reader->bytes, bytes);
        if (!grown)
            return -ENOMEM;
        reader->bytes = grown;
        reader->room = bytes;
    }
    while (reader->used < bytes) {
        if (!reader_wait(reader->fd))
            return 0;
        const ssize_t n = read(reader->fd, reader->bytes + reader->used, bytes - reader->used);
        if (n <= 0)
            return n == 0 ? -ENODATA : -errno;
        reader->used += (size_t)n;
    }
    *at_ns = monotonic_ns();
    reader->used = 0;
    return 1;
}

void reader_stop(struct reader *reader)
{
    child_stop(&reader->child, 3);
    ring_close(&reader->ring);
    if (reader->fd >= 0)
        close(reader->fd);
    unlink(reader->sink);
    unlink(reader->config);
    unlink(reader->log);
    free(reader->bytes);
    *reader = (struct reader){.fd = -1, .ring.fd = -1, .child.out = -1};
}
