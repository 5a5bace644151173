#include "tests/bench/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "daemon/base/clock.h"

static const int stop[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOPS = sizeof stop / sizeof *stop };

void interrupt_block(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < STOPS; i++)
        sigaddset(&set, stop[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

bool interrupted(void)
{
    sigset_t pending;
    bool any = false;
    if (sigpending(&pending) != 0)
        return false;
    for (int i = 0; i < STOPS; i++)
        any |= sigismember(&pending, stop[i]) == 1;
    return any;
}

int interrupt_wait(double seconds)
{
    static const int64_t STEP_NS = 50000000;
    const int64_t end = monotonic_ns() + (int64_t)(seconds * 1e9);
    for (int64_t left; (left = end - monotonic_ns()) > 0;) {
        if (interrupted())
            return -EINTR;
        const struct timespec step = {.tv_nsec = left < STEP_NS ? left : STEP_NS};
        nanosleep(&step, NULL);
    }
    return interrupted() ? -EINTR : 0;
}
