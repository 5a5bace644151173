// Rings read by libframed, with a scripted daemon.
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

// errno for send to fail with; 0: it succeeds
static int send_error;
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    errno = send_error;
    return send_error ? -1 : __real_send(fd, bytes, size, flags);
}

// Returns a reader that is connected and has received the hello.
static struct framed_reader *connect_reader(struct fake_daemon *daemon, unsigned flags,
                                            uint32_t batch)
{
    struct framed_view view;
    struct framed_reader *reader = framed_open(daemon->name, flags);
    CHECK(framed_next(reader, &view, 0) == 0, "a frame from nowhere");
    CHECK(fake_accept(daemon) && fake_say_hello(daemon, batch), "no connection");
    return reader;
}

static uint8_t level_of(const struct framed_view *view)
{
    return *(const uint8_t *)view->data;
}

static void test_in_order(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_return returned[8];
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    fake_say_frame(&daemon, 2, 10, 100);
    fake_say_frame(&daemon, 0, 11, 101);
    CHECK(framed_next(reader, &view, 0) == 1 && view.header.sequence == 10, "%s",
          framed_error(reader));
    CHECK(view.bytes == FAKE_BYTES && level_of(&view) == 100, "%d", level_of(&view));
    CHECK(view.slot == 2 && view.ticket == 10 && view.device == -1 && !view.elements, "place");
    CHECK(framed_whole(reader, &view), "the frame is there");
    CHECK(fake_take_returns(&daemon, returned, 8) == 0, "given back too early");
    CHECK(framed_release(reader, &view, NULL, 0) == 0 && !view.data, "release");
    CHECK(fake_take_returns(&daemon, returned, 8) == 1 && returned[0].slot == 2 &&
              returned[0].ticket == 10,
          "slot %u", returned[0].slot);
    CHECK(framed_release(reader, &view, NULL, 0) == -1 && errno == EINVAL, "released twice");
    const struct framed_view before = {.ticket = 10};
    CHECK(framed_next(reader, &view, 0) == 1 && level_of(&view) == 101, "the second frame");
    CHECK(!framed_whole(reader, &before), "a view from before is whole");
    CHECK(framed_next(reader, &view, 0) == 0 && !view.data, "a third frame");
    CHECK(fake_take_returns(&daemon, returned, 8) == 1 && returned[0].ticket == 11,
          "the next call gives the frame back");
    framed_close(reader);
    fake_close(&daemon);
}

// Offsets for programs that open the memory themselves.
static void test_place(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, "ring");
    struct framed_ring_hello hello = fake_hello(0);
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    fake_say_frame(&daemon, 2, 10, 100);
    CHECK(framed_next(reader, &view, 0) == 1 && view.offset == FAKE_FIRST + 2 * FAKE_STRIDE &&
              view.memory_bytes == FAKE_MEMORY && view.memory_number == 1,
          "at %ju of %ju, memory %u", (uintmax_t)view.offset, (uintmax_t)view.memory_bytes,
          view.memory_number);
    CHECK(!view.shared && !view.ipc_handle, "a name or a handle");
    strcpy(hello.shared, "/gate");
    fake_send_with(&daemon, &hello, sizeof hello, daemon.memfd, 1);
    fake_say_frame(&daemon, 0, 11, 101);
    CHECK(framed_next(reader, &view, 0) == 1 && view.offset == FAKE_FIRST &&
              view.memory_number == 2 && view.shared && strcmp(view.shared, "/gate") == 0,
          "memory %u, %s", view.memory_number, view.shared ? view.shared : "no name");
    framed_close(reader);
    fake_close(&daemon);
}

static void test_newest(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_counts counts;
    struct framed_ring_return returned[8];
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, FRAMED_NEWEST, 0);
    for (uint32_t i = 0; i < 3; i++)
        fake_say_frame(&daemon, i, 20 + i, (uint8_t)i);
    CHECK(framed_next(reader, &view, 0) == 1 && view.ticket == 22, "ticket %ju",
          (uintmax_t)view.ticket);
    CHECK(fake_take_returns(&daemon, returned, 8) == 2 && returned[0].ticket == 20 &&
              returned[1].ticket == 21,
          "the older ones are not given back");
    framed_count(reader, &counts);
    CHECK(counts.frames == 1 && counts.skipped == 2 && counts.torn == 0, "counts");
    fake_say_frame(&daemon, 0, 23, 0);
    CHECK(framed_next(reader, &view, 0) == 1 && view.ticket == 23, "another frame");
    framed_release(reader, &view, NULL, 0);
    fake_say_frame(&daemon, 1, 24, 0);
    fake_hang_up(&daemon); // before it reads the return of 22; the last frame counts anyway
    CHECK(framed_next(reader, &view, 0) == 1 && view.ticket == 24 && framed_whole(reader, &view),
          "the frame before the end");
    framed_close(reader);
    fake_close(&daemon);
}

