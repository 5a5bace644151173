// bench-workers: the gain of several workers of the cpu backend over one, from submit to done, one
// frame at a time. `make bench-workers` builds and runs it; FRAMED_CPU selects the version of the
// kernels.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tests/bench/peers/times.h"

enum { FRAMES = 16, ROUNDS = 7, WORKERS_MOST = 64 };
_Static_assert(TIMES_MAX >= FRAMES * ROUNDS, "every time is kept");
static const long PAUSE_NS = 5000000; // between live frames: all workers sleep

struct test {
    const char *name;
    enum pixel_format source;
    int width, height;
    struct op_params params;
    bool live; // frames come with pauses; else each starts when the last is done
};

static const struct op_params to_u8 = {
    OP_WARP,
    {.warp = {.width = 640, .height = 640, .fill = {114, 114, 114}, .scale = 1, .std = {1, 1, 1}}}};
static const struct op_params to_f32 = {OP_WARP,
                                        {.warp = {.width = 640,
                                                  .height = 640,
                                                  .fill = {114, 114, 114},
                                                  .dtype = DTYPE_F32,
                                                  .scale = 1 / 255.0,
                                                  .std = {1, 1, 1}}}};
static const struct op_params to_yuv = {OP_YUV, {.yuv = {.format = PIXEL_YUV24}}};

// A number of workers and its times.
struct team {
    struct backend *backend;
    struct plan *plan;
    int workers;
    struct times times;
};

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool done;
    int status;
};

static void job_done(struct job *job, int status)
{
    struct waiter *waiter = job->opaque;
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    waiter->status = status;
    pthread_cond_signal(&waiter->change);
    pthread_mutex_unlock(&waiter->lock);
}

// Measures one frame from submit to done. Returns 0 or a negative errno.
static int run_frame(struct team *team, const struct image *src, void *result, double *ret_ms)
{
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    struct job_result results[] = {{.data = result}};
    struct job job = {.src = *src, .results = results, .n = 1, .done = job_done, .opaque = &waiter};
    const double start = clock_ms(CLOCK_MONOTONIC);
    int rc = cpu_backend.submit(team->plan, &job);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.done)
        pthread_cond_wait(&waiter.change, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    *ret_ms = clock_ms(CLOCK_MONOTONIC) - start;
    return waiter.status;
}

static int run_round(struct team *team, const struct test *test, const struct image *src,
                     void *result)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    double warm;
    int rc = run_frame(team, src, result, &warm);
    for (int i = 0; rc == 0 && i < FRAMES; i++) {
        if (test->live)
            nanosleep(&pause, NULL);
        rc = run_frame(team, src, result, &team->times.ms[team->times.n++]);
    }
    return rc;
}

static int team_open(struct team *team, int workers, const struct image *src, const struct op *op)
{
    const struct backend_options options = {.workers = workers};
    const struct op *const ops[] = {op};
    *team = (struct team){.workers = workers};
    int rc = cpu_backend.open(&team->backend, &options);
    return rc < 0 ? rc : cpu_backend.plan_open(team->backend, &team->plan, src, ops, 1, 1);
}

static void team_close(struct team *team)
{
    cpu_backend.plan_close(team->plan);
    cpu_backend.close(team->backend);
}

// Takes turns, so that other load on the machine affects both.
static int take_times(const struct test *test, struct team team[2], const struct image *src,
                      void *result)
{
    int rc = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; rc == 0 && i < 2; i++)
            rc = run_round(&team[i], test, src, result);
    return rc;
}

static void print(const struct test *test, struct times *one, struct times *all)
{
    times_sum_up(one);
    times_sum_up(all);
    printf("%-46s %9.3f %9.3f %9.3f %9.3f %7.2f x %7.2f x\n", test->name, one->median, all->median,
           one->min, all->min, one->median / all->median, one->min / all->min);
    fflush(stdout);
}

static int run_test(const struct test *test, int workers)
{
    struct image src = {.format = test->source, .width = test->width, .height = test->height};
    const size_t bytes = image_lay_out(&src, NULL);
    uint8_t *memory = malloc(bytes), *result = NULL;
    struct team team[2] = {0};
    struct op op = {0};
    int rc = memory ? op_init(&op, &test->params, &src) : -ENOMEM;
    if (rc == 0 && !(result = malloc(op.dst_bytes)))
        rc = -ENOMEM;
    for (size_t i = 0; memory && i < bytes; i++)
        memory[i] = (uint8_t)rand();
    image_lay_out(&src, memory);
    if (rc == 0)
        rc = team_open(&team[0], 1, &src, &op);
    if (rc == 0)
        rc = team_open(&team[1], workers, &src, &op);
    if (rc == 0)
        rc = take_times(test, team, &src, result);
    if (rc == 0)
        print(test, &team[0].times, &team[1].times);
    team_close(&team[1]);
    team_close(&team[0]);
    op_finish(&op);
    free(result);
    free(memory);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        {"4K yuv420p to 640x640 u8", PIXEL_YUV420P, 3840, 2160, to_u8, false},
        {"4K yuv420p to 640x640 u8, live", PIXEL_YUV420P, 3840, 2160, to_u8, true},
        {"4K yuv420p to 640x640 f32", PIXEL_YUV420P, 3840, 2160, to_f32, false},
        {"4K yuv420p to 640x640 f32, live", PIXEL_YUV420P, 3840, 2160, to_f32, true},
        {"4K bgra to yuv24", PIXEL_BGRA, 3840, 2160, to_yuv, false},
        {"4K bgra to yuv24, live", PIXEL_BGRA, 3840, 2160, to_yuv, true},
        {"1080p nv12 to 640x640 u8", PIXEL_NV12, 1920, 1080, to_u8, false},
        {"1080p nv12 to 640x640 u8, live", PIXEL_NV12, 1920, 1080, to_u8, true},
    };
    cpu_set_t set;
    int workers = argc > 1 ? atoi(argv[1]) : 0;
    if (workers <= 0 && sched_getaffinity(0, sizeof set, &set) == 0)
        workers = CPU_COUNT(&set);
    if (workers < 1 || workers > WORKERS_MOST)
        return 2;
    printf("%-46s %9s %6d wk. %9s %6d wk. %9s %9s\n", "ms from submit to done", "1 worker", workers,
           "min 1", workers, "faster", "of minima");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        int rc = run_test(&tests[i], workers);
        if (rc < 0) {
            fprintf(stderr, "bench-workers: %s: %s\n", tests[i].name, strerror(-rc));
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
