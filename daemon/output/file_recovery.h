// Finds the whole frames in a file of one of the protocols of protocol.h.
#ifndef FRAMED_DAEMON_OUTPUT_FILE_RECOVERY_H
#define FRAMED_DAEMON_OUTPUT_FILE_RECOVERY_H

#include <sys/types.h>

#include "config/config.h"

// Returns the bytes of the whole frames at the file's start, headers included; all bytes of a raw
// file, which has no frame boundaries; -EILSEQ if the file is not of this protocol; or another
// negative errno.
off_t file_recovery_whole(enum protocol, int fd);

#endif
