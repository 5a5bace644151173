#include "daemon/mailbox.h"

#include <errno.h>
#include <stdlib.h>

struct mailbox {
    uv_async_t async;
    uv_mutex_t lock;
    struct letter *first, **last; // under lock
};

static struct letter *take_all(struct mailbox *box)
{
    uv_mutex_lock(&box->lock);
    struct letter *first = box->first;
    box->first = NULL;
    box->last = &box->first;
    uv_mutex_unlock(&box->lock);
    return first;
}

static void on_async(uv_async_t *async)
{
    struct letter *next;
    for (struct letter *letter = take_all(async->data); letter; letter = next) {
        next = letter->next; // the letter may be posted again as soon as the flag is down
        atomic_store(&letter->posted, false);
        letter->read(letter);
    }
}

int mailbox_open(struct mailbox **ret, uv_loop_t *loop)
{
    struct mailbox *box = calloc(1, sizeof *box);
    if (!box)
        return -ENOMEM;
    int rc = uv_mutex_init(&box->lock);
    if (rc < 0)
        goto no_lock;
    rc = uv_async_init(loop, &box->async, on_async);
    if (rc < 0)
        goto no_async;
    box->async.data = box;
    box->last = &box->first;
    *ret = box;
    return 0;
no_async:
    uv_mutex_destroy(&box->lock);
no_lock:
    free(box);
    return rc;
}

static void on_closed(uv_handle_t *handle)
{
    struct mailbox *box = handle->data;
    uv_mutex_destroy(&box->lock);
    free(box);
}

void mailbox_close(struct mailbox *box)
{
    if (box)
        uv_close((uv_handle_t *)&box->async, on_closed);
}

void mailbox_post(struct mailbox *box, struct letter *letter)
{
    if (atomic_exchange(&letter->posted, true))
        return;
    uv_mutex_lock(&box->lock);
    letter->next = NULL;
    *box->last = letter;
    box->last = &letter->next;
    uv_mutex_unlock(&box->lock);
    uv_async_send(&box->async);
}
