// Lines of a `kernel: stats` output: the camera's thread adds a record of each picture, the loop
// writes these as lines for the sink's readers. Records wait in a short queue: if the loop is late,
// the oldest are lost, or the camera waits.
#ifndef FRAMED_DAEMON_OUTPUT_SCENE_LINES_H
#define FRAMED_DAEMON_OUTPUT_SCENE_LINES_H

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/output/lines.h"
#include "daemon/scene/alarms.h"
#include "daemon/scene/scene.h"

// A picture's analysis as a line of JSON, for readers of `kernel: stats`:
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

struct scene_lines;

// Returns 0 or -ENOMEM. The ledger outlives the lines.
int scene_lines_open(struct scene_lines **ret, struct ledger *);
void scene_lines_close(struct scene_lines *); // accepts NULL
// Adds a record, counted as offered before. With `stop`, waits for room until *stop is set; else
// the oldest record makes room. Returns true if the loop must be notified. Camera thread.
bool scene_lines_add(struct scene_lines *, uint64_t sequence, const struct scene_record *,
                     const _Atomic bool *stop);

// --- loop thread
// Writes each waiting record as a line if there is a reader, else counts it as lost for `reason`.
void scene_lines_write(struct scene_lines *, const char *camera, const char *output,
                       bool has_reader, enum loss reason);
struct line_queue *scene_lines_queue(struct scene_lines *); // for the sink
struct line_account *scene_lines_account(struct scene_lines *);

#endif
