// Tests the cpu backend under load: several plans fed from several threads, its limits, its end.
#include <errno.h>

#include "tests/test.h"

#include "tests/kernels/backends.h"
#include "tests/kernels/picture.h"

enum { FEEDERS = 3, JOBS = 200, DEPTH = 4 };

// One thread's plan and the jobs it keeps in flight.
struct feeder {
    struct backend *backend;
    struct picture source;
    struct op op;
    void *expected;
    struct feed {
        struct job job;
        struct job_result result;
        struct feeder *feeder;
        bool busy;
        int done;
    } feeds[DEPTH];
    pthread_mutex_t lock;
    pthread_cond_t change;
    int wrong, refused;
};

static void feed_done(struct job *job, int status)
{
    struct feed *feed = job->opaque;
    struct feeder *feeder = feed->feeder;
    const bool right =
        status == 0 && memcmp(feed->result.data, feeder->expected, feeder->op.dst_bytes) == 0;
    pthread_mutex_lock(&feeder->lock);
    feed->busy = false;
    feed->done++;
    feeder->wrong += !right;
    pthread_cond_signal(&feeder->change);
    pthread_mutex_unlock(&feeder->lock);
}

static struct feed *idle_feed(struct feeder *feeder)
{
    for (;;) {
        for (int i = 0; i < DEPTH; i++)
            if (!feeder->feeds[i].busy)
                return &feeder->feeds[i];
        pthread_cond_wait(&feeder->change, &feeder->lock);
    }
}

// A finished job makes room for the next: submit never refuses here.
static void *feed_jobs(void *opaque)
{
    struct feeder *feeder = opaque;
    const struct op *ops[] = {&feeder->op};
    struct plan *plan;
    if (cpu_backend.plan_open(feeder->backend, &plan, &feeder->source.image, ops, 1, DEPTH) < 0) {
        feeder->refused = JOBS;
        return NULL;
    }
    for (int i = 0; i < JOBS; i++) {
        pthread_mutex_lock(&feeder->lock);
        struct feed *feed = idle_feed(feeder);
        feed->busy = true;
        pthread_mutex_unlock(&feeder->lock);
        memset(feed->result.data, UNTOUCHED, feeder->op.dst_bytes);
        feeder->refused += cpu_backend.submit(plan, &feed->job) != 0;
    }
    cpu_backend.plan_close(plan);
    return NULL;
}

static void feeder_init(struct feeder *feeder, struct backend *backend, int i,
                        struct random *random)
{
    static const enum pixel_format sources[FEEDERS] = {PIXEL_NV12, PIXEL_BGRA, PIXEL_P010};
    *feeder = (struct feeder){.backend = backend,
                              .source = picture_sized(sources[i], 100 + i, 75 + i, random),
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .change = PTHREAD_COND_INITIALIZER};
    const struct op_params warp = {
        OP_WARP,
        {.warp = {.width = 64, .height = 64, .scale = 1, .std = {1, 1, 1}, .dtype = DTYPE_F32}}};
    const struct op_params yuv = {OP_YUV, {.yuv = {.format = PIXEL_YUV420P}}};
    const int error = op_init(&feeder->op, i == 1 ? &yuv : &warp, &feeder->source.image);
    CHECK(error == 0, "op_init: %d", error);
    feeder->expected = malloc(feeder->op.dst_bytes);
    run_reference(&feeder->op, &feeder->source.image, feeder->expected);
    for (int k = 0; k < DEPTH; k++) {
        struct feed *feed = &feeder->feeds[k];
        feed->feeder = feeder;
        feed->result.data = malloc(feeder->op.dst_bytes);
        feed->job = (struct job){.src = feeder->source.image,
                                 .results = &feed->result,
                                 .n = 1,
                                 .done = feed_done,
                                 .opaque = feed};
    }
}

static void feeder_check(struct feeder *feeder)
{
    int done = 0;
    for (int k = 0; k < DEPTH; k++)
        done += feeder->feeds[k].done;
    CHECK(feeder->refused == 0, "%d", feeder->refused);
    CHECK(done == JOBS, "%d", done);
    CHECK(feeder->wrong == 0, "%d", feeder->wrong);
}

static void feeder_finish(struct feeder *feeder)
{
    for (int k = 0; k < DEPTH; k++)
        free(feeder->feeds[k].result.data);
    free(feeder->expected);
    op_finish(&feeder->op);
    picture_free(&feeder->source);
}

static void test_load(struct backend *backend, struct random *random)
{
    static struct feeder feeders[FEEDERS];
    pthread_t threads[FEEDERS];
    for (int i = 0; i < FEEDERS; i++)
        feeder_init(&feeders[i], backend, i, random);
    for (int i = 0; i < FEEDERS; i++)
        pthread_create(&threads[i], NULL, feed_jobs, &feeders[i]);
    for (int i = 0; i < FEEDERS; i++) {
        pthread_join(threads[i], NULL);
        feeder_check(&feeders[i]);
        feeder_finish(&feeders[i]);
    }
}

