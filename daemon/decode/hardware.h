// What a process knows of the hardware decoders of its box, NVDEC left out: which of them gave the
// cpu's pictures when `framed verify --decoders` ran, and which failed since. Shared by all
// cameras; any thread.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_H
#define FRAMED_DAEMON_DECODE_HARDWARE_H

#include <libavcodec/codec_id.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/types.h"
#include "daemon/decode/hardware_record.h"

struct hardware;

// `verified` is copied; NULL: nothing is known. 0 or -ENOMEM.
int hardware_open(struct hardware **ret, const struct hardware_record *verified);
void hardware_close(struct hardware *); // accepts NULL

// What follows accepts NULL, which knows of nothing.
// The decoder that `decode: auto` takes for a codec: false where none is known to be equal.
bool hardware_choose(struct hardware *, enum AVCodecID, struct decoder_choice *ret);
// For how long it is not to be opened: 10 minutes after a call of its driver has hung, twice as
// long each time that it happens again, up to a day. 0: it may be opened.
int64_t hardware_banned_ns(struct hardware *, const struct decoder_choice *);
// A call of its driver hangs. For how long it is banned by that; 0: it was banned already.
int64_t hardware_hangs(struct hardware *, const struct decoder_choice *);
// Whether it was not known so far that it cannot be opened for that codec: who asks first says it.
bool hardware_is_news(struct hardware *, const struct decoder_choice *, enum AVCodecID);
// Whether framed verify found that it gives other pictures than the cpu.
bool hardware_differs(struct hardware *, const struct decoder_choice *, enum AVCodecID);

#endif
