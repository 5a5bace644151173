// Listening sockets of sinks: files that exist at the path, mode and group, and leftovers.
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/file.h>

#include "tests/daemon/output/fixture.h"

static struct rig rig;

// Returns sink_open's result, without a running loop; the reason is in rig.why.
static int try_once(void)
{
    uv_loop_init(&rig.loop);
    rig_open_pool(&rig);
    int rc = rig_try_open(&rig);
    if (rc == 0) {
        sink_finish(rig.sink, 0);
        uv_run(&rig.loop, UV_RUN_DEFAULT);
    }
    CHECK(uv_loop_close(&rig.loop) == 0, "handles are left on the loop");
    rig_close_pool(&rig);
    return rc;
}

static void init(enum sink_kind kind)
{
    rig_init(&rig, kind, "gate.sock");
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", rig.folder);
    CHECK(system(command) == 0, "%s", command);
}

static int entries(void) // in the folder
{
    char command[128];
    int n = -1;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", rig.folder);
    FILE *pipe = popen(command, "r");
    CHECK(pipe && fscanf(pipe, "%d", &n) == 1, "%s", command);
    pclose(pipe);
    return n;
}

static int bind_socket(const char *path, int type, bool listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, type, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind %s", path);
    CHECK(!listening || listen(fd, 1) == 0, "listen %s", path);
    return fd;
}

static void test_stale_socket(enum sink_kind kind)
{
    init(kind);
    close(bind_socket(rig.path, SOCK_STREAM, true));
    CHECK(try_once() == 0, "%s", rig.why);
    CHECK(entries() == 0, "%d entries are left", entries());
    end();
}

// A live socket at the path stays, whatever its type.
static void test_live_socket(enum sink_kind kind, int type)
{
    init(kind);
    int other = bind_socket(rig.path, type, true);
    CHECK(try_once() == -EADDRINUSE, "%s", rig.why);
    CHECK(strstr(rig.why, "another program"), "%s", rig.why);
    for (int i = 0; i < 3; i++)
        CHECK(try_once() == -EADDRINUSE, "with its queue full: %s", rig.why);
    CHECK(entries() == 1, "it was removed");
    close(other);
    end();
}

static void test_other_things(void)
{
    char bytes[8] = "";
    init(SINK_UNIX);
    int fd = open(rig.path, O_CREAT | O_RDWR, 0600);
    CHECK(write(fd, "precious", 8) == 8, "write");
    CHECK(try_once() == -EEXIST, "%s", rig.why);
    CHECK(pread(fd, bytes, 8, 0) == 8 && memcmp(bytes, "precious", 8) == 0, "the file changed");
    CHECK(access(rig.path, F_OK) == 0 && entries() == 1, "the file is gone");
    close(fd);
    CHECK(unlink(rig.path) == 0 && symlink("nowhere", rig.path) == 0, "symlink");
    CHECK(try_once() == -EEXIST, "a link: %s", rig.why);
    end();
}

static void test_paths(void)
{
    char path[256];
    init(SINK_UNIX);
    rig.config.sink.path = path;
    snprintf(path, sizeof path, "%s/nowhere/gate.sock", rig.folder);
    CHECK(try_once() == -ENOENT, "%s", rig.why);
    int n = snprintf(path, sizeof path, "%s/", rig.folder);
    memset(path + n, 'x', (size_t)(SOCKET_PATH_MAX - n));
    path[SOCKET_PATH_MAX] = '\0';
    CHECK(try_once() == 0, "%s", rig.why);
    end();
}

static void test_mode_and_group(enum sink_kind kind)
{
    struct stat st = {0};
    struct group *group = geteuid() == 0 ? getgrgid(1) : getgrgid(getegid());
    init(kind);
    rig.config.mode.mode = 0624;
    rig.config.group = group->gr_name;
    gid_t gid = group->gr_gid;
    rig.config.group_id = gid;
    rig.config.has_group_id = true;
    umask(077);
    rig_open(&rig);
    umask(022);
    CHECK(lstat(rig.path, &st) == 0 && (st.st_mode & 07777) == 0624, "mode %o", st.st_mode);
    CHECK(st.st_gid == gid, "group %d", (int)st.st_gid);
    CHECK(entries() == 1, "a temporary name is left");
    rig_close(&rig, 100);

    init(kind);
    rig.config.group = "no-such-group";
    CHECK(try_once() == -EINVAL && strstr(rig.why, "\"no-such-group\""), "%s", rig.why);
    CHECK(entries() == 0, "%d entries are left", entries());
    end();
}

// Another program's socket at our path stays when we close.
static void test_replaced_meanwhile(void)
{
    char other[128];
    init(SINK_UNIX);
    rig_open(&rig);
    snprintf(other, sizeof other, "%s/other", rig.folder);
    close(bind_socket(other, SOCK_STREAM, false));
    CHECK(rename(other, rig.path) == 0, "rename");
    rig.grace_ms = 0;
    on_loop(&rig, rig_finish);
    pthread_join(rig.thread, NULL);
    CHECK(access(rig.path, F_OK) == 0, "another's socket is gone");
    uv_loop_close(&rig.loop);
    rig_close_pool(&rig);
    end();
}

