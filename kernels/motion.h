// What moves in a fixed camera's picture, from the sums of its luma over a grid of cells: changed
// cells, and boxes around them. Pure; nothing here allocates; all of it integers.
//
// motion_step compares a picture's cells with two backgrounds, updates these, and lists the cells
// that moved, in ascending order. It has a reference whose bytes are the contract, versions for
// wide registers (cpu/versions.h), and CUDA's. motion_boxes joins the listed cells to boxes and
// says whether something moves; it runs on the host, and its cost follows the number of listed
// cells.
//
// Units: a level is 1/255 of the luma's range. Means and backgrounds are levels in Q7 (0 to 32640),
// noise is levels in Q11, gains are Q10. The arithmetic of a cell is in motion_cell.h.
//   slow       the background: an exponential average of what a cell shows while it does not move.
//   fast       an average over a few tenths of a second, whatever moves.
//   light      a change that the cells share, in gain or in level, against each background: the
//              median of all cells. Backgrounds follow it before they are compared.
//   changed    a cell and its eight neighbours are on average further from a background than a
//              threshold by `sensitivity`, and the cell's noise, and a part of the background's
//              range there (a camera that shakes), and a part of the light's change. A difference
//              counts as 28 levels at most.
//   moved      changed against both: a ghost, where an object left, differs from slow alone.
//   edge       of a moved cell: the difference from slow is uneven over it and its neighbours. A
//              shadow or a lamp changes neighbours alike, and has few edges.
//   jump       where more than half of the cells moved, or a fifth more than just now changed, a
//              light was switched: nothing moves for 0.6 s, and the backgrounds start anew.
//   box        moved cells that touch, also by corners; of at least 1/1600 of all cells and of
//              min_area; at least one in eight has an edge. Something moves where a box is near a
//              box of the picture before.
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
    MOTION_RATE_MAX = 240, // pictures a second
    MOTION_HISTORY = 128,  // pictures that a jump is measured over, at most: a power of two
};

struct statistics; // kernels/statistics.h

struct motion_params {
    int sensitivity;        // 1 to 100; 50 is usual, 25 more halves the thresholds
    const uint8_t *mask;    // columns * rows bytes, row by row: 0 leaves a cell out; NULL: none.
                            // Read by init alone
    int min_area;           // source pixels that have moved: boxes of fewer are dropped
    int rate_num, rate_den; // pictures a second, up to MOTION_RATE_MAX; 0, 0: unknown
};

// Made for one picture size and one grid; never changes; plain bytes, which may be copied. The
// shares are of 65536, a picture.
struct motion {
    struct motion_params params; // mask NULL
    int32_t width, height;       // of the picture, pixels
    int32_t columns, rows;       // cells
    int32_t stride;              // cells in a row of a plane: columns, and padding of dead cells
    int32_t live;                // cells that are not left out
    int32_t sum_shift;           // of a cell's sum, ahead of the product by mean_of
    int32_t threshold_scale;     // Q8, of `sensitivity`
    int32_t slow_share, absorb_share, fast_share, noise_up_share, noise_down_share;
    int32_t absorb_after, quiet_after, jump_window, learn_for; // pictures
    int32_t box_cells;                                         // the least that a box has
    uint32_t mean_of[2][MOTION_COLUMNS_MAX]; // by row_tall and column: of a sum to Q7, Q16
    uint8_t row_tall[MOTION_ROWS_MAX];       // 1: a row of cells is a pixel higher than others
    uint8_t mask[MOTION_CELLS_MAX + MOTION_LANES * MOTION_ROWS_MAX]; // stride * rows: 255, or 0
};

// What a camera's background is, in memory that motion_step alone reads and writes (a GPU's may
// stay there): this, and four planes of stride * rows cells, 16 bits each, in the order of enum
// motion_plane. Zeroed: nothing is learnt yet.
struct motion_state {
    uint32_t steps;                   // pictures so far; stays at the largest number
    uint32_t quiet;                   // pictures for which nothing moves because of a jump
    uint32_t changed[MOTION_HISTORY]; // against fast, by picture modulo MOTION_HISTORY
    uint32_t unused[14];              // planes lie on multiples of 64 bytes
};

enum motion_plane { MOTION_SLOW, MOTION_FAST, MOTION_NOISE, MOTION_AGE, MOTION_PLANES };

// motion_changes.flags
enum {
    MOTION_LEARNING = 1, // the backgrounds are not settled: nothing moves
    MOTION_LIGHT = 2,    // the light changed
    MOTION_JUMP = 4,     // and nothing moves because of it, in this picture and a few more
};

// How the light changed since a background: gain * (level - 16) + 16 + shift.
struct motion_light {
    int32_t gain;  // Q10, 1024: as it was
    int32_t shift; // Q7
};

// One picture's: this, and `count` moved cells in ascending order, each
// (row * columns + column) << 1 | edge. There is room for columns * rows.
struct motion_changes {
    uint32_t count, flags;
    struct motion_light slow, fast; // the light against either background
    uint16_t cell[];
};

struct motion_box {
    int32_t x1, y1, x2, y2; // source pixels, edges; x2 and y2 are behind the last pixel
    uint32_t cells;         // that moved
};

// The caller's, one a camera, zeroed at first and kept from picture to picture.
struct motion_boxes {
    uint32_t count;            // of boxes, by cells descending, then from the top and from the left
    uint32_t changed;          // cells that moved, in boxes or not
    uint32_t flags;            // of the changes
    struct motion_light light; // of the changes, against `fast`
    bool moving;               // a box is near one of the picture before
    struct motion_box box[MOTION_BOXES_MAX];
};

// The usual parameters: sensitivity 50, no mask, no min_area, an unknown rate.
struct motion_params motion_defaults(void);

// For the cells of these statistics, which are not kept. 0 or -EINVAL: a parameter out of range,
// too many cells, or a mask that leaves none. `ret_why`: what is wrong and what is allowed, for a
// user; NULL: not wanted.
int motion_init(struct motion *, const struct motion_params *, const struct statistics *,
                const char **ret_why);

size_t motion_state_bytes(const struct motion *);
size_t motion_changes_bytes(const struct motion *);   // of one picture's, all cells changed
size_t motion_workspace_bytes(const struct motion *); // of motion_step, and of motion_boxes

// Every version. `sums`: columns * rows, row by row, of luma levels. `state`, `changes` and
// `workspace` (whose content means nothing) have the bytes above and lie on multiples of 64 bytes.
// Thread-safe where these differ.
typedef void motion_fn(const struct motion *, struct motion_state *state, const uint32_t *sums,
                       struct motion_changes *changes, void *workspace);

motion_fn motion_reference;

// From one picture's changes to its boxes; `boxes` has those of the picture before. Thread-safe
// where `boxes` and `workspace` differ.
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
