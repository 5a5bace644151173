// What a request wants to look at: a camera's pictures, or the results of one of its outputs.
// Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_TARGET_H
#define FRAMED_DAEMON_SERVICE_TARGET_H

#include "daemon/service/metrics.h"
#include "daemon/view/previews.h"

enum { TARGET_NAME_MAX = 31 }; // bytes

struct target {
    char camera[TARGET_NAME_MAX + 1];
    struct preview_wish wish; // its output and plane; the rest is the caller's
};

// Reads CAMERA, CAMERA/OUTPUT or CAMERA/OUTPUT/PLANE; false: the text is none of these.
bool target_read(struct target *ret, const char *text);
// Reads one name; false: it is too long, or none.
bool target_read_name(char ret[TARGET_NAME_MAX + 1], const char *text);
// False: it is no number from PREVIEW_WIDTH_MIN to PREVIEW_WIDTH_MAX.
bool target_read_width(int *ret, const char *text);
// Asks for asker->wish of the camera. 0; -ENOENT: there is no such camera or output; -EINVAL: the
// output has nothing to be looked at; -ENOSPC or -ENOMEM: not now. Each with one sentence in `why`.
int target_ask(const struct metrics *, const char *camera, struct preview_asker *, char *why,
               size_t size);

#endif
