// The outputs that a camera's thread switches to, and the end of an output's subscribers.
#include "daemon/camera/camera.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { OUTPUTS = 3 };

struct fixture {
    struct output_config config[OUTPUTS]; // A, B, C
    struct camera camera;
    struct output *output[OUTPUTS];
    uv_loop_t loop;
    struct event_queue *events;
};

static void thread_ended(struct event *event)
{
    (void)event;
}

static void list_released(void *opaque)
{
    (void)opaque;
}

// Makes the camera's configuration with these outputs.
static struct camera_config configure(const struct fixture *f, const char *names,
                                      struct output_config config[OUTPUTS])
{
    for (int i = 0; names[i]; i++)
        config[i] = f->config[names[i] - 'A'];
    return (struct camera_config){.name = "gate",
                                  .url = "rtsp://127.0.0.1:1/nobody",
                                  .outputs = config,
                                  .n_outputs = (int)strlen(names)};
}

static void note_outputs(struct fixture *f, const char *names)
{
    for (int i = 0; names[i]; i++)
        f->output[names[i] - 'A'] = f->camera.subscriptions->list[i].output;
}

// Gives the camera these outputs; those of its last list stay.
static void give(struct fixture *f, const char *names)
{
    struct output_config config[OUTPUTS];
    const struct camera_config camera = configure(f, names, config);
    struct subscriptions *given;
    CHECK(subscriptions_open(&given, "gate", &camera, f->camera.subscriptions, NULL) == 0,
          "subscriptions");
    camera_subscribe(&f->camera, given);
    note_outputs(f, names);
}

// Does what the camera's thread does between two pictures.
static void update(struct fixture *f)
{
    CHECK(camera_take_orders(&f->camera) == 0, "orders");
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

// Checks the number of lists with A, B and C.
static void check(const struct fixture *f, int a, int b, int c, const char *when)
{
    const int expected[] = {a, b, c};
    for (int i = 0; i < OUTPUTS; i++) {
        const int n = f->output[i] ? f->output[i]->subscribers : 0;
        CHECK(n == expected[i], "%s: %c is in %d lists", when, 'A' + i, n);
    }
}

static void start(struct fixture *f)
{
    static char *const names[] = {"A", "B", "C"};
    *f = (struct fixture){0};
    for (int i = 0; i < OUTPUTS; i++)
        f->config[i] = (struct output_config){
            .name = names[i], .kernel = KERNEL_YUV, .slots = 3, .sink = {.kind = SINK_TCP}};
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    struct output_config config[OUTPUTS];
    const struct camera_config camera = configure(f, "A", config);
    const struct camera_context context = {
        .events = f->events, .ended = thread_ended, .released = list_released};
    CHECK(camera_open(&f->camera, &camera, &context) == 0, "camera");
    note_outputs(f, "A");
    f->camera.started = true; // as its thread, the test follows orders
}

static void end(struct fixture *f)
{
    bool owned[OUTPUTS]; // by the camera
    for (int i = 0; i < OUTPUTS; i++)
        owned[i] = subscriptions_have(f->camera.subscriptions, f->output[i]);
    camera_close(&f->camera);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
    for (int i = 0; i < OUTPUTS; i++) {
        if (!f->output[i] || owned[i])
            continue;
        CHECK(f->output[i]->subscribers == 0, "%c at the end", 'A' + i);
        output_close(f->output[i]);
    }
}

static void test_one_after_another(void)
{
    struct fixture f;
    start(&f);
    check(&f, 1, 0, 0, "at first");
    update(&f);
    check(&f, 1, 0, 0, "nothing was given");
    give(&f, "AB");
    check(&f, 2, 1, 0, "given");
    update(&f);
    check(&f, 1, 1, 0, "added");
    give(&f, "BC");
    check(&f, 1, 2, 1, "given, not taken");
    update(&f);
    check(&f, 0, 1, 1, "replaced");
    end(&f);
}

// A list that is replaced before the camera looks is never used by it.
static void test_overtaken(void)
{
    struct fixture f;
    start(&f);
    give(&f, "AB");
    give(&f, "AC");
    check(&f, 2, 0, 1, "overtaken");
    give(&f, "C");
    check(&f, 1, 0, 1, "A is the camera's still");
    update(&f);
    check(&f, 0, 0, 1, "taken");
    end(&f);
}

// The order of lists does not matter to an output that stays.
static void test_same(void)
{
    struct fixture f;
    start(&f);
    give(&f, "BA");
    update(&f);
    const struct output *a = f.output[0], *b = f.output[1];
    give(&f, "AB");
    update(&f);
    CHECK(f.output[0] == a && f.output[1] == b, "outputs that are configured alike go on");
    f.config[1].slots = 4;
    give(&f, "AB");
    CHECK(f.output[0] == a && f.output[1] != b, "B is configured anew");
    CHECK(b->subscribers == 1, "the former B is the camera's still");
    update(&f);
    CHECK(b->subscribers == 0, "and then is not");
    output_close((struct output *)b);
    end(&f);
}

// A camera whose fence has expired takes the outputs, and ends before its next picture.
static void test_fence(void)
{
    struct fixture f;
    _Atomic int64_t fence_ns = INT64_MAX;
    start(&f);
    f.camera.config->fence_ns = &fence_ns;
    update(&f);
    give(&f, "AB");
    atomic_store(&fence_ns, boottime_ns());
    CHECK(camera_take_orders(&f.camera) == -ECANCELED, "it goes on");
    uv_run(&f.loop, UV_RUN_NOWAIT);
    check(&f, 1, 1, 0, "taken");
    atomic_store(&fence_ns, INT64_MAX);
    CHECK(camera_take_orders(&f.camera) == -ECANCELED, "it goes on later");
    end(&f);
}

static bool waits_for_retry(struct fixture *f, uint64_t *tries)
{
    for (int i = 0; i < 5000; i++) {
        *tries = atomic_load(&f->camera.report.reconnects);
        if (atomic_load(&f->camera.report.state) == CAMERA_RETRYING)
            return true;
        usleep(1000);
    }
    return false;
}

// An unreachable camera releases the memory of outputs that are removed meanwhile, and does not
// keep it until the next attempt, which may be an hour away.
static void test_taken_while_it_waits(void)
{
    struct fixture f;
    bool taken = false;
    start(&f);
    CHECK(camera_start(&f.camera) == 0, "start");
    // On a slow machine a pause may end between two looks: then the next one shows it.
    for (int round = 0; round < 4 && !taken; round++) {
        uint64_t tries;
        CHECK(waits_for_retry(&f, &tries), "it does not wait");
        give(&f, round % 2 ? "A" : "B");
        const struct output *removed = f.output[round % 2];
        while (removed->subscribers > 0 && atomic_load(&f.camera.report.reconnects) == tries) {
            uv_run(&f.loop, UV_RUN_NOWAIT);
            usleep(1000);
        }
        taken = removed->subscribers == 0 && atomic_load(&f.camera.report.reconnects) == tries;
        while (removed->subscribers > 0) {
            uv_run(&f.loop, UV_RUN_NOWAIT);
            usleep(1000);
        }
        if (!taken) {
            output_close(f.output[round % 2]);
            f.output[round % 2] = NULL;
        }
    }
    CHECK(taken, "removed outputs stay until the next connection");
    camera_stop(&f.camera);
    camera_join(&f.camera);
    end(&f);
}

int main(void)
{
    TEST(test_one_after_another());
    TEST(test_overtaken());
    TEST(test_same());
    TEST(test_fence());
    TEST(test_taken_while_it_waits());
    return test_end();
}
