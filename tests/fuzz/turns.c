#include "tests/fuzz/turns.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS_MAX = 1000 };

void must(bool holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
    abort();
}

static bool has_work(const uv_loop_t *loop)
{
    struct pollfd watched = {.fd = uv_backend_fd(loop), .events = POLLIN};
    return poll(&watched, 1, 0) > 0 || (uv_loop_alive(loop) && uv_backend_timeout(loop) == 0);
}

void settle(uv_loop_t *loop)
{
    uv_run(loop, UV_RUN_NOWAIT); // watches that began since the last run start only now
    for (int turns = 0; has_work(loop); turns++) {
        MUST(turns < TURNS_MAX);
        uv_run(loop, UV_RUN_NOWAIT);
    }
}
