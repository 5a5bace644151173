// Results that a client sends back over a ring: the message, and the slot, which is returned even
// if the message fails.
#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

struct message {
    struct framed_ring_result result;
    struct framed_detection found[FRAMED_DETECTIONS_MAX];
};

static const struct framed_detection boxes[] = {
    {1, 2, 3, 4, 0.5f, 7, 0, 0},
    {5, 6, 7, 8, 0.25f, 65535, 0, -9},
};

static struct framed_reader *connect_reader(struct fake_daemon *daemon, uint32_t batch)
{
    struct framed_view view;
    fake_open(daemon, "ring");
    struct framed_reader *reader = framed_open(daemon->name, 0);
    CHECK(framed_next(reader, &view, 0) == 0, "a frame from nowhere");
    CHECK(fake_accept(daemon) && fake_say_hello(daemon, batch), "no connection");
    return reader;
}

static void disconnect(struct fake_daemon *daemon, struct framed_reader *reader)
{
    framed_close(reader);
    fake_close(daemon);
}

static void take_frame(const struct fake_daemon *daemon, struct framed_reader *reader,
                       struct framed_view *view, uint32_t slot, uint64_t ticket)
{
    fake_say_frame(daemon, slot, ticket, 0);
    CHECK(framed_next(reader, view, 0) == 1 && view->ticket == ticket, "%s", framed_error(reader));
}

static void check_message(const struct fake_daemon *daemon, const struct framed_ring_result *wanted,
                          const struct framed_detection *found)
{
    struct message message;
    const size_t bytes = wanted->count * sizeof *found;
    const ssize_t size = fake_take(daemon, &message, sizeof message);
    CHECK(size == (ssize_t)(sizeof *wanted + bytes), "%zd bytes", size);
    CHECK(memcmp(&message.result, wanted, sizeof *wanted) == 0,
          "flags %u slot %u element %u ticket %ju count %u model %u", message.result.flags,
          message.result.slot, message.result.element, (uintmax_t)message.result.ticket,
          message.result.count, message.result.model);
    CHECK(memcmp(message.found, found, bytes) == 0, "the detections");
    CHECK(fake_take(daemon, &message, sizeof message) < 0, "another message");
}

static struct framed_ring_result result_of(uint32_t slot, uint64_t ticket, uint32_t count,
                                           uint16_t flags)
{
    return (struct framed_ring_result){.magic = {'F', 'R', 'R', 'S'},
                                       .version = 1,
                                       .flags = flags,
                                       .slot = slot,
                                       .ticket = ticket,
                                       .count = count};
}

// Results with the slot: two boxes, no box, and no results at all.
static void test_release(void)
{
    enum { WITH_SLOT = FRAMED_RESULT_RETURN | FRAMED_RESULT_IN_SOURCE };
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_return returned[4];
    struct framed_counts counts;
    struct framed_reader *reader = connect_reader(&daemon, 0);
    for (uint32_t n = 0; n <= 2; n += 2) {
        const struct framed_ring_result wanted = result_of(n, 10 + n, n, WITH_SLOT);
        take_frame(&daemon, reader, &view, n, 10 + n);
        CHECK(framed_release(reader, &view, boxes, (int)n) == 0 && !view.data, "%s",
              strerror(errno));
        check_message(&daemon, &wanted, boxes);
    }
    for (int n = -1; n <= 0; n++) {
        take_frame(&daemon, reader, &view, 1, (uint64_t)(20 + n));
        CHECK(framed_release(reader, &view, n < 0 ? boxes : NULL, n) == 0, "%s", strerror(errno));
        CHECK(fake_take_returns(&daemon, returned, 4) == 1,
              "a slot that went back without results");
    }
    framed_count(reader, &counts);
    CHECK(counts.results == 2 && counts.unsent == 0, "%ju results", (uintmax_t)counts.results);
    disconnect(&daemon, reader);
}

