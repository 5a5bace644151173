// Colour look-up tables in .cube files: TITLE, LUT_1D_SIZE (2 to 65,536), LUT_3D_SIZE (2 to 65),
// DOMAIN_MIN and DOMAIN_MAX, LUT_1D_INPUT_RANGE and LUT_3D_INPUT_RANGE, comments, and a line of
// three numbers for each entry: first the 1D table's entries, then the cube's.
#ifndef FRAMED_CONFIG_CUBE_H
#define FRAMED_CONFIG_CUBE_H

#include "kernels/lut.h"

enum {
    CUBE_BYTES_MAX = 32 << 20,
    CUBE_MISTAKE_MAX = 256, // bytes of a message
};

// Parses a text. Returns 0 with a reference for lut_unref; -EINVAL with the line's number and the
// mistake there (what is allowed); or -ENOMEM.
int cube_parse(struct lut **ret, const char *text, size_t length, enum lut_interpolation, int *line,
               char wrong[CUBE_MISTAKE_MAX]);

// Parses a regular file. Returns 0, or a negative errno with `wrong` set, which names the file as
// `written` and the line of the text: "night.cube:17: has 2 numbers (3)".
int cube_read(struct lut **ret, const char *path, const char *written, enum lut_interpolation,
              char wrong[CUBE_MISTAKE_MAX]);

#endif
