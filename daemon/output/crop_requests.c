#include "daemon/output/crop_requests.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct crop_requests {
    struct work work; // serves requests
    const char *camera;
    const struct output_config *config;
    struct ledger *ledger;

    // Loop thread:
    struct results_receiver receiver;
    struct results *followed; // results that have the receiver; NULL: none
    uint64_t sequence;        // of the next request
    struct work_queue *queue; // NULL: not set yet
    bool working, closed;     // `work` is in progress; it frees the closed queue
    struct event ended;       // a request has ended, and others wait

    pthread_mutex_t lock; // guards all below
    pthread_cond_t changed;
    crop_server *server; // NULL: requests are late
    void *opaque;
    int serving;  // 2: a request is served; 1: only its end or the call's is awaited; 0: none
    int first, n; // of the ring
    struct crop_request request[CROP_REQUESTS_MAX];
};

// --- service

// Returns the next request to serve; false: there is none. Under lock.
static bool take_request(struct crop_requests *requests, struct crop_request *ret)
{
    if (!requests->server || requests->n == 0 || requests->serving > 0)
        return false;
    *ret = requests->request[requests->first];
    requests->first = (requests->first + 1) % CROP_REQUESTS_MAX;
    requests->n--;
    requests->serving = 2;
    return true;
}

static void run_server(struct work *work)
{
    struct crop_requests *requests = (struct crop_requests *)work;
    struct crop_request request;
    pthread_mutex_lock(&requests->lock);
    while (take_request(requests, &request)) {
        crop_server *const server = requests->server; // a drain resets it meanwhile
        void *const opaque = requests->opaque;
        pthread_mutex_unlock(&requests->lock);
        server(opaque, &request);
        pthread_mutex_lock(&requests->lock);
        requests->serving--;
        pthread_cond_broadcast(&requests->changed);
    }
    pthread_mutex_unlock(&requests->lock);
}

static void free_requests(struct crop_requests *requests)
{
    pthread_cond_destroy(&requests->changed);
    pthread_mutex_destroy(&requests->lock);
    free(requests);
}

static void start_work(struct crop_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    const bool any = requests->n > 0 && requests->serving == 0;
    pthread_mutex_unlock(&requests->lock);
    if (!any || requests->working || !requests->queue)
        return;
    requests->working = true;
    work_start(requests->queue, &requests->work);
}

static void work_ended(struct work *work)
{
    struct crop_requests *requests = (struct crop_requests *)work;
    requests->working = false;
    if (requests->closed)
        free_requests(requests);
    else
        start_work(requests);
}

static void request_ended(struct event *event)
{
    start_work((struct crop_requests *)((char *)event - offsetof(struct crop_requests, ended)));
}

// A batch's results belong to several cameras.
static void take_found(struct results_receiver *receiver, const struct found *found)
{
    struct crop_requests *requests =
        (struct crop_requests *)((char *)receiver - offsetof(struct crop_requests, receiver));
    if (strcmp(found->camera, requests->camera) == 0)
        crop_requests_add(requests, found);
}

int crop_requests_open(struct crop_requests **ret, const char *camera,
                       const struct output_config *config, struct ledger *ledger)
{
    struct crop_requests *requests = calloc(1, sizeof *requests);
    if (!requests)
        return -ENOMEM;
    requests->camera = camera;
    requests->receiver.take = take_found;
    requests->config = config;
    requests->ledger = ledger;
    requests->work.run = run_server;
    requests->work.done = work_ended;
    requests->ended.callback = request_ended;
    pthread_mutex_init(&requests->lock, NULL);
    pthread_cond_init(&requests->changed, NULL);
    *ret = requests;
    return 0;
}

void crop_requests_close(struct crop_requests *requests)
{
    if (!requests)
        return;
    event_cancel(&requests->ended);
    for (int i = 0; i < requests->n; i++)
        ledger_lose(requests->ledger, LOSS_STOPPING);
    requests->n = 0;
    requests->closed = true;
    if (!requests->working)
        free_requests(requests);
}

void crop_requests_follow(struct crop_requests *requests, struct results *results,
                          struct work_queue *queue)
{
    if (queue)
        requests->queue = queue;
    if (results == requests->followed)
        return;
    if (requests->followed)
        results_remove_receiver(requests->followed, &requests->receiver);
    if (results)
        results_add_receiver(results, &requests->receiver);
    requests->followed = results;
}

