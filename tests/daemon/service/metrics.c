// Counters of batches: by number of pictures, and by reason and time of closing. The file of
// counters on a full disk.
#include "daemon/service/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/load.h"
#include "daemon/supervisor/cameras.h"
#include "tests/test.h"

static const char text[] = "{backend: cpu, cameras: {gate: {url: /a}, yard: {url: /b}}, batches: {"
                           "all: {cameras: '*', count: 8, size: 32x32, sink: 'tcp:0'}, "
                           "one: {cameras: yard, count: 2, size: 32x32, sink: 'tcp:0'}}}";

static struct rig {
    struct config *config;
    struct devices *devices;
    struct outlet *batches;
    struct camera camera[2], *list[2];
    struct reload reload;
    struct histogram decode, process;
    struct metrics metrics;
} rig;

static void start(void)
{
    memset(&rig, 0, sizeof rig);
    CHECK(config_load_text(&rig.config, text, strlen(text), "test", stderr) == 0, "config");
    CHECK(devices_open(&rig.devices, rig.config) == 0, "devices");
    struct camera_context context = {.devices = rig.devices, .batches = &rig.batches};
    for (int i = 0; i < 2; i++) {
        CHECK(camera_open(&rig.camera[i], &rig.config->cameras[i], &context) == 0, "camera");
        rig.list[i] = &rig.camera[i];
    }
    rig.metrics = (struct metrics){
        .cameras = rig.list,
        .n_cameras = 2,
        .batches = rig.batches,
        .devices = rig.devices,
        .decode = &rig.decode,
        .process = &rig.process,
        .reload = &rig.reload,
    };
}

static void end(void)
{
    for (int i = 0; i < 2; i++)
        camera_close(&rig.camera[i]);
    cameras_forget_batches(&(struct cameras){.batches = rig.batches});
    devices_close(rig.devices);
    config_free(rig.config);
}

static struct outlet *batch_of(const char *name)
{
    struct outlet *batch = rig.batches;
    while (batch && strcmp(batch->config->name, name) != 0)
        batch = batch->next;
    CHECK(batch, "no batch %s", name);
    return batch;
}

// Returns the counters' current text; the caller frees it.
static char *counters(void)
{
    char *ret = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&ret, &size);
    metrics_print(to, &rig.metrics);
    fclose(to);
    return ret;
}

static bool has_line(const char *all, const char *line)
{
    const size_t size = strlen(line);
    for (const char *at = all; (at = strstr(at, line)); at++)
        if ((at == all || at[-1] == '\n') && at[size] == '\n')
            return true;
    return false;
}

static void test_batches(void)
{
    start();
    struct batch *batch = batch_of("all")->batch;
    atomic_store(&batch->closed[CLOSED_FULL], 5);
    atomic_store(&batch->closed[CLOSED_WAIT], 2);
    atomic_store(&batch->by_filled[0], 1); // 1 + 3 + 3 + 4 * 8
    atomic_store(&batch->by_filled[2], 2);
    atomic_store(&batch->by_filled[3], 4);
    atomic_store(&batch->elements, 39);
    histogram_observe(&batch->wait, 700000);
    histogram_observe(&batch->wait, 40000000);
    char *all = counters();
    for (const char *const *line =
             (const char *const[]){"framed_batches_total{batch=\"all\",closed=\"full\"} 5",
                                   "framed_batches_total{batch=\"all\",closed=\"all\"} 0",
                                   "framed_batches_total{batch=\"all\",closed=\"wait\"} 2",
                                   "framed_batches_total{batch=\"all\",closed=\"reload\"} 0",
                                   "framed_batches_total{batch=\"all\",closed=\"stopping\"} 0",
                                   "framed_batches_total{batch=\"one\",closed=\"full\"} 0",
                                   "framed_batch_elements_bucket{batch=\"all\",le=\"1\"} 1",
                                   "framed_batch_elements_bucket{batch=\"all\",le=\"2\"} 1",
                                   "framed_batch_elements_bucket{batch=\"all\",le=\"4\"} 3",
                                   "framed_batch_elements_bucket{batch=\"all\",le=\"8\"} 7",
                                   "framed_batch_elements_bucket{batch=\"all\",le=\"256\"} 7",
                                   "framed_batch_elements_bucket{batch=\"all\",le=\"+Inf\"} 7",
                                   "framed_batch_elements_sum{batch=\"all\"} 39",
                                   "framed_batch_elements_count{batch=\"all\"} 7",
                                   "framed_batch_wait_seconds_bucket{batch=\"all\",le=\"+Inf\"} 2",
                                   "framed_batch_wait_seconds_sum{batch=\"all\"} 0.040700000",
                                   "framed_batch_wait_seconds_count{batch=\"all\"} 2", NULL};
         *line; line++)
        CHECK(has_line(all, *line), "no line %s in\n%s", *line, all);
    free(all);
    end();
}

