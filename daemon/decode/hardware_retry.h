// When a camera whose hardware decoder failed goes back to it: after a minute, and twice as late
// each time that it fails again, up to ten minutes; never while the decoder is banned
// (daemon/decode/hardware.h). A trial must have gone well, and the hardware begins at a keyframe. A
// camera's thread uses one; zeroed it wants nothing.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_RETRY_H
#define FRAMED_DAEMON_DECODE_HARDWARE_RETRY_H

#include "daemon/decode/hardware_use.h"
#include "daemon/decode/packet_history.h"

struct hardware_trial;

struct hardware_retry {
    struct decoder_choice choice;
    int64_t pause_ns;             // the last one; 0: it has not failed yet
    int64_t next_ns;              // when it is over; 0: the hardware is not wanted back
    int64_t worked_ns;            // when the hardware was given the pictures again; 0: it was not
    struct hardware_trial *trial; // NULL: none yet
    int64_t tried;                // serial of its keyframe
};

// The camera's hardware failed, or could not be opened.
void hardware_retry_later(struct hardware_retry *, const struct decoder_choice *);
// Whether packets are to be kept for it.
bool hardware_retry_is_due(const struct hardware_retry *, const struct decode_options *);
// To be asked again and again while the cpu decodes: whether the hardware of `choice` is to begin
// now, with the packets that are kept. `said` becomes a sentence for the log, or "".
bool hardware_retry_succeeds(struct hardware_retry *, const struct decode_options *,
                             const AVCodecParameters *, const struct packet_history *,
                             char said[HARDWARE_SAID_MAX]);
void hardware_retry_end(struct hardware_retry *); // the hardware is not wanted back

#endif