static void test_release_refused(void)
{
    static const struct framed_detection many[FRAMED_DETECTIONS_MAX + 1];
    struct fake_daemon daemon;
    struct framed_view view;
    struct message message;
    struct framed_reader *reader = connect_reader(&daemon, 0);
    take_frame(&daemon, reader, &view, 3, 30);
    CHECK(framed_release(reader, &view, many, FRAMED_DETECTIONS_MAX + 1) == -1 && errno == EINVAL &&
              view.data,
          "more than a message takes");
    CHECK(fake_take(&daemon, &message, sizeof message) < 0, "a message of a view that stays out");
    CHECK(framed_release(reader, &view, many, FRAMED_DETECTIONS_MAX) == 0, "%s", strerror(errno));
    CHECK(fake_take(&daemon, &message, sizeof message) == sizeof message, "the largest message");
    take_frame(&daemon, reader, &view, 3, 31);
    *fake_state(&daemon, 3) = 32; // too late to be distinguished from a change before the reading
    CHECK(framed_release(reader, &view, boxes, 1) == -1 && errno == ESTALE, "%s", strerror(errno));
    CHECK(fake_take(&daemon, &message, sizeof message) == 64 && message.result.ticket == 31,
          "results of a frame that was taken away");
    take_frame(&daemon, reader, &view, 3, 33);
    fake_hang_up(&daemon);
    CHECK(framed_release(reader, &view, boxes, 1) == -1 && errno == EPIPE, "%s", strerror(errno));
    disconnect(&daemon, reader);
}

// Results of a view that is still out, then by a copy of it, in payload or source pixels.
static void test_send(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_return returned[4];
    struct framed_reader *reader = connect_reader(&daemon, 0);
    struct framed_ring_result wanted = result_of(1, 40, 2, 0);
    take_frame(&daemon, reader, &view, 1, 40);
    const struct framed_view copy = view;
    wanted.model = 77;
    CHECK(framed_send(reader, &view, 0, boxes, 2, 0, 77) == 0, "%s", strerror(errno));
    check_message(&daemon, &wanted, boxes);
    CHECK(framed_release(reader, &view, NULL, 0) == 0, "the slot is still here");
    CHECK(fake_take_returns(&daemon, returned, 4) == 1, "the slot");
    wanted = result_of(1, 40, 1, FRAMED_RESULT_IN_SOURCE);
    CHECK(framed_send(reader, &copy, 0, boxes, 1, FRAMED_RESULT_IN_SOURCE, 0) == 0, "%s",
          strerror(errno));
    check_message(&daemon, &wanted, boxes);
    CHECK(framed_send(reader, &view, 0, boxes, 1, 0, 0) == -1 && errno == EINVAL, "no view");
    CHECK(framed_send(reader, &copy, 1, boxes, 1, 0, 0) == -1 && errno == EINVAL, "element 1");
    CHECK(framed_send(reader, &copy, 0, boxes, -1, 0, 0) == -1 && errno == EINVAL, "-1");
    CHECK(framed_send(reader, &copy, 0, boxes, 301, 0, 0) == -1 && errno == EINVAL, "301");
    CHECK(framed_send(reader, &copy, 0, NULL, 1, 0, 0) == -1 && errno == EINVAL, "no list");
    CHECK(framed_send(reader, &copy, 0, boxes, 1, FRAMED_RESULT_RETURN, 0) == -1 && errno == EINVAL,
          "framed_release alone gives a slot back");
    fake_hang_up(&daemon);
    CHECK(framed_send(reader, &copy, 0, boxes, 1, 0, 0) == -1 && errno == EPIPE, "%s",
          strerror(errno));
    CHECK(framed_next(reader, &view, 0) == 0 && framed_next(reader, &view, 150) == 0, "a frame");
    CHECK(fake_accept(&daemon) && fake_say_hello(&daemon, 0), "another connection");
    take_frame(&daemon, reader, &view, 1, 40);
    CHECK(framed_send(reader, &copy, 0, boxes, 1, 0, 0) == -1 && errno == ESTALE,
          "a ticket of the daemon before");
    disconnect(&daemon, reader);
}

