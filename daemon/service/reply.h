// Replies to requests of the control socket, for control_reply. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_REPLY_H
#define FRAMED_DAEMON_SERVICE_REPLY_H

#include <stdint.h>

#include "daemon/service/metrics.h"
#include "daemon/supervisor/reload.h"

// Replies to a reload: 0 with its result, or its error with reasons, one per line.
char *reply_reload(int rc, const struct reload_result *, const char *errors);
// Replies to a refused request: its error with reasons, one per line.
char *reply_refusal(int rc, const char *errors);
// Replies to a fulfilled request: what was done.
char *reply_done(const char *done);
// Replies to a request for a JPEG: the file in base64.
char *reply_jpeg(const uint8_t *file, size_t size);
// Replies to a request for the counters: their text.
char *reply_metrics(const struct metrics *);
// Replies to an unknown request.
char *reply_unknown(void);

#endif
