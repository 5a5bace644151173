// Watches the cameras and notifies the targets of `notify` about those in trouble; keeps the
// availability of each camera (camera/camera.h). A file keeps this state across a restart.
// Loop thread only; deliveries have their own threads (alert/delivery.h).
#ifndef FRAMED_DAEMON_ALERT_ALERTS_H
#define FRAMED_DAEMON_ALERT_ALERTS_H

#include "daemon/alert/outbox.h"
#include "daemon/base/loop.h"
#include "daemon/camera/camera.h"
#include "daemon/supervisor/cameras.h"

struct alerts;

struct alerts_context {
    uv_loop_t *loop;
    struct work_queue *work;
    const struct cameras *cameras;
    const struct config *config; // the keys of `notify` are copied
    const char *folder;          // for the file; NULL: no file, the state ends with the process
};

// Returns 0 or -ENOMEM.
int alerts_open(struct alerts **ret, const struct alerts_context *);
// For a reload: copies its changes and returns 0 or -ENOMEM. alerts_commit then applies the copy.
int alerts_prepare(struct alerts *, const struct config *);
void alerts_commit(struct alerts *);
// No work may be under way. Asks the threads to end; the loop's next iterations close the timer.
// Accepts NULL.
void alerts_stop(struct alerts *);
// After the loop's last iteration: waits for the threads, writes the file a last time, frees all.
void alerts_close(struct alerts *);

// For metrics.
bool alerts_has_target(const struct alerts *, enum alert_target);
const char *alert_target_name(enum alert_target);
struct outbox_counts alerts_count(struct alerts *, enum alert_target, int *pending);

// --- alert_file.c: the file is text, some lines for each camera and one line for each undelivered
// event. It contains no secret.

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