static void test_send_of_batch(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_ring_result wanted = result_of(2, 50, 2, FRAMED_RESULT_IN_SOURCE);
    struct framed_reader *reader = connect_reader(&daemon, FAKE_BATCH);
    const struct framed_batch batch = fake_batch(2, 50, 2);
    for (uint32_t i = 0; i < 2; i++)
        fake_headers(&daemon, 2)[i] = fake_element(50, i);
    *fake_state(&daemon, 2) = 50;
    fake_send(&daemon, &batch, sizeof batch);
    CHECK(framed_next(reader, &view, 0) == 1, "%s", framed_error(reader));
    wanted.element = 1;
    CHECK(framed_send(reader, &view, 1, boxes, 2, FRAMED_RESULT_IN_SOURCE, 0) == 0, "%s",
          strerror(errno));
    check_message(&daemon, &wanted, boxes);
    CHECK(framed_send(reader, &view, 2, boxes, 2, 0, 0) == -1 && errno == EINVAL, "element 2");
    CHECK(framed_release(reader, &view, boxes, 1) == -1 && errno == EINVAL && view.data,
          "results of which element?");
    CHECK(framed_release(reader, &view, NULL, 0) == 0, "%s", strerror(errno));
    disconnect(&daemon, reader);
}

// Frames keep coming while the daemon reads nothing: results are dropped and counted, no slot is.
static void test_full(void)
{
    enum { FRAMES = 200 };
    static const struct framed_detection many[FRAMED_DETECTIONS_MAX];
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_counts counts;
    struct message message;
    bool is_back[FRAMES] = {false};
    int sent = 0, back = 0;
    struct framed_reader *reader = connect_reader(&daemon, 0);
    for (int i = 0; i < FRAMES; i++) {
        take_frame(&daemon, reader, &view, (uint32_t)i % FAKE_SLOTS, 100 + (uint64_t)i);
        const int rc = framed_release(reader, &view, many, FRAMED_DETECTIONS_MAX);
        CHECK(rc == 0 || errno == EAGAIN, "%s", strerror(errno));
        sent += rc == 0;
    }
    framed_count(reader, &counts);
    CHECK(sent > 0 && sent < FRAMES && counts.results == (uint64_t)sent &&
              counts.unsent == (uint64_t)(FRAMES - sent),
          "%d sent, %ju and %ju counted", sent, (uintmax_t)counts.results,
          (uintmax_t)counts.unsent);
    for (int i = 0; i < 2 * FRAMES && back < FRAMES; i++) {
        const ssize_t size = fake_take(&daemon, &message, sizeof message);
        if (size < 0) {
            framed_next(reader, &view, 0); // sends queued messages
            continue;
        }
        const struct framed_ring_return *returned = (const void *)&message;
        const bool is_result = memcmp(message.result.magic, "FRRS", 4) == 0;
        for (ssize_t k = 0; k < (is_result ? 1 : size / 16); k++) {
            const uint64_t at = (is_result ? message.result.ticket : returned[k].ticket) - 100;
            CHECK(at < FRAMES && !is_back[at], "slot of frame %ju twice", (uintmax_t)at);
            is_back[at < FRAMES ? at : 0] = true;
            back++;
        }
    }
    CHECK(back == FRAMES, "%d of %d slots are back", back, FRAMES);
    disconnect(&daemon, reader);
}

static void test_sockets(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    fake_open(&daemon, "unix");
    struct framed_reader *reader = framed_open(daemon.name, 0);
    CHECK(framed_next(reader, &view, 0) == 0 && fake_accept(&daemon), "no connection");
    const struct framed_header header = fake_header(3);
    const char payload[FAKE_BYTES] = "";
    fake_send(&daemon, &header, sizeof header);
    fake_send(&daemon, payload, sizeof payload);
    CHECK(framed_next(reader, &view, 0) == 1, "%s", framed_error(reader));
    CHECK(framed_send(reader, &view, 0, boxes, 1, 0, 0) == -1 && errno == ENOTSUP, "%s",
          strerror(errno));
    CHECK(framed_release(reader, &view, boxes, 1) == -1 && errno == ENOTSUP && !view.data, "%s",
          strerror(errno));
    disconnect(&daemon, reader);
}

int main(void)
{
    TEST(test_release());
    TEST(test_release_refused());
    TEST(test_send());
    TEST(test_send_of_batch());
    TEST(test_full());
    TEST(test_sockets());
    return test_end();
}
