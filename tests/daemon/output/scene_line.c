// Lines about a camera's analysis: each number in its form, the longest line, and the way of
// records from the camera's thread to a sink's queue.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/output/lines.h"
#include "daemon/output/subscriptions.h"
#include "daemon/wire.h"
#include "tests/test.h"

static char line[SCENE_LINE_BYTES_MAX + 1];
static struct scene_record record;

static void make_record(void)
{
    record = (struct scene_record){
        .info = {.pts_ns = 1640000000,
                 .capture_ns = INT64_C(1760000000123456789),
                 .epoch = 3,
                 .source_width = 8,
                 .source_height = 4,
                 .scene = {.known = true, .moving = true, .fingerprint = 0x9f3c01ab55e07d12}},
        .luma = {.sum = 1001,
                 .squares = 40000,
                 .laplacian = 12,
                 .pixels = 32,
                 .black = 1,
                 .white = 31,
                 .min = 3,
                 .max = 251},
        .columns = 2,
        .rows = 1,
        .grid = {30, 33},
        .motion = {.count = 2, .changed = 12, .box = {{1, 2, 3, 4, 6}, {5, 0, 8, 2, 6}}},
        .alarms = 1u << ALARM_DARK | 1u << ALARM_FROZEN,
        .raised = 1u << ALARM_DARK,
        .cleared = 1u << ALARM_MOVED,
    };
    record.luma.histogram[63] = 32;
}

static const char *line_of(uint64_t sequence)
{
    const size_t bytes = scene_line(line, "ga\"te", "scene", sequence, &record);
    CHECK(bytes <= SCENE_LINE_BYTES_MAX && line[bytes - 1] == '\n', "%zu bytes", bytes);
    line[bytes] = 0;
    return line;
}

static void test_numbers(void)
{
    char zeros[2 * STATISTICS_BINS] = "", expected[2048];
    make_record();
    for (int i = 0; i < STATISTICS_BINS - 1; i++)
        strcat(zeros, "0,");
    snprintf(
        expected, sizeof expected,
        "{\"camera\":\"ga\\\"te\",\"output\":\"scene\",\"seq\":41,\"epoch\":3,\"time\":"
        "1760000000.123456,\"pts\":1.64,\"width\":8,\"height\":4,\"luma\":{\"mean\":31.28,"
        "\"variance\":271.48,\"min\":3,\"max\":251,\"black\":0.0313,\"white\":0.9688,"
        "\"sharpness\":0.375,\"histogram\":[%s32]},\"grid\":{\"columns\":2,\"rows\":1,"
        "\"means\":[30,33]},\"fingerprint\":\"9f3c01ab55e07d12\",\"moving\":true,\"changed\":12,"
        "\"boxes\":[[1,2,3,4],[5,0,8,2]],\"alarms\":[\"dark\",\"frozen\"],\"raised\":[\"dark\"],"
        "\"cleared\":[\"moved\"]}\n",
        zeros);
    CHECK(strcmp(line_of(41), expected) == 0, "%s is not %s", line, expected);
    record.info.scene = (struct scene_facts){.light = true, .learning = true};
    record.alarms = record.raised = record.cleared = 0;
    record.motion.count = 0;
    CHECK(strstr(line_of(0),
                 "\"fingerprint\":\"0000000000000000\",\"light\":true,\"learning\":true,"
                 "\"moving\":false,\"changed\":12,\"boxes\":[],\"alarms\":[]}\n"),
          "%s", line);
}

static void test_longest(void)
{
    char name[65];
    make_record();
    memset(name, 1, 64);
    name[64] = 0;
    record.info =
        (struct frame_info){INT64_MIN,
                            INT64_MIN,
                            .epoch = UINT32_MAX,
                            .source_width = INT32_MIN,
                            .source_height = INT32_MIN,
                            .scene = {true, true, true, true, UINT32_MAX, UINT64_MAX, 0, 0}};
    record.luma = (struct luma_statistics){UINT64_MAX, UINT64_MAX, UINT64_MAX, 1,  UINT32_MAX,
                                           UINT32_MAX, {0},        255,        255};
    memset(record.luma.histogram, 255, sizeof record.luma.histogram);
    record.columns = record.rows = STATISTICS_GRID_MAX;
    memset(record.grid, 255, sizeof record.grid);
    record.motion.count = MOTION_BOXES_MAX;
    for (int i = 0; i < MOTION_BOXES_MAX; i++)
        record.motion.box[i] = (struct motion_box){INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 0};
    record.alarms = record.raised = record.cleared = UINT32_MAX;
    const size_t bytes = scene_line(line, name, name, UINT64_MAX, &record);
    CHECK(bytes <= SCENE_LINE_BYTES_MAX, "%zu bytes", bytes);
}

// --- pictures become lines

static const struct output_config config = {
    .name = (char *)"scene", .kernel = KERNEL_STATS, .sink = {.kind = SINK_FILE}};

struct fixture {
    uv_loop_t loop;
    struct event_queue *events;
    struct subscriptions *subscriptions;
    struct output *output;
};

static void set_up(struct fixture *f, struct output_config *output)
{
    const struct camera_config camera = {.name = (char *)"gate", .outputs = output, .n_outputs = 1};
    uv_loop_init(&f->loop);
    CHECK(event_queue_open(&f->events, &f->loop) == 0, "events");
    CHECK(subscriptions_open(&f->subscriptions, "gate", &camera, NULL, NULL) == 0, "subscriptions");
    f->output = f->subscriptions->list[0].output;
}

