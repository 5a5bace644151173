// Previews: an output for viewers exists while somebody looks, and some time longer; its newest
// result becomes a JPEG, and the camera's own outputs lose nothing to it. If there is no picture,
// the reader gets the reason.
#include "daemon/view/previews.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/work/work.h"
#include "tests/test.h"

enum { WIDTH = 160, HEIGHT = 120, A_JOB = 16 << 20, ROOM = 1 << 30 };
enum { NET, HUGE, LARGE, OUTPUTS };
static const int64_t SECOND = INT64_C(1000000000);

static uv_loop_t loop;
static struct event_queue *events;
static struct work_queue work_queue;
static struct previews *previews;
static struct devices *devices;
static struct backend_driver driver; // acts as cuda, on the CPU
static struct output_config config[OUTPUTS];
static uint8_t pixels[WIDTH * HEIGHT * 3 / 2]; // gray
static _Atomic int released;                   // pictures that came back
static double camera_fps;                      // for open_camera

// The camera: this thread is its thread, too.
static struct {
    struct preview_source source;
    struct device_lease lease;
    struct subscriptions *outputs, *served; // its own; those of `pipeline`
    struct consumer consumer;               // of NET
    struct camera_work *pipeline;
    struct histogram decode, process;
    _Atomic bool stop;
    struct stage_watch stages;
    int changes; // of `served`
} camera;

struct reader {
    struct preview_reader reader;
    int calls;
    uint64_t sequence;
    size_t size;
    char why[PREVIEW_WHY_MAX], facts[PREVIEW_FACTS_MAX];
    bool stops; // in its callback
};

// --- the device

static size_t device_bytes(struct backend *backend)
{
    (void)backend;
    return 2 * (size_t)ROOM;
}

static struct memory_need plan_need(const struct image *src, const struct op *const ops[], int n,
                                    int depth)
{
    (void)src, (void)ops, (void)depth;
    return (struct memory_need){.device = (size_t)n * A_JOB};
}

static int submit(struct plan *plan, struct job *job)
{
    job->src.memory = MEMORY_HOST; // its real place
    return cpu_backend.submit(plan, job);
}

// --- the camera

static void release_list(struct subscriptions *list)
{
    if (subscriptions_release(list))
        subscriptions_close(list, NULL);
}

static void serve(struct preview_source *source)
{
    struct subscriptions *before = camera.served;
    camera.served = preview_source_extend(source);
    if (!camera.served)
        camera.served = subscriptions_acquire(camera.outputs);
    for (int i = 0; i < camera.served->n; i++) {
        const struct demand *demand = camera.served->list[i].output->demand;
        CHECK(!demand || !demand->of || subscriptions_have(camera.outputs, demand->of),
              "the list shows an output that the camera no longer has");
    }
    work_subscribe(camera.pipeline, camera.served);
    release_list(before);
    camera.changes++;
}

static struct subscriptions *open_outputs(int n, const struct subscriptions *before)
{
    const struct camera_config all = {.outputs = config, .n_outputs = n};
    struct subscriptions *ret = NULL;
    CHECK(subscriptions_open(&ret, "gate", &all, before, NULL) == 0, "outputs");
    return ret;
}

static void open_camera(void)
{
    memset(&camera, 0, sizeof camera);
    released = 0;
    CHECK(device_acquire(devices, NULL, &camera.lease) == 0, "lease");
    camera.outputs = open_outputs(OUTPUTS, NULL);
    camera.served = subscriptions_acquire(camera.outputs);
    pool_attach(camera.outputs->list[NET].output->pool, &camera.consumer);
    const struct work_context context = {
        .lease = &camera.lease,
        .events = events,
        .subscriptions = camera.served,
        .fps = camera_fps,
        .stop = &camera.stop,
        .stages = &camera.stages,
        .decode = &camera.decode,
        .process = &camera.process,
    };
    CHECK(work_open(&camera.pipeline, &context) == 0, "pipeline");
    work_attach(camera.pipeline);
    camera.source = (struct preview_source){
        .previews = previews, .camera = "gate", .outputs = camera.outputs, .changed = serve};
}

