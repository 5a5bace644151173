// Clients' results for frames: every possible mistake, mapping, clipping, memory and sums.
#include "daemon/output/results.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { CLIENTS = 2, ITEMS = 3 };

// A client's message, which each test changes.
struct message {
    struct framed_ring_result head;
    struct framed_detection list[FRAMED_DETECTIONS_MAX + 1];
};

// Receiver, pool, and the clients that borrow frames.
struct fixture {
    struct output_config config;
    struct pool *pool;
    struct results *results;
    struct results_receiver receiver;
    struct consumer consumer[CLIENTS];
    struct results_client client[CLIENTS];
    struct ledger ledger;
    _Atomic bool stop;
    double dst_to_src[6]; // of the next frames
    uint64_t sequence;
    int n_found;
    struct found found; // the last one
    struct framed_detection list[FRAMED_DETECTIONS_MAX];
};

static void take_found(struct results_receiver *receiver, const struct found *found)
{
    struct fixture *f = (struct fixture *)((char *)receiver - offsetof(struct fixture, receiver));
    f->n_found++;
    f->found = *found;
    memcpy(f->list, found->list, (size_t)found->n * sizeof f->list[0]);
}

static void start(struct fixture *f, int slots, bool batch)
{
    *f = (struct fixture){.config = {.name = "detector",
                                     .slots = slots,
                                     .is_batch = batch,
                                     .capacity = batch ? ITEMS : 0},
                          // A 640x640 letterbox of 1280x720, with 140 rows of fill above.
                          .dst_to_src = {2, 0, 0.5, 0, 2, -279.5},
                          .receiver.take = take_found};
    const struct pool_options options = {
        .n = slots, .items = batch ? ITEMS : 1, .name = "detector", .kind = REGION_SHARED};
    CHECK(pool_open(&f->pool, &options) == 0, "pool");
    CHECK(results_open(&f->results, &f->config, f->pool) == 0, "results");
    results_add_receiver(f->results, &f->receiver);
    for (int i = 0; i < CLIENTS; i++) {
        pool_attach(f->pool, &f->consumer[i]);
        results_attach(f->results, &f->client[i]);
    }
}

static void end(struct fixture *f)
{
    const struct results *r = f->results;
    CHECK(r->results == (uint64_t)f->n_found, "%d published, %d told", (int)r->results, f->n_found);
    CHECK(r->results <= r->lent, "more answers than frames");
    for (int i = 0; i < CLIENTS; i++) {
        results_detach(f->results, &f->client[i]);
        pool_detach(f->pool, &f->consumer[i]);
    }
    results_close(f->results);
    pool_close(f->pool);
}

static void fill_item(struct fixture *f, struct item *item)
{
    item->frame = (struct frame_info){
        .source_width = 1280, .source_height = 720, .received_ns = monotonic_ns(), .epoch = 7};
    item->sequence = f->sequence;
    item->parent_sequence = 77;
    item->object = 5;
    snprintf(item->camera, sizeof item->camera, "gate%d", (int)(f->sequence % 2));
    memcpy(item->dst_to_src, f->dst_to_src, sizeof item->dst_to_src);
    item->part = 0;
    item->parts = 1;
}

// Makes a frame, or a batch without its last element, and lends it to the client.
static struct result *lend(struct fixture *f, int client)
{
    struct pool_request request = {
        .size = 16, .items = f->pool->options.items, .ledger = &f->ledger, .stop = &f->stop};
    struct result *result;
    CHECK(pool_claim(f->pool, &request, &result) == 0, "claim");
    for (int i = 0; i < request.items; i++, f->sequence++)
        fill_item(f, &result->item[i]);
    if (request.items == ITEMS) {
        pool_complete(f->pool, result, 0, ITEMS - 1, 0);
        pool_complete(f->pool, result, ITEMS - 1, 1, -EIO);
    } else {
        pool_complete(f->pool, result, 0, 1, 0);
    }
    struct result *got = pool_acquire(f->pool, &f->consumer[client]);
    CHECK(got == result, "another result");
    pool_lend(f->pool, &f->consumer[client], true);
    results_lend(f->results, &f->client[client], result);
    return result;
}

