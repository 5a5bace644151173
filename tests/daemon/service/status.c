// The status as JSON: facts of a camera and its outputs are at their keys, with any bytes that
// others wrote.
#include "daemon/service/status.h"

#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/load.h"
#include "daemon/base/clock.h"
#include "daemon/codec/frame.h"
#include "daemon/output/server.h"
#include "daemon/supervisor/cameras.h"
#include "daemon/wire.h"
#include "tests/test.h"

static const char text[] =
    "{backend: cpu, cameras: {gate: {url: 'rtsp://viewer:geheim@10.0.0.5/a', outputs: {"
    "o: {size: 32x32, sink: 'tcp:[::1]:5000'}, f: {kernel: yuv, sink: 'file:/a/é.y4m'}}}}, "
    "batches: {all: {cameras: gate, count: 8, size: 32x32, sink: 'tcp:[::1]:0'}}}";

static struct fixture {
    struct config *config;
    struct devices *devices;
    struct camera camera, *list[1];
    struct outlet *batches;
    struct reload reload;
    struct histogram decode, process;
    struct status status;
    struct metrics metrics;
} rig;

static void start(void)
{
    rig = (struct fixture){.reload = {.file = "/etc/\xff/framed.yaml", .loaded_ns = 7000000000}};
    CHECK(config_load_text(&rig.config, text, strlen(text), "test", stderr) == 0, "config");
    CHECK(devices_open(&rig.devices, rig.config) == 0, "devices");
    struct camera_context context = {.devices = rig.devices, .batches = &rig.batches};
    CHECK(camera_open(&rig.camera, rig.config->cameras, &context) == 0, "camera");
    rig.list[0] = &rig.camera;
    rig.metrics = (struct metrics){
        .cameras = rig.list,
        .n_cameras = 1,
        .batches = rig.batches,
        .devices = rig.devices,
        .decode = &rig.decode,
        .process = &rig.process,
        .reload = &rig.reload,
    };
    status_open(&rig.status);
}

static void end(void)
{
    camera_close(&rig.camera);
    cameras_forget_batches(&(struct cameras){.batches = rig.batches});
    devices_close(rig.devices);
    config_free(rig.config);
}

// Parses the line, and frees it.
static json_t *json_of(char *line)
{
    json_error_t error;
    CHECK(line && !strchr(line, '\n'), "one line");
    if (!line)
        return NULL;
    CHECK(!strstr(line, "geheim"), "the password shows: %s", line);
    json_t *json = json_loads(line, 0, &error);
    CHECK(json, "%s in %s", error.text, line);
    free(line);
    return json;
}

static json_t *snapshot(void)
{
    return json_of(status_text(&rig.status, &rig.metrics));
}

static json_t *summary(void)
{
    return json_of(status_summary_text(&rig.status, &rig.metrics));
}

// Returns the value at a path like "cameras.0.outputs.1.lost.late".
static const json_t *at(const json_t *json, const char *path)
{
    char copy[128], *rest = copy, *key;
    snprintf(copy, sizeof copy, "%s", path);
    while (json && (key = strsep(&rest, ".")))
        json = json_is_array(json) ? json_array_get(json, (size_t)atoi(key))
                                   : json_object_get(json, key);
    CHECK(json, "nothing at %s", path);
    return json;
}

static void expect_text(const json_t *json, const char *path, const char *expected)
{
    const char *value = json_string_value(at(json, path));
    CHECK(value ? expected && !strcmp(value, expected) : !expected && json_is_null(at(json, path)),
          "%s is %s", path, value);
}

static void expect_number(const json_t *json, const char *path, double low, double high)
{
    double value = json_number_value(at(json, path));
    CHECK(json_is_number(at(json, path)) && value >= low && value <= high, "%s is %g", path, value);
}

