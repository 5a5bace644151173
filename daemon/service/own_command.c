#include "daemon/service/own_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 16, BEHIND = 10 }; // BEHIND: of nice(2)

struct own_command {
    struct own_command_options options;
    pid_t pid;
    int pid_fd, output_fd;
    uv_poll_t exit, readable;
    uv_timer_t deadline;
    int handles;
    bool dropped; // `done` is not called
    int rc;       // why it is killed
    char *output; // OWN_COMMAND_OUTPUT_MAX and a zero byte
    size_t used;
};

static void handle_closed(uv_handle_t *handle)
{
    struct own_command *child = handle->data;
    if (--child->handles > 0)
        return;
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    close(child->output_fd);
    free(child->output);
    free(child);
}

// Closes the handles that watch() has opened; the last one frees the child.
static void close_handles(struct own_command *child)
{
    uv_handle_t *const handles[] = {(uv_handle_t *)&child->deadline, (uv_handle_t *)&child->exit,
                                    (uv_handle_t *)&child->readable};
    for (int i = 0, n = child->handles; i < n; i++)
        uv_close(handles[i], handle_closed);
}

static void kill_for(struct own_command *child, int rc)
{
    child->rc = child->rc ? child->rc : rc;
    kill(child->pid, SIGKILL); // a zombie until waited for, never another process
}

// Reads all of the pipe.
static void take_output(struct own_command *child)
{
    ssize_t n;
    while ((n = read(child->output_fd, child->output + child->used,
                     OWN_COMMAND_OUTPUT_MAX - child->used)) > 0)
        child->used += (size_t)n;
    if (child->used == OWN_COMMAND_OUTPUT_MAX)
        kill_for(child, -EMSGSIZE);
    if (n == 0)
        uv_poll_stop(&child->readable);
}

static void output_came(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    take_output(poll->data);
}

static void child_ended(uv_poll_t *poll, int status, int events)
{
    struct own_command *child = poll->data;
    int how = 0;
    (void)status, (void)events;
    take_output(child);
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR)
        ;
    child->output[child->used] = 0;
    const int rc = child->rc ? child->rc : WIFEXITED(how) ? WEXITSTATUS(how) : -EIO;
    close_handles(child);
    if (!child->dropped)
        child->options.done(child->options.opaque, rc, child->output, child->used);
}

static void deadline_passed(uv_timer_t *timer)
{
    kill_for(timer->data, -ETIMEDOUT);
}

// --- start

// Returns the read end of a pipe with the input, which fits into any pipe, or a negative errno.
static int pipe_with(const char *input)
{
    int ends[2];
    const size_t length = strlen(input);
    if (length >= OWN_COMMAND_INPUT_MAX || pipe2(ends, O_CLOEXEC) < 0)
        return length >= OWN_COMMAND_INPUT_MAX ? -EMSGSIZE : -errno;
    const bool written = write(ends[1], input, length) == (ssize_t)length;
    close(ends[1]);
    if (!written)
        close(ends[0]);
    return written ? ends[0] : -EIO;
}

static int spawn(pid_t *ret, const char *const *arguments, int input, int output)
{
    char *argv[ARGUMENTS_MAX + 2] = {(char *)"framed"};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    for (int i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
        argv[i + 1] = (char *)arguments[i];
    sigfillset(&all);
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions))
        return -ENOMEM;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    // Shares memory with the child until its exec: no page of the daemon is copied.
    const int rc = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

// Running cameras come first, and if memory runs out, the child is killed. If that is forbidden,
// the child runs all the same.
static void put_behind(pid_t pid)
{
    char path[64];
    setpriority(PRIO_PROCESS, (id_t)pid, BEHIND);
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t written = write(fd, "1000", 4);
    (void)written;
    close(fd);
}

static int watch(struct own_command *child, uv_loop_t *loop)
{
    child->exit.data = child->readable.data = child->deadline.data = child;
    uv_timer_init(loop, &child->deadline);
    child->handles = 1;
    int rc = uv_poll_init(loop, &child->exit, child->pid_fd);
    child->handles += rc == 0;
    if (rc == 0)
        rc = uv_poll_init(loop, &child->readable, child->output_fd);
    child->handles += rc == 0;
    if (rc < 0)
        return rc;
    // These fail only on a closing handle.
    uv_poll_start(&child->exit, UV_READABLE, child_ended);
    uv_poll_start(&child->readable, UV_READABLE, output_came);
    uv_timer_start(&child->deadline, deadline_passed, (uint64_t)child->options.timeout_ms, 0);
    return 0;
}

// Ends a child that cannot be watched.
static void abandon(struct own_command *child)
{
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close_handles(child);
}

int own_command_start(struct own_command **ret, uv_loop_t *loop,
                      const struct own_command_options *options)
{
    struct own_command *child = calloc(1, sizeof *child);
    int output[2] = {-1, -1}, input = -1;
    int rc = child && (child->output = malloc(OWN_COMMAND_OUTPUT_MAX + 1)) ? 0 : -ENOMEM;
    if (rc == 0 && pipe2(output, O_CLOEXEC | O_NONBLOCK) < 0)
        rc = -errno;
    if (rc == 0 && (input = pipe_with(options->input)) < 0)
        rc = input;
    if (rc == 0) {
        fcntl(output[1], F_SETFL, 0); // only the child's end blocks
        rc = spawn(&child->pid, options->arguments, input, output[1]);
    }
    if (output[1] >= 0)
        close(output[1]);
    if (input >= 0)
        close(input);
    if (rc < 0) {
        if (output[0] >= 0)
            close(output[0]);
        free(child ? child->output : NULL);
        free(child);
        return rc;
    }
    child->options = *options;
    child->output_fd = output[0];
    child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    put_behind(child->pid);
    rc = watch(child, loop);
    if (rc < 0)
        abandon(child);
    else
        *ret = child;
    return rc;
}

void own_command_kill(struct own_command *child)
{
    if (!child)
        return;
    child->dropped = true;
    kill_for(child, -ECANCELED);
}
