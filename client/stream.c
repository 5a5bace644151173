#include "client/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    HEAD_MIN = sizeof(struct framed_batch), // what frames and batches both have
    DRAIN_MAX = 64,                         // frames read before the newest is shown
    WAKE_BYTES = 256 * 1024,
};

static void begin(struct stream *stream, enum stream_part part, uint64_t wanted)
{
    stream->part = part;
    stream->got = 0;
    stream->wanted = wanted;
}

void stream_reset(struct stream *stream)
{
    begin(stream, STREAM_HEAD, HEAD_MIN);
    stream->wake_bytes = 1;
}

void stream_close(struct stream *stream)
{
    for (int i = 0; i < 2; i++) {
        memory_drop(stream->frame[i].payload);
        free(stream->frame[i].headers);
    }
}

static uint8_t *destination(struct stream *stream)
{
    struct stream_frame *frame = &stream->frame[stream->reading];
    switch (stream->part) {
    case STREAM_ELEMENTS:
        return frame->headers;
    case STREAM_PAYLOAD:
        return frame->payload->host;
    default:
        return stream->head;
    }
}

// Returns 0 once the part is complete, or -EAGAIN, -EPIPE or another negative errno.
static int read_part(struct stream *stream, int fd)
{
    uint8_t *to = destination(stream);
    while (stream->got < stream->wanted) {
        const ssize_t n = recv(fd, to + stream->got, stream->wanted - stream->got, MSG_DONTWAIT);
        if (n > 0)
            stream->got += (uint64_t)n;
        else if (n == 0)
            return -EPIPE;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

static int begin_payload(struct stream *stream, uint64_t bytes)
{
    struct stream_frame *frame = &stream->frame[stream->reading];
    if (!frame->payload || frame->payload->host_bytes < bytes) {
        memory_drop(frame->payload);
        frame->payload = NULL;
        const int rc = memory_allocate(&frame->payload, bytes);
        if (rc < 0)
            return rc;
    }
    frame->payload_bytes = bytes;
    begin(stream, STREAM_PAYLOAD, bytes);
    return 0;
}

static int begin_elements(struct stream *stream)
{
    struct stream_frame *frame = &stream->frame[stream->reading];
    const size_t bytes = (size_t)frame->batch.count * frame->batch.header_bytes;
    if (frame->headers_bytes < bytes) {
        free(frame->headers);
        frame->headers = malloc(bytes);
        frame->headers_bytes = frame->headers ? bytes : 0;
        if (!frame->headers)
            return -ENOMEM;
    }
    begin(stream, STREAM_ELEMENTS, bytes);
    return 0;
}

// Starts the part after the head, or reads on if the head is longer than the common minimum.
static int take_head(struct stream *stream)
{
    struct stream_frame *frame = &stream->frame[stream->reading];
    struct framed_header *header = &frame->header;
    const bool is_batch = memcmp(stream->head, FRAMED_BATCH_MAGIC, 4) == 0;
    uint16_t size;
    if (!is_batch && memcmp(stream->head, FRAMED_MAGIC, 4) != 0)
        return -EPROTO;
    memcpy(&size, stream->head + offsetof(struct framed_header, header_bytes), sizeof size);
    if (size > sizeof stream->head || size < (is_batch ? sizeof frame->batch : sizeof *header))
        return -EPROTO;
    if (stream->wanted < size) {
        stream->wanted = size;
        return 0;
    }
    frame->batch.count = 0;
    if (is_batch) {
        memcpy(&frame->batch, stream->head, sizeof frame->batch);
        return batch_is_good(&frame->batch) ? begin_elements(stream) : -EPROTO;
    }
    memcpy(header, stream->head, sizeof *header);
    return header_is_good(header, 0, header->payload_bytes)
               ? begin_payload(stream, header->payload_bytes)
               : -EPROTO;
}

static int take_headers(struct stream *stream)
{
    struct stream_frame *frame = &stream->frame[stream->reading];
    if (!take_elements(frame->headers, &frame->batch))
        return -EPROTO;
    frame->header = ((const struct framed_element_header *)frame->headers)[0].header;
    return begin_payload(stream, frame->batch.payload_bytes);
}

// Returns 1 when a frame or batch is complete and switches to the other buffer, or 0 when a part
// is. Errors as read_part, or -EPROTO, -ENOMEM.
static int advance(struct stream *stream, int fd)
{
    const int rc = read_part(stream, fd);
    if (rc < 0)
        return rc;
    switch (stream->part) {
    case STREAM_HEAD:
        return take_head(stream);
    case STREAM_ELEMENTS:
        return take_headers(stream);
    default:
        stream->reading = !stream->reading;
        begin(stream, STREAM_HEAD, HEAD_MIN);
        return 1;
    }
}

static void show(const struct stream_frame *frame, struct framed_view *view)
{
    *view = (struct framed_view){
        .data = frame->payload->host,
        .bytes = frame->payload_bytes,
        .memory = FRAMED_RING_HOST,
        .device = -1,
        .header = frame->header,
    };
    if (frame->batch.count > 0) {
        view->batch = frame->batch;
        view->elements = frame->headers;
    }
}

// Without this, tcp wakes the reader for each segment of a large payload, eighty times for a frame
// of 5 MB. A unix socket has no such threshold.
static void set_wake_bytes(struct stream *stream, int fd)
{
    const uint64_t left = stream->wanted - stream->got;
    int bytes = left < WAKE_BYTES ? (int)left : WAKE_BYTES;
    if (stream->part != STREAM_PAYLOAD)
        bytes = 1;
    if (stream->is_tcp && bytes != stream->wake_bytes &&
        setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0)
        stream->wake_bytes = bytes;
}

int stream_next(struct stream *stream, int fd, bool newest, struct framed_view *view,
                struct framed_memory **memory, uint64_t *skipped)
{
    int rc = 0, complete = 0;
    while (rc >= 0 && (complete == 0 || (newest && complete < DRAIN_MAX))) {
        rc = advance(stream, fd);
        complete += rc == 1;
    }
    if (rc == -EAGAIN)
        set_wake_bytes(stream, fd);
    else if (rc < 0 && !(rc == -EPIPE && complete > 0))
        return rc;
    if (complete == 0)
        return 0;
    const struct stream_frame *latest = &stream->frame[!stream->reading];
    show(latest, view);
    *memory = latest->payload;
    *skipped += (uint64_t)complete - 1;
    return 1;
}
