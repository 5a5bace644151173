// The secrets of a camera's configuration, in every form in which libav or the camera itself may
// print them.
#ifndef FRAMED_DAEMON_BASE_SECRETS_H
#define FRAMED_DAEMON_BASE_SECRETS_H

#include "config/config.h"

struct secrets;

int secrets_open(struct secrets **ret, const struct camera_config *); // 0 or -ENOMEM
void secrets_close(struct secrets *);                                 // accepts NULL

// Copies `from` with "***" in place of each secret, truncated to `size` bytes.
void secrets_hide(const struct secrets *, char *to, size_t size, const char *from);

#endif
