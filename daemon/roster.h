// The cameras that framed has, each from its opening to its end, with the sinks of their outputs;
// and those that it is to do without, until they are gone. A camera starts when none of its name is
// on its way out any more. Loop thread only.
#ifndef FRAMED_DAEMON_ROSTER_H
#define FRAMED_DAEMON_ROSTER_H

#include "daemon/camera/camera.h"

struct roster_context {
    uv_loop_t *loop;
    struct engine *engine;
    struct mailbox *mailbox;
    struct histogram *decode, *process;
    void (*done)(void *opaque); // every camera has ended and every sink is closed; may come again
    void *opaque;
};

struct roster {
    struct roster_context context;
    struct camera **cameras;
    int n;
    struct camera *leaving;         // by camera.next
    struct output *leaving_outputs; // of cameras that stay, by output.next
    int n_threads;                  // cameras whose thread has not ended, or not begun
    int n_sinks;                    // not closed
    bool stopping;
    uv_timer_t sinks, starts;
    struct letter again; // to see once more to what has ended
};

void roster_open(struct roster *, const struct roster_context *);
// The camera of that name, or NULL.
struct camera *roster_find(const struct roster *, const char *name);
// The output on its way out that still writes the file at that address, which is to be finished
// before another one begins there; NULL: none.
const struct output *roster_writer(const struct roster *, const struct sink_address *file);
// A camera that the roster does not have yet. 0 or negative errno.
int roster_make_camera(struct roster *, const struct camera_config *, struct camera **ret);

// From now on these are the cameras; takes over the array, whose members may be cameras that the
// roster had. Of the others it lets go.
void roster_set(struct roster *, struct camera **cameras, int n);
// The same for the outputs of a camera that the roster has.
void roster_set_outputs(struct roster *, struct camera *, const struct outputs *);
// Forgets what has ended, and opens and starts what waited for that.
void roster_settle(struct roster *);
// Opens the sinks that are to be open and are not.
void roster_open_sinks(struct roster *);
// Starts the first cameras: some at once, the others one by one. 0, or negative errno, logged,
// where a thread cannot be had; trying goes on. From now on, every second, sinks that cannot be had
// are tried again, and sockets that were removed from their paths are made again.
int roster_start(struct roster *);
// Lets every camera and sink end; `done` follows.
void roster_stop(struct roster *);
// After `done`, of a run that nobody stopped: whether a camera failed, or an output emitted
// nothing. Of a stopped one: whether a camera failed.
bool roster_fails(const struct roster *);
void roster_close_handles(struct roster *); // after `done`
void roster_close(struct roster *);         // after the loop: logs the accounts and frees all

#endif
