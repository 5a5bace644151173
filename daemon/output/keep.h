// The finished files of an output whose path is a pattern, and which of them `keep` lets stay: the
// oldest are deleted. Files whose names the pattern does not make are never touched, nor are those
// that are being written, which have other names. Any thread, one at a time.
#ifndef FRAMED_DAEMON_OUTPUT_KEEP_H
#define FRAMED_DAEMON_OUTPUT_KEEP_H

#include "config/config.h"

struct keep {
    const struct output_config *config; // outlives it
    int64_t next_ns;                    // CLOCK_MONOTONIC: when to look again at the latest
    int64_t finished_bytes;             // of all finished files when it looked last
    int error;        // of the last look: negative errno; 0: all that should be deleted is
    char failed[256]; // the first file that could not be deleted; "": the folder could not be read
    bool logged;      // the caller's: `error` was logged
};

void keep_init(struct keep *, const struct output_config *);
// A file was finished: the next keep_enforce looks.
void keep_file_finished(struct keep *);
// Whether keep_enforce would look at the files: once a minute, after a file was finished, and where
// they and the `writing_bytes` of the open file are too much together.
bool keep_is_due(const struct keep *, int64_t writing_bytes);
// Deletes what is too old or too much.
void keep_enforce(struct keep *, int64_t writing_bytes);

#endif
