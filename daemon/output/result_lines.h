// Lines of an output's `detections`: each result becomes a line, which the lines' sink sends to
// readers or writes to a file. Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_RESULT_LINES_H
#define FRAMED_DAEMON_OUTPUT_RESULT_LINES_H

#include "config/config.h"
#include "daemon/output/results.h"
#include "daemon/output/sink.h"

// A result as one line of JSON, for readers of `detections`:
//
//     {"camera":"gate","output":"detector","seq":41,"epoch":0,"time":1760000000.123456,"pts":1.64,
//     "latency_ms":23.1,"width":1920,"height":1080,
//     "objects":[{"box":[12.5,30,88.25,140],"score":0.91,"class":2,"label":"car","track":7}]}
//
// `seq` and `epoch` identify the frame as in framed_header, `time` is its capture time in seconds
// since 1970, `pts` its time in the stream, and `latency_ms` the time from its arrival to its
// result. Boxes are corners in pixels of the coded picture, as edges. `region`, `part` and `parts`,
// `parent_seq` and `object` (of crops), `model`, `late`, `label`, `track` and `index` (in the
// client's message) are omitted if they add nothing.
enum {
    LABEL_JSON_MAX = 6 * LABEL_MAX + 8, // bytes of a label in a line
    OBJECT_BYTES_MAX = 192 + LABEL_JSON_MAX,
    LINE_BYTES_MAX = 1024 + FRAMED_DETECTIONS_MAX * OBJECT_BYTES_MAX,
};

// Labels, quoted and escaped for lines.
struct line_labels {
    char *text;
    size_t *end; // end of label i in text; it begins at the end of the one before
    int n;
};

int line_labels_open(struct line_labels *ret, const struct labels *); // 0 or -ENOMEM
void line_labels_close(struct line_labels *);

// Writes the line with a newline and no final zero. Returns its bytes, at most LINE_BYTES_MAX.
size_t result_line(char to[LINE_BYTES_MAX], const struct found *, const struct line_labels *);

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