static struct message message_for(const struct result *result)
{
    struct message message = {
        .head = {.version = FRAMED_VERSION,
                 .slot = (uint32_t)result->number,
                 .ticket = result->ticket,
                 .count = 1,
                 .model = 3},
        .list = {
            {.x1 = 10, .y1 = 150, .x2 = 20, .y2 = 160, .score = 0.5f, .class_id = 2, .track = 9}}};
    memcpy(message.head.magic, FRAMED_RING_RESULT_MAGIC, 4);
    return message;
}

static void send_bytes(struct fixture *f, int client, const struct message *message, size_t bytes)
{
    results_take(f->results, &f->client[client], &f->consumer[client], &message->head, bytes);
}

static void send_message(struct fixture *f, int client, const struct message *message)
{
    send_bytes(f, client, message,
               sizeof message->head + message->head.count * sizeof message->list[0]);
}

// Takes the client's result back.
static void take_back(struct fixture *f, int client, const struct result *result)
{
    const uint32_t slot = (uint32_t)result->number;
    const uint64_t ticket = result->ticket;
    if (pool_return(f->pool, &f->consumer[client], slot, ticket) > 0)
        results_return(f->results, &f->client[client], ticket);
}

static uint64_t count_wrong(const struct results *results)
{
    uint64_t wrong = 0;
    for (int i = 0; i < RESULT_WRONGS; i++)
        wrong += results->wrong[i];
    return wrong;
}

#define WRONG(f, reason)                                                                           \
    CHECK((f)->n_found == 0 && (f)->results->wrong[reason] == 1 && count_wrong((f)->results) == 1, \
          "%s: %d found, %d so", result_wrong_names[reason], (f)->n_found,                         \
          (int)(f)->results->wrong[reason])

// Changes a good message; it must count as wrong for `reason`.
#define WITH(reason, bytes_more, ...)                                                              \
    do {                                                                                           \
        struct fixture f;                                                                          \
        start(&f, 3, false);                                                                       \
        struct message m = message_for(lend(&f, 0));                                               \
        const uint32_t count = m.head.count;                                                       \
        __VA_ARGS__;                                                                               \
        send_bytes(&f, 0, &m, sizeof m.head + count * sizeof m.list[0] + (bytes_more));            \
        WRONG(&f, reason);                                                                         \
        end(&f);                                                                                   \
    } while (0)

static void test_wrong_messages(void)
{
    WITH(RESULT_VERSION, 0, m.head.version = 2);
    WITH(RESULT_FLAGS, 0, m.head.flags = 4);
    WITH(RESULT_LENGTH, 1, (void)0);
    WITH(RESULT_LENGTH, 0, m.head.count = 2);
    WITH(RESULT_LENGTH, 300 * sizeof m.list[0], m.head.count = 301);
    WITH(RESULT_LENGTH, 0, m.head.count = UINT32_MAX);
    WITH(RESULT_TICKET, 0, m.head.ticket++);
    WITH(RESULT_TICKET, 0, m.head.ticket = 0);
    WITH(RESULT_TICKET, 0, m.head.ticket += RESULTS_TICKETS_MAX);
    WITH(RESULT_SLOT, 0, m.head.slot++);
    WITH(RESULT_ELEMENT, 0, m.head.element = 1);
    WITH(RESULT_ELEMENT, 0, m.head.element = UINT32_MAX);
    WITH(RESULT_NOT_WANTED, 0, results_remove_receiver(f.results, &f.receiver));
}

static void test_another_client(void)
{
    struct fixture f;
    start(&f, 3, false);
    const struct result *first = lend(&f, 0);
    const struct message message = message_for(first);
    send_message(&f, 1, &message);
    WRONG(&f, RESULT_FLOOD);
    while (pool_acquire(f.pool, &f.consumer[1]))
        pool_release(f.pool, &f.consumer[1], true);
    lend(&f, 1);
    lend(&f, 1);
    send_message(&f, 1, &message);
    CHECK(f.n_found == 0 && f.results->wrong[RESULT_TICKET] == 1, "it was not lent to this one");
    send_message(&f, 0, &message);
    CHECK(f.n_found == 1 && f.found.client == f.client[0].number, "its own");
    end(&f);
}

