// A command of framed's own binary, run in a child process for the loop: what strangers send it can
// neither hurt nor stop the daemon. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_OWN_COMMAND_H
#define FRAMED_DAEMON_SERVICE_OWN_COMMAND_H

#include <uv.h>

enum { OWN_COMMAND_INPUT_MAX = 4096, OWN_COMMAND_OUTPUT_MAX = 1 << 20 };

struct own_command;

struct own_command_options {
    const char *const *arguments; // from the command's name on, up to a NULL
    const char *input;            // for its standard input, less than OWN_COMMAND_INPUT_MAX bytes
    int64_t timeout_ms;           // then it is killed
    // The child is gone. `rc`: its exit code; -ETIMEDOUT; -EMSGSIZE: it said more than
    // OWN_COMMAND_OUTPUT_MAX; -EIO: a signal ended it. `output`, with a zero byte behind it, is
    // what it wrote to standard output, valid during the call.
    void (*done)(void *opaque, int rc, const char *output, size_t size);
    void *opaque;
};

// Starts it, behind the daemon where processors or memory are short. 0 or negative errno.
int own_command_start(struct own_command **ret, uv_loop_t *, const struct own_command_options *);
// Kills it; `done` is not called. Accepts NULL. After `done` there is nothing left to kill.
void own_command_kill(struct own_command *);

#endif
