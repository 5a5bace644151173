// Jobs that write files or publish, on libuv's threads, whose number is fixed with the first job. A
// disk or server that hangs keeps its job's thread: jobs never take the last threads, which are for
// struct work (base/loop.h), for example a reload. Loop thread only, except `run`.
#ifndef FRAMED_DAEMON_OUTPUT_FILE_WRITERS_H
#define FRAMED_DAEMON_OUTPUT_FILE_WRITERS_H

#include <uv.h>

#include "config/config.h"

// A member of its sink, which owns `request.data`.
struct writer_job {
    uv_work_t request;
    // Private to file_writers.c:
    uv_loop_t *loop;
    uv_work_cb run;
    uv_after_work_cb done;
    struct writer_job *next;
};

// Sets the number of threads, for these files and some later ones. Call before the first job.
void writers_prepare(const struct config *);
// Returns how many files can be written at once if these files are more; else 0.
int writers_missing(const struct config *);
// Calls `run` on a thread as soon as one is free, then `done`, as uv_queue_work does. The job must
// not be pending.
void writers_start(uv_loop_t *, struct writer_job *, uv_work_cb run, uv_after_work_cb done);

#endif
