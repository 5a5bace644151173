// Tiles: the regions that a picture is cut into, so that a detector sees small things in as many
// pixels as the camera does. Pure.
#ifndef FRAMED_KERNELS_TILES_H
#define FRAMED_KERNELS_TILES_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILES_MAX = 64 }; // of an area, the whole area among them

struct tiling {
    int size;    // of a tile's sides, source pixels; 0: no tiles
    int overlap; // of neighbours, at least so many percent of the size: from 0, and below 100
    bool full;   // the whole area is an element, too
};

// Cuts `area` of a picture into tiles of an even grid: row by row, as few as the overlap allows,
// all of one size and in steps that differ by a pixel at most, so that the last tile is no thinner
// than the others. Where the area is narrower or lower than a tile, so are the tiles. With `full`
// the whole area comes last, unless it is the only tile already. Returns how many there are;
// -EINVAL where the tiling has no size or the overlap leaves no step; -E2BIG: more than TILES_MAX.
int tiles_make(struct rect tiles[TILES_MAX], const struct tiling *, struct rect area);

#ifdef __cplusplus
}
#endif
#endif
