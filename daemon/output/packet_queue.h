// The packets of one camera on their way to a copy of its stream: the camera's thread adds them,
// the writer of the copy takes them. A slow disk or server fills the queue: then packets up to the
// next keyframe are lost, and counted.
//
// A queue with `before` is idle at first: it only remembers the packets of that time. A request
// (packet_queue_request) lets it begin a clip with these, and take what comes until the clip's end.
//
// Packets are held by reference. Thread-safe; each function names the thread that calls it. The
// lock is taken last: nothing is locked, posted or logged under it.
#ifndef FRAMED_DAEMON_OUTPUT_PACKET_QUEUE_H
#define FRAMED_DAEMON_OUTPUT_PACKET_QUEUE_H

#include "daemon/base/ledger.h"
#include "daemon/input/demux.h"
#include "daemon/output/pool.h"

struct packet_queue;

// The taker's, until queued_packet_free.
struct queued_packet {
    struct AVPacket *av;
    struct AVCodecParameters *stream; // of a keyframe: what its stream is; of others NULL
    int64_t pts_ns;                   // INT64_MIN: unknown
    int64_t received_ns;              // CLOCK_MONOTONIC
    int64_t capture_ns;               // since 1970
    uint32_t clip;                    // counts clips; 0 of a queue without `before`
    struct queued_packet *next;       // private
};

struct packet_queue_options {
    int64_t before_ns;       // of clips; 0: everything is copied
    size_t before_bytes_max; // what is remembered; beyond it clips begin later
    size_t bytes_max;        // that wait for the writer
    bool waits;              // the camera's thread waits for room, and nothing is lost
    struct ledger *ledger;
};

int packet_queue_open(struct packet_queue **ret, const struct packet_queue_options *);
// No thread may use it any more. Counts what is left as LOSS_STOPPING; accepts NULL.
void packet_queue_close(struct packet_queue *);

// --- camera thread
// Takes a reference. `stream` is what the packet's stream is, and *stop ends a wait for room. True:
// the caller wakes the writer. Without memory the packet is lost.
bool packet_queue_add(struct packet_queue *, const struct packet *,
                      const struct AVCodecParameters *stream, const _Atomic bool *stop);

// --- loop thread
// POOL_SINK_OPEN from the start. Refused: packets are lost as LOSS_SINK, those that wait too.
// Finishing: no more are added. Stopped: those that wait are lost as LOSS_STOPPING.
void packet_queue_set_sink(struct packet_queue *, enum pool_sink);
// packet_queue_add wakes the writer for every packet, not only when many wait.
void packet_queue_set_eager(struct packet_queue *, bool);
// A clip goes on until CLOCK_MONOTONIC is at `until_ns`, or begins. False: the queue has no
// `before`, or its sink is not open.
bool packet_queue_request(struct packet_queue *, int64_t until_ns);
// Whether packet_queue_take may return something.
bool packet_queue_has_next(struct packet_queue *);

// --- the writer, on any thread
// The oldest packet. NULL: none.
struct queued_packet *packet_queue_take(struct packet_queue *);
// Whether no more packets belong to the clip of the last that was taken. False without `before`.
bool packet_queue_clip_is_over(struct packet_queue *);
// Where a keyframe waits, the packets before the newest one are lost with that reason. False: none
// waits.
bool packet_queue_skip(struct packet_queue *, enum loss reason);
void queued_packet_free(struct queued_packet *); // accepts NULL

#endif
