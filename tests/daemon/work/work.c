// The pipeline on the CPU backend: the frames that each output gets or loses, and why, over changes
// of geometry, thinning, stopping, a failing device and one without room.
#include "daemon/work/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/device/budget.h"
#include "daemon/wire.h"
#include "tests/test.h"

enum { OUTPUTS = 2, WARP = 0, YUV = 1 };

struct fixture {
    uv_loop_t loop;
    struct backend_driver driver; // acts as cuda: the CPU's, with functions that a test replaces
    struct config top;
    struct devices *devices;
    struct device_lease lease;
    struct event_queue *events;
    struct output_config config[OUTPUTS];
    struct subscriptions *subscriptions;
    struct output *output[OUTPUTS];
    struct outlet *batches;            // these are shares in them
    struct consumer consumer[OUTPUTS]; // one per output
    struct histogram decode, process;
    struct camera_work *pipeline;
    _Atomic bool stop;
    struct stage_watch stages;
    int released; // frames given back
};

static void join(struct fixture *f, bool cpu_only)
{
    CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "join");
    if (cpu_only) {
        device_avoid(&f->lease);
        device_release(&f->lease);
        CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "join the cpu");
    }
    work_attach(f->pipeline);
}

static void leave(struct fixture *f)
{
    work_detach(f->pipeline);
    device_release(&f->lease);
}

static void start(struct fixture *f, double camera_fps)
{
    uv_loop_init(&f->loop);
    CHECK(devices_open_with(&f->devices, &f->top, &f->driver, &cpu_backend) == 0, "devices");
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, NULL, &f->batches) == 0,
          "outputs");
    for (int i = 0; i < OUTPUTS; i++) {
        f->output[i] = f->subscriptions->list[i].output;
        pool_attach(f->output[i]->pool, &f->consumer[i]);
    }
    struct work_context context = {
        .lease = &f->lease,
        .events = f->events,
        .subscriptions = f->subscriptions,
        .fps = camera_fps,
        .stop = &f->stop,
        .stages = &f->stages,
        .decode = &f->decode,
        .process = &f->process,
    };
    CHECK(work_open(&f->pipeline, &context) == 0, "pipeline");
    join(f, false);
}

static struct fixture *configure(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->driver = cpu_backend;
    f->driver.depth = FRAMES_IN_FLIGHT_MAX; // number of jobs held below
    f->driver.name = "cuda";
    f->top.cpu.workers = 2;
    f->config[WARP] = (struct output_config){
        .name = "warp",
        .kernel = KERNEL_WARP,
        .size = {32, 32},
        .fill = {.n = 1, .v = {114}},
        .tensor = {.scale = {1}, .mean = {1, {0}}, .std = {1, {1}}},
        .slots = 8,
    };
    f->config[YUV] = (struct output_config){
        .name = "yuv", .kernel = KERNEL_YUV, .format = PIXEL_YUV420P, .slots = 8};
    return f;
}

static void end(struct fixture *f)
{
    leave(f);
    work_close(f->pipeline);
    for (int i = 0; i < OUTPUTS; i++) {
        if (!f->output[i]->parent) {
            pool_close(f->output[i]->pool);
            f->output[i]->pool = f->output[i]->outlet->pool = NULL;
        }
        CHECK(ledger_in_flight(&f->output[i]->ledger) == 0, "output %d: the sums match", i);
    }
    subscriptions_close(f->subscriptions, output_close);
    outlet_close(f->batches);
    devices_close(f->devices);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
    free(f);
}

struct picture {
    struct fixture *fixture;
    uint8_t pixels[];
};

static void release(void *owner)
{
    struct picture *picture = owner;
    __atomic_add_fetch(&picture->fixture->released, 1, __ATOMIC_SEQ_CST);
    free(picture);
}

static struct frame make_frame(struct fixture *f, int width, int height, int64_t pts_ns,
                               uint32_t epoch)
{
    struct frame frame = {.image = {.format = PIXEL_BGRA, .width = width, .height = height}};
    size_t size = image_lay_out(&frame.image, NULL);
    struct picture *picture = malloc(sizeof *picture + size);
    picture->fixture = f;
    memset(picture->pixels, 77, size);
    image_lay_out(&frame.image, picture->pixels);
    frame.rate_num = 25;
    frame.rate_den = 1;
    frame.owner = picture;
    frame.release = release;
    frame.info = (struct frame_info){
        .pts_ns = pts_ns,
        .received_ns = monotonic_ns(),
        .decoded_ns = monotonic_ns(),
        .epoch = epoch,
        .source_width = width,
        .source_height = height,
    };
    return frame;
}

static int submit(struct fixture *f, int width, int height, int64_t pts_ns, uint32_t epoch)
{
    struct frame frame = make_frame(f, width, height, pts_ns, epoch);
    return work_submit(f->pipeline, &frame);
}

// Returns the output's next frame, as one client sees it, after every frame in flight has ended.
static struct result *next(struct fixture *f, int i, uint64_t from)
{
    struct pool *pool = f->output[i]->pool;
    struct result *result;
    while ((result = pool_acquire(pool, &f->consumer[i])) && result->item[0].ordinal < from)
        pool_release(pool, &f->consumer[i], false);
    return result;
}

static void let_go(struct fixture *f, int i)
{
    pool_release(f->output[i]->pool, &f->consumer[i], true);
}

// The client takes none of the `n` ready frames.
static void pass(struct fixture *f, int i, int n)
{
    for (; n > 0 && pool_acquire(f->output[i]->pool, &f->consumer[i]); n--)
        pool_release(f->output[i]->pool, &f->consumer[i], false);
}

