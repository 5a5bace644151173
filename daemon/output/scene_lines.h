// The lines of an output of `kernel: stats`, on their way from the camera's thread, which has a
// record of each picture, to the loop, which writes lines for the sink's readers. Records wait in a
// short queue: where the loop is late, the oldest are lost, or the camera waits.
#ifndef FRAMED_DAEMON_OUTPUT_SCENE_LINES_H
#define FRAMED_DAEMON_OUTPUT_SCENE_LINES_H

#include "daemon/base/ledger.h"
#include "daemon/output/line_queue.h"
#include "daemon/output/scene_line.h"

struct scene_lines;

// 0 or -ENOMEM. The ledger outlives it.
int scene_lines_open(struct scene_lines **ret, struct ledger *);
void scene_lines_close(struct scene_lines *); // accepts NULL
// Camera's thread: adds a record, which the ledger has counted as offered. True: the loop is to be
// told. `stop`: waits for room, until *stop is set; NULL: the oldest record makes room.
bool scene_lines_add(struct scene_lines *, uint64_t sequence, const struct scene_record *,
                     const _Atomic bool *stop);

// --- loop thread
// What becomes of records: where there is a reader, each becomes a line, and else it is lost for
// `reason`.
void scene_lines_write(struct scene_lines *, const char *camera, const char *output,
                       bool has_reader, enum loss reason);
struct line_queue *scene_lines_queue(struct scene_lines *); // for the sink
struct line_account *scene_lines_account(struct scene_lines *);

#endif
