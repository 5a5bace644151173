// Writes the packets of a queue to files, one after another, in the recorder's jobs. A file begins
// with a keyframe and ends before one: when the next run of `segment` begins, the stream changes,
// or a clip ends. Any thread, one at a time.
#ifndef FRAMED_DAEMON_OUTPUT_RECORDING_H
#define FRAMED_DAEMON_OUTPUT_RECORDING_H

#include "daemon/output/muxer.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/segment.h"

struct recording {
    const struct output_config *config; // outlives the recording, as do:
    struct packet_queue *queue;
    struct ledger *ledger;
    struct segment segment;
    struct muxer *muxer;              // NULL: no file is open
    struct AVCodecParameters *stream; // of the open file
    struct timeline timeline;
    int64_t base;               // timeline time at which the file begins
    struct queued_packet *held; // not written so far: the next packet determines its duration
    struct packet_times held_times;
    uint32_t clip;                         // of the open file
    int unsettled;                         // packets after the settled part of the file
    int64_t group_bytes, last_group_bytes; // of the current and the last group of pictures
    bool broken;                           // packets up to the next keyframe are lost...
    enum loss reason;                      // ...for this reason
    int64_t retry_ns;                      // CLOCK_MONOTONIC: no file is opened before this
    // Result of the last try to write: 0 or negative errno. -ENOTSUP: unsupported codec; -EINVAL:
    // the stream lacks its parameter sets or its size.
    int error;
    char codec[32]; // unsupported codec
};

void recording_init(struct recording *, const struct output_config *, struct packet_queue *,
                    struct ledger *, gid_t group);
// Writes all waiting packets. Written packets can be played when it returns.
void recording_write(struct recording *);
// Writes all waiting packets and finishes the open file. Returns 0, or a negative errno if the file
// could not be completed or given its name.
int recording_finish(struct recording *);

#endif