static uint64_t lost(struct fixture *f, int i, enum loss reason)
{
    return atomic_load(&f->output[i]->ledger.lost[reason]);
}

static void test_geometry_change(void)
{
    struct fixture *f = configure();
    start(f, 0);
    for (int i = 0; i < 3; i++)
        CHECK(submit(f, 64, 48, i, 0) == 0, "submit");
    for (int i = 3; i < 6; i++)
        CHECK(submit(f, 33, 17, i, 1) == 0, "submit the new size");
    work_drain(f->pipeline);
    for (uint64_t n = 0; n < 6; n++) {
        struct result *result = next(f, YUV, n);
        CHECK(result && result->item[0].ordinal == n && result->item[0].sequence == n, "frame %d",
              (int)n);
        CHECK(result->format.image.width == (n < 3 ? 64 : 33), "width of frame %d", (int)n);
        CHECK(result->item[0].frame.epoch == n / 3, "epoch of frame %d", (int)n);
        CHECK(result->format.rate_num == 25, "rate");
        let_go(f, YUV);
    }
    CHECK(f->released == 6, "%d frames given back", f->released);
    CHECK(atomic_load(&f->output[YUV]->ledger.emitted) == 6, "all emitted");
    end(f);
}

static void test_thinning(void)
{
    struct fixture *f = configure();
    f->config[WARP].fps = 5;
    start(f, 0);
    for (int i = 0; i < 50; i++) { // 25 frames/s with timestamps that jitter by 2 ms
        CHECK(submit(f, 16, 16, i * 40000000 + (i % 3) * 2000000, 0) == 0, "submit");
        work_drain(f->pipeline);
        struct result *result = next(f, WARP, 0);
        if (result)
            let_go(f, WARP);
        result = next(f, YUV, 0);
        CHECK(result != NULL, "the other output keeps frame %d", i);
        let_go(f, YUV);
    }
    CHECK(lost(f, WARP, LOSS_THINNED) == 40, "thinned %d of 50", (int)lost(f, WARP, LOSS_THINNED));
    CHECK(f->output[WARP]->ordinal == 10, "thinned frames take no ordinal");
    CHECK(f->output[WARP]->sequence == 50, "but a sequence number");
    CHECK(lost(f, YUV, LOSS_THINNED) == 0, "the other is not thinned");
    CHECK(f->released == 50, "%d frames given back", f->released);
    end(f);

    f = configure();
    start(f, 12.5);
    for (int i = 0; i < 20; i++)
        submit(f, 16, 16, i * 40000000, 0);
    work_drain(f->pipeline);
    CHECK(lost(f, WARP, LOSS_THINNED) == 10, "the camera's rate counts for every output");
    CHECK(lost(f, YUV, LOSS_THINNED) == 10, "the camera's rate counts for every output");
    end(f);
}

// Damaged pictures find the gate closed after the first one. They do not count for the rate: the
// first moving picture passes at once, and the rate thins those after it.
static void test_gate(void)
{
    struct fixture *f = configure();
    f->config[WARP].gate = (struct gate_config){.motion = true, .hold = {0}};
    f->config[WARP].fps = 5;
    start(f, 0);
    for (int i = 0; i < 50; i++) {
        struct frame frame = make_frame(f, 16, 16, i * INT64_C(40000000), 0);
        frame.info.flags = i > 0 ? FRAMED_FLAG_DAMAGED : 0;
        if (i == 12 || i == 13) {
            frame.info.flags = 0;
            frame.info.scene = (struct scene_facts){.known = true, .moving = true};
        }
        CHECK(work_submit(f->pipeline, &frame) == 0, "submit");
        work_drain(f->pipeline);
        pass(f, WARP, 1);
        pass(f, YUV, 1);
    }
    CHECK(lost(f, WARP, LOSS_THINNED) == 1, "thinned %d of 50", (int)lost(f, WARP, LOSS_THINNED));
    CHECK(lost(f, WARP, LOSS_STILL) == 47, "still %d of 50", (int)lost(f, WARP, LOSS_STILL));
    CHECK(f->output[WARP]->ordinal == 2, "still frames take no ordinal");
    CHECK(f->output[WARP]->sequence == 50, "but a sequence number");
    CHECK(lost(f, YUV, LOSS_STILL) == 0, "the other has no gate");
    end(f);

    // Nobody takes the first, so the next whole picture is still the first.
    f = configure();
    f->config[WARP].gate = (struct gate_config){.motion = true, .hold = {0}};
    start(f, 0);
    pool_detach(f->output[WARP]->pool, &f->consumer[WARP]);
    for (int i = 0; i < 3; i++) {
        struct frame frame = make_frame(f, 16, 16, i * INT64_C(40000000), 0);
        frame.info.flags = i > 0 ? FRAMED_FLAG_DAMAGED : 0;
        work_submit(f->pipeline, &frame);
    }
    work_drain(f->pipeline);
    CHECK(lost(f, WARP, LOSS_CLIENT) == 1 && lost(f, WARP, LOSS_STILL) == 2, "%d and %d",
          (int)lost(f, WARP, LOSS_CLIENT), (int)lost(f, WARP, LOSS_STILL));
    CHECK(!f->output[WARP]->gate.begun, "nobody got a picture");
    end(f);
}