static int three_clients(const struct sink *sink)
{
    (void)sink;
    return 3;
}

// A batch's clients are counted for each camera's share in it.
static void test_clients(void)
{
    static const struct sink_driver driver = {.clients = three_clients};
    struct sink sink = {.driver = &driver};
    start();
    struct outlet *batch = batch_of("all");
    batch->sink = &sink;
    char *all = counters();
    batch->sink = NULL;
    CHECK(has_line(all, "framed_sink_clients{camera=\"gate\",output=\"all\"} 3"), "%s", all);
    CHECK(has_line(all, "framed_sink_clients{camera=\"yard\",output=\"all\"} 3"), "%s", all);
    CHECK(has_line(all, "framed_sink_clients{camera=\"yard\",output=\"one\"} 0"), "%s", all);
    free(all);
    end();
}

// After a reload the replaced batch has the name of its successor.
static void test_no_camera_is_in_it(void)
{
    start();
    rig.metrics.n_cameras = 1;
    char *all = counters();
    CHECK(strstr(all, "framed_batches_total{batch=\"all\""), "%s", all);
    CHECK(!strstr(all, "{batch=\"one\""), "%s", all);
    free(all);
    rig.metrics.n_cameras = 0;
    all = counters();
    CHECK(!strstr(all, "batch"), "%s", all);
    free(all);
    end();
}

// A camera's raised alerts, and its availability once any of it is known.
static void test_alerts(void)
{
    start();
    rig.camera[1].alerts = 1u << ALERT_DAMAGED;
    rig.camera[1].availability = (struct availability_share){.known_s = 7200, .share = 0.25};
    char *all = counters();
    CHECK(has_line(all, "framed_camera_availability_ratio{camera=\"yard\"} 0.250000") &&
              !strstr(all, "framed_camera_availability_ratio{camera=\"gate\"}"),
          "%s", all);
    CHECK(has_line(all, "framed_camera_availability_known_seconds{camera=\"yard\"} 7200"), "%s",
          all);
    CHECK(has_line(all, "framed_camera_alert{camera=\"yard\",kind=\"damaged\"} 1") &&
              has_line(all, "framed_camera_alert{camera=\"gate\",kind=\"damaged\"} 0"),
          "%s", all);
    free(all);
    end();
}

// A full disk leaves the file as it was: stdio writes a large text without its buffer, and closing
// reports no error then.
static void test_full_disk(void)
{
    static char large[1 << 16];
    char folder[] = "/tmp/framed-metrics.XXXXXX", file[64], partial[80], kept[8] = "";
    CHECK(mkdtemp(folder) != NULL, "mkdtemp");
    snprintf(file, sizeof file, "%s/counters", folder);
    snprintf(partial, sizeof partial, "%s.new", file);
    memset(large, 'x', sizeof large);
    CHECK(metrics_save(file, "before", 6) == 0, "no file");
    CHECK(symlink("/dev/full", partial) == 0, "symlink");
    const int rc = metrics_save(file, large, sizeof large);
    CHECK(rc == -ENOSPC, "%d", rc);
    FILE *saved = fopen(file, "r");
    CHECK(saved && fread(kept, 1, 7, saved) == 6 && strcmp(kept, "before") == 0, "'%s'", kept);
    if (saved)
        fclose(saved);
    CHECK(access(partial, F_OK) < 0, "a part is left");
    unlink(file);
    rmdir(folder);
}

int main(void)
{
    TEST(test_full_disk());
    TEST(test_batches());
    TEST(test_clients());
    TEST(test_no_camera_is_in_it());
    TEST(test_alerts());
    return test_end();
}
