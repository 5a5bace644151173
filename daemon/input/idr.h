// Whether an H.264 packet's picture is an IDR: one that nothing after it looks back across.
#ifndef FRAMED_DAEMON_INPUT_IDR_H
#define FRAMED_DAEMON_INPUT_IDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// `length_bytes` of NAL units that have their length in front; 0: start codes between them. Takes
// whatever the bytes are.
bool idr_begins(const uint8_t *data, size_t size, int length_bytes);
// What the stream's extradata, which may be NULL, says of length_bytes.
int idr_length_bytes(const uint8_t *extradata, size_t size);

#endif
