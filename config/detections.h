// The key `detections` of an output: its sink has the same keys as an output's own.
#ifndef FRAMED_CONFIG_DETECTIONS_H
#define FRAMED_CONFIG_DETECTIONS_H

#include "config/config.h"

// Returns an output with these keys, for opening and checking the sink of the lines. Its texts
// remain the original output's.
struct output_config detections_as_output(const struct output_config *);
// Copies the values back that a check has changed in `lines`.
void detections_take(struct output_config *, const struct output_config *lines);
bool detections_equal(const struct output_config *, const struct output_config *);
// Replaces the detections of `to` by a copy. Returns 0, or -ENOMEM with `to` unchanged.
int detections_copy(struct output_config *to, const struct output_config *from);
void detections_free(struct output_config *);

#endif
