// GET /api/v1/cameras/NAME/snapshot.jpg?width=W and
// /api/v1/cameras/NAME/outputs/OUTPUT/snapshot.jpg?plane=N: the next picture as a JPEG, with its
// facts in a JPEG comment. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_SNAPSHOT_H
#define FRAMED_DAEMON_SERVICE_SNAPSHOT_H

#include "daemon/service/http.h"
#include "daemon/service/target.h"

// Answers now, or within some seconds.
void snapshot_serve(const struct metrics *, struct http_exchange *);

#endif