static void test_output_that_cannot_be(void)
{
    struct fixture *f = configure();
    f->config[WARP].crop = (struct crop){true, {40, 0, 20, 10}};
    start(f, 0);
    CHECK(submit(f, 32, 32, 0, 0) == 0, "submit");
    const char *notice = work_notice(f->pipeline);
    CHECK(notice && strstr(notice, "output warp"), "notice: %s", notice ? notice : "none");
    CHECK(!work_notice(f->pipeline), "once");
    submit(f, 32, 32, 1, 0);
    CHECK(!work_notice(f->pipeline), "once a geometry");
    CHECK(submit(f, 64, 32, 2, 0) == 0, "a picture wide enough");
    work_drain(f->pipeline);
    CHECK(lost(f, WARP, LOSS_CONFIG) == 2, "lost while the crop was outside");
    struct result *result = next(f, WARP, 0);
    CHECK(result && result->item[0].sequence == 2, "then it works");
    if (result)
        let_go(f, WARP);
    end(f);
}

static void test_nobody_and_late(void)
{
    struct fixture *f = configure();
    f->config[YUV].max_age.ns = 1;
    start(f, 0);
    pool_detach(f->output[WARP]->pool, &f->consumer[WARP]);
    for (int i = 0; i < 5; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    CHECK(lost(f, WARP, LOSS_CLIENT) == 5, "nobody listens");
    CHECK(lost(f, YUV, LOSS_LATE) == 5, "too old");
    CHECK(f->released == 5, "no frame is held for nobody");
    end(f);
}

static void test_withheld(void)
{
    struct fixture *f = configure();
    start(f, 0);
    CHECK(work_submit(f->pipeline, &(struct frame){.lost = true}) == 0, "lost");
    submit(f, 16, 16, 0, 0);
    work_drain(f->pipeline);
    struct result *result = next(f, WARP, 0);
    CHECK(result && result->item[0].sequence == 1 && result->item[0].ordinal == 1,
          "a gap is to be seen");
    if (result)
        let_go(f, WARP);
    CHECK(lost(f, WARP, LOSS_DAMAGED) == 1 && lost(f, YUV, LOSS_DAMAGED) == 1, "damaged");
    end(f);
}

static int failing_submit(struct plan *plan, struct job *job)
{
    (void)plan, (void)job;
    return -EIO;
}

static int failing_plan(struct backend *backend, struct plan **ret, const struct image *src,
                        const struct op *const ops[], int n, int depth)
{
    (void)backend, (void)ret, (void)src, (void)ops, (void)n, (void)depth;
    return -EIO;
}

static void (*real_done)(struct job *, int);

static void failing_done(struct job *job, int status)
{
    (void)status;
    real_done(job, -EIO);
}

static int submit_to_fail(struct plan *plan, struct job *job)
{
    real_done = job->done;
    job->done = failing_done;
    return cpu_backend.submit(plan, job);
}

// The device fails with the first frame in some way: the CPU processes the next one.
static void device_fails(struct fixture *f)
{
    start(f, 0);
    CHECK(submit(f, 16, 16, 0, 0) == 0, "up to the devices");
    work_drain(f->pipeline);
    CHECK(device_is_stale(&f->lease), "the lease is stale");
    CHECK(lost(f, WARP, LOSS_BACKEND) == 1 && lost(f, YUV, LOSS_BACKEND) == 1, "backend");
    CHECK(f->released == 1, "the frame is given back");
    leave(f);
    join(f, false);
    CHECK(submit(f, 16, 16, 1, 0) == 0, "and works again");
    work_drain(f->pipeline);
    struct result *result = next(f, WARP, 0);
    CHECK(result && result->item[0].sequence == 1, "the second frame");
    if (result)
        let_go(f, WARP);
    end(f);
}

static void test_failing_device(void)
{
    struct fixture *f = configure();
    f->driver.plan_open = failing_plan;
    device_fails(f);
    f = configure();
    f->driver.submit = failing_submit;
    device_fails(f);
    f = configure();
    f->driver.submit = submit_to_fail;
    device_fails(f);
}

static size_t small_device(struct backend *backend)
{
    (void)backend;
    return 100 << 20;
}

static struct memory_need need_by_width(const struct image *src, const struct op *const ops[],
                                        int n, int depth)
{
    (void)ops, (void)n, (void)depth;
    return (struct memory_need){.device = (size_t)src->width << 20};
}

static int plan_without_memory(struct backend *backend, struct plan **ret, const struct image *src,
                               const struct op *const ops[], int n, int depth)
{
    return src->width > 32 ? -ENOMEM : cpu_backend.plan_open(backend, ret, src, ops, n, depth);
}

static void has_no_room(struct fixture *f, int width, const char *said)
{
    size_t free_bytes;
    start(f, 0);
    CHECK(submit(f, 20, 16, 0, 0) == 0, "room for this");
    CHECK(submit(f, width, 16, 1, 1) == -ENOSPC, "but not for that");
    const char *notice = work_notice(f->pipeline);
    CHECK(notice && strstr(notice, said), "notice: %s", notice ? notice : "none");
    CHECK(!device_is_stale(&f->lease), "the device is well");
    CHECK(lost(f, WARP, LOSS_BACKEND) == 1 && lost(f, YUV, LOSS_BACKEND) == 1, "backend");
    CHECK(device_reserve(&f->lease, 95 << 20, &free_bytes) == 0, "%zu of it free", free_bytes);
    device_unreserve(&f->lease, 95 << 20);
    leave(f);
    join(f, true);
    CHECK(submit(f, width, 16, 2, 1) == 0, "the cpu has room");
    leave(f);
    join(f, false);
    CHECK(submit(f, 20, 16, 3, 2) == 0, "and the device again");
    work_drain(f->pipeline);
    for (uint64_t n = 0; n < 4; n++) {
        struct result *result = n == 1 ? NULL : next(f, YUV, n);
        CHECK(n == 1 || (result && result->item[0].sequence == n), "frame %d", (int)n);
        if (result)
            let_go(f, YUV);
    }
    end(f);
}

static void test_no_room(void)
{
    struct fixture *f = configure();
    f->driver.device_bytes = small_device;
    f->driver.plan_need = need_by_width;
    f->top.cuda.memory.n = 95 << 20;
    has_no_room(f, 100, "needs 100 MiB of device memory, 95 MiB are left");
    f = configure();
    f->driver.device_bytes = small_device;
    f->driver.plan_need = need_by_width;
    f->driver.plan_open = plan_without_memory;
    has_no_room(f, 40, "needs 40 MiB of device memory, 0 MiB are left");
}

// Other outputs of pictures that leave no room for a second plan: the next picture waits for the
// former plan, and nothing is said.
static void test_no_room_beside(void)
{
    struct fixture *f = configure();
    f->driver.device_bytes = small_device;
    f->driver.plan_need = need_by_width;
    f->top.cuda.memory.n = 95 << 20;
    start(f, 0);
    CHECK(submit(f, 60, 16, 0, 0) == 0, "submit");
    struct subscriptions *before = f->subscriptions;
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, before, &f->batches) == 0, "open");
    work_subscribe(f->pipeline, f->subscriptions);
    CHECK(work_submit(f->pipeline, &(struct frame){.lost = true}) == 0, "lost");
    const char *notice = work_notice(f->pipeline);
    CHECK(!notice, "notice: %s", notice ? notice : "none");
    CHECK(submit(f, 60, 16, 1, 0) == 0 && !work_notice(f->pipeline), "it has room alone");
    work_drain(f->pipeline);
    pass(f, WARP, 2);
    pass(f, YUV, 2);
    CHECK(lost(f, WARP, LOSS_BACKEND) == 0, "a picture is lost");
    if (subscriptions_release(before))
        subscriptions_close(before, NULL);
    end(f);
}

