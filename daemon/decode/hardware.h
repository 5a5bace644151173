// What a process knows of the hardware decoders of its box, NVDEC left out: which of them gave the
// cpu's pictures when `framed verify --decoders` ran, and which failed since. Shared by all
// cameras; any thread.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_H
#define FRAMED_DAEMON_DECODE_HARDWARE_H

#include <libavcodec/codec_id.h>
#include <stdbool.h>

#include "config/types.h"
#include "daemon/decode/hardware_record.h"

struct hardware;

// `verified` is copied; NULL: nothing is known. 0 or -ENOMEM.
int hardware_open(struct hardware **ret, const struct hardware_record *verified);
void hardware_close(struct hardware *); // accepts NULL

// What follows accepts NULL, which knows of nothing.
// The decoder that `decode: auto` takes for a codec: false where none is known to be equal.
bool hardware_choose(struct hardware *, enum AVCodecID, struct decoder_choice *ret);
// Whether it may be opened: not after a call of its driver has hung in this process.
bool hardware_may_open(struct hardware *, const struct decoder_choice *);
void hardware_hangs(struct hardware *, const struct decoder_choice *);
// Whether it was not known so far that it cannot be opened for that codec: who asks first says it.
bool hardware_is_news(struct hardware *, const struct decoder_choice *, enum AVCodecID);
// Whether framed verify found that it gives other pictures than the cpu.
bool hardware_differs(struct hardware *, const struct decoder_choice *, enum AVCodecID);

#endif
