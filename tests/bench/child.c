#include "tests/bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/bench/interrupt.h"

enum { NOT_STARTED = 127, STEP_MS = 50 };

// Runs in the child: only calls that are safe after fork in a process with threads.
static void become(char *const argv[], int out, int log, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(NOT_STARTED);
    int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, 0);
    dup2(out >= 0 ? out : nowhere, 1);
    dup2(log >= 0 ? log : nowhere, 2);
    execv(argv[0], argv);
    _exit(NOT_STARTED);
}

int child_start(struct child *child, char *const argv[], const char *log, bool piped)
{
    int pipes[2] = {-1, -1};
    *child = (struct child){.out = -1};
    if (piped && pipe2(pipes, O_CLOEXEC) != 0)
        return -errno;
    const int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(argv, pipes[1], log_fd, parent);
    const int rc = pid < 0 ? -errno : 0;
    if (log_fd >= 0)
        close(log_fd);
    if (pipes[1] >= 0)
        close(pipes[1]);
    child->out = pipes[0];
    child->pid = pid > 0 ? pid : 0;
    return rc;
}

bool child_runs(const struct child *child)
{
    siginfo_t info = {0};
    return child->pid > 0 &&
           waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void child_last_words(const char *log, char *to, size_t size)
{
    char line[400];
    FILE *file = fopen(log, "re");
    *to = '\0';
    while (file && fgets(line, sizeof line, file))
        snprintf(to, size, "%.*s", (int)strcspn(line, "\n"), line);
    if (file)
        fclose(file);
}

static bool read_proc(pid_t pid, const char *what, char *to, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    to[fread(to, 1, size - 1, file)] = '\0';
    fclose(file);
    return true;
}

struct child_usage child_usage(const struct child *child)
{
    struct child_usage usage = {.at_ns = monotonic_ns()};
    char text[1024];
    unsigned long user, system;
    long pages;
    if (!read_proc(child->pid, "stat", text, sizeof text))
        return usage;
    const char *fields = strrchr(text, ')'); // the program's name may contain ')' and spaces
    if (fields && sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                         &system) == 2)
        usage.cpu = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    if (read_proc(child->pid, "statm", text, sizeof text) && sscanf(text, "%*d %ld", &pages) == 1)
        usage.resident = (double)pages * (double)sysconf(_SC_PAGESIZE);
    return usage;
}

// Drops the line returned last: everything up to its end, which is now a zero.
static char *next_line(struct child *child)
{
    char *end = memchr(child->line, '\n', child->used);
    if (end)
        *end = '\0';
    return end;
}

static void drop_line(struct child *child)
{
    char *end = memchr(child->line, '\0', child->used);
    if (!end)
        return;
    child->used -= (size_t)(end + 1 - child->line);
    memmove(child->line, end + 1, child->used);
}

// Waits for output until the deadline. It polls in steps, because the blocked stop signals do not
// interrupt poll.
static bool readable(const struct child *child, int64_t deadline)
{
    struct pollfd wait = {.fd = child->out, .events = POLLIN};
    for (;;) {
        const int64_t left = deadline - monotonic_ns(), ms = left > 0 ? left / 1000000 + 1 : 0;
        const int ready = poll(&wait, 1, ms < STEP_MS ? (int)ms : STEP_MS);
        if (ready != 0)
            return ready > 0;
        if (left <= 0 || interrupted())
            return false;
    }
}

const char *child_line(struct child *child, double seconds)
{
    const int64_t deadline = monotonic_ns() + (int64_t)(seconds * 1e9);
    drop_line(child);
    for (;;) {
        if (next_line(child))
            return child->line;
        if (child->used == sizeof child->line)
            child->used = 0; // discard an overlong line
        if (!readable(child, deadline))
            return NULL;
        ssize_t n = read(child->out, child->line + child->used, sizeof child->line - child->used);
        if (n <= 0)
            return NULL;
        child->used += (size_t)n;
    }
}

void child_stop(struct child *child, double seconds)
{
    const int64_t deadline = monotonic_ns() + (int64_t)(seconds * 1e9);
    const struct timespec pause = {.tv_nsec = 5000000};
    if (child->pid > 0) {
        kill(child->pid, SIGTERM);
        while (child_runs(child) && monotonic_ns() < deadline)
            nanosleep(&pause, NULL);
        kill(child->pid, SIGKILL); // not reaped yet, so the pid is still ours
        waitpid(child->pid, NULL, 0);
        if (child->out >= 0)
            close(child->out);
    }
    *child = (struct child){.out = -1};
}
