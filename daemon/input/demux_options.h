// What libavformat knows of demuxers and their options, before anything is opened.
#ifndef FRAMED_DAEMON_INPUT_DEMUX_OPTIONS_H
#define FRAMED_DAEMON_INPUT_DEMUX_OPTIONS_H

#include "config/config.h"

bool demuxer_exists(const char *name);
// Whether demux_open takes an option of that name: the camera's demuxer has it, libavformat
// itself, or the protocol of the camera's URL. Without `demuxer` any demuxer may be found by
// probing, and with `url` NULL the protocol may be any.
bool demuxer_takes_option(const struct camera_config *, const char *option);

#endif
