// The client's side of a unix or tcp socket: reads frames and batches into its own buffers.
#ifndef FRAMED_CLIENT_STREAM_H
#define FRAMED_CLIENT_STREAM_H

#include <stdbool.h>

#include "client/framed.h"
#include "client/header.h"
#include "client/memory.h"

enum stream_part { STREAM_HEAD, STREAM_ELEMENTS, STREAM_PAYLOAD };

// A frame or batch while it is read, and then until the next one is complete.
struct stream_frame {
    struct framed_memory *payload; // NULL: nothing read yet
    void *headers;                 // of a batch's elements
    size_t headers_bytes;
    uint64_t payload_bytes;
    struct framed_batch batch; // batch.count is 0 for a frame
    struct framed_header header;
};

struct stream {
    struct stream_frame frame[2];
    int reading; // index in `frame`
    enum stream_part part;
    _Alignas(8) uint8_t head[HEADER_BYTES_MAX];
    uint64_t got, wanted; // bytes of the part
    bool is_tcp;          // set before the first call
    int wake_bytes;       // minimum of received bytes at which the socket wakes its reader
};

void stream_reset(struct stream *); // for another connection; the shown view stays
void stream_close(struct stream *);

// Reads up to the end of a frame or batch, or with `newest` until no more bytes have arrived, and
// shows the last complete one. Returns 1 and fills `view`, valid until the next call, and *memory,
// its payload; or 0 if none is complete. `skipped` counts complete ones that were not shown.
// -EPIPE: the stream has ended; -EPROTO: it is not framed's; other negative errno.
int stream_next(struct stream *, int fd, bool newest, struct framed_view *view,
                struct framed_memory **memory, uint64_t *skipped);

#endif
