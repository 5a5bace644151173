// The control socket with clients that send requests, and clients that do anything else.
#include "daemon/service/control.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/test.h"

enum { LARGE = 4 << 20 };

static struct {
    uv_loop_t loop;
    uv_async_t end;
    struct control *control;
    pthread_t thread;
    char folder[32], path[64];
    int asked; // of the loop, like `strange`
    int strange;
} rig;

// The linker sends all calls of calloc to this function.
static _Atomic bool out_of_memory;
void *__real_calloc(size_t, size_t);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return atomic_load(&out_of_memory) ? NULL : __real_calloc(n, size);
}

static char *reply_to(const char *line)
{
    if (strcmp(line, "nothing") == 0)
        return NULL;
    if (strcmp(line, "large") == 0) {
        char *text = malloc(LARGE);
        memset(text, 'x', LARGE - 1);
        text[LARGE - 1] = 0;
        return text;
    }
    return strdup(line);
}

static void handle(void *opaque, struct control_request *request, const char *line)
{
    rig.asked++;
    rig.strange += opaque != &rig;
    control_reply(request, reply_to(line));
}

static void end(uv_async_t *async)
{
    control_close(rig.control);
    uv_close((uv_handle_t *)async, NULL);
}

static void *run(void *unused)
{
    (void)unused;
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    return NULL;
}

static void start(void)
{
    char why[256] = "";
    memset(&rig, 0, sizeof rig);
    strcpy(rig.folder, "/tmp/framed-test-XXXXXX");
    CHECK(mkdtemp(rig.folder) != NULL, "mkdtemp");
    snprintf(rig.path, sizeof rig.path, "%s/control.sock", rig.folder);
    uv_loop_init(&rig.loop);
    uv_async_init(&rig.loop, &rig.end, end);
    int rc = control_open(&rig.control, &rig.loop, rig.path, handle, &rig, why, sizeof why);
    CHECK(rc == 0, "%s", why);
    pthread_create(&rig.thread, NULL, run, NULL);
}

static void stop(void)
{
    uv_async_send(&rig.end);
    pthread_join(rig.thread, NULL);
    CHECK(uv_loop_close(&rig.loop) == 0, "handles are left on the loop");
    CHECK(rmdir(rig.folder) == 0, "the socket is left");
}

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = 20};
    strcpy(address.sun_path, rig.path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "%s", strerror(errno));
    return fd;
}

static void say(int fd, const char *text, size_t length)
{
    CHECK(send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length, "%s", strerror(errno));
}

// Returns the number of bytes until the end; `to` gets the first of them.
static size_t hear(int fd, char *to, size_t size)
{
    char bytes[65536];
    size_t n = 0;
    ssize_t got;
    for (; (got = recv(fd, bytes, sizeof bytes, 0)) > 0; n += (size_t)got)
        for (ssize_t i = 0; i < got && n + (size_t)i + 1 < size; i++)
            to[n + (size_t)i] = bytes[i];
    to[n + 1 < size ? n : size - 1] = 0;
    CHECK(got == 0 || errno == ECONNRESET, "no end: %s", strerror(errno));
    close(fd);
    return n;
}

static void check_answer(int fd, const char *expected)
{
    char text[64];
    hear(fd, text, sizeof text);
    CHECK(strcmp(text, expected) == 0, "'%s' and not '%s'", text, expected);
}

// Checks that the next client gets its own line as the answer.
static void check_served(const char *line)
{
    int fd = dial();
    say(fd, line, strlen(line));
    check_answer(fd, line);
}

static void test_requests(void)
{
    char text[8];
    start();
    struct stat st;
    CHECK(stat(rig.path, &st) == 0 && (st.st_mode & 0777) == CONTROL_MODE, "mode %o", st.st_mode);
    check_served("status\n");
    int fd = dial(); // in pieces, with more bytes after it
    say(fd, "sta", 3);
    usleep(50000);
    say(fd, "tus\nreload\n", 11);
    check_answer(fd, "status\n");
    fd = dial();
    say(fd, "large\n", 6);
    size_t n = hear(fd, text, sizeof text);
    CHECK(n == LARGE, "%zu bytes", n);
    fd = dial();
    say(fd, "nothing\n", 8);
    check_answer(fd, "");
    stop();
    CHECK(rig.asked == 4 && !rig.strange, "asked %d times", rig.asked);
}

static void test_garbage(void)
{
    char bytes[4 * CONTROL_LINE_MAX];
    start();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 255 == '\n' ? 0 : i % 255);
    int fd = dial();
    say(fd, bytes, sizeof bytes); // no line
    check_answer(fd, "");
    fd = dial();
    say(fd, bytes, 10);
    shutdown(fd, SHUT_WR);
    check_answer(fd, "");
    close(dial());
    fd = dial(); // gone before the answer
    say(fd, "large\n", 6);
    close(fd);
    check_served("after\n");
    stop();
}

// Silent clients, and one that sends late and does not read: others are answered nevertheless, and
// none stays longer than its deadline.
static void test_stuck_clients(void)
{
    int fds[2 * CONTROL_CLIENTS_MAX];
    char text[8];
    start();
    for (int i = 0; i < 2 * CONTROL_CLIENTS_MAX; i++)
        fds[i] = dial();
    usleep(CONTROL_DEADLINE_MS * 600);
    say(fds[2 * CONTROL_CLIENTS_MAX - 1], "large\n", 6);
    check_served("status\n");
    check_answer(fds[0], "");                           // pushed out
    check_answer(fds[2 * CONTROL_CLIENTS_MAX - 2], ""); // by its deadline
    usleep(CONTROL_DEADLINE_MS * 200);
    size_t n = hear(fds[2 * CONTROL_CLIENTS_MAX - 1], text, sizeof text);
    CHECK(n < LARGE, "%zu bytes: its time began anew", n);
    for (int i = 1; i < 2 * CONTROL_CLIENTS_MAX - 2; i++)
        close(fds[i]);
    stop();
}

