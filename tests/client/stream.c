// Unix sockets read by libframed, with a daemon that sends its bytes in pieces of any size.
#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

enum { LONGER = 64 }; // bytes that a later version may append to the header

struct bytes {
    uint8_t at[8192];
    size_t n;
};

static void append(struct bytes *bytes, const void *from, size_t size)
{
    memcpy(bytes->at + bytes->n, from, size);
    bytes->n += size;
}

static void append_level(struct bytes *bytes, uint8_t level, size_t size)
{
    memset(bytes->at + bytes->n, level, size);
    bytes->n += size;
}

static void append_frame(struct bytes *bytes, uint8_t level)
{
    const struct framed_header header = fake_header(level);
    append(bytes, &header, sizeof header);
    append_level(bytes, level, FAKE_BYTES);
}

static void append_batch(struct bytes *bytes, uint8_t level, uint32_t count)
{
    struct framed_batch batch = fake_batch(0, 0, count);
    batch.sequence = level;
    append(bytes, &batch, sizeof batch);
    for (uint32_t i = 0; i < count; i++) {
        const struct framed_element_header element = fake_element(level, i);
        append(bytes, &element, sizeof element);
    }
    append_level(bytes, level, count * FAKE_BYTES);
}

static struct framed_reader *connect_reader(struct fake_daemon *daemon, unsigned flags)
{
    struct framed_view view;
    fake_open(daemon, "unix");
    struct framed_reader *reader = framed_open(daemon->name, flags);
    CHECK(framed_next(reader, &view, 0) == 0, "a frame from nowhere");
    CHECK(fake_accept(daemon), "no connection");
    return reader;
}

static bool is_all(const struct framed_view *view, uint8_t level, size_t bytes)
{
    const uint8_t *data = view->data;
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != level)
            return false;
    return view->bytes == bytes;
}

static bool is_frame(const struct framed_view *view, uint8_t level)
{
    return view->batch.count == 0 && !view->elements && view->header.sequence == level &&
           view->ticket == 0 && is_all(view, level, FAKE_BYTES);
}

static bool is_batch(const struct framed_view *view, uint8_t level, uint32_t count)
{
    return view->batch.count == count && view->batch.sequence == level &&
           view->elements[count - 1].header.batch_index == count - 1 &&
           view->elements[count - 1].header.sequence == level &&
           is_all(view, level, count * FAKE_BYTES);
}

// Frames and batches in pieces of `piece` bytes.
static void test_pieces(size_t piece)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct bytes bytes = {.n = 0};
    int n = 0;
    struct framed_reader *reader = connect_reader(&daemon, 0);
    append_frame(&bytes, 1);
    append_batch(&bytes, 2, 3);
    append_batch(&bytes, 3, 2);
    append_frame(&bytes, 4);
    for (size_t sent = 0; sent < bytes.n; sent += piece) {
        fake_send(&daemon, bytes.at + sent, piece < bytes.n - sent ? piece : bytes.n - sent);
        while (framed_next(reader, &view, 0) == 1) {
            const bool is_good = n == 0   ? is_frame(&view, 1)
                                 : n == 1 ? is_batch(&view, 2, 3)
                                 : n == 2 ? is_batch(&view, 3, 2)
                                          : is_frame(&view, 4);
            CHECK(is_good && framed_whole(reader, &view), "record %d", n);
            n++;
        }
    }
    CHECK(n == 4, "%d of 4 records: %s", n, framed_error(reader));
    framed_close(reader);
    fake_close(&daemon);
}

// A view stays valid while a newer frame arrives; the newer frame's first part is kept.
static void test_newest(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct framed_counts counts;
    struct bytes bytes = {.n = 0};
    struct framed_reader *reader = connect_reader(&daemon, FRAMED_NEWEST);
    for (uint8_t level = 1; level <= 4; level++)
        append_frame(&bytes, level);
    const size_t half = bytes.n - 100;
    fake_send(&daemon, bytes.at, half);
    CHECK(framed_next(reader, &view, 0) == 1 && is_frame(&view, 3), "frame %ju",
          (uintmax_t)view.header.sequence);
    fake_send(&daemon, bytes.at + half, bytes.n - half);
    CHECK(is_frame(&view, 3), "the view has changed");
    CHECK(framed_next(reader, &view, 0) == 1 && is_frame(&view, 4), "frame %ju",
          (uintmax_t)view.header.sequence);
    fake_send(&daemon, bytes.at, half);
    fake_hang_up(&daemon); // complete frames count
    CHECK(framed_next(reader, &view, 0) == 1 && is_frame(&view, 3), "the frame before the end");
    framed_count(reader, &counts);
    CHECK(counts.frames == 3 && counts.skipped == 4, "%ju skipped", (uintmax_t)counts.skipped);
    framed_close(reader);
    fake_close(&daemon);
}

// Headers of a later version are longer; bytes beyond the known fields are ignored.
static void test_longer_headers(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct bytes bytes = {.n = 0};
    struct framed_reader *reader = connect_reader(&daemon, 0);
    struct framed_header header = fake_header(5);
    header.header_bytes += LONGER;
    append(&bytes, &header, sizeof header);
    append_level(&bytes, 'x', LONGER);
    append_level(&bytes, 5, FAKE_BYTES);
    struct framed_batch batch = fake_batch(0, 0, 2);
    batch.sequence = 6;
    batch.bytes += LONGER;
    batch.header_bytes += LONGER;
    append(&bytes, &batch, sizeof batch);
    append_level(&bytes, 'x', LONGER);
    for (uint32_t i = 0; i < 2; i++) {
        const struct framed_element_header element = fake_element(6, i);
        append(&bytes, &element, sizeof element);
        append_level(&bytes, 'x', LONGER);
    }
    append_level(&bytes, 6, 2 * FAKE_BYTES);
    fake_send(&daemon, bytes.at, bytes.n);
    CHECK(framed_next(reader, &view, 0) == 1 && is_frame(&view, 5), "%s", framed_error(reader));
    CHECK(framed_next(reader, &view, 0) == 1 && is_batch(&view, 6, 2), "%s", framed_error(reader));
    framed_close(reader);
    fake_close(&daemon);
}

// A frame that breaks off is dropped; the next connection starts with a new frame.
static void test_broken_off(void)
{
    struct fake_daemon daemon;
    struct framed_view view;
    struct bytes bytes = {.n = 0};
    struct framed_reader *reader = connect_reader(&daemon, 0);
    append_frame(&bytes, 7);
    fake_send(&daemon, bytes.at, bytes.n - 1);
    fake_hang_up(&daemon);
    CHECK(framed_next(reader, &view, 0) == 0, "a frame that broke off");
    CHECK(strstr(framed_error(reader), "closed the connection"), "%s", framed_error(reader));
    CHECK(framed_next(reader, &view, 150) == 0 && fake_accept(&daemon), "another connection");
    fake_send(&daemon, bytes.at, bytes.n);
    CHECK(framed_next(reader, &view, 0) == 1 && is_frame(&view, 7), "%s", framed_error(reader));
    framed_close(reader);
    fake_close(&daemon);
}

int main(void)
{
    static const size_t pieces[] = {1, 7, 128, 256, 1000, 8192};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        TEST(test_pieces(pieces[i]));
    TEST(test_newest());
    TEST(test_longer_headers());
    TEST(test_broken_off());
    return test_end();
}