static int no_export(struct backend *backend, struct device_export *ret, enum export_kind kind,
                     size_t bytes)
{
    (void)backend, (void)ret, (void)kind, (void)bytes;
    return -ENOTSUP;
}

// Slots on the device count as they are allocated, and as in the budget: in pieces.
static void test_slots_on_device(void)
{
    size_t left = 0;
    struct fixture *f = configure();
    f->driver.device_bytes = small_device;
    f->driver.plan_need = need_by_width;
    f->driver.export_open = no_export;
    f->config[WARP].memory = RING_CUDA;
    f->top.cuda.memory.n = 95 << 20;
    start(f, 0);
    CHECK(submit(f, 20, 16, 0, 0) == 0, "submit");
    CHECK(device_reserve(&f->lease, 95 << 20, &left) == -ENOSPC, "nothing is reserved");
    CHECK(left == 73 << 20, "%zu bytes are left", left);
    end(f);
}

static struct job *kept[FRAMES_IN_FLIGHT_MAX + 1];
static int n_kept;

static int keep(struct plan *plan, struct job *job)
{
    (void)plan;
    kept[n_kept++] = job;
    return 0;
}

// Frames that a full backend has no time for are not charged to a client.
static void test_busy_backend(void)
{
    struct fixture *f = configure();
    f->driver.submit = keep;
    n_kept = 0;
    start(f, 0);
    for (int i = 0; i <= FRAMES_IN_FLIGHT_MAX; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    for (int i = 0; i < OUTPUTS; i++)
        CHECK(lost(f, i, LOSS_BACKEND_BUSY) == 1 && lost(f, i, LOSS_OVERFLOW) == 0,
              "output %d: %d as overflow", i, (int)lost(f, i, LOSS_OVERFLOW));
    for (int i = 0; i < n_kept; i++)
        kept[i]->done(kept[i], 0);
    end(f);
}

static int lists_released;

static void count_released(struct event *event)
{
    (void)event;
    lists_released++;
}

// While a former plan is open, the memory of results and surfaces counts once.
static void test_slots_count_once(void)
{
    struct fixture *f = configure();
    size_t left = 0;
    f->driver.device_bytes = small_device;
    f->driver.plan_need = need_by_width;
    f->driver.export_open = no_export;
    f->driver.submit = keep;
    f->config[WARP].memory = RING_CUDA;
    f->top.cuda.memory.n = 95 << 20;
    n_kept = 0;
    start(f, 0);
    CHECK(submit(f, 46, 16, 0, 0) == 0 && n_kept == 1, "submit");
    struct subscriptions *before = f->subscriptions;
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, before, &f->batches) == 0, "open");
    work_subscribe(f->pipeline, f->subscriptions);
    CHECK(device_reserve(&f->lease, 95 << 20, &left) == -ENOSPC, "nothing is reserved");
    CHECK(left == 1 << 20, "%zu bytes are left beside two plans", left);
    CHECK(!subscriptions_release(before), "the job needs the former list");
    before->released.callback = count_released;
    kept[0]->done(kept[0], 0);
    CHECK(submit(f, 46, 16, 1, 0) == 0 && n_kept == 2, "submit");
    CHECK(device_reserve(&f->lease, 95 << 20, &left) == -ENOSPC && left == 47 << 20,
          "%zu bytes are left beside one", left);
    kept[1]->done(kept[1], 0);
    subscriptions_close(before, NULL);
    end(f);
}

static int take_all(struct output *output, struct consumer *consumer)
{
    int n = 0;
    for (; pool_acquire(output->pool, consumer); n++)
        pool_release(output->pool, consumer, true);
    return n;
}

