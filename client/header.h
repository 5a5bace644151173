// Checks headers from the daemon. A header that passes has its sizes, offsets and texts in bounds:
// a reader that uses them stays inside the payload.
#ifndef FRAMED_CLIENT_HEADER_H
#define FRAMED_CLIENT_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/wire.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian, and so must the machine be"
#endif

enum {
    HEADER_BYTES_MAX = 4096, // of one header: later versions may be longer than ours
    ELEMENTS_MAX = 4096,     // of a batch
};
static const uint64_t PAYLOAD_BYTES_MAX = (uint64_t)1 << 32;

// Checks the header of a frame with a payload of `bytes` bytes, which begins `first` bytes after
// the origin of its plane offsets.
bool header_is_good(const struct framed_header *, uint64_t first, uint64_t bytes);

// Checks a batch, which begins with its magic, without the headers of its elements.
bool batch_is_good(const struct framed_batch *);

// Shortens the `batch->count` headers from batch->header_bytes each to our size, in place. Returns
// false if an element of the checked batch has a bad header.
bool take_elements(void *headers, const struct framed_batch *batch);

#endif
