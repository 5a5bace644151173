// The one place where facts cross to the loop thread. A letter is embedded in what it speaks of and
// is in the box at most once, so the box never allocates and never overflows.
#ifndef FRAMED_DAEMON_MAILBOX_H
#define FRAMED_DAEMON_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct letter {
    void (*read)(struct letter *); // loop thread; the letter may be posted again from here on
    _Atomic bool posted;
    struct letter *next;
};

struct mailbox;

int mailbox_open(struct mailbox **ret, uv_loop_t *loop);
void mailbox_close(struct mailbox *); // loop thread; no letter may be posted any more
// Any thread; does nothing while the letter is in the box.
void mailbox_post(struct mailbox *, struct letter *);

#endif
