// What one reader of an output, a client or the file, has had so far. Pure.
#ifndef FRAMED_DAEMON_OUTPUT_CONSUMER_H
#define FRAMED_DAEMON_OUTPUT_CONSUMER_H

#include "daemon/output/pool.h"

struct reader {
    bool begun;        // a frame was taken before, and the rest holds:
    bool new_epoch;    // the last frame taken is the first that it gets of its epoch
    uint32_t epoch;    // of the last frame taken
    uint64_t expected; // ordinal behind the last frame taken
    uint64_t lost;     // frames between its first one and the last
};

// Losses count from the first frame on: what was lost before was not lost to this reader.
void reader_take(struct reader *, const struct slot_info *);

#endif
