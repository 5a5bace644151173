#include "daemon/base/first_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// Closes the parent's copies, so that a pipe of the daemon ends with the daemon. Standard error
// stays open for the container's log.
static void close_descriptors(void)
{
    const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(none, STDIN_FILENO);
    dup2(none, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
}

// Reaps ended processes. Exits when the daemon has ended.
static void reap_processes(pid_t daemon)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == daemon)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// The terminal signals the daemon directly, so only signals from processes are forwarded.
static void serve_as_first(pid_t daemon, const sigset_t *all)
{
    close_descriptors();
    for (;;) {
        siginfo_t info;
        const int number = sigwaitinfo(all, &info);
        if (number == SIGCHLD)
            reap_processes(daemon);
        else if (number > 0 && info.si_code <= 0)
            kill(daemon, number);
    }
}

int first_process_leave(void)
{
    sigset_t all, before;
    if (getpid() != 1)
        return 0;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    signal(SIGCHLD, SIG_DFL); // an inherited SIG_IGN would reap the daemon unseen
    const pid_t daemon = fork();
    if (daemon > 0)
        serve_as_first(daemon, &all);
    const int rc = daemon < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}
