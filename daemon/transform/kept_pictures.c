#include "daemon/transform/kept_pictures.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

struct kept_pictures {
    int most;
    int64_t keep_ns;
    pthread_mutex_t lock; // guards all below; that of a decoder's buffers may follow
    int first, n;         // of a ring, the oldest first
    struct kept {
        struct frame frame;
        int64_t since_ns; // CLOCK_MONOTONIC
    } list[];
};

int kept_pictures_open(struct kept_pictures **ret, int most, int64_t keep_ns)
{
    struct kept_pictures *pictures =
        calloc(1, sizeof *pictures + (size_t)most * sizeof *pictures->list);
    if (!pictures)
        return -ENOMEM;
    pictures->most = most;
    pictures->keep_ns = keep_ns;
    pthread_mutex_init(&pictures->lock, NULL);
    *ret = pictures;
    return 0;
}

// Under lock: the i-th oldest.
static struct kept *kept_at(struct kept_pictures *pictures, int i)
{
    return &pictures->list[(pictures->first + i) % pictures->most];
}

static void drop_oldest(struct kept_pictures *pictures)
{
    frame_release(&kept_at(pictures, 0)->frame);
    pictures->first = (pictures->first + 1) % pictures->most;
    pictures->n--;
}

static void drop_old(struct kept_pictures *pictures)
{
    const int64_t since_ns = monotonic_ns() - pictures->keep_ns;
    while (pictures->n > 0 && kept_at(pictures, 0)->since_ns < since_ns)
        drop_oldest(pictures);
}

void kept_pictures_close(struct kept_pictures *pictures)
{
    if (!pictures)
        return;
    while (pictures->n > 0)
        drop_oldest(pictures);
    pthread_mutex_destroy(&pictures->lock);
    free(pictures);
}

bool kept_pictures_add(struct kept_pictures *pictures, struct frame *frame)
{
    struct frame share;
    if (frame_share(frame, &share) < 0)
        return false;
    pthread_mutex_lock(&pictures->lock);
    drop_old(pictures);
    if (pictures->n == pictures->most)
        drop_oldest(pictures);
    *kept_at(pictures, pictures->n++) = (struct kept){share, monotonic_ns()};
    const bool only = pictures->n == 1;
    pthread_mutex_unlock(&pictures->lock);
    return only;
}

bool kept_pictures_find(struct kept_pictures *pictures, const struct frame_info *info,
                        struct frame *ret)
{
    bool found = false;
    pthread_mutex_lock(&pictures->lock);
    drop_old(pictures);
    for (int i = pictures->n - 1; i >= 0 && !found; i--) {
        struct kept *kept = kept_at(pictures, i);
        found = kept->frame.info.pts_ns == info->pts_ns && kept->frame.info.epoch == info->epoch &&
                frame_share(&kept->frame, ret) == 0;
    }
    pthread_mutex_unlock(&pictures->lock);
    return found;
}

int64_t kept_pictures_expire(struct kept_pictures *pictures)
{
    int64_t until_ns = INT64_MAX;
    pthread_mutex_lock(&pictures->lock);
    drop_old(pictures);
    if (pictures->n > 0)
        until_ns = kept_at(pictures, pictures->n - 1)->since_ns + pictures->keep_ns + 1;
    pthread_mutex_unlock(&pictures->lock);
    return until_ns;
}
