// Lines of JSON for a sink's readers: their text, the queue where they wait, and the two makers:
// results of clients (`detections`) and the analysis of pictures (`kernel: stats`). The readers are
// clients of a socket (lines.c) or a file (file.c).
#ifndef FRAMED_DAEMON_OUTPUT_LINES_H
#define FRAMED_DAEMON_OUTPUT_LINES_H

#include <pthread.h>
#include <uv.h>

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/base/log.h"
#include "daemon/output/results.h"
#include "daemon/scene/scene.h"

// --- JSON, piece by piece
// Each function writes at `to`, which must have room, and returns the end. Formats numbers without
// printf, which takes ten times as long and uses the locale's decimal point.
char *json_put(char *to, const char *text); // without escapes
char *json_put_unsigned(char *to, uint64_t n);
char *json_put_signed(char *to, int64_t n);
char *json_put_decimal(char *to, int64_t n, int places); // n * 10^-places, without trailing zeros
// Quotes and escapes a text: at most 6 bytes per byte of it. Invalid UTF-8 becomes question marks.
char *json_put_text(char *to, const char *text);

// --- a result as a line, for readers of `detections`:
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

// --- a picture's analysis as a line, for readers of `kernel: stats`:
//
//     {"camera":"gate","output":"scene","seq":41,"epoch":0,"time":1760000000.123456,"pts":1.64,
//     "width":1920,"height":1080,"luma":{"mean":98.31,"variance":1702.5,"min":3,"max":251,
//     "black":0.0012,"white":0.031,"sharpness":5.81,"histogram":[64 numbers of pixels]},
//     "grid":{"columns":32,"rows":18,"means":[576 levels, row by row]},
//     "fingerprint":"9f3c01ab55e07d12","light":true,"learning":true,"moving":true,"changed":12,
//     "boxes":[[640,360,720,480]],"alarms":["dark"],"raised":["dark"],"cleared":["moved"]}
//
// `black` and `white` are shares of clipped pixels, `sharpness` is the mean of the absolute
// Laplacian, `changed` counts cells that moved; kernels/statistics.h and motion.h define them.
// Boxes are corners in pixels of the coded picture, as edges. `light`, `learning`, `raised` and
// `cleared` are omitted if false or empty.
enum {
    SCENE_LINE_BYTES_MAX = 4096 + 11 * STATISTICS_BINS +
                           4 * STATISTICS_GRID_MAX * STATISTICS_GRID_MAX + 48 * MOTION_BOXES_MAX,
};

// Writes the line with a newline and no final zero. Names of camera and output have at most 64
// bytes; without an output (NULL) the line has no sequence either. Returns the bytes.
size_t scene_line(char to[SCENE_LINE_BYTES_MAX], const char *camera, const char *output,
                  uint64_t sequence, const struct scene_record *);

// --- the queue
// Ring of the newest lines for a sink's readers. A slow reader loses the oldest lines, always whole
// ones. Memory is bounded and independent of the number of readers. Loop thread only.
enum { LINE_QUEUE_BYTES = 1 << 20, LINE_QUEUE_LINES = 4096 };

struct line {
    const char *text; // with its newline; valid until the next line_queue_add
    size_t bytes;
    int64_t time_ns; // capture time of its frame, since 1970
};

struct line_queue {
    char *text;
    size_t end;           // end of the newest line in text
    uint64_t first, next; // numbers of the oldest line and of the next one
    uint64_t offered;     // number of the first line not counted by line_queue_offer
    struct line line[LINE_QUEUE_LINES];
};

int line_queue_open(struct line_queue **ret); // 0 or -ENOMEM
void line_queue_close(struct line_queue *);   // accepts NULL
// Adds a line of at most LINE_QUEUE_BYTES; drops old lines to make room.
void line_queue_add(struct line_queue *, const char *text, size_t bytes, int64_t time_ns);
// Counts the lines added since the last call as offered to `readers` readers.
void line_queue_offer(struct line_queue *, struct line_account *, int readers);
// Moves a reader that fell behind to the oldest line. Returns the number of lines it lost.
uint64_t line_queue_skip(const struct line_queue *, uint64_t *reader);
// Returns the reader's next line, or NULL if it has all. Call line_queue_skip first.
const struct line *line_queue_get(const struct line_queue *, uint64_t reader);

// --- lines of results: each result of an output with `detections` becomes a line for a sink of its
// own. Loop thread only.
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
    struct sink *sink; // NULL: not open
    bool refused;      // the last try to open it failed
    bool finished;     // it is not opened any more
    void (*closed)(struct result_lines *, void *opaque);
    void *opaque;
};

// Makes lines from now on, by a copy of `detections`, which must have a sink. The results outlive
// the lines. Returns 0 or -ENOMEM.
int result_lines_open(struct result_lines **ret, const struct output_config *, struct results *);
// Opens the sink as sink_try_open; `closed` is called once, after result_lines_finish. `camera` and
// the last error are as in sink_context.
int result_lines_listen(struct result_lines *, uv_loop_t *, const char *camera, struct last_error *,
                        void (*closed)(struct result_lines *, void *opaque), void *opaque);
// Stops making lines and listening: readers have `grace_ms` to take waiting lines.
void result_lines_finish(struct result_lines *, int grace_ms);
void result_lines_close(struct result_lines *); // the sink must not be open; accepts NULL

// --- lines of the analysis, for the sink of a `kernel: stats` output. The camera's thread adds a
// record of each picture, the loop writes these as lines. Records wait in a short queue: if the
// loop is late, the oldest are lost, or the camera waits.
enum { SCENE_RECORDS_MAX = 16 }; // waiting

struct scene_lines {
    struct ledger *ledger;
    struct line_queue *queue; // for the sink, like:
    struct line_account account;
    char line[SCENE_LINE_BYTES_MAX]; // buffer for one
    struct picture_record {
        uint64_t sequence;
        struct scene_record record;
    } taken;              // the one that the loop writes
    pthread_mutex_t lock; // guards all below
    pthread_cond_t room;
    int first, n;
    struct picture_record waiting[SCENE_RECORDS_MAX];
};

// Returns 0 or -ENOMEM. The ledger outlives the lines.
int scene_lines_open(struct scene_lines **ret, struct ledger *);
void scene_lines_close(struct scene_lines *); // accepts NULL
// Adds a record, counted as offered before. With `stop`, waits for room until *stop is set; else
// the oldest record makes room. Returns true if the loop must be notified. Camera thread.
bool scene_lines_add(struct scene_lines *, uint64_t sequence, const struct scene_record *,
                     const _Atomic bool *stop);
// Writes each waiting record as a line if there is a reader, else counts it as lost for `reason`.
// Loop thread.
void scene_lines_write(struct scene_lines *, const char *camera, const char *output,
                       bool has_reader, enum loss reason);

#endif
