// Tiles: regions of a picture, in which a detector sees small objects in the camera's pixels. Pure.
#ifndef FRAMED_KERNELS_TILES_H
#define FRAMED_KERNELS_TILES_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILES_MAX = 64 }; // of an area, including the whole area

struct tiling {
    int size;    // side of a tile, source pixels; 0: no tiles
    int overlap; // least overlap of neighbours, percent of the size: 0 to 99
    bool full;   // adds the whole area as an element
};

// Cuts `area` of a picture into an even grid of tiles: row by row, as few as the overlap allows, of
// equal size and with steps that differ by at most a pixel, so that the last tile is not thinner.
// An area narrower or lower than a tile makes the tiles so. With `full` the whole area comes last,
// unless it is the only tile. Returns the number of tiles; -EINVAL for a tiling without a size or
// an overlap without a step; -E2BIG for more than TILES_MAX.
int tiles_make(struct rect tiles[TILES_MAX], const struct tiling *, struct rect area);

#ifdef __cplusplus
}
#endif
#endif
