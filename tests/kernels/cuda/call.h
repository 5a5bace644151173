// For tests of the CUDA backend: a job with its results between guard bytes, and a gate that blocks
// the device.
#ifndef FRAMED_TESTS_KERNELS_CUDA_CALL_H
#define FRAMED_TESTS_KERNELS_CUDA_CALL_H

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "kernels/backend.h"
#include "tests/kernels/cuda/camera.h"

enum { GUARD = 256, GUARD_BYTE = 0xA5, PATIENCE = 20 /* seconds */ };

static const struct backend_driver *const cuda = &cuda_backend;

static inline bool wait_seconds(sem_t *sem, int seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    int error;
    do
        error = sem_timedwait(sem, &end);
    while (error && errno == EINTR);
    return !error;
}

static inline bool wait_for(sem_t *sem)
{
    return wait_seconds(sem, PATIENCE);
}

// --- a job and its results, consecutive in one piece of memory

struct call {
    struct job job;
    struct job_result results[OPS];
    sem_t done;
    int status, calls;
    enum memory memory; // of the results
    size_t bytes;       // whole pages
    uint8_t *host;      // the results, or a copy of them
    struct device_export device;
};

static inline void note_done(struct job *job, int status)
{
    struct call *call = (struct call *)job->opaque;
    call->status = status;
    call->calls++;
    sem_post(&call->done);
}

static inline size_t result_room(const struct op *op)
{
    return (op->dst_bytes + GUARD - 1) / GUARD * GUARD + GUARD;
}

// Fills all results and guards with guard bytes. Returns false on a device error.
static inline bool call_clear(struct call *call)
{
    memset(call->host, GUARD_BYTE, call->bytes);
    return call->memory != MEMORY_CUDA ||
           (!cudaMemset(call->device.address, GUARD_BYTE, call->bytes) &&
            !cudaStreamSynchronize(cudaStreamLegacy));
}

static inline void call_init(struct call *call, struct backend *backend,
                             const struct camera *camera, const struct image *src,
                             enum memory memory)
{
    memset(call, 0, sizeof *call);
    sem_init(&call->done, 0, 0);
    call->memory = memory;
    call->job.src = *src;
    call->job.done = note_done;
    call->job.opaque = call;
    call->job.results = call->results;
    call->job.n = OPS;
    call->bytes = GUARD;
    for (int i = 0; i < OPS; i++)
        call->bytes += result_room(&camera->op[i]);
    call->bytes = (call->bytes + 4095) / 4096 * 4096;
    call->host = (uint8_t *)aligned_alloc(4096, call->bytes);
    uint8_t *base = call->host;
    if (memory == MEMORY_PINNED) {
        CHECK(!cuda->pin(backend, call->host, call->bytes), "pin");
    } else if (memory == MEMORY_CUDA) {
        CHECK(!cuda->export_open(backend, &call->device, EXPORT_DESCRIPTOR, call->bytes),
              "export_open");
        base = (uint8_t *)call->device.address;
    }
    base += GUARD;
    for (int i = 0; i < OPS; i++) {
        call->results[i].data = base;
        call->results[i].memory = memory;
        base += result_room(&camera->op[i]);
    }
    if (memory != MEMORY_HOST)
        call->results[MOVES].op = &camera->moved;
    CHECK(call_clear(call), "memset");
}

static inline void call_finish(struct call *call, struct backend *backend)
{
    if (call->memory == MEMORY_PINNED)
        cuda->unpin(backend, call->host);
    if (call->memory == MEMORY_CUDA)
        cuda->export_close(backend, &call->device);
    free(call->host);
    sem_destroy(&call->done);
}

static inline int bytes_unlike(const uint8_t *memory, size_t bytes, int value)
{
    int unlike = 0;
    for (size_t i = 0; i < bytes; i++)
        unlike += memory[i] != value;
    return unlike;
}

