// Whether headers from the daemon can be believed. What passes is in bounds: a reader that takes
// sizes, offsets and texts from it stays inside the payload.
#ifndef FRAMED_CLIENT_HEADER_H
#define FRAMED_CLIENT_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/wire.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian, and so must the machine be"
#endif

enum {
    HEADER_BYTES_MAX = 4096, // of any one header: later versions may have more than ours
    ELEMENTS_MAX = 4096,     // of a batch
};
static const uint64_t PAYLOAD_BYTES_MAX = (uint64_t)1 << 32;

// The header of a frame whose payload has `bytes` bytes and begins `first` bytes behind where its
// plane offsets count from.
bool header_is_good(const struct framed_header *, uint64_t first, uint64_t bytes);

// What a batch, which begins with its magic, says of itself, without the headers of its elements.
bool batch_is_good(const struct framed_batch *);

// Brings the `batch->count` headers, each of batch->header_bytes, to the size of ours, in place.
// False: an element of the good batch has a header that is not good.
bool take_elements(void *headers, const struct framed_batch *batch);

#endif