static void test_before_the_first_picture(void)
{
    start();
    json_t *json = snapshot();
    expect_number(json, "schema_version", STATUS_SCHEMA_VERSION, STATUS_SCHEMA_VERSION);
    expect_text(json, "config.path", "/etc/?/framed.yaml");
    expect_number(json, "config.loaded_at", 7, 7);
    expect_text(json, "config.last_reload", NULL);
    expect_text(json, "bound.leg", "unknown");
    expect_text(json, "cameras.0.profile", NULL);
    CHECK(json_is_null(at(json, "cameras.0.keyframe_s")) &&
              json_is_null(at(json, "cameras.0.clock")),
          "of a stream that is not there");
    expect_text(json, "bound.cameras_more", NULL);
    expect_text(json, "bound.upload", NULL); // the CPU has no such stages
    expect_text(json, "bound.kernel", NULL);
    expect_text(json, "bound.download", NULL);
    expect_text(json, "cameras.0.state", "connecting");
    expect_text(json, "cameras.0.url", "rtsp://10.0.0.5/a");
    for (const char *const *key =
             (const char *const[]){"stream", "codec", "backend", "decoder", "picture", "next_try_s",
                                   "last_error", NULL};
         *key; key++) {
        char path[64];
        snprintf(path, sizeof path, "cameras.0.%s", *key);
        expect_text(json, path, NULL);
    }
    expect_text(json, "cameras.0.outputs.0.sink", "tcp:[::1]:5000");
    expect_text(json, "cameras.0.outputs.1.sink", "file:/a/é.y4m");
    expect_text(json, "cameras.0.outputs.0.latency.p50_s", NULL);
    json_decref(json);
    end();
}

// A running submit counts once it has lasted longer than a sample.
static void test_submit_so_far(void)
{
    const int64_t s = 1000000000;
    start();
    struct stage_watch *stages = &rig.camera.report.stages;
    stage_enter(stages, STAGE_READ, 0);
    const int64_t begun = atomic_load(&stages->since_ns);
    status_camera_sample(&rig.camera, begun - 4 * s, true);
    status_camera_sample(&rig.camera, begun, false);
    stage_enter(stages, STAGE_SUBMIT, 0);
    stage_enter(stages, STAGE_SUBMIT, STAGE_NO_LIMIT); // which is the same submit
    CHECK(load_camera_share(&rig.camera, STAGE_SUBMIT, begun + s / 2) == 0, "at once");
    double half = load_camera_share(&rig.camera, STAGE_SUBMIT, begun + 2 * s + s / 2);
    CHECK(half > 0.49 && half < 0.51, "half of the time: %g", half);
    CHECK(load_camera_share(&rig.camera, STAGE_SUBMIT, begun + 60 * s) == 1, "all of it");
    CHECK(load_camera_share(&rig.camera, STAGE_READ, begun + 60 * s) == 0, "another stage");
    stage_enter(stages, STAGE_READ, 0);
    CHECK(load_camera_share(&rig.camera, STAGE_SUBMIT, begun + 60 * s) == 0, "it has ended");
    end();
}

// Two seconds' work at once; the sample is taken in the middle.
static void test_at_work(void)
{
    start();
    struct output *output = rig.camera.subscriptions->list[0].output;
    int64_t now = monotonic_ns();
    status_camera_sample(&rig.camera, now - 2000000000, true);
    for (int i = 0; i < 50; i++) {
        const struct frame picture = {
            .image = {.width = 1920, .height = 1080},
            .info = {.flags = (i < 7 ? FRAMED_FLAG_DAMAGED : FRAMED_FLAG_KEYFRAME) |
                              (i < 9 ? FRAMED_FLAG_HDR : 0),
                     .converted = i < 11},
        };
        camera_report_picture(&rig.camera.report, &picture, &(struct stream_memory){0});
        ledger_offer(&output->ledger);
        if (i % 5 == 0)
            ledger_lose(&output->ledger, LOSS_LATE);
        else
            ledger_emit(&output->ledger);
        latency_observe(&output->latency, (i + 1) * INT64_C(1000000));
    }
    struct camera_report *packets = &rig.camera.report;
    atomic_store(&packets->bytes, 500000);
    atomic_store(&packets->keyframe_ns, 2500000000);
    atomic_store(&packets->offset_ns, -100000000);
    atomic_store(&packets->jitter_ns, 4000000);
    atomic_store(&packets->has_clock, true);
    camera_report_stream(&rig.camera.report, "cpu hevc", "hevc", "Main 10");
    status_camera_sample(&rig.camera, now, false);
    last_error_set(&output->outlet->last_error, "cannot open rtsp://u:geheim@h/\xff\n at all");
    atomic_store(&rig.camera.report.next_try_ns, monotonic_ns() + INT64_C(5000000000));
    atomic_store(&rig.camera.report.state, CAMERA_RETRYING);
    json_t *json = snapshot();
    expect_number(json, "cameras.0.fps_in", 24.9, 25.1);
    expect_number(json, "cameras.0.pictures", 50, 50);
    expect_number(json, "cameras.0.converted", 11, 11);
    expect_text(json, "cameras.0.profile", "Main 10");
    expect_number(json, "cameras.0.bits_per_second", 1.99e6, 2.01e6);
    expect_number(json, "cameras.0.keyframe_s", 2.5, 2.5);
    expect_number(json, "cameras.0.clock.offset_s", -0.1, -0.1);
    expect_number(json, "cameras.0.clock.jitter_s", 0.004, 0.004);
    expect_number(json, "cameras.0.flagged.damaged", 7, 7);
    expect_number(json, "cameras.0.flagged.interlaced", 0, 0);
    expect_number(json, "cameras.0.flagged.hdr", 9, 9);
    expect_number(json, "cameras.0.picture.width", 1920, 1920);
    expect_number(json, "cameras.0.picture.height", 1080, 1080);
    expect_number(json, "cameras.0.next_try_s", 4, 5);
    expect_number(json, "cameras.0.outputs.0.fps_out", 19.9, 20.1);
    expect_number(json, "cameras.0.outputs.0.fps_lost", 4.9, 5.1);
    expect_number(json, "cameras.0.outputs.0.offered", 50, 50);
    expect_number(json, "cameras.0.outputs.0.emitted", 40, 40);
    expect_number(json, "cameras.0.outputs.0.lost.late", 10, 10);
    expect_number(json, "cameras.0.outputs.0.lost.overflow", 0, 0);
    expect_number(json, "cameras.0.outputs.0.latency.p50_s", 0.022, 0.028);
    expect_number(json, "cameras.0.outputs.0.latency.p99_s", 0.045, 0.056);
    expect_text(json, "cameras.0.outputs.0.last_error.text", "cannot open rtsp://h/?  at all");
    json_decref(json);
    end();
}

