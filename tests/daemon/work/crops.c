// Crops on the CPU backend: bytes, headers, kept pictures and their lifetimes, and losses with
// their reasons, over changes of geometry and of outputs, and a device that fails.
#include "daemon/work/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/config.h"
#include "daemon/base/clock.h"
#include "daemon/device/budget.h"
#include "daemon/output/crop_requests.h"
#include "daemon/wire.h"
#include "tests/test.h"

enum { OUTPUTS = 2, DETECTOR = 0, PLATES = 1, MOST = 3 };
enum { WIDTH = 96, HEIGHT = 64 };
static const int64_t WAIT_NS = INT64_C(20000000000);

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
    struct consumer consumer[OUTPUTS];
    struct histogram decode, process;
    struct camera_work *pipeline;
    _Atomic bool stop;
    struct stage_watch stages;
    struct work_queue queue;
    _Atomic int alive; // pictures
};

static void do_nothing(void *opaque)
{
    (void)opaque;
}

static void subscribe(struct fixture *f, struct subscriptions *before)
{
    const struct camera_config camera = {.outputs = f->config, .n_outputs = OUTPUTS};
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, before, NULL) == 0, "outputs");
    for (int i = 0; i < OUTPUTS; i++)
        f->output[i] = f->subscriptions->list[i].output;
    subscriptions_follow(f->subscriptions, &f->queue);
}

static struct fixture *start(int64_t keep_ns)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->driver = cpu_backend;
    f->driver.depth = FRAMES_IN_FLIGHT_MAX;
    f->driver.name = "cuda";
    f->top.cpu.workers = 2;
    f->config[DETECTOR] = (struct output_config){
        .name = "detector",
        .size = {32, 32},
        .fill = {.n = 1, .v = {114}},
        .tensor = {.scale = {1}, .mean = {1, {0}}, .std = {1, {1}}},
        .slots = 4,
    };
    f->config[PLATES] = f->config[DETECTOR];
    f->config[PLATES].name = "plates";
    f->config[PLATES].size = (struct dimensions){24, 16};
    f->config[PLATES].capacity = MOST;
    f->config[PLATES].crops =
        (struct crops_config){.of = "detector", .most = MOST, .keep.ns = keep_ns};
    uv_loop_init(&f->loop);
    CHECK(devices_open_with(&f->devices, &f->top, &f->driver, &cpu_backend) == 0, "devices");
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    f->queue = (struct work_queue){.loop = &f->loop, .idle = do_nothing};
    subscribe(f, NULL);
    CHECK(f->subscriptions->n_pictures == 1 && f->subscriptions->n_pools == 2, "their places");
    for (int i = 0; i < OUTPUTS; i++)
        pool_attach(f->output[i]->pool, &f->consumer[i]);
    const struct work_context context = {
        .lease = &f->lease,
        .events = f->events,
        .subscriptions = f->subscriptions,
        .stop = &f->stop,
        .stages = &f->stages,
        .decode = &f->decode,
        .process = &f->process,
    };
    CHECK(work_open(&f->pipeline, &context) == 0, "pipeline");
    CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "join");
    work_attach(f->pipeline);
    return f;
}

static void end(struct fixture *f)
{
    work_detach(f->pipeline);
    CHECK(f->alive == 0, "%d pictures are left", f->alive);
    device_release(&f->lease);
    work_close(f->pipeline);
    for (int i = 0; i < OUTPUTS; i++) {
        pool_close(f->output[i]->pool);
        crop_requests_close(f->output[i]->requests);
        f->output[i]->pool = f->output[i]->outlet->pool = NULL;
        f->output[i]->requests = NULL;
        CHECK(ledger_in_flight(&f->output[i]->ledger) == 0, "output %d: the sums match", i);
    }
    subscriptions_close(f->subscriptions, output_close);
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
    picture->fixture->alive--;
    free(picture);
}

static void fill(uint8_t *pixels, size_t size, int64_t number)
{
    uint32_t state = (uint32_t)number * 2654435761U + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525U + 1013904223U;
        pixels[i] = (uint8_t)(state >> 24);
    }
}

