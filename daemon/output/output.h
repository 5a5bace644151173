// One output of a camera, and its outlet: the sink with what it delivers. The camera's thread, the
// backend and the loop share both. The outputs of the cameras that fill a batch are its shares:
// each counts the frames of its camera, and all have the outlet of the batch.
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

struct outlet {
    const char *camera; // its name; "" for a batch
    struct output_config *config;
    struct event ready; // results may be ready, or many packets wait
    // What the sink delivers: one of these is not NULL.
    struct pool *pool;            // results
    struct packet_queue *packets; // copies of packets
    struct scene_lines *scene;    // lines of the analysis
    struct ledger *ledger;        // of the output; NULL: of a batch
    // Beside a pool; each may be NULL:
    struct batch *batch;         // fills the pool
    struct results *results;     // that clients of a ring send
    struct shared_object shared; // name of the pool's memory by `shared:`; else closed

    // loop thread:
    struct listener listener;   // for the sink to be opened; closed: the sink makes its own
    struct sink *sink;          // NULL: not open, or closed
    struct result_lines *lines; // of `detections`; NULL: none
    int old_lines;              // replaced by a reload and still open: readers take the rest
    bool refused;               // the last try to open the sink failed
    bool finished;              // no sink is opened any more
    int64_t drained_ns;         // CLOCK_MONOTONIC: end of the time to take ready results
    // The caller's: a sink is closed, once for each that was opened, after outlet_finish.
    void (*closed)(struct outlet *);
    void *owner;
    int shares;                   // of a batch
    struct last_error last_error; // of the sink
    struct outlet *next;          // in the caller's list of batches
};

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
    const char *camera; // its name
    struct output_config *config;
    struct outlet *outlet; // its own, or the batch's
    struct pool *pool;     // of the outlet
    struct ledger ledger;
    struct latency latency;    // received to finished
    struct latency processing; // decoded to finished
    // By kind:
    struct outlet *parent; // of a share: the batch's outlet; else NULL
    struct batch_member share;
    struct crop_requests *requests; // of crops; else NULL
    struct demand *demand;          // of an output for viewers; else NULL

    // loop thread:
    int subscribers;                               // lists of subscriptions with the output
    int64_t drained_ns;                            // as the outlet's
    struct rate_counter emitted, lost, overflowed; // sampled by the status, like:
    struct latency_window recent;

    // camera thread:
    uint64_t sequence, ordinal; // of the next frame offered
    struct rate rate;           // by `fps`
    struct gate gate;           // by `gate`

    struct output *next; // in the caller's list of outputs that their camera no longer has
};

// Opens an output with a copy of the configuration. `camera`, the name, outlives the output.
// `batch`: opens the camera's share in that batch; else NULL. Returns 0 or a negative errno.
int output_open(struct output **ret, const char *camera, const struct output_config *,
                struct outlet *batch);
void output_close(struct output *); // after sink and camera are gone; accepts NULL
// Returns true if no frame was emitted: all were lost, or none came. Crops and copies that wait for
// requests may get none: false.
bool output_is_silent(const struct output *);
// Logs the ledger; `fails`: also why the output emitted nothing, which makes the run fail. No frame
// may be in flight.
void output_log_account(const struct output *, bool fails);
// Ends the output and, unless it is a share, its outlet as outlet_finish.
void output_finish(struct output *, int grace_ms);
// Returns true if clients of the batch are done with a camera's share that no thread fills any
// more, after output_finish. After their time they keep their frames, which count as lost.
bool output_has_drained(struct output *);

// --- outlets: loop thread

// Opens an outlet with a copy of the configuration. `camera` and the ledger outlive it; they are ""
// and NULL for a batch. Returns 0 or a negative errno.
int outlet_open(struct outlet **ret, const char *camera, const struct output_config *,
                struct ledger *);
void outlet_close(struct outlet *); // after the sink and the outputs are gone; accepts NULL
// Opens the sink. Until a try succeeds, frames are lost as LOSS_SINK. Logs the first failure and
// each success. Returns 0 or a negative errno.
int outlet_listen(struct outlet *, uv_loop_t *);
// Does the same for the `detections` lines, if outlet_wants_lines. -EBUSY: earlier lines are still
// being written.
int outlet_listen_lines(struct outlet *, uv_loop_t *);
bool outlet_wants_lines(const struct outlet *);
// Takes over `detections` of another configuration: ends the old lines and begins the new ones.
// Returns 1; 0: nothing differs; -ENOMEM.
int outlet_set_detections(struct outlet *, const struct output_config *);
void outlet_check_paths(const struct outlet *); // of its sinks, as sink_check_path
// Stops listening on its sinks: others may use the addresses. Clients stay connected.
void outlet_yield(const struct outlet *);
// Returns true if a sink is open, its own or one of lines.
bool outlet_is_open(const struct outlet *);
// Ends the sinks: consumers have `grace_ms` to take ready results. Another call may shorten that.
void outlet_finish(struct outlet *, int grace_ms);

#endif