// Another output takes part from the next picture on, while the backend still has the last one: the
// former output gets that, and an output that stays gets both.
static void test_other_outputs(void)
{
    struct fixture *f = configure();
    struct consumer former = {0};
    f->driver.submit = keep;
    n_kept = lists_released = 0;
    start(f, 0);
    struct subscriptions *before = f->subscriptions;
    struct output *replaced = f->output[YUV];
    pool_detach(replaced->pool, &f->consumer[YUV]);
    pool_attach(replaced->pool, &former);
    before->released.callback = count_released;
    CHECK(submit(f, 16, 16, 0, 0) == 0 && n_kept == 1, "submit");
    f->config[YUV].format = PIXEL_NV12;
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, before, &f->batches) == 0, "open");
    f->output[YUV] = f->subscriptions->list[YUV].output;
    pool_attach(f->output[YUV]->pool, &f->consumer[YUV]);
    work_subscribe(f->pipeline, f->subscriptions); // returns, although the job goes on
    CHECK(!subscriptions_release(before), "the job needs the former list");
    CHECK(submit(f, 16, 16, 1, 0) == 0 && n_kept == 2, "submit to the other outputs");
    uv_run(&f->loop, UV_RUN_NOWAIT);
    CHECK(lists_released == 0 && replaced->sequence == 1, "the former list is in use");
    for (int i = 0; i < 2; i++)
        kept[i]->done(kept[i], 0);
    CHECK(take_all(replaced, &former) == 1, "the former output gets its last picture");
    CHECK(submit(f, 16, 16, 2, 0) == 0, "submit");
    uv_run(&f->loop, UV_RUN_NOWAIT);
    CHECK(lists_released == 1, "the former list is released");
    kept[2]->done(kept[2], 0);
    CHECK(take_all(f->output[WARP], &f->consumer[WARP]) == 3, "the output that stays gets all");
    CHECK(take_all(f->output[YUV], &f->consumer[YUV]) == 2, "the new one gets the next");
    subscriptions_close(before, NULL);
    output_close(replaced);
    end(f);
}

// Lists that follow each other while the backend hangs: the work waits for no job until it has no
// room for another list.
static void test_many_lists(void)
{
    struct fixture *f = configure();
    struct subscriptions *list[FRAMES_IN_FLIGHT_MAX];
    f->driver.submit = keep;
    n_kept = lists_released = 0;
    start(f, 0);
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++) {
        CHECK(submit(f, 16, 16, i, 0) == 0 && n_kept == i + 1, "submit");
        list[i] = f->subscriptions;
        list[i]->released.callback = count_released;
        CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, list[i], &f->batches) == 0,
              "open");
        work_subscribe(f->pipeline, f->subscriptions);
        CHECK(!subscriptions_release(list[i]), "list %d is in use", i);
    }
    for (int i = FRAMES_IN_FLIGHT_MAX - 1; i >= 0; i--)
        kept[i]->done(kept[i], 0);
    CHECK(submit(f, 16, 16, FRAMES_IN_FLIGHT_MAX, 0) == 0, "submit");
    uv_run(&f->loop, UV_RUN_NOWAIT);
    CHECK(lists_released == FRAMES_IN_FLIGHT_MAX, "%d lists are released", lists_released);
    kept[FRAMES_IN_FLIGHT_MAX]->done(kept[FRAMES_IN_FLIGHT_MAX], 0);
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        subscriptions_close(list[i], NULL);
    end(f);
}

