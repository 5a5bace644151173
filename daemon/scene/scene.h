// The analysis of one camera's pictures: light, motion and fingerprint of each
// (kernels/backend.h), and alarms. Facts for gates and consumers go into frame->info, the whole
// record into the camera's report. Runs on the device if the pictures are there, else in the
// camera's thread, which calls everything here.
#ifndef FRAMED_DAEMON_SCENE_SCENE_H
#define FRAMED_DAEMON_SCENE_SCENE_H

#include <pthread.h>
#include <stdatomic.h>

#include "config/config.h"
#include "daemon/codec/frame.h"
#include "daemon/device/devices.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"

enum alarm { ALARM_DARK, ALARM_GLARE, ALARM_FROZEN, ALARM_BLURRED, ALARM_MOVED, ALARMS };

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

// --- alarms (alarms.c)
// Lasting problems of a camera's pictures: states with hysteresis, each raised once its sign has
// lasted, and cleared once the opposite has. Time is measured by timestamps. Pure.
//
// - dark: the mean level and the standard deviation are below 6 % of the range between black and
//   white.
// - glare: more than 25 % of the pixels are white or above.
// - frozen: each picture equals the one before, to the last sum, for 15 s and 10 pictures.
// - blurred: the sharpness is less than 0.4 of the camera's usual one, which is 1 or more: the lens
//   is covered or out of focus.
// - moved: the grid of cell means correlates by less than 0.4 with the usual one.
//
// Usual values are averages over ten minutes of pictures without the alarm, valid after the first
// 30 s. A camera that stays moved for ten minutes has a new view, and the alarm is cleared.
struct alarm_state {
    bool raised;
    bool opposed;     // the sign has been the opposite since:
    int64_t since_ns; // pts
};

// For one camera; zeroed at first.
struct alarms {
    struct alarm_state state[ALARMS];
    bool begun; // there was a picture, with this epoch and pts:
    uint32_t epoch;
    int64_t pts_ns;
    struct picture_identity {
        uint64_t sum, squares, laplacian, fingerprint;
    } last;
    int64_t changed_ns; // pts of the last picture that differed from the one before
    int same;           // pictures since then
    double usual_sharpness;
    int64_t sharpness_ns; // duration that it was learnt from
    int cells;
    float usual_grid[GRID_CELLS_MAX];
    int64_t grid_ns; // duration that it was learnt from
};

// Processes the camera's next undamaged picture, whose record has all but the alarms; `levels`: its
// black and white. Returns the alarms that are raised now: bit 1 << enum alarm.
unsigned alarms_step(struct alarms *, const struct scene_record *,
                     const struct statistics_params *levels);
// Call for pictures of another geometry: forgets the usual values.
void alarms_restart(struct alarms *);
const char *alarm_name(enum alarm);

#endif
