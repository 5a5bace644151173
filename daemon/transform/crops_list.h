// The crops outputs of one camera. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_CROPS_LIST_H
#define FRAMED_DAEMON_TRANSFORM_CROPS_LIST_H

#include "daemon/transform/crops.h"

struct crops_list {
    int n;
    struct crops_entry {
        struct crops *crops;
        const struct output *of; // the output that clients look at; NULL: it is gone
        uint64_t ordinal;        // of that: behind the last picture that was kept
    } list[CAMERA_OUTPUTS_MAX];
};

// Goes over to those of these subscriptions: those that stay keep their pictures. A thread that
// cannot be had is logged.
void crops_list_subscribe(struct crops_list *, const struct subscriptions *,
                          const struct device_lease *, struct event_queue *);
void crops_list_close(struct crops_list *);
// As crops_prepare, for all of them.
int crops_list_prepare(struct crops_list *, const struct frame *, int num, int den, char *notice,
                       size_t size);
// Keeps the picture for those whose `of` was offered it and did not thin it out.
void crops_list_keep(struct crops_list *, struct frame *);
// The longest time that one of them keeps a picture.
int64_t crops_list_keep_ns(const struct crops_list *);
void crops_list_drain(struct crops_list *);

#endif
