#include "daemon/abort.h"

#include <signal.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/service/log.h"

static void aborted(int number)
{
    (void)number;
    log_last("given up: a library had no memory, thread or watch left, or found itself broken");
    _exit(EXIT_RUNTIME);
}

void abort_catch(void)
{
    signal(SIGABRT, aborted);
}
