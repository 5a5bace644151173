// Enforces `keep` for an output whose path is a pattern: deletes the oldest finished files. Never
// touches files whose names do not match the pattern, nor files that are being written, which have
// other names. Any thread, one at a time.
#ifndef FRAMED_DAEMON_OUTPUT_KEEP_H
#define FRAMED_DAEMON_OUTPUT_KEEP_H

#include "config/config.h"

struct keep {
    const struct output_config *config; // outlives it
    int64_t next_ns;                    // CLOCK_MONOTONIC: latest time of the next scan
    int64_t finished_bytes;             // of all finished files at the last scan; 0: still too many
    int error;        // of the last scan: negative errno; 0: everything due was deleted
    char failed[256]; // first file that could not be deleted; "": the folder could not be read
    bool logged;      // owned by the caller: `error` was logged
};

void keep_init(struct keep *, const struct output_config *);
// Reports a finished file: the next keep_enforce scans the folder.
void keep_file_finished(struct keep *);
// Returns true if keep_enforce would scan: once a minute, after a file was finished, and when
// finished files and the `writing_bytes` of the open file exceed the limit together.
bool keep_is_due(const struct keep *, int64_t writing_bytes);
// Deletes finished files that are too old or exceed the limit of bytes.
void keep_enforce(struct keep *, int64_t writing_bytes);

#endif
