// Sinks that write: frames and lines to files (file.c), packets to files and RTSP servers
// (copier.c). They write on threads of their own: one for each file system, so that a disk that
// hangs stops its own files alone, and one for each server. A sink has one job at a time, and a
// file system one write. Loop thread, except where noted.
#ifndef FRAMED_DAEMON_OUTPUT_WRITER_H
#define FRAMED_DAEMON_OUTPUT_WRITER_H

#include <stdatomic.h>

#include "daemon/output/segment.h"
#include "daemon/output/sink.h"

struct writer;

// What a kind of writer does.
struct writer_kind {
    size_t size; // of the struct that begins with the writer, zeroed at first
    // Counts the piece of the last job, and acquires the next one. Returns false if there is none;
    // a stopped writer loses what waits.
    bool (*acquire)(struct writer *);
    // On the writer's thread: writes the piece; sets `status`, and `why` if it is an error. At the
    // end, without a piece, completes the file or leaves the server; sets `unfinished`.
    void (*write)(struct writer *);
};

extern const struct writer_kind file_kind, copier_kind;

// The first member of each such sink.
struct writer {
    struct sink sink;
    const struct writer_kind *kind;
    uv_timer_t timer; // copies: to the next job; else the grace at the end
    uv_async_t done;
    struct consumer consumer; // of frames
    bool due;                 // woken since a job last began; reset by `acquire`, if it cares
    bool failing;             // as logged
    _Atomic bool finishing;   // any thread may read it
    bool stopped;             // the time to finish is over
    bool ending;              // the last job has begun
    bool busy;      // a job owns the members below and those of its kind, else the loop does
    int status;     // of the last try to write: 0 or a negative errno
    char why[512];  // the error in one sentence
    int unfinished; // error of a file that could not be finished; 0: none, or it was logged
    struct segment segment;
    struct leftovers leftovers; // found by the first job

    // Private to writer.c:
    struct writer_thread *thread;
    void (*run)(struct writer *);
    struct writer *next;
};

static inline const struct output_config *writer_config(const struct writer *writer)
{
    return writer->sink.context.config;
}

static inline bool writer_is_server(const struct writer *writer)
{
    return writer_config(writer)->sink.kind == SINK_RTSP;
}

#endif
