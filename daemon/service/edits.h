// Changes of cameras by HTTP, which outlast framed (supervisor/edit.h). Each is answered when it
// runs and is on the disk, or when it is refused.
#ifndef FRAMED_DAEMON_SERVICE_EDITS_H
#define FRAMED_DAEMON_SERVICE_EDITS_H

#include "daemon/service/http.h"

struct reload;

// The pattern's `*` is the camera's name. The body of a PUT is a JSON object with the camera's
// keys.
void edits_put(struct reload *, struct http_exchange *);
void edits_delete(struct reload *, struct http_exchange *);
void edits_pause(struct reload *, struct http_exchange *);
void edits_resume(struct reload *, struct http_exchange *);

#endif
