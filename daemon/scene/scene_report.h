// Results of a camera's analysis, for status and metrics. The camera's thread writes; any thread
// reads.
#ifndef FRAMED_DAEMON_SCENE_SCENE_REPORT_H
#define FRAMED_DAEMON_SCENE_SCENE_REPORT_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/scene/alarms.h"
#include "daemon/scene/scene_record.h"

struct scene_report {
    _Atomic unsigned alarms;         // raised now: bit 1 << enum alarm
    _Atomic uint64_t analysed;       // pictures; of these:
    _Atomic uint64_t moving;         // with motion
    _Atomic uint64_t raised[ALARMS]; // how often
    pthread_mutex_t lock;            // guards the next two
    bool known;                      // there is a last record
    struct scene_record last;
};

void scene_report_open(struct scene_report *);
void scene_report_close(struct scene_report *);

// Camera thread.
void scene_report_put(struct scene_report *, const struct scene_record *);
// Call when pictures are no longer analysed: no alarm is raised, and there is no last record.
void scene_report_end(struct scene_report *);
// Any thread. False: no picture was analysed yet, or pictures are not analysed any more.
bool scene_report_last(struct scene_report *, struct scene_record *ret);

#endif
