// Random events of a simulated cluster: faults of its boxes, of their network and of etcd, and
// actions of its operator.
#ifndef FRAMED_TESTS_CLUSTER_SIMULATION_SCHEDULE_H
#define FRAMED_TESTS_CLUSTER_SIMULATION_SCHEDULE_H

#include "tests/cluster/simulation/rules.h"

enum kind {
    KIND_BOXES, // kills, stops, freezes; etcd and the network are well
    KIND_ALL,
    KIND_KEEP, // like KIND_ALL, with boxes that go on alone
    KINDS
};

// Ordered by kind: of a box, of the operator, of etcd.
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
    int64_t next_ns; // of the next fault; NS_NEVER: none
    int64_t back_ns; // of etcd's return
    bool loses_leases, restores;
    struct store_state backup;
    char labels[BOXES_MAX][2];
    int room[BOXES_MAX];
    int64_t starts_ns[BOXES_MAX]; // start of a box that is down; NS_NEVER: none
    int text;                     // number of the last camera text
    long long faults[FAULTS];     // counted over all schedules
};

extern struct schedule schedule;

const char *fault_name(enum fault);
void schedule_open(uint64_t seed); // also opens the world and the rules
void schedule_close(void);
int64_t schedule_follow(void);  // for world_run
void schedule_end_faults(void); // ends all faults
// Time that cameras were black until now does not count.
void schedule_count_black(void);

#endif
