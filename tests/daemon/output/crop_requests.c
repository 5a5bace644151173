// Boxes of a request: classes, scores, margins, and the picture's edges; and the queue of requests:
// its order, its limit, and its end.
#include "daemon/output/crop_requests.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

enum { WIDTH = 100, HEIGHT = 80 };

static struct framed_detection box(float x1, float y1, float x2, float y2, float score, int class)
{
    return (struct framed_detection){
        .x1 = x1, .y1 = y1, .x2 = x2, .y2 = y2, .score = score, .class_id = (uint16_t) class};
}

struct fixture {
    uv_loop_t loop;
    struct event_queue *events;
    struct work_queue queue;
    struct output_config config;
    struct ledger ledger;
    struct crop_requests *requests;
    struct crop_request served[CROP_REQUESTS_MAX];
    _Atomic int n;
};

static void do_nothing(void *opaque)
{
    (void)opaque;
}

static void serve(void *opaque, struct crop_request *request)
{
    struct fixture *f = opaque;
    const int n = atomic_load(&f->n);
    f->served[n] = *request;
    atomic_store(&f->n, n + 1);
}

static void start(struct fixture *f, enum overflow overflow)
{
    *f = (struct fixture){.config = {.overflow = overflow, .crops = {.most = 4}}};
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    f->queue = (struct work_queue){.loop = &f->loop, .idle = do_nothing};
    CHECK(crop_requests_open(&f->requests, "gate", &f->config, &f->ledger) == 0, "open");
    crop_requests_follow(f->requests, NULL, &f->queue);
    crop_requests_serve(f->requests, serve, f);
}

// Runs the loop until `n` requests have been served and there is no work.
static void await(struct fixture *f, int n)
{
    for (int i = 0; i < 20000 && (atomic_load(&f->n) < n || f->queue.n > 0); i++) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
        usleep(500);
    }
    CHECK(atomic_load(&f->n) == n && f->queue.n == 0, "%d of %d served", atomic_load(&f->n), n);
}

static void end(struct fixture *f)
{
    crop_requests_close(f->requests);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
}

static void add_found(struct fixture *f, int number, const struct framed_detection list[], int n)
{
    uint16_t index[CROPS_MAX];
    for (int i = 0; i < n; i++)
        index[i] = (uint16_t)(2 * i); // others were dropped between them
    const struct found found = {
        .camera = "gate",
        .region = "lane",
        .frame = {.pts_ns = number, .source_width = WIDTH, .source_height = HEIGHT},
        .sequence = (uint64_t)number + 1000,
        .n = n,
        .list = list,
        .index = index,
    };
    crop_requests_add(f->requests, &found);
}

// Returns the request made of these boxes; n 0: none.
static struct crop_request request_of(const struct crops_config *config,
                                      const struct framed_detection list[], int n)
{
    static struct fixture f;
    start(&f, OVERFLOW_DROP_OLDEST);
    f.config.crops = *config;
    add_found(&f, 0, list, n);
    await(&f, (int)atomic_load(&f.ledger.offered));
    end(&f);
    return f.served[0];
}

static struct rect only(const struct crops_config *config, struct framed_detection found)
{
    const struct crop_request request = request_of(config, &found, 1);
    return request.n == 1 ? request.box[0].rect : (struct rect){-1, -1, -1, -1};
}

static bool is(struct rect rect, int x, int y, int width, int height)
{
    return rect.x == x && rect.y == y && rect.width == width && rect.height == height;
}

