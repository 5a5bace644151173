// The analysis of one camera's pictures: light, motion and fingerprint of each
// (kernels/backend.h), and alarms. Facts for gates and consumers go into frame->info, the whole
// record into the camera's report. Runs on the device if the pictures are there, else in the
// camera's thread, which calls everything here.
#ifndef FRAMED_DAEMON_SCENE_SCENE_H
#define FRAMED_DAEMON_SCENE_SCENE_H

#include <pthread.h>
#include <stdatomic.h>

#include "config/types.h"
#include "daemon/codec/frame.h"
#include "daemon/device/devices.h"
#include "daemon/scene/alarms.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"

// The analysis of one picture.
struct scene_record {
    struct frame_info info; // of the picture; info.scene is known
    struct luma_statistics luma;
    int columns, rows;                                       // of the grid
    uint8_t grid[STATISTICS_GRID_MAX * STATISTICS_GRID_MAX]; // means of its cells, row by row
    struct motion_boxes motion;
    // Bit 1 << enum alarm: alarms that are raised, and alarms that this picture raised or cleared.
    unsigned alarms, raised, cleared;
};

// Results of a camera's analysis, for status and metrics. The camera's thread writes; any thread
// reads. The owner opens and closes the lock.
struct scene_report {
    _Atomic unsigned alarms;         // raised now: bit 1 << enum alarm
    _Atomic uint64_t analysed;       // pictures; of these:
    _Atomic uint64_t moving;         // with motion
    _Atomic uint64_t raised[ALARMS]; // how often
    pthread_mutex_t lock;            // guards the next two
    bool known;                      // there is a last record
    struct scene_record last;
};

// Any thread. False: no picture was analysed yet, or pictures are not analysed any more.
bool scene_report_last(struct scene_report *, struct scene_record *ret);

struct scene;

struct scene_context {
    const struct camera_config *config; // outlives the scene, like all that is here
    const struct device_lease *lease;   // acquired whenever a picture is observed
    struct scene_report *report;
};

int scene_open(struct scene **ret, const struct scene_context *); // 0 or -ENOMEM
// Sets whether an output needs the analysis. At first none does, and pictures are analysed under
// `stats` alone. If the analysis ends by this, its alarms end and the report is emptied.
void scene_want(struct scene *, bool wanted);
// Analyses the picture and fills frame->info.scene. Skips damaged pictures, and all pictures if
// nothing needs the analysis. Takes a millisecond or two at most. If the device fails, its lease is
// stale. Returns the record, valid until the next picture; NULL: none. Accepts NULL, like
// scene_detach.
const struct scene_record *scene_observe(struct scene *, struct frame *);
// Frees what is on the lease's device. Call before the lease is released. Also for another thread,
// once the camera's has ended.
void scene_detach(struct scene *);
void scene_close(struct scene *); // after scene_detach; accepts NULL

// Fills `mask`, columns x rows bytes, row by row: 0 if the middle of the cell is in one of the
// polygons, which may cross themselves (even-odd), else 1. Pure.
void mask_cells(const struct polygons *, const struct statistics *, uint8_t *mask);

#endif
