// The packets of a queue in files, one after another: what the recorder's jobs do. A file begins
// with a keyframe, and ends in front of one: where the next run of `segment` begins, the stream is
// another, or a clip ends. Any thread, one at a time.
#ifndef FRAMED_DAEMON_OUTPUT_RECORDING_H
#define FRAMED_DAEMON_OUTPUT_RECORDING_H

#include "daemon/output/muxer.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/segment.h"

struct recording {
    const struct output_config *config; // outlives the recording, like:
    struct packet_queue *queue;
    struct ledger *ledger;
    struct segment segment;
    struct muxer *muxer;              // NULL: no file is open
    struct AVCodecParameters *stream; // of the open file
    struct timeline timeline;
    int64_t base;               // time of the timeline that the file begins at
    struct queued_packet *held; // not written yet: only the next one shows how long it lasts
    struct packet_times held_times;
    uint32_t clip;                         // of the open file
    int unsettled;                         // packets behind what is settled of the file
    int64_t group_bytes, last_group_bytes; // of the pictures since a keyframe
    bool broken;                           // packets up to the next keyframe are lost...
    enum loss reason;                      // ...as this
    int64_t retry_ns;                      // CLOCK_MONOTONIC: no file is opened before
    // Of the last try to write: 0 or negative errno. -ENOTSUP: the codec; -EINVAL: the stream lacks
    // its parameter sets or its size.
    int error;
    char codec[32]; // that no copy can be made of
};

void recording_init(struct recording *, const struct output_config *, struct packet_queue *,
                    struct ledger *, gid_t group);
// Writes all packets that wait. What it wrote can be played when it returns.
void recording_write(struct recording *);
// Writes what waits, and finishes the open file. 0, or negative errno where the file could not be
// given its name.
int recording_finish(struct recording *);

#endif
