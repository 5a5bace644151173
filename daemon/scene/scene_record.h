// The analysis of one picture of a camera.
#ifndef FRAMED_DAEMON_SCENE_SCENE_RECORD_H
#define FRAMED_DAEMON_SCENE_SCENE_RECORD_H

#include "daemon/decode/frame.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"

struct scene_record {
    struct frame_info info; // of the picture; info.scene is known
    struct luma_statistics luma;
    int columns, rows;                                       // of the grid
    uint8_t grid[STATISTICS_GRID_MAX * STATISTICS_GRID_MAX]; // means of its cells, row by row
    struct motion_boxes motion;
    // Bit 1 << enum alarm: alarms that are raised, and alarms that this picture raised or cleared.
    unsigned alarms, raised, cleared;
};

#endif
