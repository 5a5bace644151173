// The cameras that `paused` names, in the configuration itself and in each of its drop-in files.
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

// Adds what one file gives. 0 or -ENOMEM.
int pauses_add(struct pauses *, const struct name_patterns *, struct place at);
// Once all cameras are read: notes in each where it is paused. Patterns of the configuration itself
// have to match one. Those of a drop-in file need not: a pause that was asked for may outlive its
// camera, and then hold for the next of its name.
void pauses_settle(const struct pauses *, struct mistakes *, struct config *);
void pauses_free(struct pauses *);

#endif
