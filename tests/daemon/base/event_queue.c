// Events of several threads: each post is followed by a call, in posting order. Events that are
// cancelled before and during the loop iteration that would call them.
#include "daemon/base/loop.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

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

// --- several threads

enum { POSTERS = 4, POSTS = 20000 };

static struct poster {
    struct event event;
    struct event_queue *queue;
    uv_loop_t *loop;
    pthread_t thread;
    _Atomic int posts; // before each post
    int seen;          // of these, by the last call
} posters[POSTERS];

// Ends the loop once every post was seen.
static void see_posts(struct event *called)
{
    struct poster *poster = (struct poster *)((char *)called - offsetof(struct poster, event));
    int seen = 0;
    poster->seen = atomic_load(&poster->posts);
    for (int i = 0; i < POSTERS; i++)
        seen += posters[i].seen;
    if (seen == POSTERS * POSTS)
        uv_stop(poster->loop);
}

static void *post_often(void *opaque)
{
    struct poster *poster = opaque;
    for (int i = 0; i < POSTS; i++) {
        poster->posts++;
        event_post(poster->queue, &poster->event);
        if (i % 100 == 98)
            usleep(200); // so that the queue is empty for the next, also for the last
    }
    return NULL;
}

static void test_threads(void)
{
    uv_loop_t loop;
    struct event_queue *queue;
    uv_loop_init(&loop);
    CHECK(event_queue_open(&queue, &loop) == 0, "open");
    alarm(60);
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.event.callback = see_posts, .queue = queue, .loop = &loop};
        pthread_create(&posters[i].thread, NULL, post_often, &posters[i]);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    alarm(0);
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(posters[i].thread, NULL);
        CHECK(posters[i].seen == POSTS, "%d posts", posters[i].seen);
    }
    event_queue_close(queue);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

// --- the order

static struct event ordered[EVENTS];
static int order[EVENTS + 1], n_ordered;

static void note_order(struct event *called)
{
    order[n_ordered++] = (int)(called - ordered);
}

static void test_order(void)
{
    uv_loop_t loop;
    struct event_queue *queue;
    uv_loop_init(&loop);
    CHECK(event_queue_open(&queue, &loop) == 0, "open");
    for (int i = 0; i < EVENTS; i++) {
        ordered[i].callback = note_order;
        event_post(queue, &ordered[i]);
        if (i == 1)
            event_cancel(&ordered[0]);
    }
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(n_ordered == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3, "%d calls: %d %d %d",
          n_ordered, order[0], order[1], order[2]);
    event_post(queue, &ordered[0]);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(n_ordered == 4 && order[3] == 0, "%d calls: a lone event does not wake the loop",
          n_ordered);
    event_queue_close(queue);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

int main(void)
{
    TEST(test_threads());
    TEST(test_order());
    TEST(test_cancel());
    return test_end();
}
