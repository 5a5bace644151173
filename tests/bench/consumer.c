#include "tests/bench/consumer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/bench/sample.h"

enum {
    HANDS_MAX = 4,
    RINGS_PER_HAND = 40, // minimum before another thread is added
    BURST = 8,           // frames read from one ring before the next ring's turn
    PAUSE_MS = 20,       // between attempts to connect
};

struct latency { // of one frame, ms
    double finished, decoded;
    double sent; // from sent to finished; negative: unknown
};

struct account { // of one ring
    const struct consumer *consumer;
    struct latency *latency; // since the last reset
    size_t n, room;
    int64_t first_ns; // first frame's arrival; 0: none yet
    bool begun;       // `base` is set
    int64_t base;     // sent index minus sequence, at the first frame whose picture is known
    uint64_t unseen;  // pictures sent since then that became no frame
};

// One thread and its rings: every HANDS-th of them.
struct hand {
    struct consumer *consumer;
    pthread_t thread;
    pthread_mutex_t lock; // protects its rings and accounts
    int index, epoll;
    bool started;
};

struct consumer {
    const char *folder;
    struct ring *rings; // n rings, one per account
    struct account *accounts;
    int n, hands;
    struct hand hand[HANDS_MAX];
    const struct expected *expected;
    const struct rtsp_server *server;
    _Atomic bool stop;
};

// Returns the index, over all turns of the clip, of the picture that the ring's camera sent for
// this frame; negative: unknown.
static int64_t sent_index(const struct account *account, const struct framed_header *header)
{
    const struct consumer *consumer = account->consumer;
    const int camera = (int)(account - consumer->accounts);
    return header->flags & FRAMED_FLAG_CAPTURE_CLOCK
               ? rtsp_server_index(consumer->server, camera, header->capture_ns)
               : -1;
}

static int64_t clip_picture(void *opaque, const struct framed_header *header)
{
    const struct account *account = opaque;
    const int64_t index = sent_index(account, header);
    return index < 0 ? -1 : index % rtsp_server_pictures(account->consumer->server);
}

// Returns ms from the sending of the frame's picture to finished; negative: unknown. If the
// picture's index grew by more than the frame's sequence, the pictures between became no frames.
static double sent_ms(const struct consumer *consumer, int i, const struct framed_header *header)
{
    struct account *account = &consumer->accounts[i];
    const int64_t index = consumer->server ? sent_index(account, header) : -1;
    const int64_t sent_ns = index < 0 ? 0 : rtsp_server_sent(consumer->server, i, index);
    const int64_t distance = index - (int64_t)header->sequence;
    if (index >= 0 && !account->begun) {
        account->begun = true;
        account->base = distance;
    }
    if (index >= 0 && distance - account->base > (int64_t)account->unseen)
        account->unseen = (uint64_t)(distance - account->base);
    return sent_ns ? (double)(header->finished_ns - sent_ns) / 1e6 : -1;
}

static void note(struct account *account, const struct framed_header *header, double sent)
{
    if (account->first_ns == 0)
        account->first_ns = monotonic_ns();
    if (account->n == account->room) {
        const size_t room = account->room ? 2 * account->room : 256;
        struct latency *latency = realloc(account->latency, room * sizeof *latency);
        if (!latency)
            return;
        account->latency = latency;
        account->room = room;
    }
    account->latency[account->n++] = (struct latency){
        .finished = (double)(header->finished_ns - header->received_ns) / 1e6,
        .decoded = (double)(header->decoded_ns - header->received_ns) / 1e6,
        .sent = sent,
    };
}

// Reads up to BURST frames of one ring.
static void serve(struct consumer *consumer, int i)
{
    struct framed_header header;
    for (int n = 0; n < BURST; n++) {
        int rc = ring_read(&consumer->rings[i], consumer->expected, &header);
        if (rc < 0)
            return;
        if (rc > 0)
            note(&consumer->accounts[i], &header, sent_ms(consumer, i, &header));
    }
}

// Connects the rings that are missing or lost. Returns true when all are connected.
static bool connect_rings(struct hand *hand)
{
    struct consumer *consumer = hand->consumer;
    bool all = true;
    for (int i = hand->index; i < consumer->n; i += consumer->hands) {
        char path[96];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        if (consumer->rings[i].fd >= 0)
            continue;
        ring_path(consumer->folder, i, path);
        if (ring_connect(&consumer->rings[i], path) == 0)
            epoll_ctl(hand->epoll, EPOLL_CTL_ADD, consumer->rings[i].fd, &event);
        else
            all = false;
    }
    return all;
}

static void *work(void *opaque)
{
    struct hand *hand = opaque;
    struct consumer *consumer = hand->consumer;
    struct epoll_event events[64];
    int64_t try_ns = 0;
    while (!atomic_load(&consumer->stop)) {
        const int64_t now = monotonic_ns();
        if (now >= try_ns) {
            pthread_mutex_lock(&hand->lock);
            connect_rings(hand);
            pthread_mutex_unlock(&hand->lock);
            try_ns = now + PAUSE_MS * INT64_C(1000000);
        }
        const int n = epoll_wait(hand->epoll, events, 64, PAUSE_MS);
        pthread_mutex_lock(&hand->lock);
        for (int i = 0; i < n; i++)
            serve(consumer, (int)events[i].data.u32);
        pthread_mutex_unlock(&hand->lock);
    }
    return NULL;
}

// --- called from other threads

static struct hand *hand_of(struct consumer *consumer, int ring)
{
    return &consumer->hand[ring % consumer->hands];
}

