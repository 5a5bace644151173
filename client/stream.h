// The client's side of a unix or tcp socket: frames and batches, read into buffers of its own.
#ifndef FRAMED_CLIENT_STREAM_H
#define FRAMED_CLIENT_STREAM_H

#include <stdbool.h>

#include "client/framed.h"
#include "client/header.h"
#include "client/memory.h"

enum stream_part { STREAM_HEAD, STREAM_ELEMENTS, STREAM_PAYLOAD };

// A frame or batch while it is read, and behind that until the one behind it is complete.
struct stream_frame {
    struct framed_memory *payload; // NULL: nothing has been read yet
    void *headers;                 // of a batch's elements
    size_t headers_bytes;
    uint64_t payload_bytes;
    struct framed_batch batch; // batch.count is 0: a frame
    struct framed_header header;
};

struct stream {
    struct stream_frame frame[2];
    int reading; // which of the two
    enum stream_part part;
    _Alignas(8) uint8_t head[HEADER_BYTES_MAX];
    uint64_t got, wanted; // bytes of the part
    bool is_tcp;          // set before the first call
    int wake_bytes;       // that must be there before the socket wakes who waits for it
};

void stream_reset(struct stream *); // for another connection; what was shown stays
void stream_close(struct stream *);

// Reads until a frame or batch is complete, or with `newest` until no more bytes are there, and
// shows the last that is complete. 1: `view` has it, until the next call; *memory is where it
// lies. 0: none is complete. `skipped` counts those that were complete and not shown. -EPIPE: the
// stream has ended; -EPROTO: it is not framed's; other negative errno.
int stream_next(struct stream *, int fd, bool newest, struct framed_view *view,
                struct framed_memory **memory, uint64_t *skipped);

#endif
