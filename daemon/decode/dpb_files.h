// What the files among the cameras are, before any camera starts.
#ifndef FRAMED_DAEMON_DECODE_DPB_FILES_H
#define FRAMED_DAEMON_DECODE_DPB_FILES_H

#include "config/config.h"

// Fills in the `stream` of every camera whose url is a file that can be read. A file that cannot,
// or that has not answered within `deadline_ns`, is left out: the camera itself will say why.
// A disk that hangs keeps a thread of this module until the end.
void dpb_probe_files(struct config *, int64_t deadline_ns);

#endif