static void test_twice_and_flood(void)
{
    struct fixture f;
    start(&f, 4, false);
    const struct message message = message_for(lend(&f, 0));
    lend(&f, 0);
    for (int i = 0; i < 10; i++)
        send_message(&f, 0, &message);
    CHECK(f.n_found == 1 && f.results->wrong[RESULT_TWICE] == 2 &&
              f.results->wrong[RESULT_FLOOD] == 7,
          "%d found, %d twice, %d too many", f.n_found, (int)f.results->wrong[RESULT_TWICE],
          (int)f.results->wrong[RESULT_FLOOD]);
    CHECK(f.results->lent == 2 && f.results->results == 1, "%d of %d", (int)f.results->results,
          (int)f.results->lent);
    const struct message next = message_for(lend(&f, 0));
    send_message(&f, 0, &next);
    CHECK(f.n_found == 2, "what is right is taken from a client that sends too much");
    end(&f);
}

// A client that reuses another's index has answered nothing.
static void test_index_again(void)
{
    struct fixture f;
    start(&f, 3, false);
    struct result *result = lend(&f, 0);
    const struct message message = message_for(result);
    results_detach(f.results, &f.client[0]);
    results_attach(f.results, &f.client[0]);
    CHECK(f.client[0].index == 0 && f.client[0].number == 3, "%d, number %d", f.client[0].index,
          (int)f.client[0].number);
    results_lend(f.results, &f.client[1], result);
    lend(&f, 0);
    lend(&f, 0);
    send_message(&f, 0, &message);
    CHECK(f.n_found == 0 && f.results->wrong[RESULT_TICKET] == 1,
          "the one before it was lent this");
    send_message(&f, 1, &message);
    CHECK(f.n_found == 1, "the other one lost its own");
    results_detach(f.results, &f.client[1]);
    results_attach(f.results, &f.client[1]);
    results_lend(f.results, &f.client[1], result);
    send_message(&f, 1, &message);
    CHECK(f.n_found == 2, "the one before it has answered this");
    end(&f);
}

static void test_found(void)
{
    struct fixture f;
    start(&f, 3, false);
    f.sequence = 41;
    const struct message message = message_for(lend(&f, 0));
    send_message(&f, 0, &message);
    const struct framed_detection *box = &f.list[0];
    CHECK(f.n_found == 1 && f.found.n == 1 && !f.found.late, "%d found", f.n_found);
    CHECK(!strcmp(f.found.camera, "gate1") && !strcmp(f.found.output, "detector") &&
              !*f.found.region && f.found.parts == 1,
          "%s/%s", f.found.camera, f.found.output);
    CHECK(f.found.sequence == 41 && f.found.frame.epoch == 7 && f.found.model == 3, "facts");
    CHECK(box->x1 == 20 && box->y1 == 20 && box->x2 == 40 && box->y2 == 40, "%g %g %g %g",
          (double)box->x1, (double)box->y1, (double)box->x2, (double)box->y2);
    CHECK(box->score == 0.5f && box->class_id == 2 && box->track == 9, "what goes with the box");
    const struct last_found *last = results_last_found(f.results, "gate1");
    CHECK(last && last->n == 1 && last->results == 1 && last->objects == 1, "last found");
    CHECK(!results_last_found(f.results, "gate0"), "of the other camera");
    results_forget_camera(f.results, "gate1");
    CHECK(!results_last_found(f.results, "gate1"), "forgotten");
    end(&f);
}

