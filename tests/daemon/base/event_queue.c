// Events that are cancelled before and during the loop iteration that would call them.
#include "daemon/base/loop.h"

#include <stdlib.h>

#include "tests/test.h"

enum { EVENTS = 4 };

static struct event *event[EVENTS]; // on the heap, so that a sanitizer finds a use after free
static int calls[EVENTS];

static void free_event(int i)
{
    event_cancel(event[i]);
    free(event[i]);
    event[i] = NULL;
}

static void count_call(struct event *called)
{
    for (int i = 0; i < EVENTS; i++)
        calls[i] += event[i] == called;
    if (called == event[0] && event[2])
        free_event(2); // due in the same iteration
}

static void test_cancel(void)
{
    uv_loop_t loop;
    struct event_queue *queue;
    uv_loop_init(&loop);
    CHECK(event_queue_open(&queue, &loop) == 0, "open");
    for (int i = 0; i < EVENTS; i++) {
        event[i] = calloc(1, sizeof *event[i]);
        event[i]->callback = count_call;
        event_cancel(event[i]); // was never posted
        event_post(queue, event[i]);
    }
    free_event(3); // the last one: the next is linked behind event 2
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(calls[0] == 1 && calls[1] == 1 && calls[2] == 0 && calls[3] == 0, "calls %d %d %d %d",
          calls[0], calls[1], calls[2], calls[3]);
    event_post(queue, event[0]);
    event_post(queue, event[1]);
    event_cancel(event[1]);
    event_post(queue, event[1]);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(calls[0] == 2 && calls[1] == 2, "calls %d %d after a cancelled post", calls[0], calls[1]);
    event_post(queue, event[0]);
    event_queue_close(queue);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free_event(0); // the queue is gone
    free_event(1);
    CHECK(calls[0] == 2, "called after the end");
}

int main(void)
{
    TEST(test_cancel());
    return test_end();
}