static void test_overflow_and_stop(void)
{
    struct fixture *f = configure();
    f->config[WARP].overflow = OVERFLOW_WAIT;
    start(f, 0);
    for (int i = 0; i < 8; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    atomic_store(&f->stop, true); // the ninth would wait forever
    work_wake(f->pipeline);
    CHECK(submit(f, 16, 16, 8, 0) == 0, "submit while stopping");
    CHECK(lost(f, WARP, LOSS_STOPPING) == 1, "stopping");
    end(f);
}

static void *fail_while_it_waits(void *opaque)
{
    struct fixture *f = opaque;
    while (atomic_load(&f->output[WARP]->ledger.offered) < 9)
        usleep(1000);
    device_failed(&f->lease, -EIO);
    return NULL;
}

// A stalled client must not delay the device's recovery.
static void test_failure_while_waiting(void)
{
    struct fixture *f = configure();
    pthread_t thread;
    f->config[WARP].overflow = OVERFLOW_WAIT;
    start(f, 0);
    pthread_create(&thread, NULL, fail_while_it_waits, f);
    for (int i = 0; i < 9; i++)
        submit(f, 16, 16, i, 0);
    pthread_join(thread, NULL);
    CHECK(lost(f, WARP, LOSS_BACKEND) == 1 && lost(f, WARP, LOSS_STOPPING) == 0, "backend");
    leave(f);
    join(f, false);
    pass(f, WARP, 8);
    CHECK(submit(f, 16, 16, 9, 0) == 0, "submit on the cpu");
    work_drain(f->pipeline);
    struct result *result = next(f, WARP, 9);
    CHECK(result && result->item[0].sequence == 9, "waits are waits again");
    if (result)
        let_go(f, WARP);
    end(f);
}

// --- a backend that hangs

static struct {
    struct plan *plan;
    struct job *job[3];
    _Atomic int n;
} held;

static int hold(struct plan *plan, struct job *job)
{
    int n = atomic_load(&held.n);
    if (n == 3)
        return cpu_backend.submit(plan, job);
    held.plan = plan;
    held.job[n] = job;
    atomic_store(&held.n, n + 1);
    return 0;
}

static void let_jobs_go(void)
{
    const int n = atomic_load(&held.n);
    CHECK(n == 3, "the backend has %d jobs", n);
    for (int i = 0; i < n; i++)
        CHECK(cpu_backend.submit(held.plan, held.job[i]) == 0, "submit");
}

static const int64_t HANG_NS = 50000000;

static bool hangs(struct fixture *f)
{
    usleep(2 * HANG_NS / 1000);
    const char *step = stage_hangs(&f->stages, HANG_NS);
    return step && !strcmp(step, "waiting for the backend");
}

static void *judge_while_it_waits(void *opaque)
{
    struct fixture *f = opaque;
    while (atomic_load(&f->output[WARP]->ledger.offered) < 4)
        usleep(1000);
    CHECK(hangs(f), "three slots of three are in the backend");
    let_jobs_go();
    while (atomic_load(&f->stages.jobs) > 0)
        usleep(1000);
    usleep(2 * HANG_NS / 1000);
    CHECK(!stage_hangs(&f->stages, HANG_NS), "a client has to make room now");
    pass(f, WARP, 3);
    return NULL;
}

// With `overflow: wait` the camera waits for a slot: for the backend, and then for a client.
static void test_hanging_backend(void)
{
    struct fixture *f = configure();
    pthread_t thread;
    atomic_store(&held.n, 0);
    f->driver.submit = hold;
    f->config[WARP].overflow = OVERFLOW_WAIT;
    f->config[WARP].slots = 3;
    start(f, 0);
    pthread_create(&thread, NULL, judge_while_it_waits, f);
    for (int i = 0; i < 4; i++)
        submit(f, 16, 16, i, 0);
    pthread_join(thread, NULL);
    CHECK(lost(f, WARP, LOSS_BACKEND) + lost(f, WARP, LOSS_STOPPING) == 0, "pictures are lost");
    work_drain(f->pipeline);
    end(f);
}

// It goes on reading with other policies, and loses all frames.
static void test_hanging_backend_and_loss(void)
{
    struct fixture *f = configure();
    atomic_store(&held.n, 0);
    f->driver.submit = hold;
    start(f, 0);
    for (int i = 0; i < 3; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    stage_enter(&f->stages, STAGE_READ, 1000 * HANG_NS);
    CHECK(hangs(f), "nothing comes of three pictures");
    let_jobs_go();
    work_drain(f->pipeline);
    CHECK(!hangs(f), "all have come");
    end(f);
}

static _Atomic int resumed;

// Submits two parked pictures, as the collector does.
static void *resume_parked(void *opaque)
{
    struct fixture *f = opaque;
    struct batch *batch = f->output[WARP]->parent->batch;
    struct batch_grant grant;
    for (int i = 0; i < 2; i++) {
        struct parked parked = {.frame = make_frame(f, 16, 16, i, 0), .ordinal = (uint64_t)i + 1};
        ledger_offer(&f->output[WARP]->ledger);
        batch_park(&f->output[WARP]->share, &parked, 1);
        while (batch_take(batch, &grant) == 0 && !grant.member)
            ;
        work_resume(&grant);
        atomic_fetch_add(&resumed, 1);
    }
    for (int i = 0; i < 2; i++) // the last picture is submitted, and its batch delivered
        batch_take(batch, &grant);
    return NULL;
}

// A backend that hangs with one camera's picture does not delay everyone's batch: pictures parked
// for it are lost.
static void test_batch_beside_hanging_backend(void)
{
    struct fixture *f = configure();
    pthread_t collector;
    atomic_store(&held.n, 0);
    f->driver.submit = hold;
    f->driver.depth = 1;
    f->config[WARP].is_batch = true;
    f->config[WARP].capacity = f->config[WARP].per_camera = 4;
    f->config[WARP].wait.ns = INT64_C(60000000000);
    start(f, 0);
    CHECK(submit(f, 16, 16, 0, 0) == 0 && atomic_load(&held.n) == 1, "submit");
    atomic_store(&resumed, 0);
    pthread_create(&collector, NULL, resume_parked, f);
    for (int i = 0; i < 10000 && atomic_load(&resumed) < 2; i++)
        usleep(1000);
    CHECK(atomic_load(&resumed) == 2, "the collector waits for a backend that hangs");
    CHECK(cpu_backend.submit(held.plan, held.job[0]) == 0, "submit");
    pthread_join(collector, NULL);
    work_drain(f->pipeline);
    struct result *result = pool_acquire(f->output[WARP]->pool, &f->consumer[WARP]);
    CHECK(result && item_is_filled(&result->item[0]), "the batch lacks its first picture");
    CHECK(lost(f, WARP, LOSS_BACKEND) == 2, "%d lost", (int)lost(f, WARP, LOSS_BACKEND));
    let_go(f, WARP);
    end(f);
}

// A picture that waits for room in a batch stays parked while another output changes.
static void test_other_outputs_beside_batch(void)
{
    struct fixture *f = configure();
    struct batch_grant grant;
    f->config[WARP].is_batch = true;
    f->config[WARP].capacity = f->config[WARP].per_camera = f->config[WARP].slots = 1;
    f->config[WARP].wait.ns = INT64_C(60000000000);
    start(f, 0);
    struct batch *batch = f->output[WARP]->parent->batch;
    struct subscriptions *before = f->subscriptions;
    struct output *replaced = f->output[YUV];
    pool_detach(replaced->pool, &f->consumer[YUV]);
    for (int i = 0; i < 2; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    CHECK(f->output[WARP]->share.n_parked == 1, "parked");
    f->config[YUV].format = PIXEL_NV12;
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, before, &f->batches) == 0, "open");
    f->output[YUV] = f->subscriptions->list[YUV].output;
    pool_attach(f->output[YUV]->pool, &f->consumer[YUV]);
    work_subscribe(f->pipeline, f->subscriptions);
    for (int i = 0; i < 2; i++) {
        struct result *result = NULL;
        for (int k = 0; k < 10000 && !(result = next(f, WARP, 0)); k++)
            usleep(1000);
        CHECK(result && result->item[0].ordinal == (uint64_t)i, "picture %d", i);
        let_go(f, WARP);
        for (int k = 0; i == 0 && k < 5; k++)
            if (batch_take(batch, &grant) == 0 && grant.member) {
                work_resume(&grant);
                break;
            }
    }
    batch_stop(batch, false);
    batch_take(batch, &grant); // the picture counts as submitted
    CHECK(lost(f, WARP, LOSS_OVERFLOW) == 0, "%d lost", (int)lost(f, WARP, LOSS_OVERFLOW));
    work_drain(f->pipeline);
    subscriptions_close(before, NULL);
    output_close(replaced);
    end(f);
}

// A picture is parked, and other outputs take all of the plan: it is lost, and the batch goes on.
static void test_batch_without_room_in_plan(void)
{
    struct fixture *f = configure();
    struct batch_grant grant;
    f->config[WARP].is_batch = true;
    f->config[WARP].capacity = f->config[WARP].per_camera = f->config[WARP].slots = 1;
    f->config[WARP].wait.ns = INT64_C(60000000000);
    start(f, 0);
    struct batch *batch = f->output[WARP]->parent->batch;
    struct subscriptions *before = f->subscriptions;
    struct output *replaced = f->output[YUV];
    pool_detach(replaced->pool, &f->consumer[YUV]);
    for (int i = 0; i < 2; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    struct output_config others[] = {f->config[WARP], f->config[WARP]};
    others[0].name = "tiles";
    others[0].is_batch = false;
    others[0].tiles.size = 2;
    const struct camera_config camera = {.outputs = others, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, before, &f->batches) == 0, "open");
    f->output[YUV] = f->subscriptions->list[0].output;
    pool_attach(f->output[YUV]->pool, &f->consumer[YUV]);
    work_subscribe(f->pipeline, f->subscriptions);
    struct result *result = NULL;
    for (int k = 0; k < 10000 && !(result = next(f, WARP, 0)); k++)
        usleep(1000);
    let_go(f, WARP);
    while (batch_take(batch, &grant) == 0 && !grant.member)
        ;
    work_resume(&grant);
    for (int i = 0; i < 2; i++) // it is closed, and then over without a picture
        batch_take(batch, &grant);
    CHECK(lost(f, WARP, LOSS_BACKEND) == 1, "%d lost", (int)lost(f, WARP, LOSS_BACKEND));
    batch_stop(batch, false);
    batch_take(batch, &grant);
    work_drain(f->pipeline);
    subscriptions_close(before, NULL);
    output_close(replaced);
    end(f);
}

// Counts elements of a planar 32x32 tensor that differ from the letterbox of a gray w x h picture.
static int count_wrong(const uint8_t *element, int w, int h)
{
    const int width = w >= h ? 32 : 32 * w / h, height = h >= w ? 32 : 32 * h / w;
    int wrong = 0;
    for (int i = 0; i < 3 * 32 * 32; i++) {
        const int x = i % 32, y = i / 32 % 32;
        const bool seen = x >= (32 - width) / 2 && x < (32 + width) / 2 && y >= (32 - height) / 2 &&
                          y < (32 + height) / 2;
        wrong += element[i] != (seen ? 77 : 114);
    }
    return wrong;
}

// One slot is reused: it must not keep the fill of the shape before.
static void test_fill_follows(void)
{
    static const int shape[][2] = {{64, 48}, {64, 48}, {32, 64}, {32, 64}, {64, 48}, {64, 32}};
    struct fixture *f = configure();
    f->config[WARP].slots = 1;
    start(f, 0);
    for (int i = 0; i < 6; i++) {
        struct result *result = NULL;
        CHECK(submit(f, shape[i][0], shape[i][1], i * 40000000, 0) == 0, "submit");
        for (int k = 0; k < 1000 && !(result = next(f, WARP, (uint64_t)i)); k++)
            usleep(1000);
        CHECK(result != NULL, "frame %d", i);
        if (!result)
            continue;
        const int wrong = count_wrong(result->data, shape[i][0], shape[i][1]);
        CHECK(wrong == 0, "frame %d: %d elements are wrong", i, wrong);
        let_go(f, WARP);
        if ((result = next(f, YUV, 0)))
            let_go(f, YUV);
    }
    end(f);
}

// --- frames that come all at once, after something was opened

enum { OPENING_US = 400000, BURST = 20 };

struct client {
    struct fixture *fixture;
    pthread_t thread;
    int frames[OUTPUTS];
    _Atomic bool done;
};

// Takes every frame of both outputs, each after a few milliseconds.
static void *read_slowly(void *opaque)
{
    struct client *client = opaque;
    while (!atomic_load(&client->done)) {
        for (int i = 0; i < OUTPUTS; i++) {
            struct result *result = next(client->fixture, i, 0);
            if (result)
                let_go(client->fixture, i);
            client->frames[i] += result != NULL;
        }
        usleep(5000);
    }
    return NULL;
}

// Frames that arrived during the opening wait for a client that reads.
static void all_arrive(struct fixture *f, const char *what)
{
    struct client client = {.fixture = f};
    pthread_create(&client.thread, NULL, read_slowly, &client);
    for (int i = 0; i < BURST; i++)
        CHECK(submit(f, 16, 16, i * 40000000, 0) == 0, "submit");
    for (int i = 0;
         i < 2000 &&
         ledger_in_flight(&f->output[WARP]->ledger) + ledger_in_flight(&f->output[YUV]->ledger) > 0;
         i++)
        usleep(1000);
    atomic_store(&client.done, true);
    pthread_join(client.thread, NULL);
    for (int i = 0; i < OUTPUTS; i++)
        CHECK(client.frames[i] == BURST, "%s: output %d: %d of %d frames, %d lost as overflow",
              what, i, client.frames[i], BURST, (int)lost(f, i, LOSS_OVERFLOW));
    end(f);
}

static struct fixture *with_few_slots(void)
{
    struct fixture *f = configure();
    f->config[WARP].slots = f->config[YUV].slots = 3;
    return f;
}

static int slow_plan(struct backend *backend, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth)
{
    usleep(OPENING_US);
    return cpu_backend.plan_open(backend, ret, src, ops, n, depth);
}

static int slow_pin(struct backend *backend, void *memory, size_t bytes)
{
    (void)backend, (void)memory, (void)bytes;
    usleep(OPENING_US);
    return 0;
}

static void no_unpin(struct backend *backend, void *memory)
{
    (void)backend, (void)memory;
}

static void test_burst(void)
{
    struct fixture *f = with_few_slots();
    f->driver.plan_open = slow_plan;
    start(f, 0);
    all_arrive(f, "after the plan's opening");

    f = with_few_slots();
    f->driver.pin = slow_pin;
    f->driver.unpin = no_unpin;
    start(f, 0);
    all_arrive(f, "after the slots' opening");

    f = with_few_slots();
    start(f, 0);
    work_delayed(f->pipeline, OPENING_US * INT64_C(1000));
    all_arrive(f, "after the decoder's opening");
}

// A client that does not read delays the camera no longer than that.
static void test_burst_and_stuck_client(void)
{
    struct fixture *f = with_few_slots();
    start(f, 0);
    work_delayed(f->pipeline, OPENING_US * INT64_C(1000));
    const int64_t begun_ns = monotonic_ns();
    for (int i = 0; i < BURST; i++)
        CHECK(submit(f, 16, 16, i * 40000000, 0) == 0, "submit");
    CHECK(monotonic_ns() - begun_ns < 10 * INT64_C(1000000000), "it waits for each frame");
    work_drain(f->pipeline);
    CHECK(lost(f, WARP, LOSS_OVERFLOW) > 0, "nothing is lost");
    end(f);
}

static void *stop_soon(void *opaque)
{
    struct fixture *f = opaque;
    while (atomic_load(&f->output[WARP]->ledger.offered) < 4)
        usleep(1000);
    usleep(20000);
    atomic_store(&f->stop, true);
    work_wake(f->pipeline);
    return NULL;
}

static void test_burst_and_stop(void)
{
    struct fixture *f = with_few_slots();
    pthread_t thread;
    start(f, 0);
    work_delayed(f->pipeline, 60 * INT64_C(1000000000));
    const int64_t begun_ns = monotonic_ns();
    pthread_create(&thread, NULL, stop_soon, f);
    for (int i = 0; i < 4; i++)
        CHECK(submit(f, 16, 16, i * 40000000, 0) == 0, "submit");
    pthread_join(thread, NULL);
    CHECK(monotonic_ns() - begun_ns < 30 * INT64_C(1000000000), "the wait goes on");
    CHECK(lost(f, WARP, LOSS_STOPPING) == 1, "stopping");
    end(f);
}

static void *let_jobs_go_late(void *opaque)
{
    (void)opaque;
    usleep(2 * OPENING_US);
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        kept[i]->done(kept[i], 0);
    return NULL;
}

// The backend may be busy with another's opening.
static void test_burst_and_busy_backend(void)
{
    struct fixture *f = configure();
    pthread_t thread;
    f->driver.submit = keep;
    n_kept = 0;
    start(f, 0);
    work_delayed(f->pipeline, 60 * INT64_C(1000000000));
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        CHECK(submit(f, 16, 16, i, 0) == 0, "submit");
    f->driver.submit = cpu_backend.submit;
    pthread_create(&thread, NULL, let_jobs_go_late, NULL);
    CHECK(submit(f, 16, 16, FRAMES_IN_FLIGHT_MAX, 0) == 0, "submit");
    pthread_join(thread, NULL);
    CHECK(lost(f, WARP, LOSS_BACKEND_BUSY) == 0, "%d lost", (int)lost(f, WARP, LOSS_BACKEND_BUSY));
    work_drain(f->pipeline);
    end(f);
}

int main(void)
{
    TEST(test_burst());
    TEST(test_burst_and_stuck_client());
    TEST(test_burst_and_stop());
    TEST(test_burst_and_busy_backend());
    TEST(test_geometry_change());
    TEST(test_thinning());
    TEST(test_gate());
    TEST(test_output_that_cannot_be());
    TEST(test_nobody_and_late());
    TEST(test_withheld());
    TEST(test_failing_device());
    TEST(test_no_room());
    TEST(test_no_room_beside());
    TEST(test_slots_on_device());
    TEST(test_busy_backend());
    TEST(test_other_outputs());
    TEST(test_many_lists());
    TEST(test_slots_count_once());
    TEST(test_overflow_and_stop());
    TEST(test_failure_while_waiting());
    TEST(test_hanging_backend());
    TEST(test_hanging_backend_and_loss());
    TEST(test_batch_beside_hanging_backend());
    TEST(test_other_outputs_beside_batch());
    TEST(test_batch_without_room_in_plan());
    TEST(test_fill_follows());
    return test_end();
}
