// Motion in a fixed camera's picture, from the luma sums of a grid of cells: changed cells, and
// boxes around them. Pure; nothing here allocates; integers only.
//
// motion_step compares a picture's cells with two backgrounds, updates these, and lists the moved
// cells in ascending order. It has a reference whose bytes are the contract, versions for wide
// registers (cpu/versions.h), and CUDA's. motion_boxes joins the listed cells to boxes and decides
// whether something moves; it runs on the host, and its cost grows with the number of listed cells.
//
// Units: a level is 1/255 of the luma's range. Means and backgrounds are levels in Q7 (0 to 32640),
// noise is levels in Q11, gains are Q10. The arithmetic of a cell is in motion_step.h.
//   slow       the background: an exponential average of a cell while it does not move.
//   fast       an average over a few tenths of a second, with or without motion.
//   light      a change that cells share, in gain or in level, relative to each background: the
//              median of all cells. It is applied to backgrounds before the comparison.
//   changed    the average difference of a cell and its eight neighbours from a background exceeds
//              the sum of a threshold by `sensitivity`, the cell's noise, a part of the
//              background's range there (camera shake), and a part of the light's change. Each
//              difference counts as 28 levels at most.
//   moved      changed relative to both: a ghost, left by an object, differs from slow alone.
//   edge       of a moved cell: its difference from slow and its neighbours' are uneven. Shadows
//              and lamps change neighbours equally, and have few edges.
//   jump       a light was switched: more than half of the cells moved, or the changed cells became
//              a fifth of all more. Nothing moves for 0.6 s, and the backgrounds restart.
//   box        moved cells that touch, corners included: at least 1/1600 of all cells and min_area,
//              and at least one in eight has an edge. Something moves if a box is near a box of the
//              previous picture.
#ifndef FRAMED_KERNELS_MOTION_H
#define FRAMED_KERNELS_MOTION_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/fixed.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOTION_CELLS_MAX = 25600, // columns * rows
    MOTION_COLUMNS_MAX = 320,
    MOTION_ROWS_MAX = 320,
    MOTION_LANES = 32, // rows of planes are padded to a multiple of it
    MOTION_BOXES_MAX = 32,
    MOTION_RATE_MAX = 240, // pictures per second
    MOTION_HISTORY = 128,  // most pictures over which a jump is measured: a power of two
};

struct statistics; // kernels/statistics.h

struct motion_params {
    int sensitivity;        // 1 to 100; the default is 50; 25 more halves the thresholds
    const uint8_t *mask;    // columns * rows bytes, row by row: 0 excludes a cell; NULL: none.
                            // Read by init alone
    int min_area;           // moved source pixels: smaller boxes are dropped
    int rate_num, rate_den; // pictures per second, up to MOTION_RATE_MAX; 0, 0: unknown
};

// Made for one picture size and one grid; never changes; plain bytes, which may be copied. Shares
// are in 1/65536 per picture.
struct motion {
    struct motion_params params; // mask is NULL
    int32_t width, height;       // of the picture, pixels
    int32_t columns, rows;       // cells
    int32_t stride;              // cells in a row of a plane: columns, then padding with dead cells
    int32_t live;                // cells that are not masked out
    int32_t sum_shift;           // right shift of a cell's sum before the product with mean_of
    int32_t threshold_scale;     // Q8, from `sensitivity`
    int32_t slow_share, absorb_share, fast_share, noise_up_share, noise_down_share;
    int32_t absorb_after, quiet_after, jump_window, learn_for; // pictures
    int32_t box_cells;                                         // the fewest of a box
    uint32_t mean_of[2][MOTION_COLUMNS_MAX]; // [row_tall][column]: factor from a sum to Q7, in Q16
    uint8_t row_tall[MOTION_ROWS_MAX];       // 1: this row of cells is a pixel higher than others
    uint8_t mask[MOTION_CELLS_MAX + MOTION_LANES * MOTION_ROWS_MAX]; // stride * rows: 255, or 0
};

// A camera's background, in memory that motion_step alone accesses (a GPU's may stay there): this
// header, then four planes of stride * rows cells, 16 bits each, in the order of enum motion_plane.
// All zero: nothing is learnt.
struct motion_state {
    uint32_t steps;                   // pictures so far; saturates
    uint32_t quiet;                   // remaining pictures in which nothing moves because of a jump
    uint32_t changed[MOTION_HISTORY]; // relative to fast, by picture modulo MOTION_HISTORY
    uint32_t unused[14];              // aligns the planes to 64 bytes
};

enum motion_plane { MOTION_SLOW, MOTION_FAST, MOTION_NOISE, MOTION_AGE, MOTION_PLANES };

// motion_changes.flags
enum {
    MOTION_LEARNING = 1, // the backgrounds are still being learnt: nothing moves
    MOTION_LIGHT = 2,    // the light changed
    MOTION_JUMP = 4,     // the light was switched: nothing moves in this picture and a few more
};

// Change of the light since a background: gain * (level - 16) + 16 + shift.
struct motion_light {
    int32_t gain;  // Q10; 1024: no change
    int32_t shift; // Q7
};

// Changes of one picture: this header, then `count` moved cells in ascending order, each (row *
// columns + column) << 1 | edge. There is room for columns * rows cells.
struct motion_changes {
    uint32_t count, flags;
    struct motion_light slow, fast; // the light relative to either background
    uint16_t cell[];
};

struct motion_box {
    int32_t x1, y1, x2, y2; // source pixels, edges; x2 and y2 are after the last pixel
    uint32_t cells;         // moved cells
};

// Owned by the caller, one per camera; zeroed at first and kept from picture to picture.
struct motion_boxes {
    uint32_t count;            // boxes, by cells descending, then from the top, then from the left
    uint32_t changed;          // moved cells, in boxes or not
    uint32_t flags;            // motion_changes.flags
    struct motion_light light; // motion_changes.fast
    bool moving;               // a box is near a box of the previous picture
    struct motion_box box[MOTION_BOXES_MAX];
};

// The usual parameters: sensitivity 50, no mask, no min_area, unknown rate.
struct motion_params motion_defaults(void);

// For the cells of these statistics, which are not kept. Returns 0 or -EINVAL: a parameter out of
// range, too many cells, or a mask without cells. `ret_why` (or NULL): the mistake and the allowed
// values, for a user.
int motion_init(struct motion *, const struct motion_params *, const struct statistics *,
                const char **ret_why);

size_t motion_state_bytes(const struct motion *);
size_t motion_changes_bytes(const struct motion *);   // for one picture with all cells moved
size_t motion_workspace_bytes(const struct motion *); // for motion_step and motion_boxes

// The type of every version. `sums`: columns * rows luma sums, row by row. `state`, `changes` and
// `workspace` (with any content) have the sizes above and are 64-byte aligned. Thread-safe with
// different `state`, `changes` and `workspace`.
typedef void motion_fn(const struct motion *, struct motion_state *state, const uint32_t *sums,
                       struct motion_changes *changes, void *workspace);

motion_fn motion_reference;

// Makes boxes from one picture's changes; `boxes` holds the previous picture's. Thread-safe with
// different `boxes` and `workspace`.
void motion_boxes(const struct motion *, const struct motion_changes *, struct motion_boxes *boxes,
                  void *workspace);

static inline FRAMED_HD uint16_t *
motion_plane(const struct motion *motion, const struct motion_state *state, enum motion_plane plane)
{
    return (uint16_t *)(state + 1) + (size_t)plane * (size_t)(motion->stride * motion->rows);
}

#ifdef __cplusplus
}
#endif
#endif
