// A daemon that lies: the reader closes the connection on each invalid field of a message, before
// it reads anything with the field.
#include <stddef.h>

#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

static struct framed_reader *connect_reader(struct fake_daemon *daemon, const char *kind)
{
    struct framed_view view;
    fake_open(daemon, kind);
    struct framed_reader *reader = framed_open(daemon->name, FRAMED_ONCE);
    CHECK(framed_next(reader, &view, 0) == 0 && fake_accept(daemon), "no connection");
    return reader;
}

// Checks that the reader refuses the message and closes, or accepts it if `fine`.
static void expect(struct fake_daemon *daemon, struct framed_reader *reader, const char *what,
                   bool fine)
{
    struct framed_view view;
    const int rc = framed_next(reader, &view, 0);
    if (fine)
        CHECK(rc >= 0, "%s: %s", what, framed_error(reader));
    else
        CHECK(rc == -1 && errno == EPROTO, "%s: %d: %s", what, rc, framed_error(reader));
    framed_close(reader);
    fake_close(daemon);
}

// A field of a struct, and an invalid value for it.
struct lie {
    const char *name;
    size_t offset, size;
    uint64_t value;
};

#define LIE(type, field, value)                                                                    \
    {                                                                                              \
#field " " #value, offsetof(struct type, field), sizeof(((struct type *)0)->field),        \
            (value)                                                                                \
    }

static void tell(void *bytes, const struct lie *lie)
{
    memcpy((char *)bytes + lie->offset, &lie->value, lie->size < 8 ? lie->size : 8);
}

static const struct lie hello_lies[] = {
    LIE(framed_ring_hello, magic, 0x58585858),
    LIE(framed_ring_hello, version, 2),
    LIE(framed_ring_hello, hello_bytes, 255),
    LIE(framed_ring_hello, slots, 0),
    LIE(framed_ring_hello, slots, FAKE_SLOTS + 1),
    LIE(framed_ring_hello, slots, UINT32_MAX),
    LIE(framed_ring_hello, memory, FRAMED_RING_CUDA),
    LIE(framed_ring_hello, memory, FRAMED_RING_CUDA_IPC), // without a handle
    LIE(framed_ring_hello, memory, 3),
    LIE(framed_ring_hello, slot_offset, FAKE_FIRST + 1),
    LIE(framed_ring_hello, slot_offset, UINT64_MAX - 100),
    LIE(framed_ring_hello, slot_stride, FAKE_STRIDE + 1),
    LIE(framed_ring_hello, slot_stride, 1),
    LIE(framed_ring_hello, slot_stride, UINT64_MAX / 2),
    LIE(framed_ring_hello, slot_bytes, 0),
    LIE(framed_ring_hello, slot_bytes, FAKE_STRIDE + 1),
    LIE(framed_ring_hello, state_offset, 4),
    LIE(framed_ring_hello, state_offset, FAKE_MEMORY - 8),
    LIE(framed_ring_hello, state_offset, UINT64_MAX - 7),
    LIE(framed_ring_hello, memfd_bytes, FAKE_MEMORY + 1),
    LIE(framed_ring_hello, memfd_bytes, 0),
    LIE(framed_ring_hello, memfd_bytes, UINT64_MAX),
    LIE(framed_ring_hello, batch, UINT32_MAX),
    LIE(framed_ring_hello, header_offset, FAKE_MEMORY),
    LIE(framed_ring_hello, header_offset, UINT64_MAX),
};

static void test_hello(const struct lie *lie)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "ring");
    struct framed_ring_hello hello = fake_hello(FAKE_BATCH);
    tell(&hello, lie);
    fake_send_with(&daemon, &hello, sizeof hello, daemon.memfd, 1);
    expect(&daemon, reader, lie->name, false);
}

// Sends a hello of `size` bytes with n descriptors.
static void test_descriptors(int n, size_t size, bool fine)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "ring");
    const struct framed_ring_hello hello = fake_hello(0);
    fake_send_with(&daemon, &hello, size, daemon.memfd, n);
    expect(&daemon, reader, "descriptors", fine);
}

// Descriptors that are not memory, or that could shrink while the reader uses them. A POSIX object
// may shrink, but then the hello has its name.
static void test_memory(int fd, const char *shared, bool fine)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "ring");
    struct framed_ring_hello hello = fake_hello(0);
    memcpy(hello.shared, shared, strnlen(shared, sizeof hello.shared));
    fake_send_with(&daemon, &hello, sizeof hello, fd, 1);
    expect(&daemon, reader, "memory", fine);
}

static int open_unsealed(void)
{
    const int fd = memfd_create("unsealed", MFD_ALLOW_SEALING);
    CHECK(ftruncate(fd, FAKE_MEMORY) == 0, "%s", strerror(errno));
    return fd;
}