static void tear_down(struct fixture *f)
{
    subscriptions_close(f->subscriptions, output_close);
    event_queue_close(f->events);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&f->loop) == 0, "the loop has open handles");
}

static _Atomic bool stop;

static uint64_t lost(const struct fixture *f, enum loss reason)
{
    return atomic_load(&f->output->ledger.lost[reason]);
}

static void offer(struct fixture *f, int64_t pts_ns, const struct scene_record *what)
{
    make_record();
    record.info.pts_ns = pts_ns;
    record.info.flags = what ? 0 : FRAMED_FLAG_DAMAGED;
    stats_outputs_offer(f->subscriptions, f->events, &record.info, what, &stop);
}

// Thinned, damaged, still and overtaken records are lost, each for its own reason; the others
// become lines.
static void test_account(struct output_config output)
{
    struct fixture f = {0};
    set_up(&f, &output);
    CHECK(f.subscriptions->n_packets == 0 && f.subscriptions->n == 1, "its place");
    offer(&f, 0, &record);
    offer(&f, 10000000, &record); // within the second
    offer(&f, 1000000000, NULL);
    for (int i = 0; i < 20; i++) // 16 of them wait
        offer(&f, (2 + i) * INT64_C(1000000000), &record);
    CHECK(lost(&f, LOSS_THINNED) == 1 && lost(&f, LOSS_DAMAGED) == 1, "thinned and damaged");
    CHECK(lost(&f, LOSS_OVERFLOW) == 5, "%d overtaken", (int)lost(&f, LOSS_OVERFLOW));
    scene_lines_write(f.output->outlet->scene, "gate", "scene", true, LOSS_CLIENT);
    uint64_t reader = 0;
    struct line_queue *queue = f.output->outlet->scene->queue;
    const struct line *first = line_queue_get(queue, reader);
    CHECK(first && strstr(first->text, "\"seq\":7,"), "the oldest line");
    CHECK(queue->next == 16 && atomic_load(&f.output->ledger.emitted) == 16, "lines");
    record.info.pts_ns = INT64_C(28000000000);
    stats_outputs_offer(f.subscriptions, f.events, &record.info, NULL, &stop);
    CHECK(lost(&f, LOSS_BACKEND) == 1, "the analysis has failed");
    record.info.pts_ns = INT64_C(29000000000);
    record.info.scene.refused = true;
    stats_outputs_offer(f.subscriptions, f.events, &record.info, NULL, &stop);
    CHECK(lost(&f, LOSS_CONFIG) == 1, "such pictures cannot be analysed");
    stats_outputs_lose(f.subscriptions, LOSS_DAMAGED);
    CHECK(lost(&f, LOSS_DAMAGED) == 2, "beyond decoding");
    offer(&f, INT64_C(30000000000), &record);
    scene_lines_write(f.output->outlet->scene, "gate", "scene", false, LOSS_CLIENT);
    CHECK(lost(&f, LOSS_CLIENT) == 1 && queue->next == 16, "nobody reads");
    CHECK(ledger_in_flight(&f.output->ledger) == 0, "account");
    tear_down(&f);
}

static void test_gate(struct output_config output)
{
    struct fixture f = {0};
    set_up(&f, &output);
    for (int i = 0; i < 5; i++) {
        make_record();
        record.info.pts_ns = i * INT64_C(1000000000);
        record.info.scene.moving = false;
        stats_outputs_offer(f.subscriptions, f.events, &record.info, &record, &stop);
    }
    CHECK(lost(&f, LOSS_STILL) == 4, "%d still", (int)lost(&f, LOSS_STILL));
    output_finish(f.output, 0);
    CHECK(lost(&f, LOSS_STOPPING) == 1 && ledger_in_flight(&f.output->ledger) == 0, "at the end");
    tear_down(&f);
}

static void *offer_last(void *opaque)
{
    offer(opaque, INT64_C(17000000000), &record);
    return NULL;
}

// A camera that waits loses nothing; a stopped one does not wait.
static void test_wait(struct output_config output)
{
    struct fixture f = {0};
    set_up(&f, &output);
    stop = true;
    for (int i = 0; i < 17; i++)
        offer(&f, i * INT64_C(1000000000), &record);
    CHECK(lost(&f, LOSS_OVERFLOW) == 1, "%d overtaken", (int)lost(&f, LOSS_OVERFLOW));
    stop = false;
    pthread_t camera;
    pthread_create(&camera, NULL, offer_last, &f);
    while (atomic_load(&f.output->ledger.offered) < 18)
        usleep(1000);
    usleep(20000);
    scene_lines_write(f.output->outlet->scene, "gate", "scene", true, LOSS_CLIENT);
    pthread_join(camera, NULL);
    scene_lines_write(f.output->outlet->scene, "gate", "scene", true, LOSS_CLIENT);
    CHECK(lost(&f, LOSS_OVERFLOW) == 1, "%d overtaken", (int)lost(&f, LOSS_OVERFLOW));
    CHECK(atomic_load(&f.output->ledger.emitted) == 17, "lines");
    tear_down(&f);
}

int main(void)
{
    struct output_config thinned = config, gated = config, patient = config;
    thinned.fps = 1;
    gated.gate.motion = true;
    patient.overflow = OVERFLOW_WAIT;
    TEST(test_numbers());
    TEST(test_longest());
    TEST(test_account(thinned));
    TEST(test_gate(gated));
    TEST(test_wait(patient));
    return test_end();
}
