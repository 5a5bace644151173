// The cameras that framed has, each from its opening to its end, with the sinks of their outputs;
// and those that it is to do without, until they are gone. A camera starts when none of its name is
// on its way out any more. Loop thread only.
#ifndef FRAMED_DAEMON_SUPERVISOR_CAMERAS_H
#define FRAMED_DAEMON_SUPERVISOR_CAMERAS_H

#include "daemon/camera/camera.h"

struct cameras_context {
    uv_loop_t *loop;
    struct devices *devices;
    struct event_queue *mailbox;
    struct histogram *decode, *process;
    void (*done)(void *opaque); // every camera has ended and every sink is closed; may come again
    void *opaque;
};

struct cameras {
    struct cameras_context context;
    struct camera **cameras;
    int n;
    struct camera *leaving;         // by camera.next
    struct output *leaving_outputs; // of cameras that stay, by output.next
    int n_threads;                  // cameras whose thread has not ended, or not begun
    int n_sinks;                    // not closed
    bool stopping;
    uv_timer_t sinks, starts;
};

void cameras_open(struct cameras *, const struct cameras_context *);
// The camera of that name, or NULL.
struct camera *cameras_find(const struct cameras *, const char *name);
// The output on its way out that still writes the file at that address, which is to be finished
// before another one begins there; NULL: none.
const struct output *cameras_writer(const struct cameras *, const struct sink_address *file);
// A camera that the roster does not have yet. 0 or negative errno.
int cameras_make_camera(struct cameras *, const struct camera_config *, struct camera **ret);

// From now on these are the cameras; takes over the array, whose members may be cameras that the
// roster had. Of the others it lets go.
void cameras_set(struct cameras *, struct camera **cameras, int n);
// The same for the outputs of a camera that the roster has. Takes over the subscriptions.
void cameras_set_outputs(struct cameras *, struct camera *, struct subscriptions *);
// Forgets what has ended, and opens and starts what waited for that.
void cameras_settle(struct cameras *);
// Opens the sinks that are to be open and are not.
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
