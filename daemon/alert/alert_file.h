// The file that alerts and availability outlive a restart in: text, some lines for each camera and
// a line for each event that is still to be delivered. It holds no secret.
#ifndef FRAMED_DAEMON_ALERT_ALERT_FILE_H
#define FRAMED_DAEMON_ALERT_ALERT_FILE_H

#include "daemon/alert/outbox.h"
#include "daemon/camera/availability.h"

enum { WATCHED_MAX = 2048 }; // cameras, those that were removed lately among them

// What is remembered of a camera.
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
    struct watched **list; // of n, each allocated, sorted by name
    int n;
    struct outbox_entry entry[OUTBOX_MAX];
    int n_entries;
};

// Adds what the file says to a zeroed `ret`. `ahead_ns`: how far CLOCK_REALTIME is ahead of
// CLOCK_MONOTONIC. Lines that are not understood, and times that cannot be, are left out. 0;
// -ENOMEM; -ENOENT and others: there is no such file.
int alert_file_read(struct alert_memory *ret, const char *path, int64_t now_ns, int64_t ahead_ns);
// The text of the file, to be freed; NULL: no memory.
char *alert_file_text(const struct alert_memory *, int64_t ahead_ns);
void alert_memory_free(struct alert_memory *);
// One of this name, added where there is none; NULL: no memory, or too many.
struct watched *alert_memory_get(struct alert_memory *, const char *name);

#endif
