// Lines of an output's `detections`: each result becomes a line, which the lines' sink sends to
// readers or writes to a file. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_RESULT_LINES_H
#define FRAMED_DAEMON_OUTPUT_RESULT_LINES_H

#include "daemon/output/result_line.h"
#include "daemon/output/sink.h"

struct result_lines {
    struct results_receiver receiver;
    struct results *results;
    struct output_config output; // only its name and its own copy of `detections`
    struct output_config config; // of the sink; its strings belong to `output`
    struct line_labels labels;
    struct line_queue *queue;
    bool is_followed;  // the caller also reads the queue, at:
    uint64_t followed; // number of the next line
    char *line;        // buffer for one
    struct sink *sink;
    bool refused;  // the last try to open the sink failed
    bool finished; // no sink is opened any more
    void (*closed)(struct result_lines *, void *opaque);
    void *opaque;
    struct result_lines *next; // in the caller's list
};

// Makes lines from now on, by a copy of `detections`, which must have a sink. The results outlive
// the lines. Returns 0 or -ENOMEM.
int result_lines_open(struct result_lines **ret, const struct output_config *, struct results *);
// Opens the sink; `closed` is called once, after result_lines_finish. Logs the first failure and
// each success. Returns 0 or a negative errno. `camera` and the last error are as in sink_context.
int result_lines_listen(struct result_lines *, uv_loop_t *, const char *camera, struct last_error *,
                        void (*closed)(struct result_lines *, void *opaque), void *opaque);
// Stops making lines and listening: readers have `grace_ms` to take waiting lines.
void result_lines_finish(struct result_lines *, int grace_ms);
void result_lines_close(struct result_lines *); // the sink must not be open; accepts NULL

#endif