// Counts results that differ from the reference or whose guards were overwritten.
static inline int call_wrong(struct call *call, const struct camera *camera)
{
    const uint8_t *at = call->host + GUARD;
    int wrong = 0;
    if (call->memory == MEMORY_CUDA)
        wrong += cudaMemcpy(call->host, call->device.address, call->bytes,
                            cudaMemcpyDeviceToHost) != cudaSuccess;
    wrong += bytes_unlike(call->host, GUARD, GUARD_BYTE) != 0;
    for (int i = 0; i < OPS; i++) {
        const size_t bytes = camera->op[i].dst_bytes, room = result_room(&camera->op[i]);
        const uint8_t *expected =
            call->results[i].op ? camera->moved_expected : camera->expected[i];
        if (call->results[i].data)
            wrong += !!memcmp(at, expected, bytes);
        else
            wrong += bytes_unlike(at, bytes, GUARD_BYTE) != 0;
        wrong += bytes_unlike(at + bytes, room - bytes, GUARD_BYTE) != 0;
        at += room;
    }
    return wrong;
}

// Waits for the job, compares its results and clears them for the next job.
static inline void call_check(struct call *call, const struct camera *camera, const char *what)
{
    CHECK(wait_for(&call->done), "%s: done was not called", what);
    CHECK(call->status == 0, "%s: status %d", what, call->status);
    const int wrong = call_wrong(call, camera);
    CHECK(wrong == 0, "%s: %s: %d wrong, results in memory %d", what,
          pixel_format_name(camera->src.format), wrong, call->memory);
    CHECK(call_clear(call), "memset");
}

// --- a gate in the legacy stream: later work waits until it is opened

struct gate {
    sem_t open, passed;
    int patience; // seconds
    bool timed_out;
};

static inline void wait_at_gate(void *argument)
{
    struct gate *gate = (struct gate *)argument;
    gate->timed_out = !wait_seconds(&gate->open, gate->patience);
    sem_post(&gate->passed);
}

static inline void gate_close(struct gate *gate, int patience)
{
    sem_init(&gate->open, 0, 0);
    sem_init(&gate->passed, 0, 0);
    gate->patience = patience;
    CHECK(!cudaLaunchHostFunc(cudaStreamLegacy, wait_at_gate, gate), "gate");
}

// Returns false if the gate gave up before it was opened.
static inline bool gate_open(struct gate *gate)
{
    sem_post(&gate->open);
    sem_wait(&gate->passed);
    sem_destroy(&gate->open);
    sem_destroy(&gate->passed);
    return !gate->timed_out;
}

template <int VALUE> static __global__ void set_byte(uint8_t *at)
{
    *at = VALUE;
}

// Mimics a job after a frame in the legacy stream: a wait, a kernel and a copy on another stream.
static inline cudaError_t work_behind(cudaStream_t stream, cudaEvent_t event, uint8_t *memory,
                                      uint8_t *pinned)
{
    cudaError_t error = cudaMemsetAsync(memory, 0, 4096, cudaStreamLegacy);
    if (!error)
        error = cudaEventRecord(event, cudaStreamLegacy);
    if (!error)
        error = cudaStreamWaitEvent(stream, event, 0);
    if (!error) {
        set_byte<0><<<1, 1, 0, stream>>>(memory);
        error = cudaMemcpyAsync(pinned, memory, 4096, cudaMemcpyDeviceToHost, stream);
    }
    return error;
}

// Returns false if something (a memory checker, an environment variable) makes work wait for the
// device: a gate would then block the test itself.
static inline bool gates_work(void)
{
    struct gate gate;
    cudaStream_t stream;
    cudaEvent_t event;
    uint8_t *memory = NULL, *pinned = NULL;
    CHECK(!cudaMalloc((void **)&memory, 4096), "malloc");
    CHECK(!cudaMallocHost((void **)&pinned, 4096), "malloc");
    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    CHECK(!cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    CHECK(!work_behind(stream, event, memory, pinned), "work"); // loads the kernel
    CHECK(!cudaDeviceSynchronize(), "work");
    gate_close(&gate, 1);
    CHECK(!work_behind(stream, event, memory, pinned), "work");
    const bool work = gate_open(&gate);
    CHECK(!cudaDeviceSynchronize(), "work");
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaFreeHost(pinned);
    cudaFree(memory);
    if (!work)
        SKIP("work waits for the device here: no check that submit does not");
    return work;
}

#endif
