// /readyz and /healthz with two cameras: one or both have shown a picture.
#include "daemon/service/routes.h"

#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "tests/test.h"

static const char text[] =
    "{backend: cpu, cameras: {gate: {url: /a, outputs: {o: {sink: 'tcp:0'}}}, "
    "yard: {url: /b, outputs: {o: {sink: 'tcp:0'}}}}}";
static const int64_t s = INT64_C(1000000000);

static struct rig {
    struct config *config;
    struct camera camera[2], *list[2];
    struct metrics metrics;
} rig;

static void start(void)
{
    memset(&rig, 0, sizeof rig);
    CHECK(config_load_text(&rig.config, text, strlen(text), "test", stderr) == 0, "config");
    struct camera_context context = {0};
    for (int i = 0; i < 2; i++) {
        CHECK(camera_open(&rig.camera[i], &rig.config->cameras[i], &context) == 0, "camera");
        rig.list[i] = &rig.camera[i];
    }
    rig.metrics = (struct metrics){.cameras = rig.list, .n_cameras = 2, .up_ns = s};
}

static void end(void)
{
    for (int i = 0; i < 2; i++)
        camera_close(&rig.camera[i]);
    config_free(rig.config);
}

static void expect(const char *path, int status, const char *body)
{
    struct http_page page = {0};
    CHECK(routes_get(&rig.metrics, path, &page), "no %s", path);
    CHECK(page.status == status, "%s: %d, not %d", path, page.status, status);
    CHECK(page.body && page.size == strlen(body) && memcmp(page.body, body, page.size) == 0,
          "%s: '%s', not '%s'", path, page.body, body);
    free(page.body);
}

static void test_readiness(void)
{
    start();
    expect("/readyz", 503, "no picture yet from gate, yard\n");
    rig.metrics.up_ns = 3600 * s;
    expect("/readyz", 503, "no picture yet from gate, yard\n");
    atomic_store(&rig.camera[0].report.pictures, 1);
    rig.metrics.up_ns = 30 * s - 1;
    expect("/readyz", 503, "no picture yet from yard\n");
    rig.metrics.up_ns = 30 * s;
    expect("/readyz", 200, "no picture yet from yard\nready\n");
    rig.metrics.ready = READY_ALL;
    expect("/readyz", 503, "no picture yet from yard\n");
    atomic_store(&rig.camera[1].report.pictures, 1);
    expect("/readyz", 200, "ready\n");
    rig.metrics.up_ns = s;
    rig.metrics.ready = READY_ANY;
    expect("/readyz", 200, "ready\n");
    end();
}

static void test_health(void)
{
    start();
    expect("/healthz", 200, "ok\n");
    rig.metrics.health = (struct health){.stuck = "yard", .step = "decoding"};
    expect("/healthz", 503, "camera yard is stuck while decoding\n");
    end();
}

int main(void)
{
    TEST(test_readiness());
    TEST(test_health());
    return test_end();
}
