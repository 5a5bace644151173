// Rules for where an output goes: its sink, the protocol there, and the lines of its detections.
#ifndef FRAMED_CONFIG_CHECK_SINK_H
#define FRAMED_CONFIG_CHECK_SINK_H

#include "config/output_check.h"

// The output has a sink. Settles the protocol, as check_output.
void check_sink(struct output_check *);

#endif
