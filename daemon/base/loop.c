#include "daemon/base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

// --- events

// We use our own eventfd: with uv_async_send the loop may wake while the call is still in progress.
// It then spins until the sender continues, which it cannot do on the same processor.
struct event_queue {
    uv_poll_t poll;
    int wakeup;
    struct event *_Atomic posted; // the newest one; each is followed by the one before it
    struct event *due;            // loop thread: taken from there, in posting order, not called yet
};

// Moves the posted events behind the due ones.
static void take_posted(struct event_queue *queue)
{
    struct event *first = NULL, **link = &queue->due;
    for (struct event *event = atomic_exchange(&queue->posted, NULL), *next; event; event = next) {
        next = event->next;
        event->next = first;
        first = event;
    }
    while (*link)
        link = &(*link)->next;
    *link = first;
}

static void unlink_event(struct event **link, const struct event *event)
{
    while (*link && *link != event)
        link = &(*link)->next;
    if (*link)
        *link = event->next;
}

static void on_wakeup(uv_poll_t *poll, int status, int events)
{
    struct event_queue *queue = poll->data;
    struct event *event;
    eventfd_t count;
    (void)status, (void)events;
    eventfd_read(queue->wakeup, &count);
    take_posted(queue);
    while ((event = queue->due)) {
        queue->due = event->next; // the event may be posted again once the flag is cleared
        atomic_store(&event->posted, false);
        event->callback(event);
    }
}

int event_queue_open(struct event_queue **ret, uv_loop_t *loop)
{
    struct event_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = queue->wakeup < 0 ? -errno : uv_poll_init(loop, &queue->poll, queue->wakeup);
    if (rc < 0) {
        if (queue->wakeup >= 0)
            close(queue->wakeup);
        free(queue);
        return rc;
    }
    queue->poll.data = queue;
    uv_poll_start(&queue->poll, UV_READABLE, on_wakeup);
    *ret = queue;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct event_queue *queue = handle->data;
    close(queue->wakeup);
    free(queue);
}

void event_queue_close(struct event_queue *queue)
{
    if (!queue)
        return;
    take_posted(queue);
    for (; queue->due; queue->due = queue->due->next)
        atomic_store(&queue->due->posted, false);
    uv_close((uv_handle_t *)&queue->poll, on_closed);
}

// Only a post into an empty queue wakes the loop.
void event_post(struct event_queue *queue, struct event *event)
{
    struct event *before = atomic_load(&queue->posted);
    if (atomic_exchange(&event->posted, true))
        return;
    event->queue = queue;
    do
        event->next = before;
    while (!atomic_compare_exchange_weak(&queue->posted, &before, event));
    if (!before)
        eventfd_write(queue->wakeup, 1);
}

void event_cancel(struct event *event)
{
    if (!atomic_load(&event->posted))
        return;
    take_posted(event->queue);
    unlink_event(&event->queue->due, event);
    atomic_store(&event->posted, false);
}

// --- work

static void run_work(uv_work_t *request)
{
    struct work *work = request->data;
    work->run(work);
}

static void work_is_done(uv_work_t *request, int status)
{
    struct work *work = request->data;
    struct work_queue *queue = work->queue;
    (void)status; // never cancelled
    work->done(work);
    if (--queue->n == 0)
        queue->idle(queue->opaque);
}

void work_start(struct work_queue *queue, struct work *work)
{
    queue->n++;
    work->queue = queue;
    work->request.data = work;
    uv_queue_work(queue->loop, &work->request, run_work, work_is_done);
}
