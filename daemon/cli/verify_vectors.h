// What the frameworks whose names presets bear make of fixed pictures (scripts/verify_vectors).
#ifndef FRAMED_DAEMON_CLI_VERIFY_VECTORS_H
#define FRAMED_DAEMON_CLI_VERIFY_VECTORS_H

#include "kernels/ops.h"

enum { VERIFY_ROWS = 12, VERIFY_COLUMNS = 96 };

struct verify_vector {
    const char *preset, *key, *value; // key: set to `value` beside the preset; NULL: none
    int largest;                      // difference of levels that is allowed,
    double mean;                      // and of the means of all vectors of the same preset and key
    int source_width, source_height, width, height; // pixels; the latter two: of the tensor
    struct rect at; // the pixels of the tensor that the picture fills; the others are padding
    // Of some rows of the tensor, two hex digits a level, pixel by pixel in its order of channels.
    const char *levels[VERIFY_ROWS];
};

extern const struct verify_vector verify_vectors[];
extern const int verify_vectors_n;

#endif
