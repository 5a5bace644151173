// The target of a request: a camera's pictures, or the results of one of its outputs. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_TARGET_H
#define FRAMED_DAEMON_SERVICE_TARGET_H

#include "daemon/service/metrics.h"
#include "daemon/view/previews.h"

enum { TARGET_NAME_MAX = 31 }; // bytes

struct target {
    char camera[TARGET_NAME_MAX + 1];
    struct preview_wish wish; // its output and plane; the caller sets the rest
};

// Parses CAMERA, CAMERA/OUTPUT or CAMERA/OUTPUT/PLANE; false: malformed.
bool target_read(struct target *ret, const char *text);
// Parses one name; false: too long or malformed.
bool target_read_name(char ret[TARGET_NAME_MAX + 1], const char *text);
// Parses a number from PREVIEW_WIDTH_MIN to PREVIEW_WIDTH_MAX; false: it is none.
bool target_read_width(int *ret, const char *text);
// Requests asker->wish of the camera. Returns 0; -ENOENT: no such camera or output; -EINVAL: the
// output has nothing to show; -ENOSPC or -ENOMEM: not now. On failure, one sentence in `why`.
int target_ask(const struct metrics *, const char *camera, struct preview_asker *, char *why,
               size_t size);

#endif