static void test_rectangles(void)
{
    struct crops_config config = {.most = 8};
    CHECK(is(only(&config, box(10, 20, 30, 50, 1, 0)), 10, 20, 20, 30), "whole pixels");
    CHECK(is(only(&config, box(10.5F, 20.9F, 30.1F, 50, 1, 0)), 10, 20, 21, 30), "outward");
    CHECK(is(only(&config, box(-5, -7, 30, 50, 1, 0)), 0, 0, 30, 50), "clipped above");
    CHECK(is(only(&config, box(90, 70, 130, 150, 1, 0)), 90, 70, 10, 10), "clipped below");
    CHECK(is(only(&config, box(-1e30F, 0, 1e30F, 80, 1, 0)), 0, 0, 100, 80), "all of it");
    CHECK(is(only(&config, box(3.2F, 4.2F, 3.3F, 4.3F, 1, 0)), 3, 4, 1, 1), "within a pixel");
    CHECK(only(&config, box(100, 0, 120, 10, 1, 0)).x < 0, "outside");
    CHECK(only(&config, box(-20, 0, 0, 10, 1, 0)).x < 0, "outside, on the other side");
    CHECK(only(&config, box(10, 0, 10, 10, 1, 0)).x < 0, "without width");
    CHECK(only(&config, box(30, 0, 10, 10, 1, 0)).x < 0, "turned over");
    CHECK(only(&config, box(NAN, 0, 10, 10, 1, 0)).x < 0, "no number");
    config.margin.n = 10;
    CHECK(is(only(&config, box(10, 20, 30, 50, 1, 0)), 8, 17, 24, 36), "a tenth on each side");
    CHECK(is(only(&config, box(1, 20, 31, 50, 1, 0)), 0, 17, 34, 36), "clipped after it grew");
    config.margin.n = 100;
    CHECK(is(only(&config, box(40, 30, 50, 40, 1, 0)), 30, 20, 30, 30), "three times as wide");
}

static void test_choice(void)
{
    struct crops_config config = {.most = 3,
                                  .classes = {.n = 2, .list = {{.number = 2}, {.number = 5}}}};
    const struct framed_detection found[] = {
        box(0, 0, 9, 9, .3F, 2), box(0, 0, 9, 9, .9F, 1),     box(0, 0, 9, 9, .5F, 5),
        box(0, 0, 9, 9, .5F, 2), box(200, 0, 209, 9, .8F, 2), box(0, 0, 9, 9, .7F, 5),
        box(0, 0, 9, 9, .1F, 2),
    };
    struct crop_request request = request_of(&config, found, 7);
    CHECK(request.n == 3, "%d boxes", request.n);
    CHECK(request.box[0].object == 10 && request.box[1].object == 4 && request.box[2].object == 6,
          "the best scores first, and of equals the first: %d %d %d", request.box[0].object,
          request.box[1].object, request.box[2].object);
    config.classes.n = 0;
    config.most = 64;
    request = request_of(&config, found, 7);
    CHECK(request.n == 6 && request.box[0].object == 2 && request.box[5].object == 12,
          "every class");
    config.most = 1;
    request = request_of(&config, found, 7);
    CHECK(request.n == 1 && request.box[0].object == 2, "the best alone");
}

static void add(struct fixture *f, int number, float x2)
{
    const struct framed_detection found = box(0, 0, x2, 10, 1, 0);
    add_found(f, number, &found, 1);
}

// One request is in the backend; the others wait, up to the limit, and follow in their order.
static void test_queue(void)
{
    static struct fixture f;
    start(&f, OVERFLOW_DROP_OLDEST);
    add(&f, 0, 0);
    CHECK(ledger_in_flight(&f.ledger) == 0, "no wanted box, no request");
    add(&f, 0, 10);
    await(&f, 1);
    for (int i = 1; i < CROP_REQUESTS_MAX + 3; i++)
        add(&f, i, 10);
    CHECK(atomic_load(&f.ledger.lost[LOSS_OVERFLOW]) == 2, "the bound");
    await(&f, 1);
    for (int i = 1; i < 4; i++) {
        crop_requests_done(f.requests, f.events);
        await(&f, i + 1);
        const struct crop_request *request = &f.served[i];
        const int number = i + 2;
        CHECK(request->frame.pts_ns == number && request->sequence == (uint64_t)number,
              "the oldest is gone");
        CHECK(request->parent_sequence == (uint64_t)number + 1000 &&
                  !strcmp(request->region, "lane"),
              "the parent");
        CHECK(request->n == 1 && is(request->box[0].rect, 0, 0, 10, 10), "the box");
    }
    end(&f);
    CHECK(atomic_load(&f.ledger.lost[LOSS_STOPPING]) == CROP_REQUESTS_MAX - 3, "the rest");

    start(&f, OVERFLOW_DROP_NEWEST);
    add(&f, 0, 10);
    await(&f, 1);
    for (int i = 1; i < CROP_REQUESTS_MAX + 2; i++)
        add(&f, i, 10);
    CHECK(atomic_load(&f.ledger.lost[LOSS_OVERFLOW]) == 1, "the bound");
    crop_requests_done(f.requests, f.events);
    await(&f, 2);
    CHECK(f.served[1].frame.pts_ns == 1, "the newest is gone");
    crop_requests_done(f.requests, f.events);
    crop_requests_drain(f.requests);
    const uint64_t late = atomic_load(&f.ledger.lost[LOSS_LATE]);
    add(&f, 0, 10);
    CHECK(late >= CROP_REQUESTS_MAX - 2 && atomic_load(&f.ledger.lost[LOSS_LATE]) == late + 1,
          "%d late", (int)late);
    end(&f);
}