static void test_torn(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_counts counts;
    struct framed_ring_return returned[8];
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    fake_say_frame(&daemon, 1, 30, 0);
    CHECK(framed_next(reader, &view, 0) == 1 && framed_whole(reader, &view), "the first frame");
    *fake_state(&daemon, 1) = 31;
    CHECK(!framed_whole(reader, &view), "a frame that has gone is whole");
    CHECK(framed_release(reader, &view, NULL, 0) == -1 && errno == ESTALE,
          "release says nothing of it");
    fake_say_frame(&daemon, 2, 32, 0);
    *fake_state(&daemon, 2) = 33; // overwritten before the reader looked at it
    CHECK(framed_next(reader, &view, 0) == 0, "a frame that has gone is given out");
    framed_count(reader, &counts);
    CHECK(counts.frames == 1 && counts.skipped == 1 && counts.torn == 1, "%ju torn",
          (uintmax_t)counts.torn);
    CHECK(fake_take_returns(&daemon, returned, 8) == 2, "both slots are given back");
    fake_say_frame(&daemon, 2, 34, 0);
    CHECK(framed_next(reader, &view, 0) == 1, "the third frame");
    *fake_state(&daemon, 2) = 35;
    framed_next(reader, &view, 0);
    framed_count(reader, &counts);
    CHECK(counts.torn == 2, "a torn frame that nobody released is not counted");
    framed_close(reader);
    fake_close(&daemon);
}

static void say_batch(const struct fake_daemon *daemon, uint32_t slot, uint64_t ticket)
{
    const struct framed_batch batch = fake_batch(slot, ticket, 2);
    for (uint32_t i = 0; i < 2; i++)
        fake_headers(daemon, slot)[i] = fake_element(ticket, i);
    *fake_state(daemon, slot) = ticket;
    memset(fake_slot(daemon, slot), (int)ticket, 2 * FAKE_BYTES);
    fake_send(daemon, &batch, sizeof batch);
}

static void test_batch(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, FAKE_BATCH);
    say_batch(&daemon, 3, 40);
    CHECK(framed_next(reader, &view, 0) == 1 && view.batch.count == 2, "%s", framed_error(reader));
    CHECK(view.bytes == 2 * FAKE_BYTES && level_of(&view) == 40, "payload");
    CHECK(strcmp(view.elements[1].header.camera, "gate1") == 0, "%s",
          view.elements[1].header.camera);
    CHECK(strcmp(view.header.camera, "gate0") == 0, "%s", view.header.camera);
    fake_headers(&daemon, 3)[1].header.camera[0] = 'X';
    CHECK(view.elements[1].header.camera[0] == 'g', "the daemon can change what was checked");
    framed_close(reader);
    fake_close(&daemon);
}

