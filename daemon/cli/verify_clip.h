// framed verify: decodes a clip with a decoder in its own process, since drivers hang and crash.
#ifndef FRAMED_DAEMON_CLI_VERIFY_CLIP_H
#define FRAMED_DAEMON_CLI_VERIFY_CLIP_H

#include "config/types.h"
#include "daemon/cli/verify_clips.h"

enum verify_verdict {
    VERIFY_NOT_OPENED, // `why` has the reason, also for the next two
    VERIFY_REFUSED,    // it opens, but does not decode such streams
    VERIFY_FAILED,
    VERIFY_DIFFERS,
    VERIFY_EQUAL,
};

struct verify_result {
    enum verify_verdict verdict;
    int picture;      // VERIFY_DIFFERS: the first that differs, from 0
    double fps;       // pictures per second; 0: unknown
    char driver[128]; // the driver's own name; "": unknown
    char why[256];
};

// Decodes the clip as a live stream and as a file: both must be equal. Gives up after 10 s.
struct verify_result verify_clip(const struct verify_clip *, const struct decoder_choice *);

#endif
