// A device that fails: the CUDA backend reports every job once, takes no more, and can be closed.
// The failure is a source address that the device cannot read, which spoils the context of the
// whole process: hence a program of its own (and one that memory checkers rightly complain about).
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "tests/test.h"

enum { JOBS = 4, SIDE = 64 };

struct call {
    struct job job;
    sem_t done;
    int status, calls;
};

static void note_done(struct job *job, int status)
{
    struct call *call = (struct call *)job->opaque;
    call->status = status;
    call->calls++;
    sem_post(&call->done);
}

static bool wait_for(sem_t *sem)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    return sem_timedwait(sem, &end) == 0;
}

static void test_failure(struct backend *backend, const struct op *op, const struct image *good,
                         const struct image *bad)
{
    static struct call call[JOBS];
    struct plan *plan;
    int submitted = 0;
    CHECK(cuda_backend.plan_open(backend, &plan, good, &op, 1, JOBS) == 0, "plan_open");
    for (int i = 0; i < JOBS; i++) {
        sem_init(&call[i].done, 0, 0);
        call[i].job.src = i == 1 ? *bad : *good;
        call[i].job.result[0] = cuda_backend.alloc(backend, op->dst_bytes);
        call[i].job.done = note_done;
        call[i].job.opaque = &call[i];
    }
    CHECK(cuda_backend.submit(plan, &call[0].job) == 0, "good job");
    CHECK(wait_for(&call[0].done) && call[0].status == 0, "good job: %d", call[0].status);
    call[0].calls = 0;

    CHECK(cuda_backend.submit(plan, &call[1].job) == 0, "bad job");
    for (submitted = 2; submitted < JOBS; submitted++) // beside and behind the bad one
        if (cuda_backend.submit(plan, &call[submitted].job) != 0)
            break;
    for (int i = 1; i < submitted; i++)
        CHECK(wait_for(&call[i].done), "job %d was never reported", i);
    CHECK(call[1].status == -EIO, "bad job: %d", call[1].status);
    CHECK(cuda_backend.submit(plan, &call[0].job) == -EIO, "a job for a failed device was taken");

    cuda_backend.plan_close(plan);
    for (int i = 1; i < JOBS; i++)
        CHECK(call[i].calls == (i < submitted), "job %d: done %d times", i, call[i].calls);
    CHECK(call[0].calls == 0, "done for a job that was not taken");
}

int main(void)
{
    struct backend_options options;
    struct op_params params;
    struct image good, bad;
    struct op op;
    struct backend *backend = NULL;

    memset(&options, 0, sizeof options);
    memset(&params, 0, sizeof params);
    memset(&good, 0, sizeof good);
    good.format = PIXEL_BGRA;
    good.width = good.height = SIDE;
    void *memory = calloc(1, image_lay_out(&good, NULL));
    image_lay_out(&good, memory);
    bad = good;
    bad.memory = MEMORY_CUDA;
    bad.plane[0].data = (uint8_t *)4096;
    params.kind = OP_YUV;
    params.yuv.format = PIXEL_NV12;
    CHECK(op_init(&op, &params, &good) == 0, "op_init");

    int error = cuda_backend.open(&backend, &options);
    CHECK(error == 0 || error == -ENODEV, "open: %d", error);
    if (error) {
        puts("no CUDA device: skipped");
    } else {
        test_failure(backend, &op, &good, &bad);
        cuda_backend.close(backend);
    }
    op_finish(&op);
    free(memory);
    return test_end("cuda_failure");
}
