// What must hold at each moment of a simulation, whatever happens to boxes, their network and etcd.
#ifndef FRAMED_TESTS_CLUSTER_SIMULATION_RULES_H
#define FRAMED_TESTS_CLUSTER_SIMULATION_RULES_H

#include "tests/cluster/simulation/world.h"

enum { BOXES_MAX = 5 };

struct shown {
    const struct process *process; // that showed it last; NULL: none
    int number;                    // of that process
    uint32_t generation;
    int64_t asked_ns, last_ns;
};

struct rules {
    struct shown shown[CAMERAS_MAX];
    int64_t counts_from_ns[CAMERAS_MAX]; // how long a camera is black; NS_NEVER: it may be
    bool touched[BOXES_MAX];             // a fault, or its operator, met the box
    bool gives_away[BOXES_MAX];          // it was drained, or may have refused cameras
    bool wished[CAMERAS_MAX];            // somebody changed the camera, or refused it
    bool etcd_is_well;                   // and the network: boxes alone have faults
    struct plan *plan;                   // as etcd has it
    int64_t plan_revision;
    int64_t nodes_ns; // when the set of nodes last changed, by etcd
    uint64_t nodes;
    int64_t renewed_ns; // when a plan came that knows none before it: generations begin anew
    int plans, moves, rebalanced; // counted
    int64_t pictures, longest_black_ns;
    int64_t requests, second; // of this second
    int64_t most_requests;    // in a second
};

extern struct rules rules;

void rules_open(void);
void rules_close(void);
void rules_check(void); // at each moment
// Somebody takes its lease or its key away, which it cannot know as soon as others do.
void rules_send_astray(struct process *);
int box_number(const char *name); // of "box2"
void rules_touch_all(void);
// Why the site is not as it should be once no fault is left; NULL: it is.
const char *rules_unsettled(void);

#endif
