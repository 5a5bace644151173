// Messages of a viewer: the newest picture of each index is sent, in any pieces that the socket
// takes, and facts are sent when they change. Parts of one camera: the same, each after a header.
#include "daemon/view/view_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

// Makes a picture with `size` bytes of `fill`.
static struct preview_picture *make(const char *facts, size_t size, int fill)
{
    struct preview_picture *picture = calloc(1, sizeof *picture + size);
    picture->references = 1;
    strcpy(picture->facts, facts);
    memset(picture->file, fill, size);
    picture->size = size;
    picture->epoch = 7;
    picture->flags = 9;
    picture->capture_ns = 1000 + fill;
    picture->sequence = (uint64_t)fill;
    return picture;
}

static void put(struct view_messages *messages, int index, const char *facts, size_t size, int fill)
{
    struct preview_picture *picture = make(facts, size, fill);
    view_messages_put(messages, index, picture);
    preview_picture_unref(picture);
}

// Returns all pending bytes, fetched in pieces of `room` bytes.
static size_t drain(struct view_messages *messages, uint8_t *to, size_t room)
{
    size_t used = 0, n;
    while ((n = view_messages_fill(messages, (char *)to + used, room)) > 0)
        used += n;
    return used;
}

static uint64_t number(const uint8_t *from, int bytes)
{
    uint64_t ret = 0;
    for (int i = bytes; i-- > 0;)
        ret = ret << 8 | from[i];
    return ret;
}

// Checks one message, and returns its end.
static const uint8_t *check(const uint8_t *at, enum view_kind kind, int index, size_t size,
                            int fill)
{
    CHECK(number(at, 4) == size, "%d bytes, not %zu", (int)number(at, 4), size);
    CHECK(number(at + 4, 2) == kind && number(at + 6, 2) == (uint64_t)index, "kind %d of %d",
          (int)number(at + 4, 2), (int)number(at + 6, 2));
    if (kind != VIEW_ALIVE) {
        CHECK(number(at + 8, 4) == 7 && number(at + 12, 4) == 9, "epoch, flags");
        CHECK(number(at + 16, 8) == (uint64_t)(1000 + fill), "captured at %d",
              (int)number(at + 16, 8));
        CHECK(number(at + 24, 8) == (uint64_t)fill, "sequence %d", (int)number(at + 24, 8));
    }
    for (size_t i = 0; kind == VIEW_JPEG && i < size; i++)
        CHECK(at[VIEW_HEADER_BYTES + i] == fill, "byte %zu is %d", i, at[VIEW_HEADER_BYTES + i]);
    return at + VIEW_HEADER_BYTES + number(at, 4);
}

static void test_newest_wins(void)
{
    static uint8_t bytes[4096];
    struct view_messages *messages;
    CHECK(view_messages_open(&messages, 3) == 0, "open");
    CHECK(view_messages_fill(messages, (char *)bytes, sizeof bytes) == 0, "something of nothing");
    put(messages, 0, "{a}", 100, 1);
    put(messages, 1, "{b}", 50, 2);
    put(messages, 0, "{a}", 101, 3);
    // Once a message's first byte is sent, it is not replaced.
    CHECK(view_messages_fill(messages, (char *)bytes, 1) == 1, "a byte");
    put(messages, 1, "{b}", 51, 4);
    put(messages, 1, "{b}", 52, 5);
    const size_t used = 1 + drain(messages, bytes + 1, 7);
    const uint8_t *at = check(bytes, VIEW_FACTS, 1, 3, 2);
    CHECK(memcmp(at - 3, "{b}", 3) == 0, "facts");
    at = check(at, VIEW_JPEG, 1, 50, 2);
    at = check(at, VIEW_FACTS, 0, 3, 3);
    at = check(at, VIEW_JPEG, 0, 101, 3);
    at = check(at, VIEW_JPEG, 1, 52, 5);
    CHECK(at == bytes + used, "%zu bytes, not %td", used, at - bytes);
    view_messages_close(messages);
}

static void test_facts(void)
{
    static uint8_t bytes[4096];
    struct view_messages *messages;
    CHECK(view_messages_open(&messages, 1) == 0, "open");
    put(messages, 0, "{a}", 10, 1);
    size_t used = drain(messages, bytes, 4096);
    put(messages, 0, "{a}", 10, 2);
    used += drain(messages, bytes + used, 4096);
    put(messages, 0, "{\"error\":\"x\"}", 0, 3); // no picture, and then the same again
    used += drain(messages, bytes + used, 4096);
    put(messages, 0, "{\"error\":\"x\"}", 0, 4);
    used += drain(messages, bytes + used, 4096);
    view_messages_put_alive(messages);
    put(messages, 0, "{a}", 10, 5);
    used += drain(messages, bytes + used, 4096);
    const uint8_t *at = check(bytes, VIEW_FACTS, 0, 3, 1);
    at = check(at, VIEW_JPEG, 0, 10, 1);
    at = check(at, VIEW_JPEG, 0, 10, 2);
    at = check(at, VIEW_FACTS, 0, 13, 3);
    at = check(at, VIEW_FACTS, 0, 3, 5);
    at = check(at, VIEW_JPEG, 0, 10, 5);
    at = check(at, VIEW_ALIVE, 0, 0, 0);
    CHECK(at == bytes + used, "%zu bytes, not %td", used, at - bytes);
    put(messages, 0, "{a}", 10, 6); // closed with one picture partly sent and another one behind it
    view_messages_fill(messages, (char *)bytes, 40);
    put(messages, 0, "{a}", 10, 7);
    view_messages_close(messages);
}

static void test_parts(void)
{
    static const char first[] = "--framed\r\nContent-Type: image/jpeg\r\n\r\n";
    static const char later[] = "\r\n--framed\r\nContent-Type: image/jpeg\r\n\r\n";
    for (size_t room = 1; room < 200; room += 13) {
        struct view_messages *parts;
        char bytes[512] = "";
        CHECK(view_parts_open(&parts) == 0, "open");
        view_messages_put_alive(parts);
        size_t used = drain(parts, (uint8_t *)bytes, room);
        CHECK(used == strlen(first) && memcmp(bytes, first, used) == 0, "first header: %s", bytes);
        put(parts, 0, "", 5, 'a');
        put(parts, 0, "", 6, 'b');                  // replaces it
        put(parts, 0, "{\"error\":\"x\"}", 0, 'x'); // is ignored
        used = view_messages_fill(parts, bytes, 1);
        put(parts, 0, "", 7, 'c');
        used += drain(parts, (uint8_t *)bytes + used, room);
        bytes[used] = 0;
        char expected[256];
        snprintf(expected, sizeof expected, "bbbbbb%sccccccc%s", later, later);
        CHECK(strcmp(bytes, expected) == 0, "room %zu: %s", room, bytes);
        put(parts, 0, "", 5, 'd');
        put(parts, 0, "", 5, 'e');
        view_messages_fill(parts, bytes, 1);
        put(parts, 0, "", 5, 'f');
        view_messages_close(parts);
    }
}

int main(void)
{
    TEST(test_newest_wins());
    TEST(test_facts());
    TEST(test_parts());
    return test_end();
}
