#include "daemon/work/crops.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/device/budget.h"

enum {
    ROW_BYTES = 256, // rows of copies are multiples of this
    // Copies beyond those kept: for jobs in progress, and the newest before the oldest is dropped.
    COPIES_MORE = FRAMES_IN_FLIGHT_MAX + 1,
};

struct copy {
    struct image image;
    _Atomic bool busy;
};

struct kept_pictures {
    const struct device_lease *lease;
    int most;
    int64_t keep_ns;
    struct device_export memory; // of the copies; address NULL: there are none
    struct copy *copies;         // most + COPIES_MORE of them
    pthread_mutex_t lock;        // guards all below; a decoder's lock may be taken under it
    int first, n;                // ring, the oldest first
    struct kept {
        struct frame frame;
        int64_t since_ns; // CLOCK_MONOTONIC
    } list[];
};

// --- copies

// Lays out a copy at `base`. Returns its size in bytes.
static size_t lay_out_copy(struct image *image, const struct image *source, uint8_t *base)
{
    *image = *source;
    image->width = (source->width + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
    const size_t bytes = image_lay_out(image, base);
    image->width = source->width;
    return (bytes + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
}

size_t kept_pictures_need(const struct image *source, int most)
{
    struct image image;
    if (source->memory != MEMORY_CUDA)
        return 0;
    return lay_out_copy(&image, source, NULL) * (size_t)(most + COPIES_MORE);
}

static int open_copies(struct kept_pictures *pictures, const struct image *source)
{
    const struct device_lease *lease = pictures->lease;
    const int n = pictures->most + COPIES_MORE;
    const size_t bytes = kept_pictures_need(source, pictures->most);
    if (bytes == 0)
        return 0;
    pictures->copies = calloc((size_t)n, sizeof *pictures->copies);
    if (!pictures->copies)
        return -ENOMEM;
    if (!lease->driver->export_open)
        return -ENOTSUP;
    int rc =
        lease->driver->export_open(lease->backend, &pictures->memory, EXPORT_DESCRIPTOR, bytes);
    uint8_t *base = pictures->memory.address;
    for (int i = 0; rc == 0 && i < n; i++)
        base += lay_out_copy(&pictures->copies[i].image, source, base);
    return rc;
}

static void release_copy(void *owner)
{
    struct copy *copy = owner;
    atomic_store(&copy->busy, false);
}

static int copy_frame(struct kept_pictures *pictures, const struct frame *frame, struct frame *ret)
{
    const struct device_lease *lease = pictures->lease;
    struct copy *copy = pictures->copies;
    while (atomic_load(&copy->busy)) // at least one is free
        copy++;
    int rc = lease->driver->picture_copy(lease->backend, &copy->image, &frame->image);
    if (rc < 0)
        return rc;
    atomic_store(&copy->busy, true);
    *ret = *frame;
    ret->image = copy->image;
    ret->owner = copy;
    ret->release = release_copy;
    return 0;
}

// --- the pictures

int kept_pictures_open(struct kept_pictures **ret, const struct device_lease *lease,
                       const struct image *source, int most, int64_t keep_ns)
{
    struct kept_pictures *pictures =
        calloc(1, sizeof *pictures + (size_t)most * sizeof *pictures->list);
    if (!pictures)
        return -ENOMEM;
    pictures->lease = lease;
    pictures->most = most;
    pictures->keep_ns = keep_ns;
    pthread_mutex_init(&pictures->lock, NULL);
    int rc = open_copies(pictures, source);
    if (rc < 0)
        kept_pictures_close(pictures);
    else
        *ret = pictures;
    return rc;
}

// Returns the i-th oldest. Under lock.
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
    if (pictures->memory.address)
        pictures->lease->driver->export_close(pictures->lease->backend, &pictures->memory);
    free(pictures->copies);
    pthread_mutex_destroy(&pictures->lock);
    free(pictures);
}

int kept_pictures_add(struct kept_pictures *pictures, struct frame *frame)
{
    struct frame kept;
    int rc = pictures->copies ? copy_frame(pictures, frame, &kept) : frame_share(frame, &kept);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&pictures->lock);
    drop_old(pictures);
    if (pictures->n == pictures->most)
        drop_oldest(pictures);
    *kept_at(pictures, pictures->n++) = (struct kept){kept, monotonic_ns()};
    pthread_mutex_unlock(&pictures->lock);
    return 0;
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
