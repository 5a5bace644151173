// Whether a hardware decoder works: one keyframe, on a thread that nobody waits for, while another
// decoder gives the camera's pictures.
#ifndef FRAMED_DAEMON_DECODE_HARDWARE_TRIAL_H
#define FRAMED_DAEMON_DECODE_HARDWARE_TRIAL_H

#include <libavcodec/avcodec.h>

#include "config/types.h"

struct hardware_trial;

// 0 or -ENOMEM.
int hardware_trial_start(struct hardware_trial **ret, const AVCodecParameters *,
                         const struct decoder_choice *, const AVPacket *keyframe);
// -EAGAIN: it lasts, for 7 s at most; 0: the decoder gave a picture; -ETIMEDOUT: a call of its
// driver does not come back; other errors: it does not work.
int hardware_trial_result(const struct hardware_trial *);
void hardware_trial_end(struct hardware_trial *); // at any time; accepts NULL

#endif
