// All cameras with the sinks of their outputs, each from its opening to its end. Cameras and
// outputs removed by a reload stay here until they have ended. A camera starts once no removed
// camera of its name is left. Loop thread only.
#ifndef FRAMED_DAEMON_SUPERVISOR_CAMERAS_H
#define FRAMED_DAEMON_SUPERVISOR_CAMERAS_H

#include "daemon/base/loop.h"
#include "daemon/camera/camera.h"

enum {
    DRAIN_MS = 10000,       // for clients of an ended file to read the rest
    DRAIN_LEAVING_MS = 500, // the same when the daemon or the output stops
};

struct cameras_context {
    uv_loop_t *loop;
    struct work_queue *work;
    struct devices *devices;
    struct login_pause *logins;
    struct event_queue *events;
    struct previews *previews; // as in struct camera_context
    struct histogram *decode, *process;
    bool stays; // also without a running camera: others may be added
    void (*changed)(void *opaque, struct camera *); // changes wait in its report
    // Every camera has ended and released its device, and every sink is closed. May come again.
    void (*done)(void *opaque);
    void *opaque;
};

struct cameras {
    struct cameras_context context;
    struct camera **list;
    int n;
    struct camera *leaving;         // removed cameras, by camera.next
    struct outlet *batches;         // of the shares, by outlet.next
    struct output *leaving_outputs; // removed outputs of cameras that stay, by output.next
    int n_threads;                  // cameras whose thread has not begun, or not ended
    int n_sinks;                    // not closed
    bool stopping;
    uv_timer_t sinks, starts;
    struct group_search *search; // in progress, or NULL
    struct work release;         // releases the device of:
    struct camera *releasing;    // NULL: none
};

void cameras_open(struct cameras *, const struct cameras_context *);
// Returns the camera of that name, or NULL.
struct camera *cameras_find(const struct cameras *, const char *name);
// Returns the outlet of a removed output that still writes the file at that address, and must
// finish it before another output begins there; NULL: none.
const struct outlet *cameras_writer(const struct cameras *, const struct sink_address *file);
// Makes a new camera, which is not among the cameras yet. Returns 0 or a negative errno.
int cameras_make_camera(struct cameras *, const struct camera_config *, struct camera **ret);

// Sets the cameras: new ones, and the present ones that stay. Takes over the array, and removes the
// others.
void cameras_set(struct cameras *, struct camera **list, int n);
// Does the same for the outputs of one of the cameras. Takes over the subscriptions.
void cameras_set_outputs(struct cameras *, struct camera *, struct subscriptions *);
// Frees ended cameras and outputs, then opens and starts others that waited for that.
void cameras_settle(struct cameras *);
// Opens all sinks that should be open, and starts the threads of batches.
void cameras_open_sinks(struct cameras *);
// Starts the first cameras: some at once, the others one by one. Returns 0, or a negative errno,
// logged, if a thread cannot be started; tries go on. From now on, every second, retries sinks that
// failed to open, and makes sockets again that were removed from their paths.
int cameras_start(struct cameras *);
// Ends every camera and sink; `done` follows.
void cameras_stop(struct cameras *);
// Call after `done`. True if a camera failed or, unless the run was stopped, if an output emitted
// nothing.
bool cameras_fails(const struct cameras *);
void cameras_close_handles(struct cameras *); // after `done`
void cameras_close(struct cameras *);         // after the loop: logs the accounts and frees all

// --- batches: their outlets are in `cameras.batches` from the first share to the end of all

// True if one of the cameras is in the batch, ended or not; else a reload has removed or replaced
// the batch.
bool batch_has_cameras(const struct outlet *batch, struct camera *const cameras[], int n);
// True if a camera that stays and has not ended delivers to the batch.
bool cameras_fill(const struct cameras *, const struct outlet *batch);
// Closes batches without shares whose sinks are closed and whose threads have ended.
void cameras_forget_batches(struct cameras *);

#endif