static void close_camera(void)
{
    const struct output *net = camera.outputs->list[NET].output;
    work_detach(camera.pipeline);
    work_close(camera.pipeline);
    device_release(&camera.lease);
    release_list(camera.served);
    preview_source_close(&camera.source);
    for (int i = 0; i < LOSSES; i++)
        CHECK(i == LOSS_THINNED || atomic_load(&net->ledger.lost[i]) == 0, "a frame is lost: %s",
              loss_name((enum loss)i));
    pool_detach(net->pool, &camera.consumer);
    subscriptions_close(camera.outputs, output_close);
    CHECK(previews_counts(previews).kinds == 0, "kinds");
}

static void release(void *owner)
{
    (void)owner;
    released++;
}

static struct frame make_frame(int number)
{
    struct frame frame = {
        .image = {.format = PIXEL_YUV420P, .width = WIDTH, .height = HEIGHT},
        .info = {.pts_ns = number * SECOND / 25, .epoch = 1},
        .owner = &camera,
        .release = release,
    };
    image_lay_out(&frame.image, pixels);
    return frame;
}

static void submit_frame(struct frame frame)
{
    struct pool *net = camera.outputs->list[NET].output->pool;
    const int before = released;
    CHECK(work_submit(camera.pipeline, &frame) == 0, "submit");
    while (released == before) // no later than with the job
        uv_sleep(1);
    while (pool_acquire(net, &camera.consumer))
        pool_release(net, &camera.consumer, true);
}

static void offer(int number)
{
    submit_frame(make_frame(number));
}

// --- readers

static void take(struct preview_reader *of, struct preview_picture *picture)
{
    struct reader *reader = (struct reader *)of;
    reader->calls++;
    reader->sequence = picture->sequence;
    reader->size = picture->size;
    strcpy(reader->why, picture->why);
    strcpy(reader->facts, picture->facts);
    CHECK(picture->why[0] || (picture->file[0] == 0xff && picture->file[1] == 0xd8), "no JPEG");
    if (reader->stops)
        preview_stop(of);
}

static int start(struct reader *reader, int width, double fps)
{
    reader->reader.kind = (struct preview_kind){.plane = -1, .width = width, .fps = fps};
    reader->reader.take = take;
    return preview_start(&camera.source, &reader->reader);
}

static int start_output(struct reader *reader, const char *output, int plane)
{
    reader->reader.kind = (struct preview_kind){.plane = plane};
    strcpy(reader->reader.kind.output, output);
    reader->reader.take = take;
    return preview_start(&camera.source, &reader->reader);
}

static bool wait_for(const int *count, int n)
{
    const int64_t until_ns = monotonic_ns() + 60 * SECOND;
    while (*count < n && monotonic_ns() < until_ns)
        uv_run(&loop, UV_RUN_NOWAIT);
    return *count == n;
}

static int viewed(void)
{
    return camera.served->n - camera.outputs->n;
}

// --- tests

static void test_nobody(void)
{
    open_camera();
    for (int i = 1; i <= 10; i++)
        offer(i);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(camera.changes == 0 && previews_counts(previews).made == 0, "made though nobody looks");
    close_camera();
}

static void test_single(void)
{
    struct reader one = {0}, two = {0}, small = {0}, net = {0};
    const uint64_t made = previews_counts(previews).made;
    open_camera();
    CHECK(start(&one, 160, 0) == 0 && start(&two, 160, 0) == 0, "start");
    CHECK(start(&small, 80, 0) == 0 && start_output(&net, "net", -1) == 0, "start");
    CHECK(previews_counts(previews).kinds == 3, "%d kinds", previews_counts(previews).kinds);
    CHECK(viewed() == 3 && camera.served->list[0].output == camera.outputs->list[0].output &&
              !camera.served->list[OUTPUTS - 1].output->demand,
          "the camera's outputs come first");
    offer(1);
    CHECK(wait_for(&one.calls, 1) && wait_for(&two.calls, 1) && wait_for(&small.calls, 1),
          "called");
    CHECK(wait_for(&net.calls, 1), "called");
    CHECK(previews_counts(previews).made == made + 3, "equal requests share one JPEG");
    CHECK(!one.reader.preview && one.sequence == 1, "it is over with one picture");
    CHECK(
        strstr(one.facts, "\"camera\":\"gate\",\"width\":160,\"height\":120,\"source\":[160,120]"),
        "%s", one.facts);
    CHECK(strstr(small.facts, "\"width\":80,\"height\":60"), "%s", small.facts);
    CHECK(strstr(net.facts, "\"output\":\"net\",\"width\":32,\"height\":32") && net.sequence == 0,
          "%s", net.facts);
    offer(2);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(previews_counts(previews).made == made + 3, "it goes on");
    const int changes = camera.changes;
    CHECK(start(&one, 160, 0) == 0 && camera.changes == changes, "the output is still there");
    offer(3);
    CHECK(wait_for(&one.calls, 2) && one.sequence == 3, "made of %d", (int)one.sequence);
    close_camera();
}