static void test_only_one_camera(void)
{
    start();
    rig.metrics.only_camera = "gate";
    json_t *json = snapshot();
    expect_text(json, "cameras.0.name", "gate");
    json_decref(json);
    rig.metrics.only_camera = "gat";
    json = snapshot();
    CHECK(json_array_size(at(json, "cameras")) == 0, "another camera is there");
    json_decref(json);
    end();
}

static void test_summary(void)
{
    start();
    json_t *json = summary();
    char *camera = json_dumps(at(json, "cameras.0"), JSON_COMPACT | JSON_SORT_KEYS);
    const char expected[] = "{\"damaged\":0,\"fps_in\":0.0,\"fps_out\":0.0,\"name\":\"gate\","
                            "\"state\":\"connecting\"}";
    CHECK(camera && strcmp(camera, expected) == 0, "of a camera that has done nothing: %s", camera);
    free(camera);
    json_decref(json);
    struct output *o = rig.camera.subscriptions->list[0].output,
                  *f = rig.camera.subscriptions->list[1].output;
    ((struct output_config *)o->config)->max_age.ns = 500000000;
    ((struct output_config *)f->config)->max_age.ns = 250000000;
    const int64_t now = monotonic_ns();
    status_camera_sample(&rig.camera, now - 1000000000, false);
    atomic_store(&rig.camera.report.pictures, 50);
    atomic_store(&rig.camera.report.flagged[COUNTED_DAMAGED], 7);
    atomic_store(&f->ledger.emitted, 20);
    latency_observe(&f->latency, 40000000);
    status_camera_sample(&rig.camera, now, false);
    camera_report_stream(&rig.camera.report, "cpu h264", "h264 \"\xff\"", "High");
    camera_report_error(&rig.camera.report, "refused: rtsp://u:geheim@h/");
    last_error_set(&f->outlet->last_error, "no room");
    rig.camera.alerts = 1u << ALERT_FLAPPING | 1u << ALERT_DAMAGED;
    atomic_store(&rig.camera.report.state, CAMERA_RUNNING);
    json = summary();
    expect_text(json, "cameras.0.state", "running");
    expect_text(json, "cameras.0.stream", "h264 \"?\"");
    expect_text(json, "cameras.0.alerts.0", "flapping");
    expect_text(json, "cameras.0.alerts.1", "damaged");
    expect_text(json, "cameras.0.output_error", "no room");
    expect_number(json, "cameras.0.damaged", 7, 7);
    expect_number(json, "cameras.0.fps_in", 49, 51);
    expect_number(json, "cameras.0.fps_out", 19, 21);
    expect_number(json, "cameras.0.p99_s", 0.035, 0.045);
    expect_number(json, "cameras.0.max_age_s", 0.25, 0.25);
    CHECK(!json_object_get(at(json, "cameras.0"), "error"), "an error of before");
    CHECK(!json_object_get(at(json, "cameras.0"), "next_try_s"), "a next try");
    json_decref(json);
    f->outlet->last_error.ns -= INT64_C(61000000000);
    atomic_store(&rig.camera.report.next_try_ns, monotonic_ns() + INT64_C(5000000000));
    atomic_store(&rig.camera.report.state, CAMERA_RETRYING);
    json = summary();
    expect_text(json, "cameras.0.error", "refused: rtsp://h/");
    expect_number(json, "cameras.0.next_try_s", 4, 5);
    CHECK(!json_object_get(at(json, "cameras.0"), "output_error"), "an error of long ago");
    json_decref(json);
    end();
}

