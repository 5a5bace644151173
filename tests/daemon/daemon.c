// The daemon as a whole: what hangs in one place must not hold up the others.
#include "daemon/daemon.h"
#include "config/load.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/daemon/clips.h"

enum { HANGING = 12, WAIT_MS = 3000 };

static _Atomic bool hangs;
static _Atomic int writes; // of the file on the disk that works

static bool is_hanging(int fd)
{
    char link[64], path[128] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "hanging");
}

// In place of libc's: a disk that does not answer while `hangs` is set.
ssize_t pwritev(int fd, const struct iovec *piece, int n, off_t offset)
{
    bool hanging = is_hanging(fd);
    while (hanging && atomic_load(&hangs))
        usleep(10000);
    atomic_fetch_add(&writes, !hanging);
    return syscall(SYS_pwritev, fd, piece, n, (long)offset, 0L);
}

static void *watch(void *unused)
{
    (void)unused;
    for (int i = 0; i < WAIT_MS / 10 && atomic_load(&writes) < 10; i++)
        usleep(10000);
    CHECK(atomic_load(&writes) >= 10, "%d frames beside %d disks that hang", atomic_load(&writes),
          HANGING);
    atomic_store(&hangs, false);
    kill(getpid(), SIGTERM);
    return NULL;
}

static struct config *load(void)
{
    char text[2048];
    struct config *config = NULL;
    int n = snprintf(text, sizeof text,
                     "backend: cpu\ncontrol: off\ndefaults: {overflow: drop_oldest}\ncameras:\n  "
                     "gate:\n    url: clip.nut\n    loop: true\n"
                     "    outputs:\n      working: {kernel: yuv, sink: 'file:working.y4m'}\n");
    for (int i = 0; i < HANGING; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "      hanging%d: {kernel: yuv, sink: 'file:hanging%d.y4m'}\n", i, i);
    CHECK(config_load_text(&config, text, (size_t)n, "test", stderr) == 0, "%s", text);
    return config;
}

static void test_disks_that_hang(void)
{
    struct daemon_options options = {0};
    struct config *config = load();
    pthread_t watcher;
    atomic_store(&hangs, true);
    pthread_create(&watcher, NULL, watch, NULL);
    int code = daemon_run(config, &options);
    pthread_join(watcher, NULL); // before the next CHECK: the counters have no lock
    CHECK(code == EXIT_OK, "exit %d", code);
    config_free(config);
}

static struct config *load_text(const char *text)
{
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, strlen(text), "test", stderr) == 0, "%s", text);
    return config;
}

static void *make_folder(void *unused)
{
    (void)unused;
    usleep(300000);
    CHECK(access("now.y4m", F_OK) == 0, "the other output does not work meanwhile");
    CHECK(mkdir("later", 0777) == 0, "mkdir");
    for (int i = 0; i < WAIT_MS / 10 && access("later/b.y4m", F_OK) < 0; i++)
        usleep(10000);
    CHECK(access("later/b.y4m", F_OK) == 0, "the output did not try again");
    kill(getpid(), SIGTERM);
    return NULL;
}

// A folder that is not there yet holds up neither the other outputs nor the start.
static void test_sink_comes_later(void)
{
    struct daemon_options options = {0};
    struct config *config = load_text(
        "{backend: cpu, control: off, cameras: {gate: {url: clip.nut, loop: true, outputs: {"
        "a: {kernel: yuv, sink: 'file:now.y4m'},"
        "b: {kernel: yuv, sink: 'file:later/b.y4m'}}}}}");
    pthread_t maker;
    pthread_create(&maker, NULL, make_folder, NULL);
    int code = daemon_run(config, &options);
    pthread_join(maker, NULL); // before the next CHECK: the counters have no lock
    CHECK(code == EXIT_OK, "exit %d", code);
    config_free(config);
}

static void test_no_sink_at_all(void)
{
    struct daemon_options options = {0};
    struct config *config =
        load_text("{backend: cpu, control: off, cameras: {gate: {url: clip.nut, loop: true, "
                  "outputs: {a: {kernel: yuv, sink: 'file:nowhere/a.y4m'}}}}}");
    int code = daemon_run(config, &options);
    CHECK(code == EXIT_RUNTIME, "exit %d", code);
    config_free(config);

    options.metrics = "nowhere/metrics";
    config = load_text("{backend: cpu, control: off, cameras: {gate: {url: clip.nut, loop: true, "
                       "outputs: {a: {kernel: yuv, sink: 'file:a.y4m'}}}}}");
    code = daemon_run(config, &options);
    CHECK(code == EXIT_RUNTIME, "exit %d with nowhere to write the metrics", code);
    config_free(config);
}

int main(void)
{
    clips_open();
    clips_make("64x48", 25, "-c:v rawvideo", "clip.nut");
    TEST(test_disks_that_hang());
    TEST(test_sink_comes_later());
    TEST(test_no_sink_at_all());
    clips_close();
    return test_end();
}
