// Changes of cameras by HTTP, which survive a restart (supervisor/edit.h). Each is answered once it
// runs and is on disk, or once it is refused.
#ifndef FRAMED_DAEMON_SERVICE_EDITS_H
#define FRAMED_DAEMON_SERVICE_EDITS_H

#include "daemon/service/http.h"

struct reload;

// The pattern's `*` is the camera's name. A PUT's body is a JSON object with the camera's keys.
void edits_put(struct reload *, struct http_exchange *);
void edits_delete(struct reload *, struct http_exchange *);
void edits_pause(struct reload *, struct http_exchange *);
void edits_resume(struct reload *, struct http_exchange *);

#endif
