// The history of two cameras: counters become increments per interval, and names continue over
// replaced cameras and outputs.
#include "daemon/service/history.h"

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "daemon/base/clock.h"
#include "tests/test.h"

static const char text[] =
    "{backend: cpu, cameras: {gate: {url: /a, outputs: {o: {sink: 'tcp:0'}, p: {sink: 'tcp:0'}}}, "
    "yard: {url: /b, outputs: {o: {sink: 'tcp:0'}}}}}";
static const int64_t ms = INT64_C(1000000);

static struct rig {
    struct config *config;
    struct camera camera[2], *list[2];
    struct metrics metrics;
    struct history *history;
    int64_t now_ns;
} rig;

static void start(void)
{
    const struct camera_context context = {0};
    rig = (struct rig){.now_ns = 77 * ms};
    CHECK(config_load_text(&rig.config, text, strlen(text), "test", stderr) == 0, "config");
    for (int i = 0; i < 2; i++) {
        CHECK(camera_open(&rig.camera[i], &rig.config->cameras[i], &context) == 0, "camera");
        rig.list[i] = &rig.camera[i];
    }
    rig.metrics = (struct metrics){.cameras = rig.list, .n_cameras = 2};
    CHECK(history_open(&rig.history) == 0, "history");
}

static void end(void)
{
    history_close(rig.history);
    for (int i = 0; i < 2; i++)
        camera_close(&rig.camera[i]);
    config_free(rig.config);
}

static void sample(void)
{
    rig.now_ns += HISTORY_INTERVAL_MS * ms;
    history_sample(rig.history, &rig.metrics, rig.now_ns);
}

static struct output *output(int camera, int n)
{
    return rig.camera[camera].subscriptions->list[n].output;
}

static json_t *parsed(const char *camera, int samples, int64_t later_ns)
{
    json_error_t error;
    const struct history_wanted wanted = {.camera = camera, .samples = samples};
    char *line = history_text(rig.history, &wanted, rig.now_ns + later_ns);
    json_t *json = line ? json_loads(line, 0, &error) : NULL;
    CHECK(json, "%s in %s", line ? error.text : "no text", line);
    free(line);
    return json;
}

// Checks that the value at "cameras.PATH" is `wanted` as compact JSON; NULL: that it is absent.
static void expect(const json_t *json, const char *path, const char *wanted)
{
    char copy[128], *rest = copy, *key;
    const json_t *at = json_object_get(json, "cameras");
    snprintf(copy, sizeof copy, "%s", path);
    while (at && (key = strsep(&rest, ".")))
        at = json_object_get(at, key);
    char *is = at ? json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
    CHECK(is && wanted ? strcmp(is, wanted) == 0 : is == wanted, "%s is %s, not %s", path, is,
          wanted);
    free(is);
}

static void test_gains(void)
{
    start();
    json_t *json = parsed(NULL, HISTORY_SAMPLES, 0);
    CHECK(json_object_size(json_object_get(json, "cameras")) == 0, "cameras before a sample");
    json_decref(json);
    sample();
    atomic_fetch_add(&rig.camera[0].report.packets, 52);
    atomic_fetch_add(&rig.camera[0].report.pictures, 50);
    atomic_fetch_add(&rig.camera[0].report.flagged[COUNTED_DAMAGED], 3);
    atomic_fetch_add(&rig.camera[0].report.flagged[COUNTED_HDR], 9);
    atomic_fetch_add(&rig.camera[0].report.reconnects, 1);
    atomic_fetch_add(&output(0, 0)->ledger.emitted, 40);
    atomic_fetch_add(&output(0, 0)->ledger.lost[LOSS_CLIENT], 10);
    for (int i = 0; i < 100; i++) {
        latency_observe(&rig.camera[0].report.decoding, 8 * ms);
        latency_observe(&output(0, 0)->processing, 2 * ms);
        latency_observe(&output(0, 0)->latency, (i < 98 ? 16 : 64) * ms);
    }
    sample();
    atomic_fetch_add(&output(0, 0)->ledger.lost[LOSS_CLIENT], 1);
    sample();
    json = parsed(NULL, HISTORY_SAMPLES, 0);
    expect(json, "gate.in", "[0,52,0]");
    expect(json, "gate.decoded", "[0,50,0]");
    expect(json, "gate.damaged", "[0,3,0]");
    expect(json, "gate.reconnects", "[0,1,0]");
    expect(json, "gate.outputs.o.out", "[0,40,0]");
    expect(json, "gate.outputs.o.lost", "{\"client\":[0,10,1]}");
    expect(json, "gate.outputs.p.out", "[0,0,0]");
    expect(json, "gate.outputs.p.lost", "{}");
    expect(json, "yard.in", "[0,0,0]");
    expect(json, "yard.outputs.o.p99", "[null,null,null]");
    json_decref(json);
    // Quantiles cover the last two intervals, and are within an eighth above the bucket's start.
    json = parsed("gate", 2, 0);
    const json_t *of = json_object_get(
        json_object_get(json_object_get(json_object_get(json, "cameras"), "gate"), "outputs"), "o");
    const json_t *latency = json_object_get(of, "latency");
    for (size_t i = 0; i < 2; i++) {
        const double decode =
            json_number_value(json_array_get(json_object_get(latency, "decode"), i));
        const double process =
            json_number_value(json_array_get(json_object_get(latency, "process"), i));
        const double p99 = json_number_value(json_array_get(json_object_get(of, "p99"), i));
        CHECK(decode >= 8 && decode <= 9, "decode %g", decode);
        CHECK(process >= 2 && process <= 2.25, "process %g", process);
        CHECK(p99 >= 64 && p99 <= 72, "p99 %g", p99);
    }
    expect(json, "gate.in", "[52,0]");
    expect(json, "yard", NULL);
    json_decref(json);
    end();
}