// Sends one result with three detections, one bad: checks that it alone is dropped, for `drop`.
static void check_drop(enum object_drop drop, const struct framed_detection *bad)
{
    struct fixture f;
    start(&f, 3, false);
    struct message message = message_for(lend(&f, 0));
    message.list[2] = message.list[0];
    message.list[1] = *bad;
    message.head.count = 3;
    send_message(&f, 0, &message);
    CHECK(f.n_found == 1 && f.found.n == 2 && f.results->objects == 2, "%d left of 3", f.found.n);
    CHECK(f.results->dropped[drop] == 1, "not dropped for %s", object_drop_names[drop]);
    CHECK(f.list[1].x1 == 20, "the one behind it");
    end(&f);
}

static void test_dropped_objects(void)
{
    const struct {
        enum object_drop drop;
        struct framed_detection bad;
    } cases[] = {
        {OBJECT_NUMBER, {.x1 = NAN, .x2 = 5, .y1 = 150, .y2 = 160}},
        {OBJECT_NUMBER, {.x1 = 1, .x2 = INFINITY, .y1 = 150, .y2 = 160}},
        {OBJECT_NUMBER, {.x1 = 1, .x2 = 5, .y1 = -INFINITY, .y2 = 160}},
        {OBJECT_NUMBER, {.x1 = 1, .x2 = 5, .y1 = 150, .y2 = NAN}},
        {OBJECT_NUMBER, {.x1 = 1, .x2 = 5, .y1 = 150, .y2 = 160, .score = NAN}},
        {OBJECT_FLAGS, {.x1 = 1, .x2 = 5, .y1 = 150, .y2 = 160, .flags = 1}},
        {OBJECT_AREA, {.x1 = 5, .x2 = 5, .y1 = 150, .y2 = 160}},
        {OBJECT_AREA, {.x1 = 1, .x2 = 5, .y1 = 160, .y2 = 150}},
        {OBJECT_OUTSIDE, {.x1 = 1, .x2 = 5, .y1 = 10, .y2 = 140}},
        {OBJECT_OUTSIDE, {.x1 = 640, .x2 = 650, .y1 = 150, .y2 = 160}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_drop(cases[i].drop, &cases[i].bad);
}

static void test_clip_and_source(void)
{
    struct fixture f;
    start(&f, 3, false);
    struct message message = message_for(lend(&f, 0));
    message.list[0] = (struct framed_detection){.x1 = -5, .y1 = 130, .x2 = 700, .y2 = 1e30f};
    send_message(&f, 0, &message);
    const struct framed_detection *box = &f.list[0];
    CHECK(box->x1 == 0 && box->y1 == 0 && box->x2 == 1280 && box->y2 == 720, "%g %g %g %g",
          (double)box->x1, (double)box->y1, (double)box->x2, (double)box->y2);
    message = message_for(lend(&f, 0));
    message.head.flags = FRAMED_RESULT_IN_SOURCE;
    message.list[0] = (struct framed_detection){.x1 = 1000, .y1 = -3, .x2 = 2000, .y2 = 7};
    send_message(&f, 0, &message);
    CHECK(box->x1 == 1000 && box->y1 == 0 && box->x2 == 1280 && box->y2 == 7, "%g %g %g %g",
          (double)box->x1, (double)box->y1, (double)box->x2, (double)box->y2);
    end(&f);
}

// A quarter turn and an eighth: the hull of the four corners.
static void test_rotation(void)
{
    const double s = sqrt(0.5);
    const struct {
        double matrix[6], box[4];
    } turns[] = {
        {{0, 1, 100, -1, 0, 500}, {120, 471, 180, 491}},
        {{s, s, 0, -s, s, 300}, {29 * s + 0.5, 300.5 - 10 * s, 109 * s + 0.5, 300.5 + 70 * s}}};
    struct fixture f;
    start(&f, 3, false);
    for (int turn = 0; turn < 2; turn++) {
        memcpy(f.dst_to_src, turns[turn].matrix, sizeof f.dst_to_src);
        struct message message = message_for(lend(&f, 0));
        message.list[0] = (struct framed_detection){.x1 = 10, .y1 = 20, .x2 = 30, .y2 = 80};
        send_message(&f, 0, &message);
        const float got[4] = {f.list[0].x1, f.list[0].y1, f.list[0].x2, f.list[0].y2};
        for (int i = 0; i < 4; i++)
            CHECK(fabs((double)got[i] - turns[turn].box[i]) < 1e-3,
                  "turn %d: corner %d at %g, not %g", turn, i, (double)got[i], turns[turn].box[i]);
    }
    end(&f);
}

static void test_late(void)
{
    struct fixture f;
    start(&f, 3, false);
    const struct result *result = lend(&f, 0);
    struct message message = message_for(result);
    take_back(&f, 0, result);
    send_message(&f, 0, &message);
    CHECK(f.n_found == 1 && !f.found.late, "late after its slot was given back");
    message = message_for(lend(&f, 0));
    pool_revoke(f.pool, monotonic_ns() + 1);
    send_message(&f, 0, &message);
    CHECK(f.n_found == 2 && f.found.late && f.results->late == 1, "not late after a revocation");
    f.config.max_age.ns = 1;
    message = message_for(lend(&f, 0));
    send_message(&f, 0, &message);
    CHECK(f.n_found == 3 && f.found.late, "not late at its age");
    end(&f);
}

// The last 256 frames are remembered, whatever became of their slots; the frame before them is not.
static void test_memory(void)
{
    struct fixture f;
    struct message first, second;
    start(&f, 3, false);
    for (int i = 0; i <= RESULTS_TICKETS_MAX; i++) {
        const struct result *result = lend(&f, 0);
        const struct message message = message_for(result);
        if (i == 0)
            first = message;
        if (i == 1)
            second = message;
        take_back(&f, 0, result);
    }
    send_message(&f, 0, &first);
    CHECK(f.results->wrong[RESULT_TICKET] == 1, "a frame too many is remembered");
    send_message(&f, 0, &second);
    CHECK(f.n_found == 1 && f.found.sequence == 1 && !f.found.late, "frame 1 is forgotten");
    end(&f);
}

static void test_batch(void)
{
    struct fixture f;
    start(&f, 3, true);
    struct message message = message_for(lend(&f, 0));
    for (uint32_t i = 0; i < ITEMS; i++) {
        message.head.element = i;
        send_message(&f, 0, &message);
    }
    CHECK(f.n_found == 2 && f.found.sequence == 1 && !strcmp(f.found.camera, "gate1"),
          "%d found, %s", f.n_found, f.found.camera);
    CHECK(f.results->lent == 2 && f.results->results == 2, "%d lent", (int)f.results->lent);
    CHECK(results_last_found(f.results, "gate0") && results_last_found(f.results, "gate1"),
          "each camera");
    end(&f);
}

// Elements of crops: results of several items from an output that is not a batch.
static void test_crops(void)
{
    struct fixture f;
    start(&f, 3, true);
    f.config.is_batch = false;
    f.config.crops.of = (char *)"other";
    struct message message = message_for(lend(&f, 0));
    lend(&f, 0);
    message.head.element = 1;
    send_message(&f, 0, &message);
    CHECK(f.found.sequence == 1, "the next frame took its place: %d", (int)f.found.sequence);
    CHECK(f.n_found == 1 && f.found.object == 5 && f.found.parent_sequence == 77, "object %d of %d",
          f.found.object, (int)f.found.parent_sequence);
    end(&f);
}

static void test_empty(void)
{
    struct fixture f;
    start(&f, 3, false);
    struct message message = message_for(lend(&f, 0));
    message.head.count = 0;
    send_message(&f, 0, &message);
    CHECK(f.n_found == 1 && f.found.n == 0 && results_last_found(f.results, "gate0")->n == 0,
          "nothing found is a result");
    end(&f);
}

int main(void)
{
    TEST(test_wrong_messages());
    TEST(test_another_client());
    TEST(test_twice_and_flood());
    TEST(test_index_again());
    TEST(test_found());
    TEST(test_dropped_objects());
    TEST(test_clip_and_source());
    TEST(test_rotation());
    TEST(test_late());
    TEST(test_memory());
    TEST(test_batch());
    TEST(test_crops());
    TEST(test_empty());
    return test_end();
}
