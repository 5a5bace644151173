// Lines of a `kernel: stats` output: the camera's thread adds a record of each picture, the loop
// writes these as lines for the sink's readers. Records wait in a short queue: if the loop is late,
// the oldest are lost, or the camera waits.
#ifndef FRAMED_DAEMON_OUTPUT_SCENE_LINES_H
#define FRAMED_DAEMON_OUTPUT_SCENE_LINES_H

#include "daemon/base/counters.h"
#include "daemon/output/line_queue.h"
#include "daemon/output/scene_line.h"

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
