#include "daemon/base/sigabrt.h"

#include <signal.h>
#include <unistd.h>

#include "daemon/base/exit_code.h"
#include "daemon/base/log.h"

static void aborted(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_pid == getpid())
        log_last("given up: a library had no memory, thread or watch left, or found itself broken");
    else
        log_last("given up: SIGABRT from another process, as from systemd's watchdog");
    _exit(EXIT_RUNTIME);
}

void sigabrt_catch(void)
{
    struct sigaction action = {.sa_sigaction = aborted, .sa_flags = SA_SIGINFO};
    sigaction(SIGABRT, &action, NULL);
}