static void test_tcp(void)
{
    static struct rig other;
    init(SINK_TCP);
    rig_open(&rig);
    int port = sink_port(rig.sink);
    CHECK(port > 0, "no port");
    rig_init(&other, SINK_TCP, "");
    other.config.sink.port = port;
    uv_loop_init(&other.loop);
    rig_open_pool(&other);
    CHECK(rig_try_open(&other) == -EADDRINUSE, "%s", other.why);
    other.config.sink.host = "256.0.0.1";
    CHECK(rig_try_open(&other) < 0 && strstr(other.why, "256.0.0.1"), "%s", other.why);
    uv_loop_close(&other.loop);
    rig_close_pool(&other);
    rmdir(other.folder);

    // A connection that we close first must not keep the port.
    int fd = reader_join(&rig, 1);
    rig_close(&rig, 100);
    init(SINK_TCP);
    rig.config.sink.port = port;
    CHECK(try_once() == 0, "%s", rig.why);
    close(fd);
    end();
}

// --- in two steps

static bool answers(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, rig.path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool answered = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return answered;
}

static int mode_of_path(void)
{
    struct stat st;
    return stat(rig.path, &st) < 0 ? -errno : (int)(st.st_mode & 0777);
}

static int prepare(struct listener *listener, const struct sink *before)
{
    *listener = (struct listener){.fd = -1};
    return sink_prepare(listener, &rig.config, before, rig.why, sizeof rig.why);
}

static void test_prepared(void)
{
    struct listener listener;
    init(SINK_UNIX);
    CHECK(prepare(&listener, NULL) == 0, "%s", rig.why);
    CHECK(!answers() && access(rig.path, F_OK) < 0, "it can be seen before it is published");
    listener_close(&listener);
    CHECK(entries() == 0, "what was dropped left something");

    CHECK(prepare(&listener, NULL) == 0, "%s", rig.why);
    CHECK(listener_publish(&listener) == 0 && answers(), "it cannot be reached");
    CHECK(listener_publish(&listener) == 0 && entries() == 1, "once more is once too often");
    listener_close(&listener);
    CHECK(entries() == 0, "what was published left something");

    int other = bind_socket(rig.path, SOCK_STREAM, true);
    CHECK(prepare(&listener, NULL) == -EADDRINUSE, "%s", rig.why);
    CHECK(entries() == 1 && answers(), "what was refused left something");
    close(other);
    end();
}

// --- removed while it listens

static int restore(struct listener *ret, struct listener *gone, char *what, size_t size)
{
    const struct listener_options options = {.address = &rig.config.sink, .mode = 0640};
    return listener_restore(ret, gone, &options, what, size);
}

static void test_is_gone(void)
{
    struct listener listener;
    char moved[128];
    init(SINK_UNIX);
    CHECK(prepare(&listener, NULL) == 0 && !listener_is_gone(&listener), "before it is published");
    CHECK(listener_publish(&listener) == 0 && !listener_is_gone(&listener), "where it is");
    snprintf(moved, sizeof moved, "%s/moved", rig.folder);
    CHECK(rename(rig.path, moved) == 0 && listener_is_gone(&listener), "moved away");
    close(open(rig.path, O_CREAT | O_WRONLY, 0600));
    CHECK(listener_is_gone(&listener), "a file is in its place");
    CHECK(rename(moved, rig.path) == 0 && !listener_is_gone(&listener), "moved back");
    listener_close(&listener);
    CHECK(!listener_is_gone(&listener), "closed");
    end();

    init(SINK_TCP);
    CHECK(prepare(&listener, NULL) == 0 && !listener_is_gone(&listener), "tcp");
    listener_close(&listener);
    end();
}

static void test_restored(void)
{
    struct listener first, second;
    char what[256];
    init(SINK_UNIX);
    CHECK(prepare(&first, NULL) == 0 && listener_publish(&first) == 0, "%s", rig.why);
    unlink(rig.path);
    CHECK(restore(&second, &first, what, sizeof what) == 0 && answers(), "%s", what);
    CHECK(strstr(what, "was removed: listens there again"), "%s", what);
    CHECK(mode_of_path() == 0640 && entries() == 1, "mode %o", mode_of_path());
    listener_close(&first);
    CHECK(answers(), "the old one took it along");

    // A socket whose process is gone does not block the path.
    unlink(rig.path);
    close(bind_socket(rig.path, SOCK_STREAM, true));
    CHECK(restore(&first, &second, what, sizeof what) == 0 && answers(), "%s", what);
    listener_close(&second);
    listener_close(&first);
    CHECK(entries() == 0, "something is left");
    end();
}

