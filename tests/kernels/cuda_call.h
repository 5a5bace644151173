// For tests of the CUDA backend: a job with its results and guard bytes around them, and a gate
// that holds the device up.
#ifndef FRAMED_TESTS_KERNELS_CUDA_CALL_H
#define FRAMED_TESTS_KERNELS_CUDA_CALL_H

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "kernels/backend.h"
#include "tests/kernels/cuda_camera.h"

enum { GUARD = 64, GUARD_BYTE = 0xA5, PATIENCE = 20 /* seconds */ };

static const struct backend_driver *const cuda = &cuda_backend;

static inline bool wait_for(sem_t *sem)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    int error;
    do
        error = sem_timedwait(sem, &end);
    while (error && errno == EINTR);
    return !error;
}

struct call {
    struct job job;
    sem_t done;
    int status, calls;
    uint8_t *memory[OPS];
    bool plain; // results in memory that is not page-locked
};

static inline void note_done(struct job *job, int status)
{
    struct call *call = (struct call *)job->opaque;
    call->status = status;
    call->calls++;
    sem_post(&call->done);
}

static inline void call_init(struct call *call, struct backend *backend,
                             const struct camera *camera, const struct image *src, bool plain)
{
    memset(call, 0, sizeof *call);
    sem_init(&call->done, 0, 0);
    call->plain = plain;
    call->job.src = *src;
    call->job.done = note_done;
    call->job.opaque = call;
    for (int i = 0; i < OPS; i++) {
        size_t bytes = camera->op[i].dst_bytes + 2 * GUARD;
        call->memory[i] = (uint8_t *)(plain ? malloc(bytes) : cuda->alloc(backend, bytes));
        call->job.result[i] = call->memory[i] + GUARD;
        memset(call->memory[i], GUARD_BYTE, bytes);
    }
}

static inline void call_finish(struct call *call, struct backend *backend)
{
    for (int i = 0; i < OPS; i++) {
        if (call->plain)
            free(call->memory[i]);
        else
            cuda->free(backend, call->memory[i]);
    }
    sem_destroy(&call->done);
}

static inline bool guards_hold(const uint8_t *memory, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        if (memory[i] != GUARD_BYTE || memory[GUARD + bytes + i] != GUARD_BYTE)
            return false;
    return true;
}

// Waits for the job, compares its results and clears them for the next one.
static inline void call_check(struct call *call, const struct camera *camera, const char *what)
{
    CHECK(wait_for(&call->done), "%s: done was not called", what);
    CHECK(call->status == 0, "%s: status %d", what, call->status);
    for (int i = 0; i < OPS; i++) {
        size_t bytes = camera->op[i].dst_bytes;
        if (call->job.result[i])
            CHECK(!memcmp(call->job.result[i], camera->expected[i], bytes),
                  "%s: %s op %d (plain %d) differs", what, pixel_format_name(camera->src.format), i,
                  call->plain);
        CHECK(guards_hold(call->memory[i], bytes), "%s: op %d wrote beside its result", what, i);
        memset(call->memory[i] + GUARD, GUARD_BYTE, bytes);
    }
}

// --- a gate in the legacy stream: what is behind it has not happened until it is opened

struct gate {
    sem_t open, passed;
    bool timed_out;
};

static inline void wait_at_gate(void *argument)
{
    struct gate *gate = (struct gate *)argument;
    gate->timed_out = !wait_for(&gate->open);
    sem_post(&gate->passed);
}

static inline void gate_close(struct gate *gate)
{
    sem_init(&gate->open, 0, 0);
    sem_init(&gate->passed, 0, 0);
    CHECK(!cudaLaunchHostFunc(cudaStreamLegacy, wait_at_gate, gate), "gate");
}

static inline void gate_open(struct gate *gate)
{
    sem_post(&gate->open);
    sem_wait(&gate->passed);
    CHECK(!gate->timed_out, "submit waited for the device");
    sem_destroy(&gate->open);
    sem_destroy(&gate->passed);
}

#endif