// Returns that queue up while the daemon reads nothing reach it once it reads.
static void test_returns_wait(void)
{
    enum { FRAMES = 450 };
    struct fake_daemon daemon;
    struct framed_view view;
    static struct framed_ring_return returned[FRAMES];
    int small = 1, sent = 0, taken = 0;
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    setsockopt(daemon.peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    struct pollfd wake = {.fd = framed_fd(reader), .events = POLLIN};
    for (; sent < FRAMES; sent++) { // a socket's buffer takes fewer
        fake_say_frame(&daemon, (uint32_t)sent % FAKE_SLOTS, 50 + (uint64_t)sent, 0);
        CHECK(framed_next(reader, &view, 0) == 1, "frame %d: %s", sent, framed_error(reader));
        framed_release(reader, &view, NULL, 0);
    }
    for (int i = 0; i < 10 && taken < sent; i++) {
        taken += fake_take_returns(&daemon, returned + taken, FRAMES - taken);
        if (taken < sent) {
            CHECK(poll(&wake, 1, 1000) == 1, "nobody is woken to send %d returns", sent - taken);
            CHECK(framed_next(reader, &view, 0) == 0, "a frame");
        }
    }
    CHECK(taken == sent && returned[taken - 1].ticket == 49 + (uint64_t)sent, "%d of %d returned",
          taken, sent);
    framed_close(reader);
    fake_close(&daemon);
}

// Views outlive another hello and the connection; held memory outlives the reader.
static void test_lifetime(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_return returned[8];
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    fake_say_frame(&daemon, 0, 60, 60);
    CHECK(framed_next(reader, &view, 0) == 1, "a frame");
    const uint8_t *data = view.data;
    struct framed_memory *memory = framed_hold(reader);
    fake_say_hello(&daemon, 0);
    fake_say_frame(&daemon, 1, 61, 61);
    CHECK(framed_next(reader, &view, 0) == 1 && view.ticket == 61, "behind another hello");
    CHECK(view.data != data + FAKE_STRIDE && level_of(&view) == 61, "the other memory");
    fake_hang_up(&daemon);
    CHECK(framed_whole(reader, &view), "the daemon is gone, its frame is not");
    CHECK(framed_release(reader, &view, NULL, 0) == 0, "release");
    CHECK(framed_next(reader, &view, 0) == 0, "a frame from nowhere");
    CHECK(framed_next(reader, &view, 150) == 0 && fake_accept(&daemon), "another connection");
    fake_say_hello(&daemon, 0);
    fake_say_frame(&daemon, 0, 1, 1);
    CHECK(framed_next(reader, &view, 0) == 1 && view.ticket == 1, "a frame of the next daemon");
    fake_hang_up(&daemon);
    framed_next(reader, &view, 0);
    CHECK(framed_next(reader, &view, 150) == 0 && fake_accept(&daemon), "a third connection");
    fake_say_hello(&daemon, 0);
    framed_next(reader, &view, 0);
    CHECK(fake_take_returns(&daemon, returned, 8) == 0, "slots of another daemon are returned");
    CHECK(!framed_hold(reader), "there is no view, but its memory");
    framed_close(reader);
    CHECK(data[0] == 1, "the slot in memory that is held: %d", data[0]);
    framed_drop(memory);
    fake_close(&daemon);
}

// A slot is still returned if the kernel had no memory for the message.
static void test_no_memory(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_return returned[8];
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    fake_say_frame(&daemon, 0, 70, 70);
    CHECK(framed_next(reader, &view, 0) == 1, "a frame");
    send_error = ENOBUFS;
    CHECK(framed_release(reader, &view, NULL, 0) == 0, "release");
    send_error = 0;
    CHECK(framed_next(reader, &view, 0) == 0, "a frame from nowhere");
    CHECK(fake_take_returns(&daemon, returned, 8) == 1 && returned[0].ticket == 70,
          "the slot was never given back");
    framed_close(reader);
    fake_close(&daemon);
}

// Without a free descriptor the reader reports that, and not a protocol error.
static void test_no_descriptor(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct rlimit limit, none;
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, FRAMED_ONCE, 0);
    const int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = (struct rlimit){(rlim_t)next, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    const int rc = framed_next(reader, &view, 0), error = errno;
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK(rc == -1 && error == EMFILE && strstr(framed_error(reader), "file descriptor"),
          "%d, %s: %s", rc, strerror(error), framed_error(reader));
    framed_close(reader);
    fake_close(&daemon);
}

// Makes the calls that a child may not make. Returns 0, or the number of the first mistake.
static int misuse_reader(struct framed_reader *reader, struct framed_view *view)
{
    struct framed_view other;
    if (framed_send(reader, view, 0, NULL, 0, 0, 0) != -1 || errno != EPERM)
        return 1;
    if (framed_release(reader, NULL, NULL, 0) != -1 || errno != EPERM)
        return 2;
    if (framed_next(reader, &other, 0) != -1 || errno != EPERM)
        return 3;
    if (!strstr(framed_error(reader), "fork"))
        return 4;
    framed_close(reader);
    return 0;
}

// The parent still reads the frame: a child neither returns it nor takes the next one.
static void test_fork(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_return returned[8];
    int status = -1;
    fake_open(&daemon, "ring");
    struct framed_reader *reader = connect_reader(&daemon, 0, 0);
    fake_say_frame(&daemon, 1, 80, 80);
    fake_say_frame(&daemon, 2, 81, 81);
    CHECK(framed_next(reader, &view, 0) == 1, "a frame");
    const pid_t child = fork();
    if (child == 0)
        _exit(misuse_reader(reader, &view));
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child's mistake: status %x", status);
    CHECK(fake_take_returns(&daemon, returned, 8) == 0, "the child gave the frame back");
    CHECK(framed_release(reader, &view, NULL, 0) == 0 &&
              fake_take_returns(&daemon, returned, 8) == 1 && returned[0].ticket == 80,
          "the parent cannot give its frame back");
    CHECK(framed_next(reader, &view, 0) == 1 && view.ticket == 81, "the next frame");
    framed_close(reader);
    fake_close(&daemon);
}

int main(void)
{
    TEST(test_in_order());
    TEST(test_place());
    TEST(test_newest());
    TEST(test_torn());
    TEST(test_batch());
    TEST(test_returns_wait());
    TEST(test_no_memory());
    TEST(test_no_descriptor());
    TEST(test_fork());
    TEST(test_lifetime());
    return test_end();
}