static void test_reloads(void)
{
    start();
    rig.reload.tried_ns = 9000000000;
    snprintf(rig.reload.error, sizeof rig.reload.error, "framed.yaml:1:1: x");
    json_t *json = snapshot();
    expect_number(json, "config.last_reload.at", 9, 9);
    expect_text(json, "config.last_reload.error", "framed.yaml:1:1: x");
    CHECK(json_is_false(at(json, "config.last_reload.ok")), "ok");
    json_decref(json);
    rig.reload.is_applied = true;
    json = snapshot();
    CHECK(json_is_true(at(json, "config.last_reload.ok")), "not ok");
    expect_text(json, "config.last_reload.error", NULL);
    json_decref(json);
    end();
}

static int bind_port(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(fd, (const struct sockaddr *)&any, sizeof any) == 0, "bind");
    return fd;
}

// The batch has a sink, and the camera's share in it shows that.
static void test_batch(void)
{
    struct server_client client[3] = {{.name = "infer:1"}, {.name = "infer:2"}, {.name = "?:3"}};
    struct server server = {.sink.driver = &server_sink,
                            .listener.fd = bind_port(),
                            .n_clients = 3,
                            .clients = (struct server_client *[]){client, client + 1, client + 2}};
    char url[64];
    snprintf(url, sizeof url, "tcp:[::1]:%d", sink_port(&server.sink));
    start();
    json_t *json = snapshot();
    expect_text(json, "batches.0.elements_mean", NULL);
    expect_text(json, "batches.0.sink", "tcp:[::1]:0");
    CHECK(json_is_false(at(json, "batches.0.open")), "the batch is open");
    CHECK(json_is_false(at(json, "cameras.0.outputs.2.open")), "the share is open");
    json_decref(json);
    struct batch *batch = rig.batches->batch;
    atomic_store(&batch->closed[CLOSED_FULL], 3);
    atomic_store(&batch->closed[CLOSED_WAIT], 1);
    atomic_store(&batch->elements, 26);
    last_error_set(&rig.batches->last_error, "no port");
    rig.batches->sink = &server.sink;
    json = snapshot();
    rig.batches->sink = NULL;
    CHECK(json_array_size(at(json, "batches")) == 1, "batches");
    expect_text(json, "batches.0.name", "all");
    expect_text(json, "batches.0.last_error.text", "no port");
    expect_number(json, "batches.0.capacity", 8, 8);
    expect_number(json, "batches.0.elements_mean", 6.5, 6.5);
    expect_number(json, "batches.0.closed.full", 3, 3);
    expect_number(json, "batches.0.closed.all", 0, 0);
    expect_number(json, "batches.0.closed.wait", 1, 1);
    expect_number(json, "batches.0.closed.reload", 0, 0);
    expect_number(json, "batches.0.closed.stopping", 0, 0);
    expect_text(json, "cameras.0.outputs.2.name", "all");
    for (const char *const *owner = (const char *const[]){"batches.0", "cameras.0.outputs.2", NULL};
         *owner; owner++) {
        char path[64];
        snprintf(path, sizeof path, "%s.open", *owner);
        CHECK(json_is_true(at(json, path)), "%s", path);
        snprintf(path, sizeof path, "%s.clients", *owner);
        expect_number(json, path, 3, 3);
        snprintf(path, sizeof path, "%s.sink", *owner);
        expect_text(json, path, url);
        snprintf(path, sizeof path, "%s.consumers.1.name", *owner);
        expect_text(json, path, "infer:2");
    }
    json_decref(json);
    close(server.listener.fd);
    end();
}

int main(void)
{
    TEST(test_batch());
    TEST(test_before_the_first_picture());
    TEST(test_submit_so_far());
    TEST(test_at_work());
    TEST(test_only_one_camera());
    TEST(test_summary());
    TEST(test_reloads());
    return test_end();
}
