// One output of a camera: the state that the camera thread, the backend and the loop share. A batch
// is an output without a camera; each camera that fills it has an output of the batch's name, which
// counts that camera's frames and uses the batch's pool and sink.
#ifndef FRAMED_DAEMON_OUTPUT_OUTPUT_H
#define FRAMED_DAEMON_OUTPUT_OUTPUT_H

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/base/log.h"
#include "daemon/base/loop.h"
#include "daemon/output/batch.h"
#include "daemon/output/crop_requests.h"
#include "daemon/output/gate.h"
#include "daemon/output/lines.h"
#include "daemon/output/packet_queue.h"
#include "daemon/output/pool.h"
#include "daemon/output/sink.h"
#include "kernels/backend.h"

// An output without a sink or an account, for viewers (view/previews.h). Its results show the
// camera's picture, or the first element of another output.
enum {
    DEMANDS_MAX = 32,              // such outputs of one camera
    DEMAND_SLOTS = 2,              // one to fill while a JPEG is made of the other
    DEMAND_SIDE_MAX = 4096,        // pixels of a result
    DEMANDS_BYTES_MAX = 256 << 20, // of all cameras together, on the host
};

struct demand {
    const struct output *of; // its results are shown; NULL: the camera's pictures
    _Atomic size_t *taken;   // bytes, by all demands
    _Atomic bool runs;       // the loop requests results at the output's rate
    _Atomic bool due;        // the loop requests a result of the next picture
    _Atomic int refused;     // for the loop: why there was no result, negative errno; 0: none
    // Camera's thread; the loop may read them while it holds the result, or once the output has no
    // subscribers:
    struct demand_source { // the picture, of the result with that number
        int width, height;
        struct rect shown; // its part that the result shows
    } source[DEMAND_SLOTS];
    size_t bytes; // part of *taken
    int unmade;   // why there is no element, negative errno
};

struct output {
    const char *camera; // its name; "" for a batch
    struct output_config *config;
    struct ledger ledger;
    struct latency latency;         // received to finished
    struct latency processing;      // decoded to finished
    struct shared_object shared;    // name of the pool's memory by `shared:`; else closed
    struct pool *pool;              // NULL for copies and lines of the analysis, which have:
    struct packet_queue *packets;   // copies; else NULL
    struct scene_lines *scene;      // lines of the analysis; else NULL
    struct results *results;        // of an output with its own ring; else NULL
    struct crop_requests *requests; // of crops; else NULL
    struct event ready;             // results may be ready, or many packets wait
    struct batch *batch;            // of a batch's own output; else NULL
    struct collector *collector;    // of the batch, owned by the supervisor; NULL: not started
    struct output *parent;          // for a camera's share, the batch's own output; else NULL
    struct batch_member share;      // if there is a parent
    struct demand *demand;          // of an output for viewers; else NULL

    // loop thread:
    struct listener listener;       // for the sink to be opened; closed: the sink makes its own
    struct sink *sink;              // NULL: not open, or closed
    struct result_lines *lines;     // of `detections`; NULL: none
    struct result_lines *old_lines; // replaced by a reload: readers take waiting lines
    bool refused;                   // the last try to open the sink failed
    bool finished;                  // no sink is opened any more
    int64_t drained_ns;             // CLOCK_MONOTONIC: end of the time to take ready results
    void (*closed)(struct output *);
    void *owner;                  // passed with `closed`
    int subscribers;              // lists of subscriptions with the output; batch: its shares
    struct last_error last_error; // of the sink
    struct rate_counter emitted, lost, overflowed; // sampled by the status, like:
    struct latency_window recent;

    // camera thread:
    uint64_t sequence, ordinal; // of the next frame offered
    struct rate rate;           // by `fps`
    struct gate gate;           // by `gate`

    // In the caller's list: of batches, or of outputs that their camera no longer has.
    struct output *next;
};

// Opens an output with a copy of the configuration. `camera`, the name, outlives the output; it is
// "" for a batch's own output. `parent`: opens the camera's share in that batch; else NULL. Returns
// 0 or a negative errno.
int output_open(struct output **ret, const char *camera, const struct output_config *,
                struct output *parent);
void output_close(struct output *); // after sink and camera are gone; accepts NULL
// Returns the output that has the sink: the parent, or itself.
struct output *output_owner(struct output *);
// Returns that output's sink, which gets this output's results; NULL: not open. Loop thread.
struct sink *output_sink(const struct output *);
// Returns true if no frame was emitted: all were lost, or none came. Crops and copies that wait for
// requests may get none: false.
bool output_is_silent(const struct output *);
// Logs the ledger; `fails`: also why the output emitted nothing, which makes the run fail. No frame
// may be in flight.
void output_log_account(const struct output *, bool fails);

// Opens the sink; `closed` is called once, after output_finish. Until a try succeeds, frames are
// lost as LOSS_SINK. Logs the first failure and each success. Returns 0 or a negative errno.
int output_listen(struct output *, uv_loop_t *, void (*closed)(struct output *), void *owner);
// Opens the sink of the `detections` lines, if output_wants_lines; the same `closed` is called.
// -EBUSY: earlier lines are still being written.
int output_listen_lines(struct output *, uv_loop_t *, void (*closed)(struct output *), void *owner);
bool output_wants_lines(const struct output *);
// Takes over `detections` of another configuration: ends the old lines and begins the new ones.
// Returns 1; 0: nothing differs; -ENOMEM.
int output_set_detections(struct output *, const struct output_config *);
void output_check_paths(const struct output *); // of its sinks, as sink_check_path
// Stops listening on its sinks: others may use the addresses. Clients stay connected.
void output_yield(const struct output *);
// Returns true if a sink of the output is open, its own or one of lines.
bool output_is_open(const struct output *);
// Ends the output: consumers have `grace_ms` to take ready results. Another call may shorten that.
void output_finish(struct output *, int grace_ms);
// Returns true if clients of the batch are done with a camera's share that no thread fills any
// more, after output_finish. After their time they keep their frames, which count as lost.
bool output_has_drained(struct output *);

#endif
