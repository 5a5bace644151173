// Where the workers of the cpu backend run: the key cpu.pin on this box.
#ifndef FRAMED_DAEMON_DEVICE_PINNING_H
#define FRAMED_DAEMON_DEVICE_PINNING_H

#include "config/config.h"

// One sentence that names the processors of cpu.pin's list which this process may not use; the
// caller frees it. NULL: it may use all of them, or there is no list. Any thread.
char *pinning_left_out(const struct config *);

#endif
