// The frames in a file, as protocol.h writes them.
#ifndef FRAMED_DAEMON_OUTPUT_FILE_RECOVERY_H
#define FRAMED_DAEMON_OUTPUT_FILE_RECOVERY_H

#include <sys/types.h>

#include "config/config.h"

// The bytes of the whole frames that the file begins with, headers included; of a raw file, which
// does not say where a frame ends, all of it. -EILSEQ: it is no file of this protocol; other
// negative errno.
off_t file_recovery_whole(enum protocol, int fd);

#endif
