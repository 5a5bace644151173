// A simulated framed: its life, its clocks, and its member's thread as a coroutine.
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "tests/cluster/simulation/world.h"

enum { STACK_SIZE = 256 << 10 };

static const int64_t FIRST_BOOT_NS = 1000 * NS_SECOND;

// --- clocks

static void let_others_run(struct process *p)
{
    swapcontext(&p->context, &world.main);
    world.runs = p;
}

// The thread of a busy box may lose the processor anywhere; here it does.
int64_t boottime_ns(void)
{
    struct process *p = world.runs;
    if (p->starving > 0 && p->thread == THREAD_READY && draw((unsigned)p->starving) == 0) {
        p->passed_over_ns = world.now_ns + draw_ns(0, 3 * NS_SECOND);
        let_others_run(p);
    }
    return p->killed ? NS_NEVER / 2 : world.now_ns + p->boot_ns; // a killed process stops waiting
}

int64_t monotonic_ns(void)
{
    return world.now_ns + world.runs->monotonic_ns;
}

int64_t realtime_ns(void)
{
    return world.now_ns + world.runs->real_ns;
}

// --- the member's thread

static void run_thread(void)
{
    struct process *p = world.runs;
    p->run(p->member);
    p->thread = THREAD_ENDED;
    swapcontext(&p->context, &world.main);
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *opaque)
{
    struct process *p = world.runs;
    (void)id, (void)attributes;
    p->run = run;
    p->member = opaque;
    p->stack = malloc(STACK_SIZE);
    getcontext(&p->context);
    p->context.uc_stack.ss_sp = p->stack;
    p->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&p->context, run_thread, 0);
    p->thread = THREAD_READY;
    return 0;
}

int __wrap_pthread_clockjoin_np(pthread_t id, void **ret, clockid_t clock,
                                const struct timespec *until)
{
    (void)id, (void)ret, (void)clock, (void)until;
    return world.runs->thread == THREAD_ENDED ? 0 : ETIMEDOUT;
}

void link_wait(struct process *p, int64_t until_ns)
{
    p->runs_until_ns = until_ns;
    p->thread = THREAD_WAITS;
    let_others_run(p);
    p->thread = THREAD_READY;
}

static int64_t thread_next_ns(const struct process *p)
{
    if (p->thread == THREAD_READY)
        return p->passed_over_ns;
    if (p->thread != THREAD_WAITS)
        return NS_NEVER;
    const int64_t answer_ns = p->etcd ? etcd_next_ns(p->etcd) : NS_NEVER;
    return answer_ns < p->runs_until_ns ? answer_ns : p->runs_until_ns;
}

static void run_on(struct process *p)
{
    world.runs = p;
    swapcontext(&world.main, &p->context);
    world.runs = NULL;
}

void __wrap_log_event(enum log_level level, const char *format, ...)
{
    char text[512];
    va_list arguments;
    (void)level;
    if (!world.trace)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    trace("%s: %s", world.runs ? world.runs->name : "", text);
}

// --- its life

bool process_is_alive(const struct process *p)
{
    return p->cluster;
}

enum member_state process_state(const struct process *p)
{
    return p->cluster ? member_health(cluster_member(p->cluster)).state : MEMBER_OUT;
}

static int more(void *opaque)
{
    (void)opaque;
    return -1;
}

static struct process *find_free(void)
{
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (!world.processes[i].cluster)
            return &world.processes[i];
    return NULL;
}

struct process *process_start(const char *name, const struct cluster_config *config)
{
    struct process *p = find_free();
    if (!p)
        return NULL;
    *p = (struct process){.number = ++world.n_started,
                          .boot_ns = FIRST_BOOT_NS + draw_ns(0, 1000 * NS_SECOND),
                          .monotonic_ns = draw_ns(0, 1000 * NS_SECOND),
                          .real_ns = draw_ns(0, 7200 * NS_SECOND),
                          .event_ns = NS_NEVER,
                          .tick_ns = NS_NEVER,
                          .steps_second = -1};
    snprintf(p->name, sizeof p->name, "%s", name);
    p->config.cluster = *config;
    p->config.cluster.node = p->name;
    p->reload.file = "/etc/framed/framed.yaml";
    p->cameras.list = calloc(CAMERAS_MAX, sizeof(struct camera *));
    const struct cluster_context context = {
        .config = &p->config,
        .loop = (uv_loop_t *)p,
        .events = (struct event_queue *)p,
        .reload = &p->reload,
        .cameras = &p->cameras,
        .more = more,
    };
    world.runs = p;
    if (cluster_open(&p->cluster, &context) < 0)
        abort();
    world.runs = NULL;
    trace("%s: starts (%d)", p->name, p->number);
    return p;
}

static void close_process(struct process *p)
{
    world.runs = p;
    loop_close(p);
    cluster_close_handles(p->cluster);
    cluster_close(p->cluster);
    world.runs = NULL;
    p->cluster = NULL;
    loop_free(p);
    free(p->stack);
}

void process_stop(struct process *p)
{
    trace("%s: is asked to stop (%d)", p->name, p->number);
    world.runs = p;
    cluster_stop(p->cluster);
    world.runs = NULL;
    p->stopping = true;
}

// Stops all activity of the process; its own shutdown code frees its memory.
void process_kill(struct process *p)
{
    trace("%s: is killed (%d)", p->name, p->number);
    p->killed = true;
    p->starving = 0;
    world.runs = p;
    cluster_stop(p->cluster);
    while (p->thread != THREAD_ENDED)
        run_on(p), world.runs = p;
    close_process(p);
}

int64_t process_next_ns(const struct process *p)
{
    const int64_t loop = loop_next_ns(p), thread = thread_next_ns(p);
    const int64_t next = loop < thread ? loop : thread;
    return next > p->frozen_ns ? next : p->frozen_ns;
}

static void advance_thread(struct process *p)
{
    if (world.now_ns >= thread_next_ns(p))
        run_on(p);
}

void process_advance(struct process *p)
{
    const bool first = draw(2);
    if (world.now_ns < p->frozen_ns)
        return;
    if (draw(2))
        process_meet_fences(p);
    if (first)
        advance_thread(p);
    if (world.now_ns >= loop_next_ns(p)) {
        world.runs = p;
        loop_advance(p);
        world.runs = NULL;
    }
    if (!first)
        advance_thread(p);
    if (p->stopping && p->thread == THREAD_ENDED)
        close_process(p);
}