static _Atomic bool hangs, drained;

static void serve_slowly(void *opaque, struct crop_request *request)
{
    struct fixture *f = opaque;
    serve(f, request);
    while (atomic_load(&hangs))
        usleep(500);
    crop_requests_done(f->requests, f->events);
}

static void *drain(void *opaque)
{
    struct fixture *f = opaque;
    crop_requests_drain(f->requests);
    atomic_store(&drained, true);
    return NULL;
}

// A drain ends although requests are added all the time, and waits for the one being served. The
// queue may be closed before the loop has heard of the end of that.
static void test_drain(void)
{
    static struct fixture f;
    pthread_t thread;
    atomic_store(&hangs, true);
    start(&f, OVERFLOW_DROP_OLDEST);
    crop_requests_serve(f.requests, serve_slowly, &f);
    for (int i = 0; i < 3; i++)
        add(&f, i, 10);
    while (atomic_load(&f.n) == 0)
        usleep(500);
    pthread_create(&thread, NULL, drain, &f);
    while (atomic_load(&f.ledger.lost[LOSS_LATE]) < 2)
        usleep(500);
    usleep(20000);
    CHECK(!atomic_load(&drained), "a request is served");
    atomic_store(&hangs, false);
    while (!atomic_load(&drained))
        add(&f, 3, 10);
    pthread_join(thread, NULL);
    CHECK(atomic_load(&f.n) == 1, "%d served", atomic_load(&f.n));
    end(&f);
}

// Only the followed camera's results are used from a batch.
static void test_followed(void)
{
    static struct fixture f;
    struct results first = {0}, second = {0};
    struct found found = {.camera = "gate", .region = "", .n = 1};
    const struct framed_detection one = box(0, 0, 10, 10, 1, 0);
    const uint16_t index = 0;
    found.frame = (struct frame_info){.source_width = WIDTH, .source_height = HEIGHT};
    found.list = &one;
    found.index = &index;
    start(&f, OVERFLOW_DROP_OLDEST);
    crop_requests_follow(f.requests, &first, NULL);
    crop_requests_follow(f.requests, &first, NULL);
    CHECK(first.receivers && !first.receivers->next, "one receiver");
    first.receivers->take(first.receivers, &found);
    CHECK(atomic_load(&f.ledger.offered) == 1, "taken");
    found.camera = "yard";
    first.receivers->take(first.receivers, &found);
    CHECK(atomic_load(&f.ledger.offered) == 1, "of another camera");
    crop_requests_follow(f.requests, &second, NULL);
    CHECK(!first.receivers && second.receivers, "the others");
    crop_requests_follow(f.requests, NULL, NULL);
    CHECK(!second.receivers, "none");
    await(&f, 1);
    crop_requests_done(f.requests, f.events);
    end(&f);
}

int main(void)
{
    TEST(test_followed());
    TEST(test_rectangles());
    TEST(test_choice());
    TEST(test_queue());
    TEST(test_drain());
    return test_end();
}