static struct frame make_frame(struct fixture *f, int width, int height, int64_t number,
                               uint32_t epoch)
{
    struct frame frame = {.image = {.format = PIXEL_NV12, .width = width, .height = height}};
    frame.image.colour = colour_resolve(frame.image.colour, height);
    const size_t size = image_lay_out(&frame.image, NULL);
    struct picture *picture = malloc(sizeof *picture + size);
    picture->fixture = f;
    f->alive++;
    fill(picture->pixels, size, number);
    image_lay_out(&frame.image, picture->pixels);
    frame.rate_num = 25;
    frame.rate_den = 1;
    frame.owner = picture;
    frame.release = release;
    frame.info = (struct frame_info){
        .pts_ns = number * 40000000,
        .received_ns = monotonic_ns(),
        .decoded_ns = monotonic_ns(),
        .epoch = epoch,
        .flags = FRAMED_FLAG_KEYFRAME | (number == 0 ? FRAMED_FLAG_FIRST_OF_EPOCH : 0),
        .source_width = width,
        .source_height = height,
    };
    return frame;
}

static void submit_sized(struct fixture *f, int64_t number, int width, uint32_t epoch)
{
    struct frame frame = make_frame(f, width, HEIGHT, number, epoch);
    CHECK(work_submit(f->pipeline, &frame) == 0, "submit");
}

static void submit(struct fixture *f, int64_t number)
{
    submit_sized(f, number, WIDTH, 7);
}

static const struct framed_detection boxes[] = {
    {.x1 = 10, .y1 = 12, .x2 = 40, .y2 = 33, .score = .5F},
    {.x1 = 60.5F, .y1 = -4, .x2 = 70, .y2 = 20, .score = .9F},
};

static void find_sized(struct fixture *f, int64_t number, int width, uint32_t epoch, int n)
{
    const struct frame_info info = {.pts_ns = number * 40000000,
                                    .epoch = epoch,
                                    .source_width = width,
                                    .source_height = HEIGHT};
    const uint16_t index[] = {0, 1};
    const struct found found = {
        .region = "lane",
        .frame = info,
        .sequence = (uint64_t)number + 500,
        .n = n,
        .list = boxes,
        .index = index,
    };
    crop_requests_add(f->output[PLATES]->requests, &found);
}

static void find(struct fixture *f, int64_t number, int n)
{
    find_sized(f, number, WIDTH, 7, n);
}

