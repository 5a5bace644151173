#include "kernels/processors.h"

#include <sched.h>
#include <stdio.h>

_Static_assert((int)PROCESSORS_MAX <= (int)CPU_SETSIZE, "a set of the system's holds them");

struct processors processors_allowed(void)
{
    struct processors set = {0};
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        CPU_ZERO(&own); // more processors than the set holds: report none
    for (int i = 0; i < PROCESSORS_MAX; i++)
        if (CPU_ISSET(i, &own))
            processors_add(&set, i);
    return set;
}

struct processors processors_both(const struct processors *a, const struct processors *b)
{
    struct processors set;
    for (int i = 0; i < PROCESSORS_MAX / 64; i++)
        set.bits[i] = a->bits[i] & b->bits[i];
    return set;
}

struct processors processors_without(const struct processors *set, const struct processors *gone)
{
    struct processors left;
    for (int i = 0; i < PROCESSORS_MAX / 64; i++)
        left.bits[i] = set->bits[i] & ~gone->bits[i];
    return left;
}

int processors_count(const struct processors *set)
{
    int n = 0;
    for (int i = 0; i < PROCESSORS_MAX / 64; i++)
        n += __builtin_popcountll(set->bits[i]);
    return n;
}

void processors_add(struct processors *set, int processor)
{
    set->bits[processor / 64] |= UINT64_C(1) << processor % 64;
}

int processors_next(const struct processors *set, int from)
{
    for (int i = from; i < PROCESSORS_MAX; i++)
        if (set->bits[i / 64] >> i % 64 & 1)
            return i;
    return -1;
}

static int run_end(const struct processors *set, int first)
{
    int last = first;
    while (processors_next(set, last + 1) == last + 1)
        last++;
    return last;
}

const char *processors_text(const struct processors *set, char to[PROCESSORS_TEXT])
{
    int at = 0;
    to[0] = 0;
    for (int first = processors_next(set, 0), last; first >= 0;
         first = processors_next(set, last + 1)) {
        last = run_end(set, first);
        at += snprintf(to + at, (size_t)(PROCESSORS_TEXT - at), "%s%d", at ? "," : "", first);
        if (last > first)
            at += snprintf(to + at, (size_t)(PROCESSORS_TEXT - at), "-%d", last);
    }
    return to;
}

bool processors_keep(int processor)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor, &own);
    return sched_setaffinity(0, sizeof own, &own) == 0;
}
