// What happens to a simulated cluster, at random: faults of its boxes, of their network, of etcd,
// and what its operator does.
#ifndef FRAMED_TESTS_CLUSTER_SIMULATION_SCHEDULE_H
#define FRAMED_TESTS_CLUSTER_SIMULATION_SCHEDULE_H

#include "tests/cluster/simulation/rules.h"

enum kind {
    KIND_BOXES, // etcd and the network are well: kills, stops, freezes alone
    KIND_ALL,
    KIND_KEEP, // likewise, with boxes that go on alone
    KINDS
};

// In the order of their kinds: of a box, of the operator, of etcd.
enum fault {
    FAULT_KILL,
    FAULT_STOP,
    FAULT_FREEZE,
    FAULT_HANG_LOOP,
    FAULT_CUT,
    FAULT_DELAY,
    FAULT_SILENCE_WATCH,
    FAULT_SLOW_RELOADS,
    FAULT_OWN_MISTAKE,
    FAULT_PASS_OVER_THREAD,
    FAULT_CHANGE_CAMERA,
    FAULT_ADD_CAMERA,
    FAULT_REMOVE_CAMERA,
    FAULT_DRAIN,
    FAULT_REMOVE_KEY,
    FAULT_REPLACE_PLAN,
    FAULT_START_SECOND,
    FAULT_ETCD_AWAY,
    FAULT_ETCD_SILENT,
    FAULT_FILL_DISK,
    FAULT_COMPACT,
    FAULT_BACK_UP,
    FAULT_OTHER_USER,
    FAULT_LOSE_LEASES,
    FAULTS
};

struct schedule {
    enum kind kind;
    int n_boxes, n_cameras;
    int64_t lease_ns;
    int64_t next_ns; // when the next fault comes; NS_NEVER: none does
    int64_t back_ns; // when etcd comes back
    bool loses_leases, restores;
    struct store_state backup;
    char labels[BOXES_MAX][2];
    int room[BOXES_MAX];
    int64_t starts_ns[BOXES_MAX]; // of a box that is down; NS_NEVER: it is not to start
    int text;                     // another for each
    long long faults[FAULTS];     // counted, over all schedules
};

extern struct schedule schedule;

const char *fault_name(enum fault);
void schedule_open(uint64_t seed); // with the world and the rules
void schedule_close(void);
int64_t schedule_follow(void);  // for world_run
void schedule_end_faults(void); // no fault is left
// What was black until now does not count.
void schedule_count_black(void);

#endif
