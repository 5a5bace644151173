// Colour look-up tables in files of the format .cube: TITLE, LUT_1D_SIZE (2 to 65,536), LUT_3D_SIZE
// (2 to 65), DOMAIN_MIN and DOMAIN_MAX, LUT_1D_INPUT_RANGE and LUT_3D_INPUT_RANGE, comments, and a
// line of three numbers for each entry: of the 1D table, which stands ahead of the cube, then of
// the cube.
#ifndef FRAMED_CONFIG_CUBE_H
#define FRAMED_CONFIG_CUBE_H

#include "kernels/lut.h"

enum {
    CUBE_BYTES_MAX = 32 << 20,
    CUBE_MISTAKE_MAX = 256, // bytes of a message
};

// Makes the LUT of a text. 0, with a reference for lut_unref; -EINVAL with the number of the line
// and what is wrong with it (what is allowed); -ENOMEM.
int cube_parse(struct lut **ret, const char *text, size_t length, enum lut_interpolation, int *line,
               char wrong[CUBE_MISTAKE_MAX]);

// Of a regular file. `wrong` then names it as it is `written`, with the line: "night.cube:17: has 2
// numbers (3)". 0, or negative errno, always with `wrong` set.
int cube_read(struct lut **ret, const char *path, const char *written, enum lut_interpolation,
              char wrong[CUBE_MISTAKE_MAX]);

#endif
