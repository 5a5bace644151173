// Invariants at each moment of a simulation, whatever happens to boxes, their network and etcd.
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
    int64_t counts_from_ns[CAMERAS_MAX]; // start of a camera's black time; NS_NEVER: not counted
    bool touched[BOXES_MAX];             // by a fault or the operator
    bool gives_away[BOXES_MAX];          // it was drained, or may have refused cameras
    bool wished[CAMERAS_MAX];            // somebody changed the camera or refused it
    bool etcd_is_well;                   // and the network: only boxes have faults
    struct plan *plan;                   // as stored in etcd
    int64_t plan_revision;
    int64_t nodes_ns; // time of the last change of the set of nodes in etcd
    uint64_t nodes;
    int64_t renewed_ns; // time of the last plan without a predecessor: generations restart
    int plans, moves, rebalanced; // counted
    int64_t pictures, longest_black_ns;
    int64_t requests, second; // in this second
    int64_t most_requests;    // in a second
};

extern struct rules rules;

void rules_open(void);
void rules_close(void);
void rules_check(void); // called at each moment
// Somebody takes its lease or key away, which others see before it does.
void rules_send_astray(struct process *);
int box_number(const char *name); // of "box2"
void rules_touch_all(void);
// Returns why the site is not as it should be after all faults have ended; NULL: it is.
const char *rules_unsettled(void);

#endif
