#include "tests/bench/floor.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

enum { WARM_UP = 3, THREADS_MAX = 1024 };

struct floor {
    uint8_t *from, *to;
    size_t read, written;
    int threads, rounds;
    pthread_barrier_t barrier; // all threads and the measuring one
    pthread_mutex_t lock;      // held until all threads have started or failed to
    bool cancelled;
};

struct part {
    struct floor *floor;
    int index;
    uint64_t sum; // keeps the reads
    int64_t start_ns, end_ns;
};

static size_t share(size_t bytes, int index, int threads)
{
    return bytes / (size_t)threads * (size_t)index;
}

static uint64_t sum_of(const uint8_t *from, size_t bytes)
{
    uint64_t sum = 0, word;
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, from + i, sizeof word);
        sum += word;
    }
    return sum;
}

static void move(struct part *part)
{
    const struct floor *floor = part->floor;
    const int n = floor->threads;
    const size_t read = floor->read / (size_t)n, written = floor->written / (size_t)n;
    const size_t both = read < written ? read : written;
    const uint8_t *from = floor->from + share(floor->read, part->index, n);
    uint8_t *to = floor->to + share(floor->written, part->index, n);
    memcpy(to, from, both);
    memset(to + both, (int)part->sum & 255, written - both);
    part->sum += sum_of(from + both, read - both);
}

// Each round is between two barriers.
static void *run_part(void *opaque)
{
    struct part *part = opaque;
    pthread_mutex_lock(&part->floor->lock);
    const bool cancelled = part->floor->cancelled;
    pthread_mutex_unlock(&part->floor->lock);
    for (int i = cancelled ? part->floor->rounds : -WARM_UP; i < part->floor->rounds; i++) {
        pthread_barrier_wait(&part->floor->barrier);
        part->start_ns = monotonic_ns();
        move(part);
        part->end_ns = monotonic_ns();
        pthread_barrier_wait(&part->floor->barrier);
    }
    return NULL;
}

// Returns the time from the first thread's start to the last thread's end; the measuring thread may
// wake late.
static double span(const struct floor *floor, const struct part parts[])
{
    int64_t start_ns = INT64_MAX, end_ns = 0;
    for (int i = 0; i < floor->threads; i++) {
        start_ns = parts[i].start_ns < start_ns ? parts[i].start_ns : start_ns;
        end_ns = parts[i].end_ns > end_ns ? parts[i].end_ns : end_ns;
    }
    return (double)(end_ns - start_ns) / 1e9;
}

static void time_rounds(struct floor *floor, const struct part parts[], double seconds[])
{
    for (int i = -WARM_UP; i < floor->rounds; i++) {
        pthread_barrier_wait(&floor->barrier);
        pthread_barrier_wait(&floor->barrier);
        if (i >= 0)
            seconds[i] = span(floor, parts);
    }
}

static int run(struct floor *floor, double seconds[])
{
    struct part parts[THREADS_MAX];
    pthread_t id[THREADS_MAX];
    int started = 0, rc = 0;
    pthread_mutex_lock(&floor->lock);
    for (; started < floor->threads && rc == 0; started += rc == 0) {
        parts[started] = (struct part){.floor = floor, .index = started};
        rc = pthread_create(&id[started], NULL, run_part, &parts[started]);
    }
    floor->cancelled = rc != 0;
    pthread_mutex_unlock(&floor->lock);
    if (rc == 0)
        time_rounds(floor, parts, seconds);
    for (int i = 0; i < started; i++)
        pthread_join(id[i], NULL);
    return -rc;
}

int floor_measure(int threads, size_t read, size_t written, int rounds, double seconds[])
{
    struct floor floor = {.read = read, .written = written, .rounds = rounds};
    floor.threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    floor.from = malloc(read);
    floor.to = malloc(written);
    int rc = floor.from && floor.to ? 0 : -ENOMEM;
    if (rc == 0) {
        for (size_t i = 0; i < read; i++)
            floor.from[i] = (uint8_t)(i * 2654435761u >> 24);
        pthread_mutex_init(&floor.lock, NULL);
        pthread_barrier_init(&floor.barrier, NULL, (unsigned)floor.threads + 1);
        rc = run(&floor, seconds);
        pthread_barrier_destroy(&floor.barrier);
        pthread_mutex_destroy(&floor.lock);
    }
    free(floor.to);
    free(floor.from);
    return rc;
}