static void pause_ns(struct fixture *f, long ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

// Returns the next batch; NULL if none comes.
static const struct result *next(struct fixture *f)
{
    const int64_t until_ns = monotonic_ns() + WAIT_NS;
    const struct result *result;
    while (!(result = pool_acquire(f->output[PLATES]->pool, &f->consumer[PLATES])) &&
           monotonic_ns() < until_ns)
        pause_ns(f, 100000);
    CHECK(result, "a batch comes");
    return result;
}

static void let_go(struct fixture *f)
{
    pool_release(f->output[PLATES]->pool, &f->consumer[PLATES], true);
}

static uint64_t lost(struct fixture *f, enum loss reason)
{
    return atomic_load(&f->output[PLATES]->ledger.lost[reason]);
}

// Waits until all requests but `left` have ended.
static void settle(struct fixture *f, int64_t left)
{
    const int64_t until_ns = monotonic_ns() + WAIT_NS;
    while (ledger_in_flight(&f->output[PLATES]->ledger) > left && monotonic_ns() < until_ns)
        pause_ns(f, 100000);
    CHECK(ledger_in_flight(&f->output[PLATES]->ledger) == left, "requests end");
}

static void check_bytes(struct fixture *f, const struct result *result, int i, struct rect rect,
                        int64_t number)
{
    struct op_params params;
    struct op op;
    struct image dst;
    struct frame frame = make_frame(f, WIDTH, HEIGHT, number, 7);
    output_config_op(&f->config[PLATES], &params);
    params.warp.crop = rect;
    CHECK(op_init(&op, &params, &frame.image) == 0, "the ordinary op");
    uint8_t *expected = malloc(op.dst_bytes);
    op_lay_out(&op, &dst, expected);
    op_reference(&dst, &frame.image, &op, (struct band){0, op.dst.height}, false);
    const uint8_t *got = (const uint8_t *)result->data + (size_t)i * op.dst_bytes;
    CHECK(result->size == op.dst_bytes * MOST, "size");
    CHECK(memcmp(got, expected, op.dst_bytes) == 0, "bytes of element %d", i);
    CHECK(memcmp(result->item[i].dst_to_src, op.dst_to_src, sizeof op.dst_to_src) == 0, "matrix");
    free(expected);
    op_finish(&op);
    frame_release(&frame);
}

static void check_batch(struct fixture *f, const struct result *result, int64_t number,
                        uint64_t sequence)
{
    CHECK(result->n_items == MOST && result->closed_by == CLOSED_ALL, "closed at once");
    CHECK(result->batch_sequence == sequence, "batch %d", (int)result->batch_sequence);
    CHECK(item_is_filled(&result->item[0]) && item_is_filled(&result->item[1]) &&
              !item_is_filled(&result->item[2]),
          "two elements");
    check_bytes(f, result, 0, (struct rect){60, 0, 10, 20}, number);
    check_bytes(f, result, 1, (struct rect){10, 12, 30, 21}, number);
    for (int i = 0; i < 2; i++) {
        const struct item *item = &result->item[i];
        CHECK(item->object == 1 - i && item->part == i && item->parts == 2, "which box");
        CHECK(item->parent_sequence == (uint64_t)number + 500, "the parent");
        CHECK(item->sequence == sequence && item->frame.pts_ns == number * 40000000, "the picture");
        CHECK(!strcmp(item->region, "lane") && !strcmp(item->camera, "gate"), "names");
        CHECK(!(item->frame.flags & FRAMED_FLAG_FIRST_OF_EPOCH) == (sequence > 0),
              "the first of the epoch");
        CHECK(item->frame.flags & FRAMED_FLAG_KEYFRAME, "the other flags");
    }
}

static void test_batches(void)
{
    struct fixture *f = start(WAIT_NS);
    for (int i = 0; i < 5; i++)
        submit(f, i);
    const int order[] = {3, 1, 3, 4};
    for (int i = 0; i < 4; i++) {
        find(f, order[i], 2);
        const struct result *result = next(f);
        if (result)
            check_batch(f, result, order[i], (uint64_t)i);
        let_go(f);
    }
    find(f, 2, 0);
    settle(f, 0);
    const struct ledger *ledger = &f->output[PLATES]->ledger;
    CHECK(atomic_load(&ledger->offered) == 4 && atomic_load(&ledger->emitted) == 4,
          "nothing found, no batch");
    end(f);
}

static void test_slots_run_out(void)
{
    struct fixture *f = start(WAIT_NS);
    submit(f, 0);
    for (int i = 0; i < 10; i++) {
        find(f, 0, 2);
        settle(f, i < 4 ? (uint64_t)i + 1 : 4);
    }
    CHECK(lost(f, LOSS_OVERFLOW) == 6, "%d pushed out", (int)lost(f, LOSS_OVERFLOW));
    const struct result *result = next(f);
    CHECK(result && result->batch_sequence == 6, "the newest stay");
    let_go(f);
    end(f);
}

static void test_kept_for_a_while(void)
{
    struct fixture *f = start(30000000);
    submit(f, 0);
    pause_ns(f, 80000000);
    find(f, 0, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_LATE) == 1, "kept too short");
    work_drain(f->pipeline);
    CHECK(f->alive == 0, "let go of");
    submit(f, 1);
    find(f, 99, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_LATE) == 2, "never there");
    find_sized(f, 1, WIDTH, 6, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_LATE) == 3, "of another epoch");
    end(f);

    f = start(200000000);
    for (int i = 0; i < 50; i++)
        submit(f, i);
    CHECK(f->alive <= budget_kept_pictures(&f->config[PLATES].crops, 25, 1) + FRAMES_IN_FLIGHT_MAX,
          "%d pictures are kept", f->alive);
    CHECK(budget_kept_pictures(&f->config[PLATES].crops, 25, 1) == 7,
          "as many as come, and one more");
    end(f);
}