// --- which boxes

static bool is_wanted(const struct classes *classes, int class)
{
    for (int i = 0; i < classes->n; i++)
        if (classes->list[i].number == class)
            return true;
    return classes->n == 0;
}

// Computes the whole pixels, of an axis of `size` pixels, that [from, to) and its margin touch.
// Returns false if there are none, or if an end is NaN.
static bool cover(float from, float to, double margin, int size, int *first, int *length)
{
    const double more = ((double)to - from) * margin;
    const double low = fmax(floor(from - more), 0), high = fmin(ceil(to + more), size);
    if (!(from < to) || !(low < high)) // fmax and fmin ignore NaN
        return false;
    *first = (int)low;
    *length = (int)(high - low);
    return true;
}

static bool rect_of(struct rect *ret, const struct framed_detection *found, double margin,
                    const struct frame_info *frame)
{
    return cover(found->x1, found->x2, margin, frame->source_width, &ret->x, &ret->width) &&
           cover(found->y1, found->y2, margin, frame->source_height, &ret->y, &ret->height);
}

// Sorts the selected boxes into request->box by score; equal scores keep their order.
static void choose_boxes(struct crop_request *request, const struct crops_config *config,
                         const struct found *found)
{
    for (int i = 0; i < found->n; i++) {
        const struct framed_detection *one = &found->list[i];
        struct crop_box box = {.score = one->score, .object = found->index[i]};
        if (!is_wanted(&config->classes, one->class_id) ||
            !rect_of(&box.rect, one, config->margin.n / 100.0, &found->frame))
            continue;
        int at = request->n;
        while (at > 0 && request->box[at - 1].score < one->score)
            at--;
        if (at == config->most)
            continue;
        request->n += request->n < config->most;
        memmove(&request->box[at + 1], &request->box[at],
                (size_t)(request->n - 1 - at) * sizeof box);
        request->box[at] = box;
    }
}

// --- the queue

static void lose_oldest(struct crop_requests *requests, enum loss reason)
{
    ledger_lose(requests->ledger, reason);
    requests->first = (requests->first + 1) % CROP_REQUESTS_MAX;
    requests->n--;
}

void crop_requests_add(struct crop_requests *requests, const struct found *found)
{
    const struct output_config *config = requests->config;
    struct crop_request request = {.frame = found->frame, .parent_sequence = found->sequence};
    choose_boxes(&request, &config->crops, found);
    if (request.n == 0)
        return;
    strncpy(request.region, found->region, sizeof request.region - 1);
    request.sequence = requests->sequence++;
    ledger_offer(requests->ledger);
    pthread_mutex_lock(&requests->lock);
    const bool full = requests->n == CROP_REQUESTS_MAX;
    if (full && config->overflow != OVERFLOW_DROP_NEWEST)
        lose_oldest(requests, LOSS_OVERFLOW);
    if (!requests->server)
        ledger_lose(requests->ledger, LOSS_LATE);
    else if (requests->n == CROP_REQUESTS_MAX)
        ledger_lose(requests->ledger, LOSS_OVERFLOW);
    else
        requests->request[(requests->first + requests->n++) % CROP_REQUESTS_MAX] = request;
    pthread_mutex_unlock(&requests->lock);
    start_work(requests);
}

// --- the camera's crops

void crop_requests_serve(struct crop_requests *requests, crop_server *server, void *opaque)
{
    pthread_mutex_lock(&requests->lock);
    requests->server = server;
    requests->opaque = opaque;
    pthread_mutex_unlock(&requests->lock);
}

void crop_requests_done(struct crop_requests *requests, struct event_queue *events)
{
    pthread_mutex_lock(&requests->lock);
    if (--requests->serving == 0 && requests->n > 0)
        event_post(events, &requests->ended);
    pthread_cond_broadcast(&requests->changed);
    pthread_mutex_unlock(&requests->lock);
}

void crop_requests_drain(struct crop_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    requests->server = NULL;
    while (requests->n > 0)
        lose_oldest(requests, LOSS_LATE);
    while (requests->serving > 0)
        pthread_cond_wait(&requests->changed, &requests->lock);
    pthread_mutex_unlock(&requests->lock);
}
