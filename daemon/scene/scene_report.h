// What a camera's analysis has found, for status, metrics and whoever wants a record of each
// picture. The camera's thread writes; any thread reads.
#ifndef FRAMED_DAEMON_SCENE_SCENE_REPORT_H
#define FRAMED_DAEMON_SCENE_SCENE_REPORT_H

#include <pthread.h>

#include "daemon/base/event_queue.h"
#include "daemon/scene/alarms.h"
#include "daemon/scene/scene_record.h"

enum { SCENE_RECORDS_MAX = 64 }; // that wait for whoever watches

struct scene_report {
    _Atomic unsigned alarms;          // raised now: bit 1 << enum alarm
    _Atomic uint64_t analysed;        // pictures, and of these:
    _Atomic uint64_t moving;          // in which something moved
    _Atomic uint64_t raised[ALARMS];  // how often
    _Atomic uint64_t records_dropped; // that nobody took in time
    pthread_mutex_t lock;             // of what follows
    bool known;                       // there is a last record
    struct scene_record last;
    struct event_queue *events; // of whoever watches; NULL: nobody
    struct event *ready;
    struct scene_record *waiting; // SCENE_RECORDS_MAX of them, a ring, while somebody watches
    int first, n;
};

void scene_report_open(struct scene_report *);
void scene_report_close(struct scene_report *);

// Camera thread.
void scene_report_put(struct scene_report *, const struct scene_record *);
// Any thread. False: no picture was analysed yet.
bool scene_report_last(struct scene_report *, struct scene_record *ret);

// Loop thread. From now on each record waits until it is taken, the oldest ones are dropped where
// too many do, and `ready` is posted. NULL: nobody watches any more. 0 or -ENOMEM.
int scene_report_watch(struct scene_report *, struct event_queue *, struct event *ready);
// Loop thread: takes the oldest record that waits. False: none does.
bool scene_report_take(struct scene_report *, struct scene_record *ret);

#endif