// Holds the only worker in `done` until the test opens the gate.
struct gate {
    struct tally tally;
    bool open;
};

static void gate_done(struct job *job, int status)
{
    struct gate *gate = job->opaque;
    pthread_mutex_lock(&gate->tally.lock);
    gate->tally.done++;
    gate->tally.failed += status != 0;
    pthread_cond_broadcast(&gate->tally.change);
    while (!gate->open)
        pthread_cond_wait(&gate->tally.change, &gate->tally.lock);
    pthread_mutex_unlock(&gate->tally.lock);
}

// Depth 2 with the worker held: the job in `done` no longer counts, two wait, the fourth is
// refused.
static void test_depth(struct backend *one_worker, struct random *random)
{
    struct picture source = picture_sized(PIXEL_RGB24, 32, 32, random);
    const struct op_params params = {OP_YUV, {.yuv = {.format = PIXEL_NV12}}};
    struct op op;
    op_init(&op, &params, &source.image);
    const struct op *ops[] = {&op};
    struct plan *plan;
    const int error = cpu_backend.plan_open(one_worker, &plan, &source.image, ops, 1, 2);
    CHECK(error == 0, "plan_open: %d", error);
    struct gate gate = {.tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}};
    struct job jobs[4];
    struct job_result left_out = {0};
    int answers[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){
            .src = source.image, .results = &left_out, .n = 1, .done = gate_done, .opaque = &gate};
        answers[i] = cpu_backend.submit(plan, &jobs[i]);
        if (i == 0)
            tally_wait(&gate.tally, 1);
    }
    CHECK(answers[0] == 0 && answers[1] == 0 && answers[2] == 0 && answers[3] == -EBUSY,
          "%d %d %d %d", answers[0], answers[1], answers[2], answers[3]);
    pthread_mutex_lock(&gate.tally.lock);
    CHECK(gate.tally.done == 1, "%d", gate.tally.done);
    gate.open = true;
    pthread_cond_broadcast(&gate.tally.change);
    pthread_mutex_unlock(&gate.tally.lock);
    cpu_backend.plan_close(plan);
    CHECK(gate.tally.done == 3 && gate.tally.failed == 0, "%d %d", gate.tally.done,
          gate.tally.failed);
    op_finish(&op);
    picture_free(&source);
}

static void test_limits(struct backend *backend)
{
    const struct image shape = {.format = PIXEL_RGB24, .width = 8, .height = 8};
    struct plan *plan;
    CHECK(cpu_backend.plan_open(backend, &plan, &shape, NULL, 0, 1) == -EINVAL, "no op");
    CHECK(cpu_backend.plan_open(backend, &plan, &shape, NULL, PLAN_OPS_MAX + 1, 1) == -EINVAL,
          "too many ops");
    void *memory = aligned_alloc(4096, 8192);
    CHECK(cpu_backend.pin(backend, memory, 8192) == 0, "pin");
    cpu_backend.unpin(backend, memory);
    cpu_backend.unpin(backend, NULL);
    free(memory);
    const struct op_params params = {OP_YUV, {.yuv = {.format = PIXEL_NV12}}};
    struct op op;
    CHECK(op_init(&op, &params, &shape) == 0, "op_init");
    const struct op *ops[] = {&op};
    const struct memory_need need = cpu_backend.plan_need(&shape, ops, 1, 4);
    CHECK(need.device == 0 && need.pinned == 0, "%zu %zu", need.device, need.pinned);
    CHECK(!cpu_backend.device_bytes && !cpu_backend.export_open && !cpu_backend.export_close &&
              !cpu_backend.reset,
          "the cpu is no device");
    op_finish(&op);
    cpu_backend.plan_close(NULL);
    cpu_backend.close(NULL);
}

static void check_description(const struct backend_options *options, const char *begins)
{
    struct backend *backend;
    const int error = cpu_backend.open(&backend, options);
    CHECK(error == 0, "open: %d", error);
    if (error)
        return;
    const char *text = cpu_backend.describe(backend);
    CHECK(strncmp(text, begins, strlen(begins)) == 0, "'%s' is not '%s'", text, begins);
    cpu_backend.close(backend);
}

// The processors allowed to the worker that finishes a job.
struct place {
    struct tally tally;
    struct processors allowed;
};

static void place_done(struct job *job, int status)
{
    struct place *place = job->opaque;
    place->allowed = processors_allowed();
    tally_done(job, status);
}

static struct processors run_somewhere(const struct backend_options *options)
{
    const struct image src = {.format = PIXEL_RGB24, .width = 8, .height = 8};
    const struct op_params params = {OP_YUV, {.yuv = {.format = PIXEL_NV12}}};
    struct place place = {.tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}};
    struct job_result left_out = {0};
    struct job job = {
        .src = src, .results = &left_out, .n = 1, .done = place_done, .opaque = &place};
    struct backend *backend = NULL;
    struct plan *plan = NULL;
    struct op op;
    op_init(&op, &params, &src);
    const struct op *ops[] = {&op};
    int error = cpu_backend.open(&backend, options);
    if (error == 0)
        error = cpu_backend.plan_open(backend, &plan, &src, ops, 1, 1);
    if (error == 0)
        error = cpu_backend.submit(plan, &job);
    CHECK(error == 0, "%d", error);
    if (error == 0)
        tally_wait(&place.tally, 1);
    cpu_backend.plan_close(plan);
    cpu_backend.close(backend);
    op_finish(&op);
    return place.allowed;
}