// A file at the path stays; it is reported once, and its removal too.
static void test_not_restored(int type)
{
    struct listener first, second;
    char what[256];
    init(SINK_UNIX);
    CHECK(prepare(&first, NULL) == 0 && listener_publish(&first) == 0, "%s", rig.why);
    unlink(rig.path);
    int other = bind_socket(rig.path, type, type != SOCK_DGRAM);
    CHECK(restore(&second, &first, what, sizeof what) == -EADDRINUSE, "%s", what);
    CHECK(strstr(what, "was removed: another program listens"), "%s", what);
    CHECK(restore(&second, &first, what, sizeof what) == -EADDRINUSE && !*what, "again: %s", what);
    struct pollfd come = {.fd = other, .events = POLLIN};
    CHECK(poll(&come, 1, 0) == 0, "the other program has a client");
    unlink(rig.path);
    CHECK(restore(&second, &first, what, sizeof what) == 0 && answers(), "%s", what);
    CHECK(strstr(what, "listens on") && strstr(what, "again"), "%s", what);
    listener_close(&first);
    listener_close(&second);
    close(other);
    end();
}

static int open_with(struct listener *listener)
{
    struct sink_context context = {.loop = &rig.loop,
                                   .camera = "gate",
                                   .config = &rig.config,
                                   .pool = rig.pool,
                                   .results = rig.results,
                                   .closed = rig_was_closed,
                                   .opaque = &rig,
                                   .listener = listener};
    return sink_open(&rig.sink, &context, rig.why, sizeof rig.why);
}

static void finish_sink(void)
{
    sink_finish(rig.sink, 0);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
}

// A new sink with other permissions takes over the path; later the listener itself is handed over.
static void test_successors(void)
{
    struct listener second, third = {.fd = -1};
    init(SINK_UNIX);
    uv_loop_init(&rig.loop);
    rig_open_pool(&rig);
    CHECK(rig_try_open(&rig) == 0, "%s", rig.why);
    CHECK(prepare(&second, NULL) == -EADDRINUSE, "in the place of a sink that stays");
    rig.config.mode.mode = 0600;
    CHECK(prepare(&second, rig.sink) == 0, "%s", rig.why);
    CHECK(answers() && mode_of_path() == 0660, "it takes the place too soon");
    CHECK(listener_publish(&second) == 0 && answers() && mode_of_path() == 0600, "it does not");
    sink_yield(rig.sink, NULL);
    CHECK(answers() && mode_of_path() == 0600, "the old one took it along");
    finish_sink();

    CHECK(open_with(&second) == 0 && second.fd == -1 && answers(), "%s", rig.why);
    sink_yield(rig.sink, &third);
    finish_sink();
    CHECK(third.fd >= 0 && answers(), "what was handed over does not listen");
    listener_close(&third);
    CHECK(entries() == 0, "something is left");
    uv_loop_close(&rig.loop);
    rig_close_pool(&rig);
    end();
}

static void test_files(void)
{
    struct listener listener;
    init(SINK_FILE);
    CHECK(prepare(&listener, NULL) == 0 && entries() == 0, "a file is made too soon");
    int fd = open(rig.path, O_CREAT | O_WRONLY, 0600);
    CHECK(prepare(&listener, NULL) == 0 && entries() == 1, "a file that stands in the way");
    CHECK(flock(fd, LOCK_EX) == 0, "lock");
    CHECK(prepare(&listener, NULL) == -EBUSY, "a file that is written: %s", rig.why);
    rig.config.sink.path = rig.folder;
    CHECK(prepare(&listener, NULL) == -EEXIST, "a folder: %s", rig.why);
    rig.config.sink.path = strcat(rig.path, "/a");
    CHECK(prepare(&listener, NULL) < 0, "no folder");
    close(fd);
    end();
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    TEST(test_stale_socket(SINK_UNIX));
    TEST(test_stale_socket(SINK_RING));
    TEST(test_live_socket(SINK_UNIX, SOCK_STREAM));
    TEST(test_live_socket(SINK_UNIX, SOCK_SEQPACKET));
    TEST(test_live_socket(SINK_RING, SOCK_STREAM));
    TEST(test_live_socket(SINK_RING, SOCK_SEQPACKET));
    TEST(test_other_things());
    TEST(test_paths());
    TEST(test_mode_and_group(SINK_UNIX));
    TEST(test_mode_and_group(SINK_RING));
    TEST(test_replaced_meanwhile());
    TEST(test_tcp());
    TEST(test_prepared());
    TEST(test_successors());
    TEST(test_files());
    TEST(test_is_gone());
    TEST(test_restored());
    TEST(test_not_restored(SOCK_STREAM));
    TEST(test_not_restored(SOCK_SEQPACKET));
    TEST(test_not_restored(SOCK_DGRAM));
    return test_end();
}
