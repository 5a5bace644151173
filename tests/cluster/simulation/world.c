#include "tests/cluster/simulation/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world world;

static const int64_t PICTURE_NS = 40 * NS_MS;
enum { EVENTS_MAX = 5000, STEPS_MAX = 300 }; // events at one moment; steps of a thread in a second

unsigned draw(unsigned n)
{
    world.state ^= world.state << 13;
    world.state ^= world.state >> 7;
    world.state ^= world.state << 17;
    return (unsigned)(world.state >> 32) % n;
}

int64_t draw_ns(int64_t from, int64_t to)
{
    return from + (int64_t)((double)draw(1 << 20) / (1 << 20) * (double)(to - from));
}

void trace(const char *format, ...)
{
    va_list arguments;
    if (!world.trace)
        return;
    fprintf(stderr, "%9.3f ", (double)world.now_ns / (double)NS_SECOND);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void break_rule(const char *rule, const char *format, ...)
{
    va_list arguments;
    if (world.broken)
        return;
    world.broken = rule;
    va_start(arguments, format);
    vsnprintf(world.why, sizeof world.why, format, arguments);
    va_end(arguments);
    trace("BROKEN: %s: %s", rule, world.why);
}

void world_open(uint64_t seed)
{
    world = (struct world){.state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15),
                           .patience_ns = 8 * NS_MS,
                           .picture = world.picture,
                           .trace = getenv("TRACE") != NULL};
    store_open(1000 + (int64_t)draw(1000));
}

void world_close(void)
{
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (process_is_alive(&world.processes[i]))
            process_kill(&world.processes[i]);
    store_close();
}

static void count_steps(struct process *p)
{
    const int second = (int)(world.now_ns / NS_SECOND);
    if (second != p->steps_second)
        p->steps = 0;
    p->steps_second = second;
    if (p->steps > p->most_steps)
        p->most_steps = p->steps;
    if (p->steps > STEPS_MAX)
        break_rule("no thread spins", "%s: %d steps in a second", p->name, p->steps);
}

static void advance_all(void)
{
    const int first = (int)draw(PROCESSES_MAX);
    store_expire(world.now_ns);
    link_serve();
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct process *p = &world.processes[(first + i) % PROCESSES_MAX];
        if (process_is_alive(p)) {
            process_advance(p);
            count_steps(p);
        }
    }
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (process_is_alive(&world.processes[i]) && world.now_ns >= world.processes[i].frozen_ns)
            process_show(&world.processes[i]);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_ns(int64_t until_ns)
{
    int64_t next = earlier(world.now_ns + PICTURE_NS, until_ns);
    next = earlier(next, store_expires_ns());
    next = earlier(next, link_next_ns());
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (process_is_alive(&world.processes[i]))
            next = earlier(next, process_next_ns(&world.processes[i]));
    return next > world.now_ns ? next : world.now_ns;
}

void world_run(int64_t until_ns, int64_t (*script)(void))
{
    int events = 0;
    while (world.now_ns < until_ns && !world.broken) {
        const int64_t before_ns = world.now_ns;
        const int64_t scripted_ns = script ? script() : NS_NEVER;
        world.now_ns = earlier(next_ns(until_ns), scripted_ns);
        events = world.now_ns == before_ns ? events + 1 : 0;
        if (events > EVENTS_MAX)
            break_rule("no thread spins", "%d events at one moment", events);
        advance_all();
    }
}
