// The last error of a camera or an output: one printable line without secrets. The owner guards it.
// Zeroed, it is empty.
#ifndef FRAMED_DAEMON_BASE_LAST_ERROR_H
#define FRAMED_DAEMON_BASE_LAST_ERROR_H

#include <stdint.h>

struct last_error {
    char text[512]; // "": none
    int64_t ns;     // CLOCK_MONOTONIC
};

void last_error_set(struct last_error *, const char *text);

#endif
