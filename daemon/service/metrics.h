// The daemon's counters as Prometheus text. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_METRICS_H
#define FRAMED_DAEMON_SERVICE_METRICS_H

#include "daemon/alert/alerts.h"
#include "daemon/base/counters.h"
#include "daemon/camera/camera.h"
#include "daemon/cluster/site.h"
#include "daemon/service/notify.h"
#include "daemon/supervisor/reload.h"
#include "daemon/supervisor/unfinished.h"

struct member;

struct metrics {
    struct camera *const *cameras;
    int n_cameras;
    const struct outlet *batches; // see cameras.h
    struct devices *devices;
    const struct histogram *decode, *process;
    const struct reload *reload;
    struct alerts *alerts;                     // NULL: none
    struct previews *previews;                 // NULL: none
    struct member *member;                     // NULL: this box is in no cluster
    const struct unfinished_files *unfinished; // NULL: unknown
    struct health health;                      // by the watchdog's patience
    enum ready_when ready;                     // the service fills in this and the rest
    bool http_write;                           // HTTP clients may change what runs
    int64_t up_ns;                             // since the start
    const struct status *status;
    const struct history *history;
    int viewers;             // streams of pictures
    const char *only_camera; // limits a page to this camera; NULL: all cameras
};

// Returns the batch after `batch`, or of the first if that is NULL; NULL: none.
// Skips batches that a reload has removed or replaced and that no camera is in.
const struct outlet *metrics_next_batch(const struct metrics *, const struct outlet *batch);
void metrics_print(FILE *, const struct metrics *);
// Returns the same as a text of *size bytes, which the caller frees; NULL: there is no memory.
char *metrics_text(const struct metrics *, size_t *size);
// Writes such a text to a file, which readers see whole or not at all. Any thread; blocks. Returns
// 0 or a negative errno.
int metrics_save(const char *path, const char *text, size_t size);

struct camera *metrics_camera(const struct metrics *, const char *name); // NULL: none
bool metrics_wants_camera(const struct metrics *, const struct camera *);

// Calls `each` with the outlet of every ring.
void metrics_each_results(const struct metrics *, void (*each)(void *opaque, struct outlet *),
                          void *opaque);

// Counts nodes and cameras of this box's cluster; zeros if it is in none.
struct site_counts metrics_site_counts(const struct metrics *);

// --- between metrics.c and metrics_findings.c
void metrics_print_head(FILE *, const char *name, const char *type, const char *help);
// Prints a sample of an output, whose labels come first; adds `label` with value `of` unless NULL.
void metrics_print_sample(FILE *, const char *name, const char *labels, const char *label,
                          const char *of, uint64_t value);
void metrics_print_latency(FILE *, const char *name, const char *labels, const struct latency *);
void metrics_print_findings(FILE *, const struct metrics *);

#endif
