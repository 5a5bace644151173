// A command of framed's own binary, run in a child process for the loop: what strangers send it can
// neither hurt nor stop the daemon. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_CHILD_H
#define FRAMED_DAEMON_SERVICE_CHILD_H

#include <uv.h>

enum { CHILD_INPUT_MAX = 4096, CHILD_OUTPUT_MAX = 1 << 20 };

struct child;

struct child_options {
    const char *const *arguments; // from the command's name on, up to a NULL
    const char *input;            // for its standard input, less than CHILD_INPUT_MAX bytes
    int64_t timeout_ms;           // then it is killed
    // The child is gone. `rc`: its exit code; -ETIMEDOUT; -EMSGSIZE: it said more than
    // CHILD_OUTPUT_MAX; -EIO: a signal ended it. `output`, with a zero byte behind it, is what it
    // wrote to standard output, valid during the call.
    void (*done)(void *opaque, int rc, const char *output, size_t size);
    void *opaque;
};

// Starts it, behind the daemon where processors or memory are short. 0 or negative errno.
int child_start(struct child **ret, uv_loop_t *, const struct child_options *);
// Kills it; `done` is not called. Accepts NULL. After `done` there is nothing left to kill.
void child_kill(struct child *);

#endif
