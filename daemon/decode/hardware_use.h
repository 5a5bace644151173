// A camera's use of hardware other than NVDEC: which decoder it is, opening it, and what to say of
// it. The camera's thread calls everything.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_USE_H
#define FRAMED_DAEMON_DECODE_HARDWARE_USE_H

#include "daemon/decode/codec.h"
#include "daemon/decode/decode_options.h"

enum { HARDWARE_SAID_MAX = 256 };

// The decoder that the options want for a codec, or with `auto` the verified one. DECODE_CPU: none.
struct decoder_choice hardware_use_choose(const struct decode_options *, enum AVCodecID);
// As codec_open_hardware. `said` becomes a sentence for the log, or "": that a decoder cannot be
// opened is said once for all cameras.
int hardware_use_open(struct codec *, const AVCodecParameters *, const struct decode_options *,
                      const struct decoder_choice *, struct buffers *, struct pictures *,
                      char said[HARDWARE_SAID_MAX]);
// What to say of hardware that failed with `error`; where it hangs, no camera opens it again.
void hardware_use_failed(const struct codec *, const struct decode_options *,
                         const struct decoder_choice *, int error, char said[HARDWARE_SAID_MAX]);
// The same where it was tried again while the cpu decoded, and hangs.
void hardware_use_hangs(const struct decode_options *, const struct decoder_choice *,
                        char said[HARDWARE_SAID_MAX]);
// What to say of hardware that was left and takes over again.
void hardware_use_again(const struct decoder_choice *, char said[HARDWARE_SAID_MAX]);

#endif
