// The last thing that went wrong with a camera or an output: one printable line without secrets.
// Whoever owns it guards it; zeroed there is none.
#ifndef FRAMED_DAEMON_COMPLAINT_H
#define FRAMED_DAEMON_COMPLAINT_H

#include <stdint.h>

struct complaint {
    char text[256]; // "": none
    int64_t ns;     // CLOCK_MONOTONIC
};

void complaint_set(struct complaint *, const char *text);

#endif
