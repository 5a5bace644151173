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

enum {
    HARDWARE_NAME_MAX = DECODER_NAME_MAX + DECODER_DEVICE_MAX, // bytes
    HARDWARE_WHY_MAX = 64,
    HARDWARE_BANS_MAX = 16,
};

// `verified` is copied; NULL: nothing is known. 0 or -ENOMEM.
int hardware_open(struct hardware **ret, const struct hardware_record *verified);
void hardware_close(struct hardware *); // accepts NULL

// What follows accepts NULL, which knows of nothing.
// The decoder that `decode: auto` takes for a codec, one that is banned where there is no other:
// false where none is known to be equal.
bool hardware_choose(struct hardware *, enum AVCodecID, struct decoder_choice *ret);
// For how long it is not to be opened: 10 minutes after a call of its driver has hung, twice as
// long each time that it happens again, up to a day. 0: it may be opened.
int64_t hardware_banned_ns(struct hardware *, const struct decoder_choice *);
// A call of its driver hangs; `why` says which: "no answer for 3 s". For how long it is banned by
// that; 0: it was banned already.
int64_t hardware_hangs(struct hardware *, const struct decoder_choice *, const char *why);

struct hardware_ban {
    char decoder[HARDWARE_NAME_MAX]; // as hardware_name
    char why[HARDWARE_WHY_MAX];
    int64_t left_ns; // 0: it is over
};
// The bans since the start, the last one of each decoder; returns how many these are.
int hardware_bans(struct hardware *, struct hardware_ban ret[HARDWARE_BANS_MAX]);
// "vaapi:/dev/dri/renderD128", as the key `decode` has it.
const char *hardware_name(const struct decoder_choice *, char to[HARDWARE_NAME_MAX]);

// Whether it was not known so far that it cannot be opened for that codec: who asks first says it.
bool hardware_is_news(struct hardware *, const struct decoder_choice *, enum AVCodecID);
// Whether framed verify found that it gives other pictures than the cpu.
bool hardware_differs(struct hardware *, const struct decoder_choice *, enum AVCodecID);

#endif
