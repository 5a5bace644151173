// A configuration run for a trial: all of it as in earnest, but that frames go to rings of the
// trial's own and nothing else of the box is touched. For a process of its own.
#ifndef FRAMED_DAEMON_TUNE_REHEARSAL_H
#define FRAMED_DAEMON_TUNE_REHEARSAL_H

#include "config/config.h"

// The cameras' way through a rehearsal.
struct rehearsal {
    const char *folder; // where ring i is that of output i, over all cameras in their order, and
                        // the counters are in the file `metrics`
    const char *clip;   // that every camera plays; NULL: the cameras as they are
    bool live;          // the clip at its own pace
};

// Changes a configuration so. 0 or -ENOMEM.
int rehearsal_prepare(struct config *, const struct rehearsal *);
// Whether every camera is a file at full speed then: nothing is lost, they wait for the rings.
bool rehearsal_waits(const struct config *, const struct rehearsal *);
// Until it is stopped; returns an enum exit_code.
int rehearsal_run(const char *config, const struct rehearsal *);

#endif
