// All cameras with the sinks of their outputs, each from its opening to its end. Cameras and
// outputs that a reload has removed stay here until they have ended. A camera starts once no
// removed camera of its name is left. Loop thread only.
#ifndef FRAMED_DAEMON_SUPERVISOR_CAMERAS_H
#define FRAMED_DAEMON_SUPERVISOR_CAMERAS_H

#include "daemon/base/work.h"
#include "daemon/camera/camera.h"

enum {
    DRAIN_MS = 10000,       // that clients of a file that has ended may take to read the rest
    DRAIN_LEAVING_MS = 500, // the same when the daemon or the output is asked to stop
};

struct cameras_context {
    uv_loop_t *loop;
    struct work_queue *work;
    struct devices *devices;
    struct login_pause *logins;
    struct event_queue *events;
    struct previews *previews; // as of struct camera_context
    struct histogram *decode, *process;
    bool stays; // without a camera that runs, too: others may come
    void (*changed)(void *opaque, struct camera *); // changes wait in its report
    // Every camera has ended and given its device back, and every sink is closed. May come again.
    void (*done)(void *opaque);
    void *opaque;
};

struct cameras {
    struct cameras_context context;
    struct camera **list;
    int n;
    struct camera *leaving;         // removed cameras, by camera.next
    struct output *batches;         // what shares are of, by output.next (supervisor/batches.h)
    struct output *leaving_outputs; // removed outputs of cameras that stay, by output.next
    int n_threads;                  // cameras whose thread has not ended, or not begun
    int n_sinks;                    // not closed
    bool stopping;
    uv_timer_t sinks, starts;
    struct group_search *search; // that is under way, or NULL
    struct work release;         // gives back the device of:
    struct camera *releasing;    // NULL: of none
};

void cameras_open(struct cameras *, const struct cameras_context *);
// The camera of that name, or NULL.
struct camera *cameras_find(const struct cameras *, const char *name);
// The removed output that still writes the file at that address, and has to finish it before
// another output begins there; NULL: none.
const struct output *cameras_writer(const struct cameras *, const struct sink_address *file);
// A new camera, which is not among the cameras yet. 0 or negative errno.
int cameras_make_camera(struct cameras *, const struct camera_config *, struct camera **ret);

// From now on these are the cameras, new ones and some that were there. Takes over the array, and
// removes the others.
void cameras_set(struct cameras *, struct camera **list, int n);
// The same for the outputs of one of the cameras. Takes over the subscriptions.
void cameras_set_outputs(struct cameras *, struct camera *, struct subscriptions *);
// Frees what has ended, and opens and starts what waited for that.
void cameras_settle(struct cameras *);
// Opens the sinks that should be open and are not.
void cameras_open_sinks(struct cameras *);
// Starts the first cameras: some at once, the others one by one. 0, or negative errno, logged,
// where a thread cannot be had; trying goes on. From now on, every second, sinks that cannot be had
// are tried again, and sockets that were removed from their paths are made again.
int cameras_start(struct cameras *);
// Lets every camera and sink end; `done` follows.
void cameras_stop(struct cameras *);
// After `done`, of a run that nobody stopped: whether a camera failed, or an output emitted
// nothing. Of a stopped one: whether a camera failed.
bool cameras_fails(const struct cameras *);
void cameras_close_handles(struct cameras *); // after `done`
void cameras_close(struct cameras *);         // after the loop: logs the accounts and frees all

#endif
