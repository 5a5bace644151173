// The reader itself: addresses, failed connections and retries, the descriptor for poll, and its
// allocations.
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_readable(const struct framed_reader *reader, int ms)
{
    struct pollfd wake = {.fd = framed_fd(reader), .events = POLLIN};
    return poll(&wake, 1, ms) == 1;
}

static void test_addresses(void)
{
    static const char *const good[] = {"unix:/x", "ring:/run/framed/gate.ring",
                                       "tcp:localhost:5000", "tcp:[::1]:5000", "unix:relative"};
    static const char *const bad[] = {
        "",         "/x",          "unix:",     "ring:",         "tcp:",
        "tcp:host", "tcp::5000",   "tcp:host:", "tcp:host:port", "tcp:host:500000",
        "http://x", "tcp:[]:5000", "ring"};
    char path[200] = "unix:";
    memset(path + 5, 'x', 120);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct framed_reader *reader = framed_open(good[i], 0);
        CHECK(reader, "%s: %s", good[i], strerror(errno));
        framed_close(reader);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!framed_open(bad[i], 0) && errno == EINVAL, "%s: %s", bad[i], strerror(errno));
    CHECK(!framed_open(path, 0) && errno == ENAMETOOLONG, "%s", strerror(errno));
    CHECK(!framed_open("unix:/x", 1u << 31) && errno == EINVAL, "%s", strerror(errno));
    framed_close(NULL);
}

static void test_once(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, "unix");
    struct framed_reader *reader = framed_open(daemon.name, FRAMED_ONCE);
    CHECK(framed_next(reader, &view, 0) == 0 && fake_accept(&daemon), "no connection");
    fake_hang_up(&daemon);
    for (int i = 0; i < 2; i++)
        CHECK(framed_next(reader, &view, 1000) == -1 && errno == EPIPE, "%s", strerror(errno));
    framed_close(reader);
    fake_stop_listening(&daemon);
    reader = framed_open(daemon.name, FRAMED_ONCE);
    CHECK(framed_next(reader, &view, 1000) == -1 && errno == ENOENT, "%s", strerror(errno));
    CHECK(strstr(framed_error(reader), daemon.name), "%s", framed_error(reader));
    framed_close(reader);
    fake_close(&daemon);
}

// The error tells the user what to do.
static void test_permission(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, "unix");
    struct framed_reader *reader = framed_open(daemon.name, FRAMED_ONCE);
    const bool is_root = geteuid() == 0;
    CHECK(chmod(daemon.address.sun_path, 0) == 0, "chmod: %s", strerror(errno));
    CHECK(!is_root || seteuid(65534) == 0, "seteuid: %s", strerror(errno));
    CHECK(framed_next(reader, &view, 1000) == -1 && errno == EACCES, "%s", strerror(errno));
    CHECK(!is_root || seteuid(0) == 0, "seteuid: %s", strerror(errno));
    CHECK(strstr(framed_error(reader), "adduser"), "%s", framed_error(reader));
    framed_close(reader);
    fake_close(&daemon);
}

// Without a daemon it retries after 0.1 s, 0.2 s and so on; framed_fd wakes up for each.
static void test_retries(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, "ring");
    fake_stop_listening(&daemon);
    struct framed_reader *reader = framed_open(daemon.name, 0);
    CHECK(is_readable(reader, 1000), "the first connection is due");
    for (int ms = 100; ms <= 400; ms *= 2) {
        CHECK(framed_next(reader, &view, 0) == 0, "a frame from nowhere");
        const int64_t begun_ms = now_ms();
        CHECK(is_readable(reader, ms + 2000), "no further try is due");
        CHECK(now_ms() - begun_ms >= ms - 2, "after %d ms, not %d", (int)(now_ms() - begun_ms), ms);
    }
    fake_listen(&daemon);
    CHECK(framed_next(reader, &view, 0) == 0 && fake_accept(&daemon), "no connection");
    CHECK(!is_readable(reader, 0), "there is nothing to do");
    fake_say_hello(&daemon, 0);
    fake_say_frame(&daemon, 0, 1, 1);
    CHECK(is_readable(reader, 1000) && framed_next(reader, &view, 0) == 1, "the frame");
    CHECK(!is_readable(reader, 0), "there is nothing more to do");
    fake_hang_up(&daemon);
    CHECK(is_readable(reader, 1000) && framed_next(reader, &view, 0) == 0, "the end");
    const int64_t begun_ms = now_ms();
    CHECK(framed_next(reader, &view, 130) == 0 && now_ms() - begun_ms >= 130, "a timeout");
    CHECK(fake_accept(&daemon), "behind a frame the first try is due after 0.1 s again");
    framed_close(reader);
    fake_close(&daemon);
}

