// The whole daemon: one thing that hangs must not block the others.
#include "daemon/daemon.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "config/load.h"
#include "daemon/cli/commands.h"
#include "tests/daemon/clips.h"

enum { HANGING = 12, WAIT_MS = 3000 };

static _Atomic bool hangs;
static _Atomic int writes; // to the file on the working disk

static _Atomic int hung; // writers that the hanging disk blocks
static char hanging[64]; // a folder on another file system than the clips: the disk that hangs

static bool is_hanging(int fd)
{
    char link[64], path[128] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "framed-hanging");
}

// Replaces libc's: a disk that does not answer while `hangs` is set.
ssize_t pwritev(int fd, const struct iovec *piece, int n, off_t offset)
{
    bool hanging = is_hanging(fd);
    atomic_fetch_add(&hung, hanging);
    while (hanging && atomic_load(&hangs))
        usleep(10000);
    atomic_fetch_sub(&hung, hanging);
    atomic_fetch_add(&writes, !hanging);
    return syscall(SYS_pwritev, fd, piece, n, (long)offset, 0L);
}

// Replaces libc's: a group server that does not answer while `groups_hang` is set, and has one
// group if `has_group` is set; and a disk with the configuration.
static _Atomic bool groups_hang, folders_hang, has_group;
static _Atomic int waiting;

static void wait_while(const _Atomic bool *hanging)
{
    atomic_fetch_add(&waiting, 1);
    while (atomic_load(hanging))
        usleep(10000);
    atomic_fetch_sub(&waiting, 1);
}

int getgrnam_r(const char *name, struct group *entry, char *text, size_t size, struct group **ret)
{
    (void)text, (void)size;
    wait_while(&groups_hang);
    *entry = (struct group){.gr_gid = getegid()};
    *ret = atomic_load(&has_group) && strcmp(name, "video") == 0 ? entry : NULL;
    return 0;
}

char *realpath(const char *path, char *to)
{
    (void)to;
    wait_while(&folders_hang);
    return strdup(path);
}

// Replaces libc's: the same disk while not even its folders answer.
static _Atomic bool is_dead;

int stat(const char *path, struct stat *st)
{
    while (strstr(path, "framed-hanging") && atomic_load(&is_dead))
        usleep(10000);
    return fstatat(AT_FDCWD, path, st, 0);
}

static void *watch(void *unused)
{
    (void)unused;
    for (int i = 0; i < WAIT_MS / 10 && atomic_load(&writes) < 10; i++)
        usleep(10000);
    CHECK(atomic_load(&writes) >= 10, "%d frames beside %d files on a disk that hangs",
          atomic_load(&writes), HANGING);
    CHECK(atomic_load(&hung) == 1, "%d writes are in flight", atomic_load(&hung));
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
                      "      hanging%d: {kernel: yuv, sink: 'file:%s/%d.y4m'}\n", i, hanging, i);
    CHECK(config_load_text(&config, text, (size_t)n, "test", stderr) == 0, "%s", text);
    return config;
}

