// The results of the presets' frameworks for fixed pictures (scripts/verify_vectors).
#ifndef FRAMED_DAEMON_CLI_VERIFY_VECTORS_H
#define FRAMED_DAEMON_CLI_VERIFY_VECTORS_H

#include "kernels/ops.h"

enum { VERIFY_ROWS = 12, VERIFY_COLUMNS = 96 };

struct verify_vector {
    const char *preset, *key, *value; // key: set to `value` besides the preset; NULL: none
    int largest;                      // allowed difference of levels,
    double mean;                      // and of the means over all vectors with this preset and key
    int source_width, source_height, width, height; // pixels; the last two: of the tensor
    struct rect at; // the pixels of the tensor that the picture fills; the others are padding
    // Some rows of the tensor, two hex digits per level, pixel by pixel in its order of channels.
    const char *levels[VERIFY_ROWS];
};

extern const struct verify_vector verify_vectors[];
extern const int verify_vectors_n;

#endif
