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
    uv_mutex_t lock;
    struct event *first, **last; // under lock
    struct event *due;           // loop thread: removed from the queue, not called yet
};

static struct event *take_all(struct event_queue *queue)
{
    uv_mutex_lock(&queue->lock);
    struct event *first = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    uv_mutex_unlock(&queue->lock);
    return first;
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
    queue->due = take_all(queue);
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
    int rc = uv_mutex_init(&queue->lock);
    if (rc < 0)
        goto no_lock;
    queue->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = queue->wakeup < 0 ? -errno : uv_poll_init(loop, &queue->poll, queue->wakeup);
    if (rc < 0)
        goto no_poll;
    queue->poll.data = queue;
    queue->last = &queue->first;
    uv_poll_start(&queue->poll, UV_READABLE, on_wakeup);
    *ret = queue;
    return 0;
no_poll:
    if (queue->wakeup >= 0)
        close(queue->wakeup);
    uv_mutex_destroy(&queue->lock);
no_lock:
    free(queue);
    return rc;
}

static void on_closed(uv_handle_t *handle)
{
    struct event_queue *queue = handle->data;
    close(queue->wakeup);
    uv_mutex_destroy(&queue->lock);
    free(queue);
}

void event_queue_close(struct event_queue *queue)
{
    if (!queue)
        return;
    for (struct event *event = take_all(queue); event; event = event->next)
        atomic_store(&event->posted, false);
    for (; queue->due; queue->due = queue->due->next)
        atomic_store(&queue->due->posted, false);
    uv_close((uv_handle_t *)&queue->poll, on_closed);
}

// Only a post into an empty queue wakes the loop.
void event_post(struct event_queue *queue, struct event *event)
{
    if (atomic_exchange(&event->posted, true))
        return;
    uv_mutex_lock(&queue->lock);
    bool was_empty = !queue->first;
    event->queue = queue;
    event->next = NULL;
    *queue->last = event;
    queue->last = &event->next;
    uv_mutex_unlock(&queue->lock);
    if (was_empty)
        eventfd_write(queue->wakeup, 1);
}

void event_cancel(struct event *event)
{
    struct event_queue *queue = event->queue;
    if (!atomic_load(&event->posted))
        return;
    unlink_event(&queue->due, event);
    uv_mutex_lock(&queue->lock);
    unlink_event(&queue->first, event);
    queue->last = &queue->first;
    while (*queue->last)
        queue->last = &(*queue->last)->next;
    uv_mutex_unlock(&queue->lock);
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
