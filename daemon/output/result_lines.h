// The lines of an output's `detections`: each result that is found becomes a line, which the sink
// of the lines gives to readers or writes to a file. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_RESULT_LINES_H
#define FRAMED_DAEMON_OUTPUT_RESULT_LINES_H

#include "daemon/output/result_line.h"
#include "daemon/output/sink.h"

struct result_lines {
    struct results_receiver receiver;
    struct results *results;
    struct output_config output; // with `detections` of its own, and nothing else
    struct output_config config; // of the sink; its texts are the above's
    struct line_labels labels;
    struct line_queue *queue;
    bool is_followed;  // the caller takes lines out of the queue too, and has come to:
    uint64_t followed; // the number of the next
    char *line;        // room for one
    struct sink *sink;
    bool refused;  // the last try to open the sink failed
    bool finished; // no sink is wanted any more
    void (*closed)(struct result_lines *, void *opaque);
    void *opaque;
    struct result_lines *next; // the caller's list
};

// Makes lines from now on, by a copy of `detections`, which has a sink. The results outlive them. 0
// or -ENOMEM.
int result_lines_open(struct result_lines **ret, const struct output_config *, struct results *);
// Opens the sink; `closed` follows once, after result_lines_finish. Logs the first failure and what
// works; returns 0 or negative errno. `camera` and the last error are as in sink_context.
int result_lines_listen(struct result_lines *, uv_loop_t *, const char *camera, struct last_error *,
                        void (*closed)(struct result_lines *, void *opaque), void *opaque);
// No more lines come, and nobody listens any more: readers have `grace_ms` to take what waits.
void result_lines_finish(struct result_lines *, int grace_ms);
void result_lines_close(struct result_lines *); // its sink is not open; accepts NULL

#endif
