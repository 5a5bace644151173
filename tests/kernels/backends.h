// The backends for tests of kernels: every driver in several settings, as far as this machine has
// them.
#ifndef FRAMED_TESTS_KERNELS_BACKENDS_H
#define FRAMED_TESTS_KERNELS_BACKENDS_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/backend.h"

struct setting {
    const char *name;
    const struct backend_driver *driver;
    struct backend_options options;
};

static const struct setting settings[] = {
    {"cpu, 1 worker, small bands", &cpu_backend, {.workers = 1, .band_bytes = 2048}},
    {"cpu, 3 workers", &cpu_backend, {.workers = 3}},
    {"cpu, 3 workers, tiny bands", &cpu_backend, {.workers = 3, .band_bytes = 1}},
#ifdef FRAMED_CUDA
    {"cuda", &cuda_backend, {0}},
    {"cuda, small bands", &cuda_backend, {.band_bytes = 2048}},
    {"cuda, 1 stream, small bands", &cuda_backend, {.streams = 1, .band_bytes = 2048}},
    {"cuda, 2 streams, small bands", &cuda_backend, {.streams = 2, .band_bytes = 2048}},
    {"cuda, 8 streams", &cuda_backend, {.streams = 8}},
    {"cuda, 32 streams, tiny bands", &cuda_backend, {.streams = 32, .band_bytes = 1}},
#endif
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

// Returns NULL and increments `missing` if the machine has no such device. The cpu always exists.
static inline struct backend *setting_open(const struct setting *setting, int *missing)
{
    struct backend *backend = NULL;
    const int error = setting->driver->open(&backend, &setting->options);
    if (error == 0)
        return backend;
    CHECK(setting->driver != &cpu_backend && error == -ENODEV, "open: %d: %s", error,
          setting->name);
    ++*missing;
    return NULL;
}

// Allocates memory for results, page-locked if the backend supports it.
static inline void *pinned_new(const struct setting *setting, struct backend *backend, size_t bytes)
{
    const size_t page = 4096, whole = (bytes + page - 1) / page * page;
    void *memory = aligned_alloc(page, whole);
    const int error = setting->driver->pin(backend, memory, whole);
    CHECK(error == 0, "pin: %d: %s", error, setting->name);
    return memory;
}

static inline void pinned_free(const struct setting *setting, struct backend *backend, void *memory)
{
    setting->driver->unpin(backend, memory);
    free(memory);
}

// Counts finished jobs.
struct tally {
    pthread_mutex_t lock;
    pthread_cond_t change;
    int done, failed;
};

static inline void tally_done(struct job *job, int status)
{
    struct tally *tally = job->opaque;
    pthread_mutex_lock(&tally->lock);
    tally->done++;
    tally->failed += status != 0;
    pthread_cond_signal(&tally->change);
    pthread_mutex_unlock(&tally->lock);
}

static inline void tally_wait(struct tally *tally, int done)
{
    pthread_mutex_lock(&tally->lock);
    while (tally->done < done)
        pthread_cond_wait(&tally->change, &tally->lock);
    pthread_mutex_unlock(&tally->lock);
}

// Runs the reference over the whole picture into a tight layout at `result`.
static inline void run_reference(const struct op *op, const struct image *src, void *result)
{
    struct image dst;
    op_lay_out(op, &dst, result);
    const struct band all = {0, dst.height};
    op_reference(&dst, src, op, all, false);
}

#endif
