// The key `detections` of an output: its sink has the same keys as an output's own.
#ifndef FRAMED_CONFIG_DETECTIONS_H
#define FRAMED_CONFIG_DETECTIONS_H

#include "config/config.h"

// What the sink of the lines is opened and checked with: an output with these keys. Its texts stay
// the output's.
struct output_config detections_as_output(const struct output_config *);
// Takes over what a check has changed of that.
void detections_take(struct output_config *, const struct output_config *lines);
bool detections_equal(const struct output_config *, const struct output_config *);
// Gives `to` what `from` has, with a copy of its own. 0; -ENOMEM, and `to` is as it was.
int detections_copy(struct output_config *to, const struct output_config *from);
void detections_free(struct output_config *); // their memory

#endif