// Checks nothing on a machine with one processor.
static void test_places(void)
{
    const struct processors all = processors_allowed();
    const int n = processors_count(&all), first = processors_next(&all, 0);
    struct backend_options options = {.workers = n};
    const struct processors any = run_somewhere(&options);
    CHECK(processors_count(&any) == n, "%d of %d", processors_count(&any), n);
    options.pin.how = PINNING_AUTO;
    const struct processors own = run_somewhere(&options);
    CHECK(processors_count(&own) == 1, "%d", processors_count(&own));
    options.pin.how = PINNING_LIST;
    for (int i = first; i >= 0; i = processors_next(&all, i + 1)) {
        options.pin.list = (struct processors){0};
        processors_add(&options.pin.list, i);
        const struct processors kept = run_somewhere(&options);
        CHECK(processors_count(&kept) == 1 && processors_next(&kept, 0) == i, "%d: %d of %d", i,
              processors_next(&kept, 0), processors_count(&kept));
    }
}

// A process limited to one processor starts one worker, and a list is cut to the allowed
// processors.
static void test_processors(void)
{
    const struct processors all = processors_allowed();
    const int n = processors_count(&all), first = processors_next(&all, 0);
    struct backend_options options = {.workers = n + 1};
    char text[64];
    snprintf(text, sizeof text, "%d workers, ", n + 1);
    check_description(&options, text);
    options.pin.how = PINNING_AUTO;
    check_description(&options, text); // more workers than processors
    options.pin.how = PINNING_LIST;
    check_description(&options, text); // an empty list
    processors_add(&options.pin.list, first);
    snprintf(text, sizeof text, "%d workers pinned, ", n + 1);
    check_description(&options, text);
    options.workers = 0;
    check_description(&options, "1 worker pinned, ");

    CHECK(processors_keep(first), "processor %d", first);
    const struct processors one = processors_allowed();
    CHECK(processors_count(&one) == 1 && processors_next(&one, 0) == first &&
              processors_next(&one, first + 1) == -1,
          "%d", processors_count(&one));
    options.pin = (struct pin){.how = PINNING_NONE};
    check_description(&options, "1 worker, ");
    options.pin.how = PINNING_AUTO;
    check_description(&options, "1 worker pinned, ");
    options.pin.how = PINNING_LIST;
    processors_add(&options.pin.list, first == 0 ? 1 : 0);
    check_description(&options, "1 worker, "); // no processor of the list is allowed
    processors_add(&options.pin.list, first);
    check_description(&options, "1 worker pinned, ");
    CHECK(!processors_keep(PROCESSORS_MAX - 1), "there are no so many");
}

static void check_text(const struct processors *set, const char *expected)
{
    char text[PROCESSORS_TEXT];
    processors_text(set, text);
    CHECK(strcmp(text, expected) == 0, "'%s' is not '%s'", text, expected);
}

static void test_sets(void)
{
    struct processors set = {0}, other = {0}, pairs = {0};
    char text[PROCESSORS_TEXT];
    check_text(&set, "");
    for (int i = 62; i < 66; i++)
        processors_add(&set, i);
    processors_add(&set, 0);
    processors_add(&set, PROCESSORS_MAX - 1);
    check_text(&set, "0,62-65,1023");
    processors_add(&other, 63);
    processors_add(&other, 100);
    const struct processors both = processors_both(&set, &other);
    const struct processors left = processors_without(&set, &other);
    check_text(&both, "63");
    check_text(&left, "0,62,64-65,1023");
    for (int i = 0; i < PROCESSORS_MAX; i++)
        if (i % 3 != 2)
            processors_add(&pairs, i);
    processors_text(&pairs, text); // the longest text
    CHECK(strstr(text, ",1020-1021,1023"), "%s", text);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("cpu: seed %llu\n", (unsigned long long)random.state);
    static const struct backend_options options[] = {
        {.workers = 1}, {.workers = 3, .band_bytes = 1}, {0}};
    for (int i = 0; i < 3; i++) {
        struct backend *backend;
        const int error = cpu_backend.open(&backend, &options[i]);
        CHECK(error == 0, "open: %d", error);
        if (error)
            continue;
        if (options[i].workers == 1) {
            CHECK(strncmp(cpu_backend.describe(backend), "1 worker, ", 10) == 0, "%s",
                  cpu_backend.describe(backend));
            TEST(test_depth(backend, &random));
        }
        TEST(test_load(backend, &random));
        TEST(test_limits(backend));
        cpu_backend.close(backend);
    }
    TEST(test_sets());
    TEST(test_places());
    TEST(test_processors()); // last: it limits this thread to one processor
    return test_end();
}
