// Recordings that no output will finish: files "NAME.part" in the folders of file outputs that
// match no output's pattern and are locked by no writer. A killed process leaves one; the next
// start finishes it, unless the output is gone from the configuration by then or has another
// pattern. Loop thread only.
#ifndef FRAMED_DAEMON_SUPERVISOR_UNFINISHED_H
#define FRAMED_DAEMON_SUPERVISOR_UNFINISHED_H

#include "daemon/base/loop.h"
#include "daemon/supervisor/cameras.h"

enum { UNFINISHED_LISTED = 20 };

struct unfinished_file {
    char *path;
    int64_t bytes;
    int64_t modified_ns; // CLOCK_REALTIME
};

struct unfinished_files {
    int n; // in `file`, the oldest first
    struct unfinished_file file[UNFINISHED_LISTED];
    int64_t count, bytes; // of all, listed or not
};

struct unfinished_sink; // private

struct unfinished {
    const struct cameras *cameras;
    uv_timer_t timer;
    struct unfinished_files files; // of the last scan
    struct work_queue *work;
    // The scan in progress, which owns `sinks` and `found`:
    struct work scan;
    bool scanning, again; // again: scan once more after it
    bool stopped;
    struct unfinished_sink *sinks;
    int n_sinks;
    struct unfinished_files found;
};

void unfinished_open(struct unfinished *, struct work_queue *, const struct cameras *);
// Scans the folders of the cameras' outputs now, and again each minute.
void unfinished_scan(struct unfinished *);
void unfinished_stop(struct unfinished *);  // starts no more scans
void unfinished_close(struct unfinished *); // with no scan in progress

#endif
