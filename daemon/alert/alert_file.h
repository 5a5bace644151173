// The file that keeps alerts and availability across a restart: text, some lines for each camera
// and one line for each undelivered event. It contains no secret.
#ifndef FRAMED_DAEMON_ALERT_ALERT_FILE_H
#define FRAMED_DAEMON_ALERT_ALERT_FILE_H

#include "daemon/alert/outbox.h"
#include "daemon/camera/camera.h"

enum { WATCHED_MAX = 2048 }; // cameras, including those removed lately

// The state kept for each camera.
struct watched {
    char name[24];
    struct judge judge;
    int64_t raised_ms[ALERT_KINDS]; // since 1970: the same at an alert's begin and its end
    struct availability availability;
    int64_t absent_ns; // CLOCK_MONOTONIC: since when no camera has this name; 0: one has
    int64_t summed_ns; // when its availability was last summed up
    struct camera_sign sign;
};

struct alert_memory {
    struct watched **list; // n of them, each allocated, sorted by name
    int n;
    struct outbox_entry entry[OUTBOX_MAX];
    int n_entries;
};

// Adds the contents of the file to a zeroed `ret`. `ahead_ns`: CLOCK_REALTIME minus
// CLOCK_MONOTONIC. Skips malformed lines and impossible times. Returns 0, -ENOMEM, or the negative
// errno of opening the file (-ENOENT: there is none).
int alert_file_read(struct alert_memory *ret, const char *path, int64_t now_ns, int64_t ahead_ns);
// Returns the text of the file, for free(); NULL: no memory.
char *alert_file_text(const struct alert_memory *, int64_t ahead_ns);
void alert_memory_free(struct alert_memory *);
// Finds a camera by name or adds it; NULL: no memory, or too many cameras.
struct watched *alert_memory_get(struct alert_memory *, const char *name);

#endif
