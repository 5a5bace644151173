// Several framed in one thread, by a clock that jumps from one event to the next. Each has its
// member's thread as a coroutine, the loop's side of its cluster (daemon/cluster/cluster.c), and
// cameras that give a picture whenever they may. Two files replace the rest: link.c is etcd.c,
// loop.c is the loop, its reload and the cameras.
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

// Loss and delay between a process and etcd, for each direction. Ends at `until_ns`.
struct disturbance {
    int64_t until_ns;
    bool loses_requests, loses_answers;
    int64_t delay_ns; // at most
};

struct simulated_camera {
    struct camera camera;
    int64_t asked_ns; // time of the request for it
};

struct process {
    char name[16]; // of the box; several processes may have it, even at the same time
    int number;    // among all that were started
    struct config config;
    struct cluster *cluster; // NULL: the process does not run
    struct etcd *etcd;
    struct reload reload;
    struct cameras cameras;
    int64_t boot_ns, monotonic_ns, real_ns; // offsets of its clocks

    // Its faults; each lasts until the time given.
    struct disturbance disturbance;
    int64_t frozen_ns;              // the whole process stands still
    int64_t hung_ns;                // its loop stands still
    int64_t mistake_ns;             // its own file has a mistake
    int64_t slow_ns;                // reloads are slow
    int64_t silent_ns;              // its watch reports nothing
    int64_t late_ns[STORE_METHODS]; // extra delay of the answers to a method
    bool loses_next;                // the answer to its next transaction is lost
    int starving; // one in this many clock reads stops the thread for a while; 0: none
    bool stopping, killed;

    // The member's thread.
    ucontext_t context;
    void *stack;
    enum thread_state thread;
    int64_t passed_over_ns; // end of such a stop
    int64_t runs_until_ns;  // deadline of etcd_run
    void *(*run)(void *);
    void *member;

    // The loop.
    struct event *event;
    int64_t event_ns; // NS_NEVER: no event waits
    uv_timer_t *timer;
    uv_timer_cb tick;
    int64_t tick_ns, tick_every_ns;
    struct reload_request *requests; // of the reload; the first is running
    int64_t reload_ns;               // time of its next step
    bool applied;                    // the first is applied, not yet answered
    int64_t asked_ns[CAMERAS_MAX];   // time of the request for a camera's reload
    int reload_rc;

    // Counts and facts.
    int64_t lease;           // in its key, as last written
    int64_t obeys;           // as last reported
    int steps, steps_second; // of its thread, in the second steps_second
    int most_steps;          // in a second
    int asked[STORE_METHODS];
    bool astray; // etcd gave its cameras away before the process can notice
};

struct world {
    int64_t now_ns;
    uint64_t state;
    struct process processes[PROCESSES_MAX];
    int n_started;
    struct process *runs; // process whose code is running; NULL: the test's
    ucontext_t main;
    int64_t etcd_away_ns; // end of its absence
    bool etcd_silent;     // it does not answer; false: it refuses connections
    int64_t requests;     // that etcd received
    int64_t patience_ns;  // longest delay of a message between process and etcd without faults
    const char *broken;   // the broken rule; NULL: none
    char why[256];
    bool trace;
    void (*picture)(struct process *, const struct simulated_camera *);
};

extern struct world world;

unsigned draw(unsigned n);                 // 0 to n - 1
int64_t draw_ns(int64_t from, int64_t to); // from `from` to `to`
void world_open(uint64_t seed);
void world_close(void);
// Runs until then, or until a rule is broken. Calls `script` at each moment; it returns the time of
// its next call.
void world_run(int64_t until_ns, int64_t (*script)(void));
__attribute__((format(printf, 2, 3))) void break_rule(const char *rule, const char *format, ...);
__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);

// --- process.c
struct process *process_start(const char *name, const struct cluster_config *);
void process_stop(struct process *); // like SIGTERM
void process_kill(struct process *); // like kill -9
bool process_is_alive(const struct process *);
int64_t process_next_ns(const struct process *); // time of the next work of its loop or thread
void process_advance(struct process *);
void process_meet_fences(struct process *); // its cameras'
void process_show(struct process *);        // its cameras' pictures
enum member_state process_state(const struct process *);

// --- loop.c, of a process
int camera_number(const char *name); // of "cam2"
int64_t loop_next_ns(const struct process *);
void loop_advance(struct process *);
void loop_close(struct process *); // answers all requests
void loop_free(struct process *);

// --- link.c
void link_serve(void);                     // handles requests that have reached etcd
void link_changed(void);                   // the store has changed
int64_t link_next_ns(void);                // time of the next request that reaches etcd
int64_t etcd_next_ns(const struct etcd *); // time of the client's next answer or expired request
void link_wait(struct process *, int64_t until_ns); // the member's thread waits

#endif