// The newest sample's time is computed from its age, not from the clock when it was taken.
static void test_time(void)
{
    start();
    sample();
    json_t *json = parsed(NULL, 1, 700 * ms);
    const json_int_t newest = json_integer_value(json_object_get(json, "newest_ms"));
    const int64_t off = realtime_ns() / ms - 700 - newest;
    CHECK(off >= 0 && off < 5000, "newest_ms is %lld ms off", (long long)off);
    CHECK(json_integer_value(json_object_get(json, "interval_ms")) == 2000, "interval");
    json_decref(json);
    end();
}

// A removed camera is forgotten, one replaced under the same name continues, and a new one has no
// past.
static void test_reloads(void)
{
    const struct camera_context context = {0};
    struct camera replaced, *list[1] = {&replaced};
    start();
    rig.metrics.n_cameras = 1;
    atomic_fetch_add(&rig.camera[0].report.packets, 100);
    sample();
    rig.metrics.n_cameras = 2;
    atomic_fetch_add(&rig.camera[0].report.packets, 50);
    sample();
    json_t *json = parsed(NULL, 9, 0);
    expect(json, "gate.in", "[100,50]");
    expect(json, "yard.in", "[null,0]");
    expect(json, "yard.outputs.o.out", "[null,0]");
    json_decref(json);

    CHECK(camera_open(&replaced, &rig.config->cameras[0], &context) == 0, "camera");
    atomic_fetch_add(&replaced.report.packets, 160); // more than the other had
    atomic_fetch_add(&replaced.subscriptions->list[0].output->ledger.emitted, 7);
    rig.metrics.cameras = list;
    rig.metrics.n_cameras = 1;
    sample();
    json = parsed(NULL, 9, 0);
    expect(json, "gate.in", "[100,50,160]");
    expect(json, "gate.outputs.o.out", "[0,0,7]");
    expect(json, "yard", NULL);
    json_decref(json);
    camera_close(&replaced); // the next one gets this one's address
    CHECK(camera_open(&replaced, &rig.config->cameras[0], &context) == 0, "camera");
    struct output *again = replaced.subscriptions->list[0].output;
    atomic_fetch_add(&replaced.report.packets, 9);
    atomic_fetch_add(&again->ledger.emitted, 2);
    sample();
    json = parsed(NULL, 9, 0);
    expect(json, "gate.in", "[100,50,160,9]");
    expect(json, "gate.outputs.o.out", "[0,0,7,2]");
    json_decref(json);
    rig.metrics.n_cameras = 0;
    sample();
    camera_close(&replaced);
    end();
}