static void open_account(struct consumer *consumer, int i)
{
    consumer->accounts[i].consumer = consumer;
    consumer->rings[i] = (struct ring){.fd = -1,
                                       .picture = consumer->server ? clip_picture : NULL,
                                       .opaque = &consumer->accounts[i]};
}

static int start_hand(struct consumer *consumer, int index)
{
    struct hand *hand = &consumer->hand[index];
    *hand = (struct hand){.consumer = consumer, .index = index};
    hand->epoll = epoll_create1(EPOLL_CLOEXEC);
    pthread_mutex_init(&hand->lock, NULL);
    int rc = hand->epoll < 0 ? -errno : -pthread_create(&hand->thread, NULL, work, hand);
    hand->started = rc == 0;
    return rc;
}

int consumer_open(struct consumer **ret, const char *folder, int n, const struct expected *expected,
                  const struct rtsp_server *server)
{
    struct consumer *consumer = calloc(1, sizeof *consumer);
    if (!consumer)
        return -ENOMEM;
    *consumer = (struct consumer){.folder = folder, .n = n, .expected = expected, .server = server};
    consumer->hands = 1 + n / RINGS_PER_HAND < HANDS_MAX ? 1 + n / RINGS_PER_HAND : HANDS_MAX;
    consumer->rings = calloc((size_t)n, sizeof *consumer->rings);
    consumer->accounts = calloc((size_t)n, sizeof *consumer->accounts);
    int rc = consumer->rings && consumer->accounts ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++)
        open_account(consumer, i);
    for (int i = 0; rc == 0 && i < consumer->hands; i++)
        rc = start_hand(consumer, i);
    if (rc < 0)
        consumer_close(consumer);
    else
        *ret = consumer;
    return rc;
}

void consumer_close(struct consumer *consumer)
{
    if (!consumer)
        return;
    atomic_store(&consumer->stop, true);
    for (int i = 0; i < HANDS_MAX; i++) {
        struct hand *hand = &consumer->hand[i];
        if (hand->started)
            pthread_join(hand->thread, NULL);
        if (!hand->consumer)
            continue;
        pthread_mutex_destroy(&hand->lock);
        if (hand->epoll >= 0)
            close(hand->epoll);
    }
    for (int i = 0; i < consumer->n && consumer->rings && consumer->accounts; i++) {
        ring_close(&consumer->rings[i]);
        free(consumer->accounts[i].latency);
    }
    free(consumer->accounts);
    free(consumer->rings);
    free(consumer);
}

int consumer_up(struct consumer *consumer, int n, int64_t *last_ns)
{
    int up = 0;
    *last_ns = 0;
    for (int i = 0; i < n; i++) {
        struct hand *hand = hand_of(consumer, i);
        pthread_mutex_lock(&hand->lock);
        const int64_t first_ns = consumer->accounts[i].first_ns;
        pthread_mutex_unlock(&hand->lock);
        up += first_ns > 0;
        *last_ns = first_ns > *last_ns ? first_ns : *last_ns;
    }
    return up;
}

void consumer_reset(struct consumer *consumer)
{
    for (int i = 0; i < consumer->n; i++) {
        struct hand *hand = hand_of(consumer, i);
        pthread_mutex_lock(&hand->lock);
        consumer->accounts[i].n = 0;
        pthread_mutex_unlock(&hand->lock);
    }
}

// Latencies of all rings; each list is independent.
struct gathered {
    double *finished, *decoded, *sent;
    size_t n, timed; // timed: entries in `sent`
};

static int grow(double **list, size_t n)
{
    double *grown = realloc(*list, (n + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *list = grown;
    return 0;
}

// Adds the latencies and counters of one ring.
static int gather(struct consumer *consumer, int i, struct gathered *all, struct consumed *ret)
{
    const struct account *account = &consumer->accounts[i];
    const struct ring *ring = &consumer->rings[i];
    const size_t n = all->n + account->n;
    if (grow(&all->finished, n) < 0 || grow(&all->decoded, n) < 0 || grow(&all->sent, n) < 0)
        return -ENOMEM;
    for (size_t k = 0; k < account->n; k++) {
        all->finished[all->n + k] = account->latency[k].finished;
        all->decoded[all->n + k] = account->latency[k].decoded;
        if (account->latency[k].sent >= 0)
            all->sent[all->timed++] = account->latency[k].sent;
    }
    all->n = n;
    ret->unseen += account->unseen;
    ret->lost += ring->lost;
    ret->torn += ring->torn;
    ret->checked += ring->checked;
    ret->wrong += ring->wrong;
    return 0;
}

int consumer_result(struct consumer *consumer, int n, struct consumed *ret)
{
    struct gathered all = {0};
    int rc = 0;
    *ret = (struct consumed){0};
    for (int i = 0; rc == 0 && i < n; i++) {
        struct hand *hand = hand_of(consumer, i);
        pthread_mutex_lock(&hand->lock);
        rc = gather(consumer, i, &all, ret);
        pthread_mutex_unlock(&hand->lock);
    }
    ret->frames = all.n;
    ret->p50_ms = sample_percentile(all.finished, all.n, 50);
    ret->p99_ms = sample_percentile(all.finished, all.n, 99);
    ret->max_ms = sample_percentile(all.finished, all.n, 100);
    ret->decoded_p50_ms = sample_percentile(all.decoded, all.n, 50);
    ret->decoded_p99_ms = sample_percentile(all.decoded, all.n, 99);
    ret->sent_p50_ms = sample_percentile(all.sent, all.timed, 50);
    ret->sent_p99_ms = sample_percentile(all.sent, all.timed, 99);
    ret->sent_max_ms = sample_percentile(all.sent, all.timed, 100);
    ret->timed = all.timed;
    free(all.sent);
    free(all.finished);
    free(all.decoded);
    return rc;
}
