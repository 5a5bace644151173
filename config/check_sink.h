// Rules of an output's sink, its protocol, and the lines of its detections.
#ifndef FRAMED_CONFIG_CHECK_SINK_H
#define FRAMED_CONFIG_CHECK_SINK_H

#include "config/output_check.h"

// The output must have a sink. Chooses its protocol.
void check_sink(struct output_check *);

#endif