static void test_disk_that_hangs(void)
{
    struct daemon_options options = {0};
    struct config *config = load();
    pthread_t watcher;
    atomic_store(&writes, 0);
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

// A missing folder blocks neither the other outputs nor the start.
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

static bool hanging_file_comes(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/0.y4m", hanging);
    for (int i = 0; i < WAIT_MS / 10 && access(path, F_OK) < 0; i++)
        usleep(10000);
    return access(path, F_OK) == 0;
}

static void *watch_start(void *unused)
{
    (void)unused;
    for (int i = 0; i < WAIT_MS / 10 && atomic_load(&writes) < 10; i++)
        usleep(10000);
    CHECK(atomic_load(&writes) >= 10, "%d frames beside a folder that hangs", atomic_load(&writes));
    atomic_store(&is_dead, false);
    CHECK(hanging_file_comes(), "the output on it did not try again");
    kill(getpid(), SIGTERM);
    return NULL;
}

// The disk hangs before the start, so that not even its folders can be looked at.
static void test_start_beside_hanging_disk(void)
{
    struct daemon_options options = {0};
    struct config *config = load();
    pthread_t watcher;
    atomic_store(&is_dead, true);
    pthread_create(&watcher, NULL, watch_start, NULL);
    int code = daemon_run(config, &options);
    pthread_join(watcher, NULL); // before the next CHECK: the counters have no lock
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

// --- servers that hang

static void write_config(const char *output)
{
    FILE *file = fopen("framed.yaml.new", "w");
    fprintf(file,
            "{backend: cpu, control: '%s/control', cameras: {gate: {url: clip.nut, loop: true, "
            "outputs: {a: {kernel: yuv, sink: 'unix:%s/a'}, %s}}}}",
            clips, clips, output);
    fclose(file);
    rename("framed.yaml.new", "framed.yaml");
}

// Returns the reply, which the caller frees; NULL if none came in time.
static char *ask(const char *request, int timeout_s)
{
    struct ask ask = {.command = "test"};
    char *reply = NULL, why[256];
    snprintf(ask.path, sizeof ask.path, "%s/control", clips);
    ask_for(&ask, request, timeout_s, &reply, why, sizeof why);
    return reply;
}

static bool replies(const char *request, int timeout_s, const char *with)
{
    char *reply = ask(request, timeout_s);
    const bool has = reply && strstr(reply, with);
    free(reply);
    return has;
}

static bool comes(const char *path)
{
    for (int i = 0; i < WAIT_MS / 10 && access(path, F_OK) < 0; i++)
        usleep(10000);
    return access(path, F_OK) == 0;
}

static void wait_for_waiting(int n)
{
    for (int i = 0; i < WAIT_MS / 10 && atomic_load(&waiting) != n; i++)
        usleep(10000);
    CHECK(atomic_load(&waiting) == n, "%d wait", atomic_load(&waiting));
}

static void *ask_file(void *ret)
{
    *(bool *)ret = replies("status /elsewhere/framed.yaml", 10, "\"ok\":false");
    return NULL;
}

static void *reload_again(void *ret)
{
    *(bool *)ret = replies("reload", 10, "1 camera kept");
    return NULL;
}

// Lookups that hang: a group's during a reload, and one of the file that a client names.
static void *ask_meanwhile(void *unused)
{
    pthread_t asker, reloader;
    bool asked = false, reloaded = false;
    (void)unused;
    CHECK(comes("control") && replies("status", 2, "\"gate\""), "it runs");
    write_config("b: {kernel: yuv, group: video, sink: 'unix:b'}");
    atomic_store(&has_group, true);
    atomic_store(&groups_hang, true);
    kill(getpid(), SIGHUP);
    wait_for_waiting(1);
    CHECK(replies("status", 2, "\"last_reload\":null"), "the status waits for a group");
    atomic_store(&folders_hang, true);
    pthread_create(&asker, NULL, ask_file, &asked);
    wait_for_waiting(2);
    pthread_create(&reloader, NULL, reload_again, &reloaded);
    usleep(100000);
    CHECK(replies("status", 2, "\"last_reload\":null"), "the status waits for a folder");
    CHECK(access("b", F_OK) < 0, "the output is there before its group");
    atomic_store(&groups_hang, false);
    atomic_store(&folders_hang, false);
    pthread_join(asker, NULL);
    pthread_join(reloader, NULL);
    CHECK(asked && reloaded, "whoever waited gets a reply");
    CHECK(replies("status", 2, "\"ok\":true") && access("b", F_OK) == 0, "both reloads");
    kill(getpid(), SIGTERM);
    return NULL;
}

static void run_beside(void *(*run)(void *))
{
    const struct daemon_options options = {.file = "framed.yaml"};
    struct config *config = NULL;
    pthread_t thread;
    CHECK(config_load(&config, "framed.yaml", stderr) == 0, "load");
    pthread_create(&thread, NULL, run, NULL);
    int code = daemon_run(config, &options);
    pthread_join(thread, NULL); // before the next CHECK: the counters have no lock
    CHECK(code == EXIT_OK, "exit %d", code);
    config_free(config);
}

static void test_look_ups_that_hang(void)
{
    write_config("");
    run_beside(ask_meanwhile);
}

// The group is looked up again each second, without blocking anything.
static void *add_group(void *unused)
{
    (void)unused;
    CHECK(comes("control") && comes("a") && access("b", F_OK) < 0, "the other output is there");
    atomic_store(&groups_hang, true);
    wait_for_waiting(1);
    CHECK(replies("status", 2, "there is no group"), "the status waits for a group");
    atomic_store(&has_group, true);
    atomic_store(&groups_hang, false);
    CHECK(comes("b"), "the output did not try again");
    kill(getpid(), SIGTERM);
    return NULL;
}

static void test_group_comes_later(void)
{
    atomic_store(&has_group, false);
    write_config("b: {kernel: yuv, group: video, sink: 'unix:b'}");
    run_beside(add_group);
}

// --- a disk that hangs, with many files

enum { CAMERAS = 6, FILES = 14 };

static void write_hanging_files(void)
{
    FILE *file = fopen("framed.yaml.new", "w");
    fprintf(file,
            "backend: cpu\ncontrol: '%s/control'\ndefaults: {overflow: drop_oldest}\ncameras:\n"
            "  gate: {url: clip.nut, loop: true, outputs: {a: {kernel: yuv, sink: 'unix:%s/a'}}}\n",
            clips, clips);
    for (int c = 0; c < CAMERAS; c++) {
        fprintf(file, "  c%d:\n    url: clip.nut\n    loop: true\n    outputs:\n", c);
        for (int i = 0; i < FILES; i++)
            fprintf(file, "      o%d: {kernel: yuv, sink: 'file:%s/%d-%d.y4m'}\n", i, hanging, c,
                    i);
    }
    fclose(file);
    rename("framed.yaml.new", "framed.yaml");
}

// Cameras are added, all on a disk that hangs, and removed again.
static void *reload_beside_hanging_disk(void *unused)
{
    (void)unused;
    CHECK(comes("control") && comes("a"), "it runs");
    atomic_store(&hangs, true);
    write_hanging_files();
    CHECK(replies("reload", 10, "\"ok\":true"), "cameras are added");
    for (int i = 0; i < 100 && atomic_load(&hung) == 0; i++)
        usleep(50000);
    CHECK(atomic_load(&hung) == 1, "%d writes hang", atomic_load(&hung));
    CHECK(replies("reload", 10, "cameras kept"), "no reload beside a disk that hangs");
    write_config("");
    CHECK(replies("reload", 10, "6 cameras removed"), "no removal beside a disk that hangs");
    CHECK(replies("status", 2, "\"gate\""), "no status beside a disk that hangs");
    atomic_store(&hangs, false);
    kill(getpid(), SIGTERM);
    return NULL;
}

static void test_reload_beside_hanging_disk(void)
{
    write_config("");
    run_beside(reload_beside_hanging_disk);
}

// --- a stop that hangs

static bool stop_hangs;

// Replaces libuv's: the last step of the shutdown never returns while `stop_hangs` is set.
int uv_loop_close(uv_loop_t *loop)
{
    while (stop_hangs)
        pause();
    return ((int (*)(uv_loop_t *))dlsym(RTLD_NEXT, "uv_loop_close"))(loop);
}

static void *stop_when_it_runs(void *unused)
{
    (void)unused;
    comes("a");
    kill(getpid(), SIGTERM);
    return NULL;
}

// In its own process: it exits although the loop thread has ended and the rest hangs.
static void test_stop_that_hangs(void)
{
    int status = -1;
    pid_t ended = 0;
    write_config("");
    const pid_t child = fork();
    if (child == 0) {
        stop_hangs = true;
        run_beside(stop_when_it_runs);
        _exit(99);
    }
    for (int i = 0; i < 3000 && (ended = waitpid(child, &status, WNOHANG)) == 0; i++)
        usleep(10000);
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    CHECK(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK,
          "the process does not end: status %x", status);
}

int main(void)
{
    daemon_prepare_process();
    clips_open();
    snprintf(hanging, sizeof hanging, "/dev/shm/framed-hanging.XXXXXX");
    CHECK(mkdtemp(hanging) != NULL, "no second file system");
    clips_make("64x48", 25, "-c:v rawvideo", "clip.nut");
    TEST(test_stop_that_hangs());
    TEST(test_start_beside_hanging_disk());
    TEST(test_disk_that_hangs());
    TEST(test_sink_comes_later());
    TEST(test_no_sink_at_all());
    TEST(test_look_ups_that_hang());
    TEST(test_group_comes_later());
    TEST(test_reload_beside_hanging_disk());
    clips_run("rm -r %s", hanging);
    clips_close();
    return test_end();
}