static sem_t goes_on;

static void block(struct work *work)
{
    (void)work;
    sem_wait(&goes_on);
}

static void unblocked(struct work *work)
{
    (void)work;
}

// The newest of the pictures that come while a JPEG is made is used.
static void test_newest(void)
{
    struct reader reader = {0};
    struct work blocker = {.run = block, .done = unblocked};
    open_camera();
    const uint64_t dropped = previews_counts(previews).dropped;
    work_start(&work_queue, &blocker); // libuv has one thread
    CHECK(start(&reader, 64, 25) == 0, "start");
    for (int i = 1; i <= 5; i++) {
        offer(i);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    sem_post(&goes_on);
    CHECK(wait_for(&reader.calls, 2) && reader.sequence == 5, "made of %d", (int)reader.sequence);
    CHECK(previews_counts(previews).dropped == dropped + 3, "those between count: %d",
          (int)(previews_counts(previews).dropped - dropped));
    preview_stop(&reader.reader);
    close_camera();
}

static void test_rate(void)
{
    struct reader fast = {0}, slow = {0};
    open_camera();
    CHECK(start(&fast, 64, 5) == 0 && start(&slow, 64, 1) == 0, "start");
    for (int i = 0; i < 50; i++) {
        offer(i);
        CHECK(wait_for(&fast.calls, i / 5 + 1) && wait_for(&slow.calls, i / 25 + 1),
              "%d and %d pictures of %d", fast.calls, slow.calls, i);
    }
    CHECK(fast.calls == 10 && slow.calls == 2, "%d and %d of 50", fast.calls, slow.calls);
    preview_stop(&fast.reader);
    offer(51);
    fast.stops = slow.stops = true;
    CHECK(start(&fast, 64, 5) == 0, "start again");
    offer(52);
    CHECK(wait_for(&fast.calls, 11) && fast.sequence == 52, "the next picture is due at once");
    offer(100);
    CHECK(wait_for(&slow.calls, 3), "%d", slow.calls);
    CHECK(previews_counts(previews).kinds == 0, "both stopped when they were called");
    close_camera();
}

// Viewers see pictures beyond the camera's `fps`, too.
static void test_thinned(void)
{
    struct reader reader = {0};
    camera_fps = 1;
    open_camera();
    camera_fps = 0;
    const struct ledger *net = &camera.outputs->list[NET].output->ledger;
    CHECK(start(&reader, 64, 25) == 0, "start");
    for (int i = 1; i <= 10; i++) {
        offer(i);
        CHECK(wait_for(&reader.calls, i) && reader.sequence == (uint64_t)i, "picture %d", i);
    }
    CHECK(net->offered == 10 && net->emitted == 1 && net->lost[LOSS_THINNED] == 9, "%d of %d",
          (int)net->emitted, (int)net->offered);
    uint64_t processed = 0;
    for (int i = 0; i <= HISTOGRAM_BUCKETS; i++)
        processed += camera.process.bucket[i];
    CHECK(processed == 1, "%d pictures were processed", (int)processed);
    close_camera();
}

// A picture for viewers alone is the first to find that the device has no room.
static void test_thinned_without_room(void)
{
    struct reader reader = {0};
    struct frame frame = make_frame(2);
    size_t left;
    camera_fps = 1;
    open_camera();
    camera_fps = 0;
    CHECK(start(&reader, 64, 25) == 0, "start");
    offer(1);
    work_drain(camera.pipeline);
    CHECK(device_reserve(&camera.lease, ROOM, &left) == 0, "reserve");
    CHECK(work_submit(camera.pipeline, &frame) == -ENOSPC, "the camera does not get to know");
    CHECK(work_notice(camera.pipeline) != NULL, "without a notice");
    device_unreserve(&camera.lease, ROOM);
    preview_stop(&reader.reader);
    close_camera();
}

static void test_refusals(void)
{
    struct reader many[PREVIEW_KINDS_MAX + 1] = {0}, patient = {0}, output = {0}, plane = {0};
    open_camera();
    for (int i = 0; i < PREVIEW_KINDS_MAX; i++)
        CHECK(start(&many[i], 64 + i, 1) == 0, "kind %d", i);
    CHECK(start(&many[PREVIEW_KINDS_MAX], 200, 1) == -ENOSPC, "too many kinds");
    CHECK(start(&many[PREVIEW_KINDS_MAX], 64, 1) == 0, "one that is there is no further one");
    CHECK(viewed() == PREVIEW_KINDS_MAX, "%d", viewed());
    for (int i = 0; i <= PREVIEW_KINDS_MAX; i++)
        preview_stop(&many[i].reader);
    patient.reader.patience_ns = 1;
    CHECK(start(&patient, 200, 0) == 0 && viewed() == 1, "idle ones give way");
    CHECK(wait_for(&patient.calls, 1), "called");
    CHECK(strstr(patient.why, "no picture now") && !patient.reader.preview, "%s", patient.why);
    CHECK(start_output(&output, "no", -1) == -ENOENT, "no such output");
    CHECK(start_output(&output, "huge", -1) == 0 && start_output(&plane, "net", 3) == 0, "start");
    offer(1);
    CHECK(wait_for(&output.calls, 1) && strstr(output.why, "4096x4096"), "%s", output.why);
    CHECK(strstr(output.facts, "\"output\":\"huge\",\"error\":\""), "%s", output.facts);
    CHECK(wait_for(&plane.calls, 1) && strstr(plane.why, "no plane 3"), "%s", plane.why);
    close_camera();
}

// Large tensors are shown as long as all of them together have room.
static void test_large(void)
{
    struct reader reader[3] = {0};
    open_camera();
    for (int i = 0; i < 3; i++)
        CHECK(start_output(&reader[i], "large", i - 1) == 0, "start");
    offer(1);
    for (int i = 0; i < 3; i++)
        CHECK(wait_for(&reader[i].calls, 1), "called");
    int refused = 0;
    for (int i = 0; i < 3; i++)
        refused += strstr(reader[i].why, "256 MiB") != NULL;
    CHECK(refused == 1, "%d of 3 have no room", refused);
    close_camera();
}

static void test_turned(void)
{
    struct reader reader = {0};
    struct frame frame = make_frame(1);
    frame.image.orientation = ORIENTATION_QUARTER;
    open_camera();
    CHECK(start(&reader, 64, 0) == 0, "start");
    submit_frame(frame);
    CHECK(wait_for(&reader.calls, 1) && strstr(reader.facts, "\"width\":64,\"height\":85"), "%s",
          reader.facts);
    close_camera();
}

// Replaces the camera's outputs by the first n of them.
static void reload(int n)
{
    struct subscriptions *before = camera.outputs;
    camera.outputs = open_outputs(n, before);
    preview_source_follow(&camera.source, camera.outputs);
    serve(&camera.source);
    subscriptions_close(before, NULL);
}

// A reload replaces an output, and then removes it.
static void test_reload(void)
{
    struct reader picture = {0}, net = {0}, plane = {0};
    open_camera();
    struct output *before = camera.outputs->list[NET].output;
    struct output *large = camera.outputs->list[LARGE].output;
    CHECK(start(&picture, 64, 25) == 0 && start_output(&net, "net", -1) == 0, "start");
    CHECK(start_output(&plane, "net", 0) == 0, "start");
    config[NET].size.width = 48;
    reload(OUTPUTS);
    CHECK(camera.outputs->list[NET].output != before && viewed() == 3, "replaced");
    pool_detach(before->pool, &camera.consumer);
    pool_attach(camera.outputs->list[NET].output->pool, &camera.consumer);
    offer(1);
    CHECK(wait_for(&net.calls, 1) && strstr(net.facts, "\"width\":48"), "%s", net.facts);
    CHECK(wait_for(&picture.calls, 1), "called");
    CHECK(start_output(&net, "large", -1) == 0, "start");
    reload(LARGE);
    CHECK(net.calls == 2 && strstr(net.why, "no such output any more") && !net.reader.preview, "%s",
          net.why);
    offer(2);
    CHECK(wait_for(&picture.calls, 2), "the other one goes on");
    output_close(before);
    output_close(large);
    config[NET].size.width = 32;
    close_camera();
}

// The camera goes while a JPEG is made.
static void test_gone(void)
{
    struct reader reader = {0};
    struct work blocker = {.run = block, .done = unblocked};
    open_camera();
    CHECK(start(&reader, 64, 25) == 0, "start");
    work_start(&work_queue, &blocker);
    offer(1);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(work_queue.n == 2, "a JPEG waits");
    close_camera();
    CHECK(!reader.reader.preview && strstr(reader.why, "gone"), "%s", reader.why);
    preview_stop(&reader.reader); // does nothing
    sem_post(&goes_on);
    while (work_queue.n > 0)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK(reader.calls == 1, "called after its end");
}

// Pictures on a device; viewers get none of the memory reserved for cameras.
static void test_device(void)
{
    struct reader reader = {0};
    size_t left;
    open_camera();
    CHECK(start(&reader, 64, 25) == 0, "start");
    for (int i = 1; i <= 4; i++) { // alternating, as when a GPU fails
        struct frame frame = make_frame(i);
        frame.image.memory = i % 2 ? MEMORY_CUDA : MEMORY_HOST;
        submit_frame(frame);
        CHECK(wait_for(&reader.calls, i) && reader.size > 0, "picture %d: %s", i, reader.why);
    }
    work_drain(camera.pipeline);
    CHECK(device_reserve(&camera.lease, ROOM - (OUTPUTS + 1) * A_JOB, &left) == 0, "reserve");
    offer(5);
    CHECK(wait_for(&reader.calls, 5) && strstr(reader.why, "too little memory"), "%s", reader.why);
    device_unreserve(&camera.lease, ROOM - (OUTPUTS + 1) * A_JOB);
    close_camera();
}

static void configure(void)
{
    const struct output_config tensor = {
        .kernel = KERNEL_WARP,
        .fit = FIT_STRETCH,
        .tensor = {.scale = {1}, .mean = {1, {0}}, .std = {1, {1}}, .dtype = DTYPE_U8},
        .slots = 4,
    };
    config[NET] = config[HUGE] = config[LARGE] = tensor;
    config[NET].name = "net";
    config[NET].size = (struct dimensions){32, 32};
    config[HUGE].name = "huge";
    config[HUGE].size = (struct dimensions){4097, 8};
    config[LARGE].name = "large";
    config[LARGE].size = (struct dimensions){4096, 2048};
}

static void work_is_idle(void *opaque)
{
    (void)opaque;
}

int main(void)
{
    const struct config top = {.cpu.workers = 2, .cuda.memory.n = ROOM};
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    sem_init(&goes_on, 0, 0);
    memset(pixels, 128, sizeof pixels);
    configure();
    uv_loop_init(&loop);
    event_queue_open(&events, &loop);
    work_queue = (struct work_queue){.loop = &loop, .idle = work_is_idle};
    driver = cpu_backend;
    driver.name = "cuda";
    driver.takes_cuda = true;
    driver.device_bytes = device_bytes;
    driver.plan_need = plan_need;
    driver.submit = submit;
    CHECK(devices_open_with(&devices, &top, &driver, &cpu_backend) == 0, "devices");
    CHECK(previews_open(&previews, &loop, &work_queue) == 0, "previews");
    TEST(test_nobody());
    TEST(test_single());
    TEST(test_newest());
    TEST(test_rate());
    TEST(test_thinned());
    TEST(test_thinned_without_room());
    TEST(test_refusals());
    TEST(test_large());
    TEST(test_turned());
    TEST(test_reload());
    TEST(test_gone());
    TEST(test_device());
    previews_stop(previews);
    event_queue_close(events);
    uv_run(&loop, UV_RUN_DEFAULT);
    previews_close(previews);
    devices_close(devices);
    uv_loop_close(&loop);
    return test_end();
}
