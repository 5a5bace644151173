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
#ifndef FRAMED_DAEMON_OUTPUT_RESULT_LINE_H
#define FRAMED_DAEMON_OUTPUT_RESULT_LINE_H

#include "config/config.h"
#include "daemon/output/results.h"

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

#endif
