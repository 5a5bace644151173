// The bell is an eventfd of our own: libuv's uv_async_send is seen by the loop while it is still
// under way, and the loop then spins until the sender goes on, which on the same processor it
// cannot do.
#include "daemon/base/event_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct event_queue {
    uv_poll_t poll;
    int bell;
    uv_mutex_t lock;
    struct event *first, **last; // under lock
};

static struct event *take_all(struct event_queue *box)
{
    uv_mutex_lock(&box->lock);
    struct event *first = box->first;
    box->first = NULL;
    box->last = &box->first;
    uv_mutex_unlock(&box->lock);
    return first;
}

static void on_bell(uv_poll_t *poll, int status, int events)
{
    struct event_queue *box = poll->data;
    struct event *next;
    eventfd_t rings;
    (void)status, (void)events;
    eventfd_read(box->bell, &rings);
    for (struct event *letter = take_all(box); letter; letter = next) {
        next = letter->next; // the letter may be posted again as soon as the flag is down
        atomic_store(&letter->posted, false);
        letter->read(letter);
    }
}

int event_queue_open(struct event_queue **ret, uv_loop_t *loop)
{
    struct event_queue *box = calloc(1, sizeof *box);
    if (!box)
        return -ENOMEM;
    int rc = uv_mutex_init(&box->lock);
    if (rc < 0)
        goto no_lock;
    box->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = box->bell < 0 ? -errno : uv_poll_init(loop, &box->poll, box->bell);
    if (rc < 0)
        goto no_poll;
    box->poll.data = box;
    box->last = &box->first;
    uv_poll_start(&box->poll, UV_READABLE, on_bell);
    *ret = box;
    return 0;
no_poll:
    if (box->bell >= 0)
        close(box->bell);
    uv_mutex_destroy(&box->lock);
no_lock:
    free(box);
    return rc;
}

static void on_closed(uv_handle_t *handle)
{
    struct event_queue *box = handle->data;
    close(box->bell);
    uv_mutex_destroy(&box->lock);
    free(box);
}

void event_queue_close(struct event_queue *box)
{
    if (box)
        uv_close((uv_handle_t *)&box->poll, on_closed);
}

// Who finds letters in the box need not ring: whoever put the first one there does.
void event_post(struct event_queue *box, struct event *letter)
{
    if (atomic_exchange(&letter->posted, true))
        return;
    uv_mutex_lock(&box->lock);
    bool rings = !box->first;
    letter->next = NULL;
    *box->last = letter;
    box->last = &letter->next;
    uv_mutex_unlock(&box->lock);
    if (rings)
        eventfd_write(box->bell, 1);
}
