// Jobs that write files or publish, on libuv's threads, whose number libuv takes once. A disk or a
// server that hangs keeps the thread of its job: jobs never take the last threads, which are for
// struct work (base/work.h), a reload for example. Loop thread only, but for `run`.
#ifndef FRAMED_DAEMON_OUTPUT_FILE_WRITERS_H
#define FRAMED_DAEMON_OUTPUT_FILE_WRITERS_H

#include <uv.h>

#include "config/config.h"

// A member of its sink. `request.data` is the sink's.
struct writer_job {
    uv_work_t request;
    // Private to file_writers.c:
    uv_loop_t *loop;
    uv_work_cb run;
    uv_after_work_cb done;
    struct writer_job *next;
};

// Before the first job: threads for these files, and for some that come later.
void writers_prepare(const struct config *);
// How many files are written at once, if these files are more; else 0.
int writers_missing(const struct config *);
// Calls `run` on a thread as soon as one is free, then `done`, as uv_queue_work does. The job is
// not under way.
void writers_start(uv_loop_t *, struct writer_job *, uv_work_cb run, uv_after_work_cb done);

#endif
