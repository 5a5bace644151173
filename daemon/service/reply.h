// Replies to the control socket's requests, as control_reply takes them. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_REPLY_H
#define FRAMED_DAEMON_SERVICE_REPLY_H

#include <stdint.h>

#include "daemon/service/metrics.h"
#include "daemon/supervisor/reload.h"

// What a reload came to: 0 with its result, or its error and its reasons, a line each.
char *reply_reload(int rc, const struct reload_result *, const char *errors);
// To a request that is not met: its error and its reasons, a line each.
char *reply_refusal(int rc, const char *errors);
// To a request that is met: what was done.
char *reply_done(const char *done);
// To a request for a JPEG: that, in base64.
char *reply_jpeg(const uint8_t *file, size_t size);
// To a request for the counters: their text.
char *reply_metrics(const struct metrics *);
// To a request that is none.
char *reply_unknown(void);

#endif
