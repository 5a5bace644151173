// Between preview_thread.c and preview_askers.c: what the previews' threads, the cameras' threads
// and the loop share, and the lists that it is in. All functions are called with previews->lock
// held, but for those of pictures.
#ifndef FRAMED_DAEMON_VIEW_PREVIEW_H
#define FRAMED_DAEMON_VIEW_PREVIEW_H

#include <pthread.h>

#include "daemon/view/previews.h"
#include "daemon/view/rendition.h"

struct preview {
    struct preview_source *source;
    struct preview_wish wish;       // fps 0: it is of single pictures
    struct preview_asker *askers;   // loop thread, like:
    unsigned round;                 // counts the pictures that were handed out
    struct rendition rendition;     // of who has set source->working
    struct rendition_params params; // changed only while nobody has
    const struct lut *lut;          // likewise: a reference of theirs
    const char *refusal;            // likewise: there is nothing to make it of; NULL: there is
    uint64_t sequence;              // likewise: of source->frame
    // Under lock:
    bool due;                      // of the picture that the source has, or else of the next one
    bool gone;                     // nobody asks any more
    bool dead;                     // and it is in no list but that of what is done
    struct rate rate;              // where wish.fps is not 0
    struct preview_picture *ready; // the newest; NULL: none since the loop took one
    bool done;                     // in the list of what is done
    struct preview *next, *next_done;
};

struct preview_source {
    struct previews *previews;
    const char *camera;
    const struct device_lease *lease;
    _Atomic int asked;   // previews that are not gone
    _Atomic int waiting; // for who has set `working`, who puts off what can be
    uint64_t sequence;   // camera's thread, like:
    uint32_t epoch;
    // Under lock:
    struct preview *list;      // new ones come first; only who has set `working` takes any out
    struct frame frame;        // owner NULL: none
    struct preview_line *line; // that makes its previews
    bool queued;               // there
    bool working;              // somebody uses the renditions
    struct preview_source *next;
};

// A thread and the sources that wait for it.
struct preview_line {
    struct previews *previews;
    _Atomic uint64_t busy_ns;
    pthread_t thread;
    bool running;                         // under lock, like:
    pthread_cond_t work;                  // a source is queued, or `stopped`
    struct preview_source *first, **last; // that are queued
};

struct previews {
    struct event_queue *events;
    struct event event; // something is done
    // Loop thread:
    uv_timer_t timer;              // while there are:
    struct preview_asker *patient; // who wait with an end
    bool closing;
    // Any thread:
    _Atomic uint64_t made, dropped;
    _Atomic int kinds;
    _Atomic size_t taken; // by renditions
    pthread_mutex_t lock;
    pthread_cond_t idle; // a source is not worked at any more
    bool stopped;
    struct preview_line on_host, on_device; // of pictures that lie there
    struct preview *done;                   // have a picture, or are dead
};

// Has the line's thread look at the source.
void preview_queue_source(struct preview_source *);
void preview_move_source(struct preview_source *, struct preview_line *);
// From here on the caller alone uses the renditions. Waits for who does: for one JPEG at most.
void preview_begin_work(struct preview_source *);
void preview_end_work(struct preview_source *);
// And could be taken out: no device is at it.
bool preview_any_gone(const struct preview_source *);

void preview_add_done(struct preview *);
void preview_remove_done(struct preview *); // accepts one that is not in the list

// --- no lock is held
// Of the JPEG that the preview's rendition has just encoded. NULL: out of memory.
struct preview_picture *preview_make_picture(struct preview *, const struct frame_info *,
                                             const uint8_t *file, size_t size);
// In its place, why there is none. NULL: out of memory.
struct preview_picture *preview_refuse(const struct preview *, const char *why);
void preview_free(struct preview *); // that is in no list
// The event's callback. Loop thread, as the next.
void preview_hand_out(struct event *);
void preview_dismiss(struct preview *); // tells who asks that the camera is gone
// Starts the thread of pictures on the host where it is not running. 0 or negative errno.
int preview_start(struct previews *);

#endif