static const struct lie header_lies[] = {
    LIE(framed_header, magic, 0x58585858),
    LIE(framed_header, version, 2),
    LIE(framed_header, header_bytes, 255),
    LIE(framed_header, header_bytes, UINT16_MAX),
    LIE(framed_header, payload_bytes, 0),
    LIE(framed_header, payload_bytes, FAKE_BYTES + 1),
    LIE(framed_header, payload_bytes, UINT64_MAX),
    LIE(framed_header, width, 0),
    LIE(framed_header, width, FAKE_WIDTH + 1),
    LIE(framed_header, width, UINT32_MAX),
    LIE(framed_header, height, 0),
    LIE(framed_header, height, FAKE_HEIGHT + 1),
    LIE(framed_header, height, UINT32_MAX),
    LIE(framed_header, format, 0x5858585858585858),
    LIE(framed_header, dtype, 0x58585858),
    LIE(framed_header, dtype, 0x323366), // f32
    LIE(framed_header, planes, 0),
    LIE(framed_header, planes, 2),
    LIE(framed_header, planes, 5),
    LIE(framed_header, plane_offset[2], FAKE_BYTES),
    LIE(framed_header, plane_offset[1], UINT64_MAX),
    LIE(framed_header, plane_stride[0], FAKE_WIDTH - 1),
    LIE(framed_header, plane_stride[2], UINT32_MAX),
};

static void test_frame(const struct lie *lie, const char *kind)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, kind);
    const bool is_ring = kind[0] == 'r';
    struct framed_ring_frame frame = fake_frame(0, 1);
    tell(&frame.header, lie);
    *fake_state(&daemon, 0) = 1;
    if (is_ring)
        fake_say_hello(&daemon, 0);
    fake_send(&daemon, &frame, is_ring ? sizeof frame : sizeof frame.header);
    expect(&daemon, reader, lie->name, false);
}

// The same for a format that the reader does not have.
static const struct lie unknown_lies[] = {
    LIE(framed_header, payload_bytes, 0),
    LIE(framed_header, payload_bytes, (UINT64_C(1) << 32) + 1),
    LIE(framed_header, width, 0),
    LIE(framed_header, width, (1 << 16) + 1),
    LIE(framed_header, height, 0),
    LIE(framed_header, height, (1 << 16) + 1),
    LIE(framed_header, planes, 0),
    LIE(framed_header, planes, 5),
};

static void test_unknown_format(const struct lie *lie)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "unix");
    struct framed_header header = fake_header(1);
    memcpy(header.format, "later", sizeof "later");
    if (lie)
        tell(&header, lie);
    fake_send(&daemon, &header, sizeof header);
    expect(&daemon, reader, lie ? lie->name : "a later format", !lie);
}

// Texts without a terminating 0.
static void test_text(size_t offset, size_t size)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "unix");
    struct framed_header header = fake_header(1);
    memset((char *)&header + offset, 'x', size);
    fake_send(&daemon, &header, sizeof header);
    expect(&daemon, reader, "a text", false);
}

static const struct lie place_lies[] = {
    LIE(framed_ring_frame, slot, FAKE_SLOTS),
    LIE(framed_ring_frame, slot, UINT32_MAX),
    LIE(framed_ring_frame, ticket, 0),
};

static void test_place(const struct lie *lie, bool has_hello)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "ring");
    struct framed_ring_frame frame = fake_frame(0, 1);
    if (has_hello) {
        fake_say_hello(&daemon, 0);
        tell(&frame, lie);
    }
    fake_send(&daemon, &frame, sizeof frame);
    expect(&daemon, reader, has_hello ? lie->name : "no hello", false);
}

static const struct lie batch_lies[] = {
    LIE(framed_batch, version, 2),
    LIE(framed_batch, bytes, 127),
    LIE(framed_batch, bytes, UINT16_MAX),
    LIE(framed_batch, count, 0),
    LIE(framed_batch, count, FAKE_BATCH + 1),
    LIE(framed_batch, count, UINT32_MAX),
    LIE(framed_batch, capacity, 1),
    LIE(framed_batch, elements, FAKE_BATCH + 1),
    LIE(framed_batch, header_bytes, 312),
    LIE(framed_batch, header_bytes, 324),
    LIE(framed_batch, header_bytes, 4096 + 8),
    LIE(framed_batch, header_bytes, UINT32_MAX),
    LIE(framed_batch, element_bytes, 0),
    LIE(framed_batch, element_bytes, UINT64_MAX),
    LIE(framed_batch, payload_bytes, FAKE_BYTES),
    LIE(framed_batch, payload_bytes, UINT64_MAX),
};

static const struct lie element_lies[] = {
    LIE(framed_element_header, header.header_bytes, 256),
    LIE(framed_element_header, header.batch_index, 1),
    LIE(framed_element_header, header.payload_bytes, FAKE_BYTES + 1),
    LIE(framed_element_header, header.plane_offset[2], FAKE_BYTES),
};

