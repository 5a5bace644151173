#include "daemon/base/clock.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kernels/processors.h"

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t realtime_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t boottime_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns)
{
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    return -pthread_cond_timedwait(condition, lock, &until);
}

// --- processor time

int64_t processor_time_own_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t processor_time_thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Returns the ticks not idle in a line "cpuN user nice system idle iowait irq softirq steal ...";
// -1: another line, or a processor that is not allowed.
static long long busy_ticks(const char *line, const struct processors *allowed)
{
    long long user, nice, system, idle, iowait, irq, softirq, steal;
    int number;
    if (sscanf(line, "cpu%d %lld %lld %lld %lld %lld %lld %lld %lld", &number, &user, &nice,
               &system, &idle, &iowait, &irq, &softirq, &steal) != 9 ||
        number < 0 || number >= PROCESSORS_MAX || processors_next(allowed, number) != number)
        return -1;
    return user + nice + system + irq + softirq + steal;
}

int64_t processor_time_all_ns(void)
{
    const struct processors allowed = processors_allowed();
    char line[512];
    long long ticks = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return 0; // hidden by ProcSubset=pid of our unit
    while (fgets(line, sizeof line, file) && line[0] == 'c') {
        long long busy = busy_ticks(line, &allowed);
        ticks += busy > 0 ? busy : 0;
    }
    fclose(file);
    return ticks * (1000000000 / sysconf(_SC_CLK_TCK));
}
