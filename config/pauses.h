// Cameras that `paused` names, in the configuration itself and in each of its drop-in files.
#ifndef FRAMED_CONFIG_PAUSES_H
#define FRAMED_CONFIG_PAUSES_H

#include "config/config.h"

struct pauses {
    struct pause {
        struct name_patterns names;
        struct place at;
    } * list;
    int n;
};

// Adds the patterns of one file. Returns 0 or -ENOMEM.
int pauses_add(struct pauses *, const struct name_patterns *, struct place at);
// Must run after all cameras are read. Notes in each camera the place of its pause. Patterns of the
// configuration itself have to match a camera. Those of a drop-in file need not: a requested pause
// may outlive its camera, and then holds for the next one of that name.
void pauses_settle(const struct pauses *, struct mistakes *, struct config *);
void pauses_free(struct pauses *);

#endif
