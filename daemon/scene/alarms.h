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
#ifndef FRAMED_DAEMON_SCENE_ALARMS_H
#define FRAMED_DAEMON_SCENE_ALARMS_H

#include "config/config.h"
#include "kernels/statistics.h"

enum alarm { ALARM_DARK, ALARM_GLARE, ALARM_FROZEN, ALARM_BLURRED, ALARM_MOVED, ALARMS };

// One undamaged picture.
struct alarm_signs {
    int64_t pts_ns;
    uint32_t epoch;
    const struct luma_statistics *luma; // all of them
    uint8_t black, white;               // levels of the picture's range
    uint64_t fingerprint;
    const uint8_t *grid; // means of `cells` cells
    int cells;           // GRID_CELLS_MAX at most
};

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

// Processes the camera's next picture. Returns the alarms that are raised now: bit 1 << enum alarm.
unsigned alarms_step(struct alarms *, const struct alarm_signs *);
// Call for pictures of another geometry: forgets the usual values.
void alarms_restart(struct alarms *);
const char *alarm_name(enum alarm);

#endif
