#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/types.h"
#include "daemon/alert/delivery.h"
#include "daemon/base/log.h"

enum { VARIABLES_MAX = 24, KILL_MS = 1000 };

struct command {
    struct delivery_context context;
};

static int open_command(void **ret, const struct delivery_context *context)
{
    struct command *command = calloc(1, sizeof *command);
    if (!command)
        return -ENOMEM;
    command->context = *context;
    *ret = command;
    return 0;
}

// --- its environment: few of the daemon's own variables, since the others may be secrets

struct environment {
    char *variable[VARIABLES_MAX + 1];
    int n;
};

__attribute__((format(printf, 2, 3))) static void add(struct environment *to, const char *format,
                                                      ...)
{
    va_list list;
    va_start(list, format);
    if (to->n < VARIABLES_MAX && vasprintf(&to->variable[to->n], format, list) >= 0)
        to->n++;
    va_end(list);
    to->variable[to->n] = NULL;
}

static void free_environment(struct environment *environment)
{
    for (int i = 0; i < environment->n; i++)
        free(environment->variable[i]);
}

static void make_environment(struct environment *to, const struct alert_event *event,
                             const char *host)
{
    static const char *const kept[] = {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"};
    char id[ALERT_ID_MAX], text[ALERT_TEXT_MAX], time[LOG_TIME], since[LOG_TIME];
    *to = (struct environment){0};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (getenv(kept[i]))
            add(to, "%s=%s", kept[i], getenv(kept[i]));
    alert_event_id(event, id);
    alert_event_text(event, text);
    log_time(time, event->at_ms * 1000000);
    log_time(since, event->since_ms * 1000000);
    add(to, "FRAMED_ALERT=%s", id);
    add(to, "FRAMED_HOST=%s", host);
    add(to, "FRAMED_CAMERA=%s", event->camera);
    add(to, "FRAMED_KIND=%s", alert_kind_name(event->kind));
    add(to, "FRAMED_STATE=%s", event->raised ? "raised" : "cleared");
    add(to, "FRAMED_TIME=%s", time);
    add(to, "FRAMED_SINCE=%s", since);
    add(to, "FRAMED_WHY=%s", event->why);
    add(to, "FRAMED_TEXT=%s", text);
}

// --- its life

// Returns the read end of a pipe that contains `text` as a line, or a negative errno. Every pipe
// has room for the line.
static int pipe_with(const char *text)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    const ssize_t length = (ssize_t)strlen(text);
    const bool fits =
        write(ends[1], text, (size_t)length) == length && write(ends[1], "\n", 1) == 1;
    const int rc = fits ? 0 : -EMSGSIZE;
    close(ends[1]);
    if (rc == 0)
        fcntl(ends[0], F_SETFL, 0);
    else
        close(ends[0]);
    return rc < 0 ? rc : ends[0];
}

// Starts the command in its own process group, which is ended as a whole. 0 or a negative errno.
static int spawn(pid_t *ret, const struct notify_config *notify, char **environment, int input)
{
    char *argv[PROGRAM_MAX + 3];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults, mask;
    sigemptyset(&mask);
    sigfillset(&defaults);
    program_arguments(&notify->command, argv);
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return -rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&attributes, &mask);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        rc = posix_spawn(ret, argv[0], &actions, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

// True if the process ended within `ms` and before the delivery stops.
static bool ends_within(int pid_fd, int stop_fd, int ms)
{
    struct pollfd fds[] = {{.fd = pid_fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
    return poll(fds, stop_fd < 0 ? 1 : 2, ms) > 0 && fds[0].revents;
}

// Returns 0 if the command ended in time with exit code 0.
static int wait_for(pid_t pid, const struct delivery_context *context, char *why, size_t size)
{
    int status = 0;
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    const bool ended = fd >= 0 && ends_within(fd, context->stop_fd, DELIVERY_MS);
    if (!ended) {
        kill(-pid, SIGTERM);
        if (fd < 0 || !ends_within(fd, -1, KILL_MS))
            kill(-pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (fd >= 0)
        close(fd);
    if (!ended && atomic_load(context->stop))
        return -ECANCELED;
    if (!ended)
        snprintf(why, size, "it did not end within %d s", DELIVERY_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(why, size, "it was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(why, size, "it ended with exit code %d", WEXITSTATUS(status));
    else
        return 0;
    return -EIO;
}

static int deliver_to_command(void *opaque, const struct alert_event *event, const char *json,
                              char *why, size_t size)
{
    const struct command *command = opaque;
    struct environment environment;
    pid_t pid;
    int input = pipe_with(json);
    if (input < 0)
        return input;
    make_environment(&environment, event, command->context.host);
    int rc = spawn(&pid, &command->context.config->notify, environment.variable, input);
    close(input);
    free_environment(&environment);
    return rc < 0 ? rc : wait_for(pid, &command->context, why, size);
}

const struct delivery_driver command_driver = {
    .name = "the command",
    .open = open_command,
    .deliver = deliver_to_command,
    .close = free,
};
