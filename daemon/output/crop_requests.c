#include "daemon/output/crop_requests.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct crop_requests {
    const struct output_config *config;
    struct ledger *ledger;
    uint64_t sequence; // of the next request; loop thread

    pthread_mutex_t lock; // guards all below; taken last
    pthread_cond_t changed;
    bool woken, stopped;
    int first, n; // of a ring
    struct crop_request request[CROP_REQUESTS_MAX];
};

int crop_requests_open(struct crop_requests **ret, const struct output_config *config,
                       struct ledger *ledger)
{
    pthread_condattr_t attributes;
    struct crop_requests *requests = calloc(1, sizeof *requests);
    if (!requests)
        return -ENOMEM;
    requests->config = config;
    requests->ledger = ledger;
    pthread_mutex_init(&requests->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&requests->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret = requests;
    return 0;
}

void crop_requests_close(struct crop_requests *requests)
{
    if (!requests)
        return;
    for (int i = 0; i < requests->n; i++)
        ledger_lose(requests->ledger, LOSS_STOPPING);
    pthread_cond_destroy(&requests->changed);
    pthread_mutex_destroy(&requests->lock);
    free(requests);
}

// --- which boxes

static bool is_wanted(const struct classes *classes, int class)
{
    for (int i = 0; i < classes->n; i++)
        if (classes->list[i] == class)
            return true;
    return classes->n == 0;
}

// The whole pixels of one axis that [from, to) touches with its margin, of `size` of them. False:
// none, or an end is no number.
static bool cover(float from, float to, double margin, int size, int *first, int *length)
{
    const double more = ((double)to - from) * margin;
    const double low = fmax(floor(from - more), 0), high = fmin(ceil(to + more), size);
    if (!(from < to) || !(low < high)) // fmax and fmin pass over what is no number
        return false;
    *first = (int)low;
    *length = (int)(high - low);
    return true;
}

static bool rect_of(struct rect *ret, const struct framed_detection *found, double margin,
                    int width, int height)
{
    return cover(found->x1, found->x2, margin, width, &ret->x, &ret->width) &&
           cover(found->y1, found->y2, margin, height, &ret->y, &ret->height);
}

int crop_requests_choose(struct crop_box box[CROPS_MAX], const struct crops_config *config,
                         const struct framed_detection found[], int n, int width, int height)
{
    const int most = config->most < CROPS_MAX ? config->most : CROPS_MAX;
    int chosen = 0;
    for (int i = 0; i < n; i++) {
        struct crop_box own = {.object = i};
        if (!is_wanted(&config->classes, found[i].class_id) ||
            !rect_of(&own.rect, &found[i], config->margin.n / 100.0, width, height))
            continue;
        int at = chosen; // behind those with no lower score
        while (at > 0 && found[box[at - 1].object].score < found[i].score)
            at--;
        if (at == most)
            continue;
        chosen += chosen < most;
        memmove(&box[at + 1], &box[at], (size_t)(chosen - 1 - at) * sizeof *box);
        box[at] = own;
    }
    return chosen;
}

// --- the queue

static void lose_oldest(struct crop_requests *requests)
{
    ledger_lose(requests->ledger, LOSS_OVERFLOW);
    requests->first = (requests->first + 1) % CROP_REQUESTS_MAX;
    requests->n--;
}

void crop_requests_add(struct crop_requests *requests, const struct crop_parent *parent,
                       const struct framed_detection found[], int n)
{
    const struct output_config *config = requests->config;
    struct crop_request request = {.frame = *parent->frame, .parent_sequence = parent->sequence};
    request.n = crop_requests_choose(request.box, &config->crops, found, n,
                                     parent->frame->source_width, parent->frame->source_height);
    if (request.n == 0)
        return;
    strncpy(request.region, parent->region, sizeof request.region - 1);
    request.sequence = requests->sequence++;
    ledger_offer(requests->ledger);
    pthread_mutex_lock(&requests->lock);
    if (requests->n == CROP_REQUESTS_MAX && config->overflow != OVERFLOW_DROP_NEWEST)
        lose_oldest(requests);
    if (requests->n < CROP_REQUESTS_MAX)
        requests->request[(requests->first + requests->n++) % CROP_REQUESTS_MAX] = request;
    else
        ledger_lose(requests->ledger, LOSS_OVERFLOW);
    pthread_cond_signal(&requests->changed);
    pthread_mutex_unlock(&requests->lock);
}

int crop_requests_take(struct crop_requests *requests, struct crop_request *ret, int64_t until_ns)
{
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    int rc = 0;
    pthread_mutex_lock(&requests->lock);
    while (rc == 0 && requests->n == 0 && !requests->woken && !requests->stopped)
        rc = -pthread_cond_timedwait(&requests->changed, &requests->lock, &until);
    rc = requests->stopped ? -ESHUTDOWN : requests->n == 0 ? -ETIME : 0;
    requests->woken = false;
    if (rc == 0) {
        *ret = requests->request[requests->first];
        requests->first = (requests->first + 1) % CROP_REQUESTS_MAX;
        requests->n--;
    }
    pthread_mutex_unlock(&requests->lock);
    return rc;
}

void crop_requests_wake(struct crop_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    requests->woken = true;
    pthread_cond_signal(&requests->changed);
    pthread_mutex_unlock(&requests->lock);
}

void crop_requests_stop(struct crop_requests *requests, bool stopped)
{
    pthread_mutex_lock(&requests->lock);
    requests->stopped = stopped;
    pthread_cond_signal(&requests->changed);
    pthread_mutex_unlock(&requests->lock);
}