// An invalid field in the batch, or in the header of its first element.
static void test_batch(const struct lie *of_batch, const struct lie *of_element, const char *kind)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, kind);
    struct framed_batch batch = fake_batch(0, 1, FAKE_BATCH);
    struct framed_element_header *elements = fake_headers(&daemon, 0);
    for (uint32_t i = 0; i < FAKE_BATCH; i++)
        elements[i] = fake_element(1, i);
    *fake_state(&daemon, 0) = 1;
    if (of_batch)
        tell(&batch, of_batch);
    else
        tell(elements, of_element);
    if (kind[0] == 'r')
        fake_say_hello(&daemon, FAKE_BATCH);
    fake_send(&daemon, &batch, sizeof batch);
    if (kind[0] == 'u')
        fake_send(&daemon, elements, FAKE_BATCH * sizeof *elements);
    expect(&daemon, reader, of_batch ? of_batch->name : of_element->name, false);
}

// A batch whose numbers are consistent, but too large or too small for a reader.
static void test_consistent_batch(uint32_t count, uint64_t element_bytes, uint32_t header_bytes)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "unix");
    struct framed_batch batch = fake_batch(0, 0, count);
    batch.capacity = count;
    batch.header_bytes = header_bytes;
    batch.element_bytes = element_bytes;
    batch.payload_bytes = count * element_bytes;
    fake_send(&daemon, &batch, sizeof batch);
    expect(&daemon, reader, "a batch's numbers", false);
}

// More elements than the hello has headers for.
static void test_too_many_elements(void)
{
    struct fake_daemon daemon;
    struct framed_reader *reader = connect_reader(&daemon, "ring");
    struct framed_ring_hello hello = fake_hello(FAKE_BATCH);
    struct framed_batch batch = fake_batch(0, 1, FAKE_BATCH + 1);
    hello.slot_bytes = FAKE_STRIDE;
    batch.capacity = FAKE_BATCH + 1;
    *fake_state(&daemon, 0) = 1;
    for (uint32_t i = 0; i <= FAKE_BATCH; i++)
        fake_headers(&daemon, 0)[i] = fake_element(1, i);
    fake_send_with(&daemon, &hello, sizeof hello, daemon.memfd, 1);
    fake_send(&daemon, &batch, sizeof batch);
    expect(&daemon, reader, "too many elements", false);
}

static const char *const kinds[] = {"ring", "unix"};
#define EACH(array, index) for (size_t index = 0; index < sizeof(array) / sizeof(array)[0]; index++)

int main(void)
{
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), unsealed = open_unsealed();
    EACH(hello_lies, i) TEST(test_hello(&hello_lies[i]));
    TEST(test_descriptors(1, sizeof(struct framed_ring_hello), true));
    TEST(test_descriptors(0, sizeof(struct framed_ring_hello), false));
    TEST(test_descriptors(2, sizeof(struct framed_ring_hello), false));
    TEST(test_descriptors(4, sizeof(struct framed_ring_hello), false));
    TEST(test_descriptors(1, sizeof(struct framed_ring_hello) - 1, false));
    TEST(test_memory(file, "", false));
    TEST(test_memory(file, "/gate", false));
    TEST(test_memory(unsealed, "", false));
    TEST(test_memory(unsealed, "/gate", true));
    TEST(test_memory(unsealed, "/forty-bytes-of-a-name-without-an-end---", false));
    EACH(kinds, k) EACH(header_lies, i) TEST(test_frame(&header_lies[i], kinds[k]));
    EACH(unknown_lies, i) TEST(test_unknown_format(&unknown_lies[i]));
    TEST(test_unknown_format(NULL));
    TEST(test_text(offsetof(struct framed_header, camera), 24));
    TEST(test_text(offsetof(struct framed_header, output), 16));
    EACH(place_lies, i) TEST(test_place(&place_lies[i], true));
    TEST(test_place(NULL, false));
    EACH(kinds, k) EACH(batch_lies, i) TEST(test_batch(&batch_lies[i], NULL, kinds[k]));
    EACH(kinds, k) EACH(element_lies, i) TEST(test_batch(NULL, &element_lies[i], kinds[k]));
    TEST(test_consistent_batch(0, FAKE_BYTES, 320));
    TEST(test_consistent_batch(5000, FAKE_BYTES, 320));
    TEST(test_consistent_batch(2, UINT64_C(1) << 63, 320));
    TEST(test_consistent_batch(2, UINT64_C(1) << 32, 320));
    TEST(test_consistent_batch(1, FAKE_BYTES, 312));
    TEST(test_too_many_elements());
    close(file);
    close(unsealed);
    return test_end();
}