// Connects by a name with a refused address and a good one.
static void test_tcp(void)
{
    struct framed_view view;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char name[64];
    struct fake_daemon daemon = {.peer = -1};
    daemon.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(bind(daemon.listener, (struct sockaddr *)&address, size) == 0 &&
              listen(daemon.listener, 4) == 0 &&
              getsockname(daemon.listener, (struct sockaddr *)&address, &size) == 0,
          "%s", strerror(errno));
    snprintf(name, sizeof name, "tcp:localhost:%d", ntohs(address.sin_port));
    struct framed_reader *reader = framed_open(name, 0);
    for (int i = 0; i < 20 && daemon.peer < 0; i++) {
        CHECK(framed_next(reader, &view, 100) == 0, "a frame from nowhere");
        fake_accept(&daemon);
    }
    const struct framed_header header = fake_header(3);
    const char payload[FAKE_BYTES] = "";
    fake_send(&daemon, &header, sizeof header);
    fake_send(&daemon, payload, sizeof payload);
    CHECK(framed_next(reader, &view, 5000) == 1 && view.header.sequence == 3, "%s",
          framed_error(reader));
    framed_close(reader);
    fake_hang_up(&daemon);
    close(daemon.listener);
}

// --- allocation calls, redirected here by the linker

static int allocations;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_mmap(void *, size_t, int, int, int, off_t);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    allocations++;
    return __real_mmap(at, size, protection, flags, fd, offset);
}

static void say_frame_or_batch(const struct fake_daemon *daemon, bool is_ring, uint64_t ticket)
{
    const struct framed_batch batch = fake_batch(0, ticket, 1);
    const struct framed_element_header element = fake_element(ticket, 0);
    const char payload[FAKE_BYTES] = "";
    *fake_headers(daemon, 0) = element;
    *fake_state(daemon, 0) = ticket;
    fake_send(daemon, &batch, sizeof batch);
    if (!is_ring) {
        fake_send(daemon, &element, sizeof element);
        fake_send(daemon, payload, sizeof payload);
    }
}

static void test_allocations(const char *kind)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, kind);
    const bool is_ring = kind[0] == 'r';
    struct framed_reader *reader = framed_open(daemon.name, FRAMED_NEWEST);
    framed_next(reader, &view, 0);
    CHECK(fake_accept(&daemon), "no connection");
    if (is_ring)
        fake_say_hello(&daemon, FAKE_BATCH);
    for (uint64_t ticket = 1; ticket <= 100; ticket++) {
        say_frame_or_batch(&daemon, is_ring, ticket);
        CHECK(framed_next(reader, &view, 0) == 1, "%s", framed_error(reader));
        if (ticket == 2) // socket frames alternate between two buffers
            allocations = 0;
    }
    CHECK(allocations == 0, "%s: %d allocations in 98 frames", kind, allocations);
    framed_close(reader);
    fake_close(&daemon);
}

int main(void)
{
    TEST(test_addresses());
    TEST(test_once());
    TEST(test_permission());
    TEST(test_retries());
    TEST(test_tcp());
    TEST(test_allocations("ring"));
    TEST(test_allocations("unix"));
    return test_end();
}