// Clients that connect while memory is short: they, or at least those after them, are answered.
static void test_short_memory(void)
{
    start();
    atomic_store(&out_of_memory, true);
    int fd = dial();
    usleep(50000);
    atomic_store(&out_of_memory, false);
    say(fd, "first\n", 6);
    check_answer(fd, "first\n");
    check_served("second\n");
    stop();
}

// Many more clients at once than there is room for: none is forgotten.
static void test_rush(void)
{
    int fds[8 * CONTROL_CLIENTS_MAX];
    start();
    for (int i = 0; i < 8 * CONTROL_CLIENTS_MAX; i++)
        fds[i] = dial();
    for (int i = 0; i < 7 * CONTROL_CLIENTS_MAX; i++)
        check_answer(fds[i], "");
    for (int i = 7 * CONTROL_CLIENTS_MAX; i < 8 * CONTROL_CLIENTS_MAX; i++) {
        say(fds[i], "status\n", 7);
        check_answer(fds[i], "status\n");
    }
    stop();
}

// Closing disconnects clients in any state.
static void test_close(void)
{
    start();
    int mute = dial(), deaf = dial();
    say(deaf, "large\n", 6);
    usleep(50000);
    stop();
    check_answer(mute, "");
    close(deaf);
}

static void test_taken(void)
{
    struct control *second = NULL;
    char why[256] = "";
    start();
    uv_loop_t loop;
    uv_loop_init(&loop);
    int rc = control_open(&second, &loop, rig.path, handle, &rig, why, sizeof why);
    CHECK(rc == -EADDRINUSE && !second && strstr(why, "another program"), "%d: %s", rc, why);
    CHECK(uv_loop_close(&loop) == 0, "handles are left");
    stop();
}

static void test_paths(void)
{
    char path[SOCKET_PATH_MAX + 1], name[2 * SOCKET_PATH_MAX];
    struct control_address off = {.off = true}, at = {.at = {SINK_UNIX, .path = "/a/b"}},
                           none = {0};
    CHECK(control_path(&off, path) == -ENOENT, "off");
    CHECK(control_path(&at, path) == 0 && !strcmp(path, "/a/b"), "%s", path);
    setenv("RUNTIME_DIRECTORY", "/run/one:/run/two", 1);
    CHECK(control_path(&none, path) == 0 && !strcmp(path, "/run/one/control.sock"), "%s", path);
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    setenv("RUNTIME_DIRECTORY", name, 1);
    CHECK(control_path(&none, path) == -ENAMETOOLONG, "%s", path);
    unsetenv("RUNTIME_DIRECTORY");
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    const char *expected =
        geteuid() ? "/run/user/7/framed/control.sock" : "/run/framed/control.sock";
    CHECK(control_path(&none, path) == 0 && !strcmp(path, expected), "%s", path);
}

// A client that connected before the move gets its answer; later ones connect at the new path only.
static void test_move(void)
{
    struct control *control;
    struct control_place *place;
    char why[256], path[64], other[64], got[64] = "";
    uv_loop_t loop;
    memset(&rig, 0, sizeof rig);
    strcpy(rig.folder, "/tmp/framed-test-XXXXXX");
    CHECK(mkdtemp(rig.folder) != NULL, "mkdtemp");
    snprintf(path, sizeof path, "%s/a.sock", rig.folder);
    snprintf(other, sizeof other, "%s/b.sock", rig.folder);
    uv_loop_init(&loop);
    CHECK(control_open(&control, &loop, path, handle, &rig, why, sizeof why) == 0, "%s", why);
    strcpy(rig.path, path);
    int fd = dial();
    uv_run(&loop, UV_RUN_NOWAIT); // accepts it
    CHECK(control_place_open(&place, control, other, why, sizeof why) == 0, "%s", why);
    CHECK(access(path, F_OK) == 0 && access(other, F_OK) == 0, "beside each other");
    control_place_close(place);
    CHECK(access(path, F_OK) == 0 && access(other, F_OK) < 0, "given up");
    CHECK(control_place_open(&place, control, other, why, sizeof why) == 0, "%s", why);
    control_move(control, place);
    CHECK(access(path, F_OK) < 0 && access(other, F_OK) == 0, "moved");
    say(fd, "status\n", 7);
    strcpy(rig.path, other);
    int second = dial();
    say(second, "status\n", 7);
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(hear(fd, got, sizeof got) > 1, "no answer after the move");
    CHECK(hear(second, got, sizeof got) > 1, "no answer at the new place");
    control_move(control, NULL);
    CHECK(access(other, F_OK) < 0, "nowhere");
    control_close(control);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0, "handles are left on the loop");
    CHECK(rmdir(rig.folder) == 0, "a socket is left");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    TEST(test_paths());
    TEST(test_requests());
    TEST(test_garbage());
    TEST(test_stuck_clients());
    TEST(test_short_memory());
    TEST(test_rush());
    TEST(test_close());
    TEST(test_taken());
    TEST(test_move());
    return test_end();
}
