// Deliveries while reloads change `notify` and one of them hangs.
#include "daemon/alert/alerts.h"

#include <semaphore.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/load.h"
#include "daemon/base/clock.h"
#include "daemon/base/process.h"
#include "tests/test.h"

static const int64_t SECOND = 1000000000;

// A program that does not start before `go`, as if its folder were on a hanging server.
static sem_t go;
static atomic_int begun;

int __wrap_posix_spawn(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
int __real_posix_spawn(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    atomic_fetch_add(&begun, 1);
    sem_wait(&go);
    return __real_posix_spawn(pid, path, actions, attributes, argv, envp);
}

struct rig {
    uv_loop_t loop;
    struct work_queue work;
    struct cameras cameras; // none
    struct alerts *alerts;
    char folder[32], path[64];
};

static struct config *load(const char *notify)
{
    struct config *config = NULL;
    char text[256];
    snprintf(text, sizeof text,
             "notify: {%s}\ncameras: {c: {url: u, outputs: {o: {sink: 'tcp:1'}}}}\n", notify);
    CHECK(config_load_text(&config, text, strlen(text), "test", stderr) == 0, "%s", text);
    return config;
}

static void reload(struct rig *rig, const char *notify)
{
    struct config *config = load(notify);
    CHECK(alerts_prepare(rig->alerts, config) == 0, "%s", notify);
    alerts_commit(rig->alerts);
    config_free(config);
}

static void idle(void *opaque)
{
    (void)opaque;
}

static int count_pending(struct rig *rig)
{
    int n = 0;
    alerts_count(rig->alerts, TARGET_COMMAND, &n);
    return n;
}

// Runs the loop until so many programs have started and so many events are pending.
static void run_until(struct rig *rig, int programs, int events)
{
    const int64_t until = monotonic_ns() + 60 * SECOND;
    while (monotonic_ns() < until &&
           (atomic_load(&begun) < programs || count_pending(rig) > events))
        uv_run(&rig->loop, UV_RUN_ONCE);
    CHECK(atomic_load(&begun) >= programs && count_pending(rig) == events,
          "%d programs, %d pending", atomic_load(&begun), count_pending(rig));
}

// Runs the loop until no work is running.
static void run_idle(struct rig *rig)
{
    const int64_t until = monotonic_ns() + 10 * SECOND;
    do
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    while (monotonic_ns() < until && rig->work.n > 0);
}

// Opens the alerts with one event in the file, for the hanging program.
static void rig_open(struct rig *rig)
{
    struct alert_event event = {
        .kind = ALERT_DOWN, .raised = true, .at_ms = realtime_ns() / 1000000};
    struct config *config = load("command: /bin/true");
    char text[1024];
    *rig = (struct rig){.folder = "/tmp/framed-alerts.XXXXXX"};
    uv_loop_init(&rig->loop);
    rig->work = (struct work_queue){.loop = &rig->loop, .idle = idle};
    CHECK(mkdtemp(rig->folder), "%s", rig->folder);
    snprintf(rig->path, sizeof rig->path, "%s/alerts", rig->folder);
    strcpy(event.camera, "c");
    char *json = alert_event_json(&event, "");
    snprintf(text, sizeof text, "framed alerts 1\nevent %x %s\n", 1u << TARGET_COMMAND, json);
    free(json);
    CHECK(state_file_write(rig->path, text, 0600) == 0, "%s", rig->path);
    const struct alerts_context context = {&rig->loop, &rig->work, &rig->cameras, config,
                                           rig->folder};
    CHECK(alerts_open(&rig->alerts, &context) == 0, "alerts");
    config_free(config);
}

static void rig_close(struct rig *rig)
{
    while (rig->work.n > 0)
        uv_run(&rig->loop, UV_RUN_ONCE);
    alerts_stop(rig->alerts);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    alerts_close(rig->alerts);
    CHECK(uv_loop_close(&rig->loop) == 0, "the loop is in use");
    unlink(rig->path);
    rmdir(rig->folder);
}

// Reloads do not wait: no worker is blocked, another target starts, and the event is delivered
// once.
static void test_hanging(void)
{
    struct rig rig;
    atomic_store(&begun, 0);
    sem_init(&go, 0, 0);
    rig_open(&rig);
    run_until(&rig, 1, 1);
    reload(&rig, "command: /bin/true, calm: 1m");
    run_idle(&rig);
    CHECK(rig.work.n == 0, "%d works are under way for the thread that hangs", rig.work.n);
    reload(&rig, "command: /bin/true, webhook: 'http://127.0.0.1:1/'");
    run_idle(&rig);
    CHECK(alerts_has_target(rig.alerts, TARGET_WEBHOOK) && atomic_load(&begun) == 1,
          "%d programs beside the one that hangs", atomic_load(&begun) - 1);
    for (int i = 0; i < 8; i++)
        sem_post(&go);
    run_until(&rig, 1, 0);
    int left;
    const struct outbox_counts counts = alerts_count(rig.alerts, TARGET_COMMAND, &left);
    CHECK(counts.delivered == 1 && counts.lost == 0, "%llu delivered, %llu lost",
          (unsigned long long)counts.delivered, (unsigned long long)counts.lost);
    rig_close(&rig);
    sem_destroy(&go);
}

int main(void)
{
    TEST(test_hanging());
    return test_end();
}