// --- pictures on a device

static _Alignas(4096) uint8_t device_memory[1 << 20];
static int exports;
static bool device_is_full;

static int export_memory(struct backend *backend, struct device_export *ret, enum export_kind kind,
                         size_t bytes)
{
    (void)backend;
    if (device_is_full)
        return -ENOMEM;
    CHECK(bytes <= sizeof device_memory, "%zu bytes", bytes);
    exports++;
    *ret = (struct device_export){.kind = kind, .address = device_memory, .bytes = bytes, .fd = -1};
    return 0;
}

static void unexport_memory(struct backend *backend, struct device_export *memory)
{
    (void)backend, (void)memory;
    exports--;
}

static int copy_picture(struct backend *backend, const struct image *to, const struct image *from)
{
    (void)backend;
    CHECK(to->plane[0].data >= device_memory && to->plane[0].stride == 256 &&
              to->plane[1].stride == 256,
          "its place");
    for (int p = 0; p < image_planes(from); p++)
        for (int y = 0; y < plane_rows(from->format, p, from->height); y++)
            memcpy(to->plane[p].data + y * to->plane[p].stride,
                   from->plane[p].data + y * from->plane[p].stride,
                   plane_row_bytes(from->format, p, from->width));
    return 0;
}

static int submit_on_device(struct plan *plan, struct job *job)
{
    job->src.memory = MEMORY_HOST; // its real place
    return cpu_backend.submit(plan, job);
}

// Pictures in surfaces of the decoder, which has few, are copied, and their surfaces go back.
static void test_copies(void)
{
    struct fixture *f = start(200000000);
    f->driver.submit = submit_on_device;
    f->driver.export_open = export_memory;
    f->driver.export_close = unexport_memory;
    f->driver.picture_copy = copy_picture;
    device_is_full = true;
    struct frame frame = make_frame(f, WIDTH, HEIGHT, 0, 7);
    frame.image.memory = MEMORY_CUDA;
    CHECK(work_submit(f->pipeline, &frame) == -ENOMEM, "no room");
    device_is_full = false;
    work_drain(f->pipeline);
    for (int i = 0; i < 30; i++) {
        const int64_t until_ns = monotonic_ns() + WAIT_NS;
        frame = make_frame(f, WIDTH, HEIGHT, i, 7);
        frame.image.memory = MEMORY_CUDA;
        CHECK(work_submit(f->pipeline, &frame) == 0 && exports == 1, "submit");
        while (f->alive > 0 && monotonic_ns() < until_ns)
            pause_ns(f, 100000);
        CHECK(f->alive == 0, "no surface is held");
    }
    find(f, 29, 2);
    const struct result *result = next(f);
    for (int i = 0; result && i < 2; i++)
        check_bytes(f, result, i, i ? (struct rect){10, 12, 30, 21} : (struct rect){60, 0, 10, 20},
                    29);
    let_go(f);
    find(f, 20, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_LATE) == 1, "the oldest are dropped");
    work_drain(f->pipeline);
    CHECK(exports == 0, "the memory is freed");
    end(f);
}

static void test_only_pictures_of_the_other_output(void)
{
    struct fixture *f = start(WAIT_NS);
    f->output[DETECTOR]->rate.fps = 12.5;
    for (int i = 0; i < 4; i++)
        submit(f, i);
    for (int i = 0; i < 4; i++)
        find(f, i, 1);
    settle(f, 2);
    CHECK(lost(f, LOSS_LATE) == 2, "thinned pictures are not kept");
    end(f);
}

