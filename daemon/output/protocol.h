// What stands before the payloads of a sink: the bytes of a stream's and of each frame's header.
#ifndef FRAMED_DAEMON_OUTPUT_PROTOCOL_H
#define FRAMED_DAEMON_OUTPUT_PROTOCOL_H

#include "config/config.h"
#include "daemon/output/consumer.h"

enum { PROTOCOL_HEADER_MAX = 512 }; // bytes of a stream header and a frame header together

// Writes the header that precedes `slot` to a reader that has just taken it; with `first`, the
// stream's own header before it (y4m). Returns the bytes written, at most PROTOCOL_HEADER_MAX.
size_t protocol_header(enum protocol, const struct result *, const char *camera, const char *output,
                       const struct reader *reader, bool first, char to[PROTOCOL_HEADER_MAX]);

// Whether a stream that began with a slot like `before` may go on with `now`: y4m and raw cannot
// change their geometry, nor y4m its interlacing.
bool protocol_continues(enum protocol, const struct slot_info *before, const struct slot_info *now);

#endif
