// Several framed in one thread and by a clock that jumps from one event to the next: of each the
// member's thread as a coroutine, the loop's side of its cluster (daemon/cluster/cluster.c), and
// cameras that give a picture at each moment at which they may. What stands in for the rest:
// link.c for etcd.c, loop.c for the loop, its reload and the cameras.
#ifndef FRAMED_TESTS_CLUSTER_SIMULATION_WORLD_H
#define FRAMED_TESTS_CLUSTER_SIMULATION_WORLD_H

#include <ucontext.h>

#include "daemon/cluster/cluster.h"
#include "tests/cluster/simulation/store.h"

#define NS_MS     INT64_C(1000000)
#define NS_SECOND INT64_C(1000000000)
#define NS_NEVER  INT64_MAX

#define SITE_PREFIX "/framed/yard/"

enum { PROCESSES_MAX = 6, CAMERAS_MAX = 16 };

enum thread_state { THREAD_NONE, THREAD_READY, THREAD_WAITS, THREAD_ENDED };

// Between a process and etcd, which each direction may lose or delay. Ends at `until_ns`.
struct disturbance {
    int64_t until_ns;
    bool loses_requests, loses_answers;
    int64_t delay_ns; // at most
};

struct simulated_camera {
    struct camera camera;
    int64_t asked_ns; // when it was asked for
};

struct process {
    char name[16]; // of the box; several processes may have it, one after another or not
    int number;    // of all that were started
    struct config config;
    struct cluster *cluster; // NULL: it does not run
    struct etcd *etcd;
    struct reload reload;
    struct cameras cameras;
    int64_t boot_ns, monotonic_ns, real_ns; // its clocks begin with these

    // What happens to it.
    struct disturbance disturbance;
    int64_t frozen_ns;              // until when: nothing of it runs
    int64_t hung_ns;                // its loop alone, as is:
    int64_t mistake_ns;             // its own file has a mistake
    int64_t slow_ns;                // a reload takes long
    int64_t silent_ns;              // its watch says nothing
    int64_t late_ns[STORE_METHODS]; // by which answers to that are late
    bool loses_next;                // answer to a transaction
    int starving; // in how many looks at the clock the thread is passed over once; 0: never
    bool stopping, killed;

    // The member's thread.
    ucontext_t context;
    void *stack;
    enum thread_state thread;
    int64_t passed_over_ns; // until when
    int64_t runs_until_ns;  // of etcd_run
    void *(*run)(void *);
    void *member;

    // The loop.
    struct event *event;
    int64_t event_ns; // NS_NEVER: none waits
    uv_timer_t *timer;
    uv_timer_cb tick;
    int64_t tick_ns, tick_every_ns;
    struct reload_request *requests; // of the reload, of which the first is under way
    int64_t reload_ns;               // when it goes on
    bool applied;                    // and is to be answered
    int64_t asked_ns[CAMERAS_MAX];   // for a camera's reload
    int reload_rc;

    // Counted.
    int64_t lease;           // that it last wrote its key with
    int64_t obeys;           // as last reported
    int steps, steps_second; // of its thread since that second began
    int most_steps;          // in a second
    int asked[STORE_METHODS];
    bool astray; // etcd has given its cameras away before it can know
};

struct world {
    int64_t now_ns;
    uint64_t state;
    struct process processes[PROCESSES_MAX];
    int n_started;
    struct process *runs; // whose code this is; NULL: the test's
    ucontext_t main;
    int64_t etcd_away_ns; // until when
    bool etcd_silent;     // else it refuses connections
    int64_t requests;     // that etcd got
    int64_t patience_ns;  // of requests between processes and etcd without faults: most delay
    const char *broken;   // a rule; NULL: none
    char why[256];
    bool trace;
    void (*picture)(struct process *, const struct simulated_camera *);
};

extern struct world world;

unsigned draw(unsigned n);                 // 0 to n - 1
int64_t draw_ns(int64_t from, int64_t to); // between
void world_open(uint64_t seed);
void world_close(void);
// Until then, or a rule is broken. `script` is called at each moment and says when it wants to be
// called again.
void world_run(int64_t until_ns, int64_t (*script)(void));
__attribute__((format(printf, 2, 3))) void break_rule(const char *rule, const char *format, ...);
__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);

// --- process.c
struct process *process_start(const char *name, const struct cluster_config *);
void process_stop(struct process *); // as SIGTERM
void process_kill(struct process *); // as kill -9
bool process_is_alive(const struct process *);
int64_t process_next_ns(const struct process *); // when its loop or its thread has to do
void process_advance(struct process *);
void process_meet_fences(struct process *); // its cameras
void process_show(struct process *);        // their pictures
enum member_state process_state(const struct process *);

// --- loop.c, of a process
int camera_number(const char *name); // of "cam2"
int64_t loop_next_ns(const struct process *);
void loop_advance(struct process *);
void loop_close(struct process *); // answers all requests
void loop_free(struct process *);

// --- link.c
void link_serve(void);                     // what etcd got until now
void link_changed(void);                   // the store
int64_t link_next_ns(void);                // when it gets the next
int64_t etcd_next_ns(const struct etcd *); // when the client has an answer, or a request is late
void link_wait(struct process *, int64_t until_ns); // of the member's thread

#endif
