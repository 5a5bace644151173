// Internals of the previews, for preview.c and preview_thread.c: the data that the previews'
// threads, the cameras' threads and the loop share, and its lists. All functions are called with
// previews->lock held, except for the last group.
#ifndef FRAMED_DAEMON_VIEW_PREVIEW_H
#define FRAMED_DAEMON_VIEW_PREVIEW_H

#include <pthread.h>

#include "daemon/view/previews.h"
#include "daemon/view/rendition.h"

struct preview {
    struct preview_source *source;
    struct preview_wish wish;       // fps 0: for single pictures
    struct preview_asker *askers;   // loop thread
    unsigned round;                 // loop thread: counts the pictures handed out
    struct rendition rendition;     // for the thread that has set source->working
    struct rendition_params params; // changed only while no thread has
    const struct lut *lut;          // as params: a reference for them
    const char *refusal;            // as params: why nothing can be made; NULL: it can
    uint64_t sequence;              // as params: of source->frame
    // Under lock:
    bool due;                      // for the source's picture, or else for the next one
    bool gone;                     // has no askers any more
    bool dead;                     // gone, and only in the list of done previews
    struct rate rate;              // if wish.fps is not 0
    struct preview_picture *ready; // the newest; NULL: none since the loop took one
    bool done;                     // in the list of done previews
    struct preview *next, *next_done;
};

struct preview_source {
    struct previews *previews;
    const char *camera;
    const struct device_lease *lease;
    _Atomic int asked;   // previews that are not gone
    _Atomic int waiting; // for `working`: its holder then puts work off
    uint64_t sequence;   // camera's thread, like:
    uint32_t epoch;
    // Under lock:
    struct preview *list;      // new ones first; only the holder of `working` removes any
    struct frame frame;        // owner NULL: none
    struct preview_line *line; // makes its previews
    bool queued;               // in that line
    bool working;              // a thread uses the renditions
    struct preview_source *next;
};

// A thread and the sources queued for it.
struct preview_line {
    struct previews *previews;
    _Atomic uint64_t busy_ns;
    pthread_t thread;
    bool running;                         // under lock, like:
    pthread_cond_t work;                  // a source is queued, or `stopped`
    struct preview_source *first, **last; // queued
};

struct previews {
    struct event_queue *events;
    struct event event; // a preview is done
    // Loop thread:
    uv_timer_t timer;              // runs while there are:
    struct preview_asker *patient; // askers with a time limit
    bool closing;
    // Any thread:
    _Atomic uint64_t made, dropped;
    _Atomic int kinds;
    _Atomic size_t taken; // by renditions, bytes
    pthread_mutex_t lock;
    pthread_cond_t idle; // a source is no longer worked on
    bool stopped;
    struct preview_line on_host, on_device; // for pictures in that memory
    struct preview *done;                   // previews with a picture, or dead
};

// Queues the source for its line's thread.
void preview_queue_source(struct preview_source *);
void preview_move_source(struct preview_source *, struct preview_line *);
// Gives the caller sole use of the renditions. Waits for the present user: for one JPEG at most.
void preview_begin_work(struct preview_source *);
void preview_end_work(struct preview_source *);
// True if a gone preview can be removed: no device is busy with it.
bool preview_any_gone(const struct preview_source *);

void preview_add_done(struct preview *);
void preview_remove_done(struct preview *); // accepts one that is not in the list

// --- no lock is held
// Makes a picture of the JPEG just encoded by the preview's rendition. NULL: out of memory.
struct preview_picture *preview_make_picture(struct preview *, const struct frame_info *,
                                             const uint8_t *file, size_t size);
// Makes a picture without a JPEG, with the reason. NULL: out of memory.
struct preview_picture *preview_refuse(const struct preview *, const char *why);
void preview_free(struct preview *); // must be in no list
// Callback of the event. Loop thread, like the next.
void preview_hand_out(struct event *);
void preview_dismiss(struct preview *); // notifies its askers that the camera is gone
// Starts the thread for pictures on the host if it is not running. 0 or negative errno.
int preview_start(struct previews *);

#endif
