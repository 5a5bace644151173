// Looks up libavformat's demuxers and their options, before anything is opened.
#ifndef FRAMED_DAEMON_INPUT_DEMUX_OPTIONS_H
#define FRAMED_DAEMON_INPUT_DEMUX_OPTIONS_H

#include "config/config.h"

bool demuxer_exists(const char *name);
// Returns true if demux_open accepts an option of that name: of the camera's demuxer, of
// libavformat itself, or of the protocol in the camera's URL. Without `demuxer`, probing may find
// any demuxer; with `url` NULL, the protocol may be any.
bool demuxer_takes_option(const struct camera_config *, const char *option);

#endif