static void test_geometry_change(void)
{
    struct fixture *f = start(WAIT_NS);
    submit(f, 0);
    submit_sized(f, 1, WIDTH / 2, 8);
    find(f, 0, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_LATE) == 1, "pictures of the former size are gone");
    find_sized(f, 1, WIDTH / 2, 8, 2);
    const struct result *result = next(f);
    CHECK(result && result->item[0].frame.source_width == WIDTH / 2, "the new size");
    CHECK(result && item_is_filled(&result->item[0]) && !item_is_filled(&result->item[1]),
          "the other box is outside");
    let_go(f);
    end(f);
}

static void test_other_outputs(void)
{
    struct fixture *f = start(WAIT_NS);
    struct subscriptions *before = f->subscriptions;
    submit(f, 0);
    pool_detach(f->output[DETECTOR]->pool, &f->consumer[DETECTOR]);
    f->config[DETECTOR].size.width = 48;
    subscribe(f, before);
    pool_attach(f->output[DETECTOR]->pool, &f->consumer[DETECTOR]);
    work_subscribe(f->pipeline, f->subscriptions);
    find(f, 0, 2);
    const struct result *result = next(f);
    if (result)
        check_batch(f, result, 0, 0);
    let_go(f);
    submit(f, 1);
    find(f, 1, 2);
    result = next(f);
    if (result)
        check_batch(f, result, 1, 1);
    let_go(f);
    submit(f, 2); // no job has the former outputs any more
    subscriptions_close(before, output_close);
    end(f);
}

static int failing_submit(struct plan *plan, struct job *job)
{
    (void)plan, (void)job;
    return -EIO;
}

static void test_device_fails(void)
{
    struct fixture *f = start(WAIT_NS);
    submit(f, 0);
    f->driver.submit = failing_submit;
    find(f, 0, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_BACKEND) == 1, "backend");
    CHECK(device_is_stale(&f->lease), "the lease is stale");
    for (int i = 0; i < 20; i++)
        find(f, 0, 2);
    work_detach(f->pipeline);
    CHECK(ledger_in_flight(&f->output[PLATES]->ledger) == 0, "all requests have come to an end");
    CHECK(lost(f, LOSS_BACKEND) + lost(f, LOSS_LATE) == 21, "21 of them");
    device_release(&f->lease);
    CHECK(f->alive == 0, "no picture is kept");
    const uint64_t late = lost(f, LOSS_LATE);
    find(f, 0, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_LATE) == late + 1, "without a device");
    CHECK(device_acquire(f->devices, NULL, &f->lease) == 0, "the cpu");
    work_attach(f->pipeline);
    submit(f, 1);
    find(f, 1, 2);
    const struct result *result = next(f);
    CHECK(result && item_is_filled(&result->item[1]), "works again");
    let_go(f);
    end(f);
}

static void test_impossible(void)
{
    struct fixture *f = start(WAIT_NS);
    work_detach(f->pipeline);
    f->subscriptions->list[PLATES].op.warp.scale = 1;
    f->subscriptions->list[PLATES].op.warp.has_affine = true; // all zeros
    struct subscriptions *subscriptions = f->subscriptions;
    work_close(f->pipeline);
    const struct work_context context = {
        .lease = &f->lease,
        .events = f->events,
        .subscriptions = subscriptions,
        .stop = &f->stop,
        .stages = &f->stages,
        .decode = &f->decode,
        .process = &f->process,
    };
    CHECK(work_open(&f->pipeline, &context) == 0, "pipeline");
    work_attach(f->pipeline);
    submit(f, 0);
    const char *notice = work_notice(f->pipeline);
    CHECK(notice && strstr(notice, "output plates"), "notice: %s", notice ? notice : "none");
    find(f, 0, 2);
    settle(f, 0);
    CHECK(lost(f, LOSS_CONFIG) == 1, "config");
    end(f);
}

int main(void)
{
    TEST(test_batches());
    TEST(test_slots_run_out());
    TEST(test_kept_for_a_while());
    TEST(test_copies());
    TEST(test_only_pictures_of_the_other_output());
    TEST(test_geometry_change());
    TEST(test_other_outputs());
    TEST(test_device_fails());
    TEST(test_impossible());
    return test_end();
}
