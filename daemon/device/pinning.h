// The processors for the workers of the cpu backend: the key cpu.pin on this machine.
#ifndef FRAMED_DAEMON_DEVICE_PINNING_H
#define FRAMED_DAEMON_DEVICE_PINNING_H

#include "config/config.h"

// Returns a sentence with the processors in cpu.pin's list that this process may not use; the
// caller frees it. NULL: it may use all of them, or there is no list. Any thread.
char *pinning_left_out(const struct config *);

#endif
