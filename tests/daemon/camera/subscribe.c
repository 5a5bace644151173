// The outputs that a camera's thread switches to, and the end of an output's subscribers.
#include "daemon/camera/camera_thread.h"

#include <string.h>
#include <unistd.h>

#include "tests/test.h"

enum { OUTPUTS = 3 };

struct fixture {
    struct output_config config[OUTPUTS]; // A, B, C
    struct camera_config camera;
    struct camera_thread *thread;
    struct camera_report report;
    struct subscriptions *last; // of the test, as the loop thread has it
    struct output *output[OUTPUTS];
    uv_loop_t loop;
    struct event_queue *events;
    struct event ended;
};

static void close_when_released(struct event *event)
{
    subscriptions_close(
        (struct subscriptions *)((char *)event - offsetof(struct subscriptions, released)), NULL);
}

static void thread_ended(struct event *event)
{
    (void)event;
}

// Makes a list of these outputs; takes them from the last list, or opens them.
static struct subscriptions *choose(struct fixture *f, const char *names)
{
    struct output_config config[OUTPUTS];
    const struct camera_config camera = {.outputs = config, .n_outputs = (int)strlen(names)};
    struct subscriptions *ret = NULL;
    for (int i = 0; names[i]; i++)
        config[i] = f->config[names[i] - 'A'];
    CHECK(subscriptions_open(&ret, "gate", &camera, f->last, NULL) == 0, "subscriptions");
    for (int i = 0; names[i]; i++)
        f->output[names[i] - 'A'] = ret->list[i].output;
    ret->released.callback = close_when_released;
    return ret;
}

static void close_list(struct subscriptions *released)
{
    if (released)
        subscriptions_close(released, NULL);
}

static void give(struct fixture *f, const char *names)
{
    struct subscriptions *given = choose(f, names);
    subscriptions_release(f->last);
    f->last = given;
    close_list(camera_thread_subscribe(f->thread, given));
}

static void update(struct fixture *f)
{
    close_list(camera_thread_update(f->thread));
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
    f->last = choose(f, "A");
    camera_report_open(&f->report);
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    f->ended.callback = thread_ended;
    const struct camera_thread_context context = {.config = &f->camera,
                                                  .subscriptions = f->last,
                                                  .report = &f->report,
                                                  .events = f->events,
                                                  .ended = &f->ended};
    CHECK(camera_thread_open(&f->thread, &context) == 0, "thread");
}

static void end(struct fixture *f)
{
    camera_thread_close(f->thread);
    camera_report_close(&f->report);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
    subscriptions_close(f->last, NULL);
    for (int i = 0; i < OUTPUTS; i++) {
        CHECK(!f->output[i] || f->output[i]->subscribers == 0, "%c at the end", 'A' + i);
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

static bool waits_for_retry(struct fixture *f, uint64_t *tries)
{
    for (int i = 0; i < 5000; i++) {
        *tries = atomic_load(&f->report.reconnects);
        if (atomic_load(&f->report.state) == CAMERA_RETRYING)
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
    f.camera.name = "gate";
    f.camera.url = "rtsp://127.0.0.1:1/nobody";
    CHECK(camera_thread_start(f.thread) == 0, "start");
    // On a slow machine a pause may end between two looks: then the next one shows it.
    for (int round = 0; round < 4 && !taken; round++) {
        uint64_t tries;
        CHECK(waits_for_retry(&f, &tries), "it does not wait");
        give(&f, round % 2 ? "A" : "B");
        const struct output *removed = f.output[round % 2];
        while (removed->subscribers > 0 && atomic_load(&f.report.reconnects) == tries) {
            uv_run(&f.loop, UV_RUN_NOWAIT);
            usleep(1000);
        }
        taken = removed->subscribers == 0 && atomic_load(&f.report.reconnects) == tries;
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
    camera_thread_stop(f.thread);
    camera_thread_join(f.thread);
    end(&f);
}

int main(void)
{
    TEST(test_one_after_another());
    TEST(test_overtaken());
    TEST(test_same());
    TEST(test_taken_while_it_waits());
    return test_end();
}
