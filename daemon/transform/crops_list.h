// The crops outputs of one camera. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_CROPS_LIST_H
#define FRAMED_DAEMON_TRANSFORM_CROPS_LIST_H

#include "daemon/transform/crops.h"

struct crops_list {
    int n;
    struct crops_entry {
        struct crops *crops;
        const struct output *of; // the output whose objects are shown; NULL: it is gone
        uint64_t ordinal;        // of that output: behind the last picture kept
    } list[CAMERA_OUTPUTS_MAX];
};

// Switches to the crops of these subscriptions; crops that stay keep their pictures. Logs a thread
// that cannot be started.
void crops_list_subscribe(struct crops_list *, const struct subscriptions *,
                          const struct device_lease *, struct event_queue *);
void crops_list_close(struct crops_list *);
// As crops_prepare, for all of them.
int crops_list_prepare(struct crops_list *, const struct frame *, int num, int den, char *notice,
                       size_t size);
// Keeps the picture for crops whose `of` was offered it and did not thin it out.
void crops_list_keep(struct crops_list *, struct frame *);
// Returns the longest time that any of them keeps a picture, ns.
int64_t crops_list_keep_ns(const struct crops_list *);
void crops_list_drain(struct crops_list *);

#endif
