// framed verify: one clip by one decoder, in a process of its own, since drivers hang and crash.
#ifndef FRAMED_DAEMON_CLI_VERIFY_CLIP_H
#define FRAMED_DAEMON_CLI_VERIFY_CLIP_H

#include "config/types.h"
#include "daemon/cli/verify_clips.h"

enum verify_verdict {
    VERIFY_NOT_OPENED, // `why` says why, as of the next two
    VERIFY_REFUSED,    // it opens, and does not decode such streams
    VERIFY_FAILED,
    VERIFY_DIFFERS,
    VERIFY_EQUAL,
};

struct verify_result {
    enum verify_verdict verdict;
    int picture;      // VERIFY_DIFFERS: the first that is another, from 0
    double fps;       // pictures a second; 0: not known
    char driver[128]; // as it calls itself; "": it does not
    char why[256];
};

// As a live camera is decoded, and as a file is: both must be equal. Gives up after 10 s.
struct verify_result verify_clip(const struct verify_clip *, const struct decoder_choice *);

#endif
