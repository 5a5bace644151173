// A command of framed's own binary, run by the loop in a child process: input from strangers can
// neither harm nor stop the daemon. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_OWN_COMMAND_H
#define FRAMED_DAEMON_SERVICE_OWN_COMMAND_H

#include <uv.h>

enum { OWN_COMMAND_INPUT_MAX = 4096, OWN_COMMAND_OUTPUT_MAX = 1 << 20 };

struct own_command;

struct own_command_options {
    const char *const *arguments; // from the command's name up to a NULL
    const char *input;            // for its standard input, less than OWN_COMMAND_INPUT_MAX bytes
    int64_t timeout_ms;           // then the child is killed
    // The child has ended. `rc`: its exit code; -ETIMEDOUT; -EMSGSIZE: more output than
    // OWN_COMMAND_OUTPUT_MAX; -EIO: ended by a signal. `output`: its standard output with a zero
    // byte after it, valid during the call.
    void (*done)(void *opaque, int rc, const char *output, size_t size);
    void *opaque;
};

// Starts it with lower priority for processors and memory than the daemon. 0 or a negative errno.
int own_command_start(struct own_command **ret, uv_loop_t *, const struct own_command_options *);
// Kills it without a call of `done`; must not be called after `done`. Accepts NULL.
void own_command_kill(struct own_command *);

#endif
