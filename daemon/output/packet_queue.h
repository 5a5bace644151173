// Queue of one camera's packets for a copy of its stream: the camera's thread adds packets, the
// copy's writer takes them. If a slow disk or server fills the queue, packets up to the next
// keyframe are lost and counted.
//
// A queue with `before` is idle at first: it only remembers the packets of that period. A request
// (packet_queue_request) begins a clip with these and adds new packets until the clip's end.
//
// Packets are held by reference. Thread-safe; each function names the thread that calls it. The
// lock is taken last: nothing is locked, posted or logged under it.
#ifndef FRAMED_DAEMON_OUTPUT_PACKET_QUEUE_H
#define FRAMED_DAEMON_OUTPUT_PACKET_QUEUE_H

#include "daemon/base/counters.h"
#include "daemon/output/pool.h"
#include "daemon/source/demux.h"

struct packet_queue;

// Owned by the taker until queued_packet_free.
struct queued_packet {
    struct AVPacket *av;
    struct AVCodecParameters *stream; // parameters of the stream if a keyframe; else NULL
    int64_t pts_ns;                   // INT64_MIN: unknown
    int64_t received_ns;              // CLOCK_MONOTONIC
    int64_t capture_ns;               // since 1970
    uint32_t clip;                    // counts clips; 0 without `before`
    size_t memory;                    // bytes that it keeps allocated, shared or not
    struct queued_packet *next;       // private
};

struct packet_queue_options {
    int64_t before_ns;       // length remembered for clips; 0: everything is copied
    size_t before_bytes_max; // most memory of remembered packets; beyond it clips begin later
    size_t bytes_max;        // most memory of packets that wait for the writer
    bool waits;              // the camera's thread waits for room, and nothing is lost
    bool eager;              // each packet wakes the writer, not only when many wait
    struct ledger *ledger;
};

int packet_queue_open(struct packet_queue **ret, const struct packet_queue_options *);
// Counts waiting packets as LOSS_STOPPING. No thread may use the queue any more. Accepts NULL.
void packet_queue_close(struct packet_queue *);

// --- camera thread
// Takes a reference. `stream` has the parameters of the packet's stream; *stop ends a wait for
// room. The packet is lost if memory runs out. Returns true if the caller must wake the writer.
bool packet_queue_add(struct packet_queue *, const struct packet *,
                      const struct AVCodecParameters *stream, const _Atomic bool *stop);

// --- loop thread
// Sets the sink's state, initially POOL_SINK_OPEN. Refused: packets are lost as LOSS_SINK, waiting
// ones too. Finishing: no more are added. Stopped: waiting packets are lost as LOSS_STOPPING.
void packet_queue_set_sink(struct packet_queue *, enum pool_sink);
// Extends the clip until `until_ns` (CLOCK_MONOTONIC), or begins one. Returns false if the queue
// has no `before` or its sink is not open.
bool packet_queue_request(struct packet_queue *, int64_t until_ns);
// Returns true if packet_queue_take may return a packet.
bool packet_queue_has_next(struct packet_queue *);

// --- the writer, on any thread
// Returns the oldest packet, or NULL.
struct queued_packet *packet_queue_take(struct packet_queue *);
// Returns true if no more packets belong to the last taken one's clip. False without `before`.
bool packet_queue_clip_is_over(struct packet_queue *);
// Loses the packets before the newest waiting keyframe for `reason`. Returns false if no keyframe
// waits.
bool packet_queue_skip(struct packet_queue *, enum loss reason);
void queued_packet_free(struct queued_packet *); // accepts NULL

#endif
