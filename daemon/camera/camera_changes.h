// What changes of a camera while it runs, on its way from the camera's thread to the loop: its
// state, with the reason, and the alarms of its scene. The same failure again and again is one
// change. A few changes wait; where the loop is later than that, the oldest are lost.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_CHANGES_H
#define FRAMED_DAEMON_CAMERA_CAMERA_CHANGES_H

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/event_queue.h"
#include "daemon/scene/alarms.h"

enum { CAMERA_CHANGES_MAX = 8, CAMERA_WHY_MAX = 256 };

enum camera_state {
    CAMERA_CONNECTING,
    CAMERA_RUNNING,
    CAMERA_RETRYING,
    CAMERA_ENDED,  // its file is through, or it was stopped
    CAMERA_FAILED, // its file cannot be read: trying again would not help
    CAMERA_PAUSED, // somebody wants it closed for now: it has no thread
};

struct camera_change {
    int64_t realtime_ns;
    bool is_alarm; // else the state is another one
    enum camera_state state;
    char why[CAMERA_WHY_MAX]; // of the state, without secrets; "": it says all
    int64_t outage_ns;        // of CAMERA_RUNNING: how long it did not run before; 0: it just began
    enum alarm alarm;
    bool raised; // the alarm; else cleared
};

struct camera_changes {
    struct event_queue *events; // that `posted` goes to; NULL: to none
    struct event posted;        // some changes wait
    pthread_mutex_t lock;       // of the next three
    struct camera_change list[CAMERA_CHANGES_MAX];
    uint64_t added, taken;
    // camera thread:
    enum camera_state state; // as it was told last, with:
    char why[CAMERA_WHY_MAX];
    int64_t down_ns; // CLOCK_MONOTONIC: since when it retries; 0: it does not
    unsigned alarms; // bit 1 << enum alarm
};

void camera_changes_open(struct camera_changes *); // zeroed before
void camera_changes_close(struct camera_changes *);

// --- camera thread
// Connecting is no change: what comes of it is. `why` NULL: there is no reason, or that of before.
void camera_changes_state(struct camera_changes *, enum camera_state, const char *why);
void camera_changes_alarms(struct camera_changes *, unsigned alarms); // that are raised now

// --- loop thread
bool camera_changes_take(struct camera_changes *, struct camera_change *ret); // false: none waits

#endif
