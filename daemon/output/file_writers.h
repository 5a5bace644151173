// The threads that write files: libuv's, whose number it takes once. One for each file, or a
// disk that hangs would stop the rest, and some for struct work.
#ifndef FRAMED_DAEMON_OUTPUT_FILE_WRITERS_H
#define FRAMED_DAEMON_OUTPUT_FILE_WRITERS_H

#include "config/config.h"

// Before the first file is opened: enough for these, and some that a later configuration may add.
void writers_prepare(const struct config *);
// What there are, if they are fewer than these files; else 0.
int writers_missing(const struct config *);

#endif