static void test_order(void)
{
    struct camera *turned[2];
    start();
    sample();
    turned[0] = rig.list[1];
    turned[1] = rig.list[0];
    rig.metrics.cameras = turned;
    atomic_fetch_add(&rig.camera[0].report.packets, 5);
    atomic_fetch_add(&rig.camera[1].report.packets, 6);
    sample();
    json_t *json = parsed(NULL, 9, 0);
    expect(json, "gate.in", "[0,5]");
    expect(json, "yard.in", "[0,6]");
    json_decref(json);
    end();
}

static void test_ring_is_bounded(void)
{
    start();
    sample();
    const size_t before = mallinfo2().uordblks;
    for (unsigned i = 1; i < 2 * HISTORY_SAMPLES + 10; i++) {
        atomic_fetch_add(&rig.camera[0].report.packets, i);
        sample();
    }
    CHECK(mallinfo2().uordblks <= before, "it grew by %zu bytes", mallinfo2().uordblks - before);
    json_t *json = parsed("gate", 1000, 0);
    const json_t *in =
        json_object_get(json_object_get(json_object_get(json, "cameras"), "gate"), "in");
    CHECK(json_array_size(in) == HISTORY_SAMPLES, "%zu samples", json_array_size(in));
    size_t wrong = 0;
    for (size_t i = 0; i < HISTORY_SAMPLES; i++)
        wrong +=
            json_integer_value(json_array_get(in, i)) != (json_int_t)(HISTORY_SAMPLES + 10 + i);
    CHECK(wrong == 0, "%zu samples are wrong", wrong);
    json_decref(json);
    end();
}

// Returns the text of the query as JSON.
static json_t *parsed_wanted(struct history_wanted wanted)
{
    char *line = history_text(rig.history, &wanted, rig.now_ns);
    json_t *json = line ? json_loads(line, 0, NULL) : NULL;
    CHECK(json, "no JSON in %s", line);
    free(line);
    return json;
}

static long long number(const json_t *json, const char *key)
{
    return json_integer_value(json_object_get(json, key));
}

static void test_since(void)
{
    start();
    const long long begun = realtime_ns() / 1000000 / HISTORY_INTERVAL_MS;
    json_t *json = parsed_wanted((struct history_wanted){.samples = 1});
    const long long before = number(json, "newest");
    CHECK(before < begun && before > begun - 30 && number(json, "samples") == 0,
          "numbers begin by the clock: %lld, not %lld", before, begun);
    json_decref(json);
    for (int i = 1; i <= 5; i++) {
        atomic_fetch_add(&rig.camera[0].report.packets, (uint64_t)i);
        sample();
    }
    static const struct {
        uint64_t above;
        int samples;
        const char *in;
    } cases[] = {
        {0, 300, "[1,2,3,4,5]"}, {3, 300, "[4,5]"}, {3, 1, "[5]"},
        {1, 2, "[4,5]"},         {5, 300, "[]"},    {1u << 30, 300, "[]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json = parsed_wanted((struct history_wanted){.samples = cases[i].samples,
                                                     .since = (uint64_t)before + cases[i].above});
        expect(json, "gate.in", cases[i].in);
        CHECK(number(json, "newest") == before + 5, "newest %lld", number(json, "newest"));
        json_decref(json);
    }
    json = parsed_wanted((struct history_wanted){.samples = 300, .since = 7}); // of long ago
    expect(json, "gate.in", "[1,2,3,4,5]");
    json_decref(json);
    for (int i = 0; i < HISTORY_SAMPLES; i++)
        sample();
    json = parsed_wanted((struct history_wanted){.samples = 300, .since = (uint64_t)before + 1});
    CHECK(number(json, "samples") == HISTORY_SAMPLES, "%lld are kept", number(json, "samples"));
    json_decref(json);
    end();
}

static void test_lost_only(void)
{
    start();
    sample();
    atomic_fetch_add(&output(0, 1)->ledger.lost[LOSS_LATE], 3);
    sample();
    json_t *json = parsed_wanted((struct history_wanted){.samples = 300, .lost_only = true});
    expect(json, "gate", "{\"outputs\":{\"o\":{\"lost\":{}},\"p\":{\"lost\":{\"late\":[0,3]}}}}");
    expect(json, "yard", "{\"outputs\":{\"o\":{\"lost\":{}}}}");
    json_decref(json);
    end();
}

int main(void)
{
    TEST(test_gains());
    TEST(test_time());
    TEST(test_reloads());
    TEST(test_order());
    TEST(test_ring_is_bounded());
    TEST(test_since());
    TEST(test_lost_only());
    return test_end();
}
