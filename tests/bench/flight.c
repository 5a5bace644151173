#include "tests/bench/flight.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"

enum { WARM_UP = 3 };

static void land(struct job *job, int status)
{
    struct shuttle *shuttle = job->opaque;
    shuttle->landed_ns = monotonic_ns();
    shuttle->status = status;
    sem_post(&shuttle->done);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

// Fills the frames with different pictures as far as available, each in memory of its own.
static int fill(struct flight *flight, const struct footage *footage)
{
    for (int i = 0; i < flight->depth; i++) {
        struct shuttle *shuttle = &flight->shuttle[i];
        uint8_t *memory = flight->sources.base + (size_t)i * flight->source_stride;
        shuttle->job.src = flight->shape;
        image_lay_out(&shuttle->job.src, memory);
        shuttle->job.src.memory = flight->sources.memory;
        shuttle->result.data = flight->results.base + (size_t)i * flight->result_stride;
        shuttle->result.memory = flight->results.memory;
        shuttle->job.results = &shuttle->result;
        shuttle->job.n = 1;
        shuttle->job.done = land;
        shuttle->job.opaque = shuttle;
        const int first = i % footage->n;
        int rc = 0;
        if (i < footage->n)
            rc = footage_fill(footage, i, &shuttle->job.src);
        else
            memcpy(memory, flight->sources.base + (size_t)first * flight->source_stride,
                   flight->source_bytes);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int open_memory(struct flight *flight)
{
    const size_t n = (size_t)flight->depth;
    flight->source_bytes = image_lay_out(&flight->shape, NULL);
    flight->source_stride = aligned(flight->source_bytes);
    flight->result_stride = aligned(flight->op.dst_bytes);
    int rc = region_open(&flight->sources, REGION_PRIVATE, n * flight->source_stride, NULL, NULL);
    if (rc < 0)
        return rc;
    rc = region_open(&flight->results, REGION_PRIVATE, n * flight->result_stride, NULL, NULL);
    if (rc < 0)
        return rc;
    region_pin(&flight->sources, flight->driver, flight->backend);
    region_pin(&flight->results, flight->driver, flight->backend);
    return 0;
}

int flight_open(struct flight *flight, const struct backend_driver *driver, struct backend *backend,
                const struct op_params *params, const struct image *shape,
                const struct footage *footage, int depth)
{
    *flight = (struct flight){.driver = driver, .backend = backend, .shape = *shape};
    flight->depth = depth;
    for (int i = 0; i < FLIGHT_MAX; i++)
        sem_init(&flight->shuttle[i].done, 0, 0);
    int rc = op_init(&flight->op, params, shape);
    if (rc < 0) {
        *flight = (struct flight){0};
        return rc;
    }
    const struct op *const ops[] = {&flight->op};
    rc = open_memory(flight);
    if (rc == 0)
        rc = fill(flight, footage);
    if (rc == 0)
        rc = driver->plan_open(backend, &flight->plan, &flight->shuttle[0].job.src, ops, 1, depth);
    if (rc < 0)
        flight_close(flight);
    return rc;
}

bool flight_pinned(const struct flight *flight)
{
    return flight->sources.memory == MEMORY_PINNED && flight->results.memory == MEMORY_PINNED;
}

void flight_close(struct flight *flight)
{
    if (!flight->driver)
        return;
    flight->driver->plan_close(flight->plan);
    region_close(&flight->results);
    region_close(&flight->sources);
    op_finish(&flight->op);
    for (int i = 0; i < FLIGHT_MAX; i++)
        sem_destroy(&flight->shuttle[i].done);
    *flight = (struct flight){0};
}

// --- measuring

static int wait_for(struct shuttle *shuttle)
{
    while (sem_wait(&shuttle->done) != 0)
        ;
    return shuttle->status;
}

// Runs `frames` frames; each starts as soon as fewer than `in_flight` are under way.
static int fly(struct flight *flight, int in_flight, int frames)
{
    int rc = 0, started = 0, landed = 0;
    while (landed < started || (started < frames && rc == 0)) {
        if (started < frames && started - landed < in_flight && rc == 0) {
            rc = flight->driver->submit(flight->plan, &flight->shuttle[started % in_flight].job);
            started += rc == 0;
            continue;
        }
        const int status = wait_for(&flight->shuttle[landed++ % in_flight]);
        rc = rc < 0 ? rc : status;
    }
    return rc;
}

int flight_steady(struct flight *flight, int in_flight, int frames, int rounds, double seconds[])
{
    int rc = fly(flight, in_flight, frames);
    for (int i = 0; rc == 0 && i < rounds; i++) {
        const int64_t start = monotonic_ns();
        rc = fly(flight, in_flight, frames);
        seconds[i] = (double)(monotonic_ns() - start) / 1e9 / frames;
    }
    return rc;
}

int flight_alone(struct flight *flight, int rounds, double seconds[])
{
    int rc = fly(flight, 1, WARM_UP);
    for (int i = 0; rc == 0 && i < rounds; i++) {
        const int64_t start = monotonic_ns();
        rc = fly(flight, 1, 1);
        seconds[i] = (double)(flight->shuttle[0].landed_ns - start) / 1e9;
    }
    return rc;
}
