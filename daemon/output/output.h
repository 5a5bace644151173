// One product of a camera: what the camera thread, the backend and the loop share of it. A batch is
// an output without a camera; each camera that fills it has an output of the batch's name, which
// counts that camera's frames, and takes pool and sink of the batch's.
#ifndef FRAMED_DAEMON_OUTPUT_OUTPUT_H
#define FRAMED_DAEMON_OUTPUT_OUTPUT_H

#include "config/config.h"
#include "daemon/base/event_queue.h"
#include "daemon/base/last_error.h"
#include "daemon/base/latency.h"
#include "daemon/base/ledger.h"
#include "daemon/base/rate_counter.h"
#include "daemon/output/batch.h"
#include "daemon/output/crop_requests.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/pool.h"
#include "daemon/output/rate.h"
#include "daemon/output/result_lines.h"
#include "daemon/output/scene_lines.h"
#include "daemon/output/sink.h"
#include "daemon/scene/gate.h"
#include "kernels/backend.h"

struct output {
    const char *camera; // its name; of a batch ""
    struct output_config *config;
    struct ledger ledger;
    struct latency latency;         // received to finished
    struct latency processing;      // decoded to finished
    struct shared_object shared;    // of `shared:`, the name of the pool's memory; else closed
    struct pool *pool;              // NULL of a copy, and of lines of the analysis, which have:
    struct packet_queue *packets;   // NULL of others
    struct scene_lines *scene;      // NULL of others
    struct results *results;        // of an output with a ring of its own; NULL: of others
    struct crop_requests *requests; // of crops; NULL: of others
    struct event ready;             // results may be ready, or many packets wait
    struct batch *batch;            // of a batch's own output; NULL: of others
    struct collector *collector;    // of that, the supervisor's; NULL: not started
    struct output *parent;          // the batch's own output, of a camera's share; NULL: of others
    struct batch_member share;      // where there is a parent

    // loop thread:
    struct listener listener;       // for the sink that is to be opened; closed: it makes its own
    struct sink *sink;              // NULL: not open, or closed
    struct result_lines *lines;     // of `detections`; NULL: none
    struct result_lines *old_lines; // that a reload replaced: their readers take what waits
    bool refused;                   // the last try to open the sink failed
    bool finished;                  // no sink is wanted any more, and of a share:
    int64_t drained_ns;             // CLOCK_MONOTONIC: until when clients may take what is ready
    void (*closed)(struct output *);
    void *owner;     // of whoever gave `closed`
    int subscribers; // lists of subscriptions that the output is in; of a batch: its shares
    struct last_error last_error;                  // of the sink
    struct rate_counter emitted, lost, overflowed; // sampled by the status, like:
    struct latency_window recent;

    // camera thread:
    uint64_t sequence, ordinal; // of the next frame offered
    struct rate rate;           // by `fps`
    struct gate gate;           // by `gate`

    // Of an output that its camera is to do without, and of a batch: the caller's list.
    struct output *next;
};

// With a copy of the configuration. `camera`, its name, outlives the output.
int output_open(struct output **ret, const char *camera, const struct output_config *);
// A batch's own output, and a camera's share in it.
int output_open_batch(struct output **ret, const struct output_config *);
int output_open_share(struct output **ret, const char *camera, const struct output_config *,
                      struct output *parent);
void output_close(struct output *); // after sink and camera are gone; accepts NULL
// The output that has the sink: the parent, or itself.
struct output *output_owner(struct output *);
// That output's sink, where results of this output go; NULL: it is not open. Loop thread.
struct sink *output_sink(const struct output *);
// Whether no frame reached anybody: all were lost, or none came. A copy that waits for requests may
// get none, and so may crops.
bool output_is_silent(const struct output *);
// Logs the ledger; `fails`: that of an output whose silence makes the run fail, with the reason. No
// frame may be in flight.
void output_log_account(const struct output *, bool fails);

// Opens the sink; `closed` follows once, after output_finish. Until a try succeeds, frames are lost
// as LOSS_SINK. Logs the first failure and what works; returns 0 or negative errno.
int output_listen(struct output *, uv_loop_t *, void (*closed)(struct output *), void *owner);
// Opens the sink of the lines that say what was found, where it is wanted and not open; the same
// `closed` follows. -EBUSY: lines before these are not written yet.
int output_listen_lines(struct output *, uv_loop_t *, void (*closed)(struct output *), void *owner);
bool output_wants_lines(const struct output *);
// Takes over `detections` of another configuration: lines for the sink before end, and lines for
// the new one begin. 1; 0: nothing differs; -ENOMEM.
int output_set_detections(struct output *, const struct output_config *);
void output_check_paths(const struct output *); // of its sinks, as sink_check_path
// Its sinks listen no more: others may at their addresses. What clients have goes on.
void output_yield(const struct output *);
// Whether a sink of the output is open, be it the output's own or one of lines.
bool output_is_open(const struct output *);
// No more frames will come: consumers have `grace_ms` to take what is ready. Calling it again may
// shorten that.
void output_finish(struct output *, int grace_ms);
// Of a camera's share that no thread fills any more, after output_finish: whether clients of the
// batch have what is its. When their time is over they keep what they have, and it counts as lost.
bool output_has_drained(struct output *);

#endif
