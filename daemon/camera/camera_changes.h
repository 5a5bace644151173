// Changes of a running camera, on their way from its thread to the loop: its state with the reason,
// and the alarms of its scene. A repeated failure is one change. The queue is short: if the loop is
// late, the oldest changes are lost.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_CHANGES_H
#define FRAMED_DAEMON_CAMERA_CAMERA_CHANGES_H

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/loop.h"
#include "daemon/scene/alarms.h"

enum { CAMERA_CHANGES_MAX = 8, CAMERA_WHY_MAX = 256 };

enum camera_state {
    CAMERA_CONNECTING,
    CAMERA_RUNNING,
    CAMERA_RETRYING,
    CAMERA_ENDED,  // its file has ended, or it was stopped
    CAMERA_FAILED, // its file cannot be read: a retry would not help
    CAMERA_PAUSED, // closed for now on request: it has no thread
};

struct camera_change {
    int64_t realtime_ns;
    bool is_alarm; // else a change of state
    enum camera_state state;
    char why[CAMERA_WHY_MAX]; // of the state, without secrets; "": none needed
    int64_t outage_ns;        // CAMERA_RUNNING: time without pictures before; 0: none
    enum alarm alarm;
    bool raised; // the alarm; else cleared
};

struct camera_changes {
    struct event_queue *events; // for `posted`; NULL: it is not posted
    struct event posted;        // changes wait
    pthread_mutex_t lock;       // guards the next three
    struct camera_change list[CAMERA_CHANGES_MAX];
    uint64_t added, taken;
    // camera thread:
    enum camera_state state; // as reported last, with:
    char why[CAMERA_WHY_MAX];
    int64_t down_ns; // CLOCK_MONOTONIC: since when it retries; 0: it does not
    unsigned alarms; // bit 1 << enum alarm
};

void camera_changes_open(struct camera_changes *); // must be zeroed
void camera_changes_close(struct camera_changes *);

// --- camera thread
// CAMERA_CONNECTING is no change, only its outcome is. `why` NULL: no reason, or the same again.
void camera_changes_state(struct camera_changes *, enum camera_state, const char *why);
void camera_changes_alarms(struct camera_changes *, unsigned alarms); // raised now

// --- loop thread
bool camera_changes_take(struct camera_changes *, struct camera_change *ret); // false: none waits

#endif
