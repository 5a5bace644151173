// Batches through every kind of sink: holes anywhere, tails cut or not, and files that were cut.
#include <sys/mman.h>

#include "tests/daemon/output/batches.h"
#include "tests/daemon/output/recorded.h"

enum { CAPACITY = 4, HEADERS = CAPACITY * (int)sizeof(struct framed_element_header) };

static struct rig rig;

static void start(enum sink_kind kind, const char *name, enum batch_tail tail)
{
    rig_init_batches(&rig, kind, name, CAPACITY);
    rig.config.tail = tail;
    rig_open(&rig);
}

static void feed(unsigned claimed, unsigned failed)
{
    rig_feed_batch(&rig, claimed, failed);
    on_loop(&rig, rig_pump);
}

// Test batches: claimed elements, failed ones among them, and the count that a consumer gets.
static const struct shape {
    unsigned claimed, failed;
    int count;
} shapes[] = {
    {0xf, 0, 4},   // full
    {0x3, 0, 2},   // no tail
    {0xe, 0, 4},   // the first is a hole
    {0xd, 0x1, 4}, // plus a failed one beside another
    {0x7, 0x6, 1}, // the tail failed
    {0x8, 0, 4},   // only the last one
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

// --- the ring

struct ring_reader {
    int fd, hellos;
    struct framed_ring_hello hello;
    const uint8_t *memory;
};

static void take_hello(struct ring_reader *reader, const struct msghdr *message)
{
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof fd);
    if (reader->memory)
        munmap((void *)reader->memory, reader->hello.memfd_bytes);
    memcpy(&reader->hello, message->msg_iov->iov_base, sizeof reader->hello);
    reader->memory = mmap(NULL, reader->hello.memfd_bytes, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(reader->memory != MAP_FAILED, "map: %s", strerror(errno));
    close(fd);
    reader->hellos++;
}

// Receives the next batch, after a hello if there is one.
static struct got_batch next_batch(struct ring_reader *reader)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
    _Alignas(8) char bytes[512];
    struct iovec piece = {bytes, sizeof bytes};
    struct got_batch got = {0};
    ssize_t n;
    while (true) {
        struct msghdr message = {.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        n = recvmsg(reader->fd, &message, MSG_CMSG_CLOEXEC);
        if (n != sizeof reader->hello || memcmp(bytes, FRAMED_RING_MAGIC, 4) != 0)
            break;
        take_hello(reader, &message);
    }
    CHECK(n == sizeof got.batch && reader->memory, "%d bytes are no batch", (int)n);
    if (n != sizeof got.batch || !reader->memory)
        exit(test_end());
    memcpy(&got.batch, bytes, sizeof got.batch);
    const struct framed_ring_hello *hello = &reader->hello;
    const size_t headers = hello->batch * sizeof(struct framed_element_header);
    got.header = (const void *)(reader->memory + hello->header_offset + got.batch.slot * headers);
    got.payload = reader->memory + hello->slot_offset + got.batch.slot * hello->slot_stride;
    const _Atomic uint64_t *words = (const void *)(reader->memory + hello->state_offset);
    CHECK(atomic_load(&words[got.batch.slot]) == got.batch.ticket && got.batch.ticket > 0,
          "the batch is not there");
    return got;
}

static void give_back(struct ring_reader *reader, const struct got_batch *got)
{
    const struct framed_ring_return message = {.slot = got->batch.slot,
                                               .ticket = got->batch.ticket};
    CHECK(send(reader->fd, &message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send");
}

static void quit(struct ring_reader *reader)
{
    munmap((void *)reader->memory, reader->hello.memfd_bytes);
    close(reader->fd);
}

static void test_ring_hello(void)
{
    start(SINK_RING, "yard.ring", BATCH_CUT);
    struct ring_reader reader = {.fd = reader_join(&rig, 1)};
    feed(0xf, 0);
    feed(0x1, 0);
    struct got_batch got = next_batch(&reader);
    const struct framed_ring_hello *hello = &reader.hello;
    CHECK(hello->batch == CAPACITY && hello->slot_bytes == CAPACITY * SMALL &&
              hello->slot_stride >= hello->slot_bytes,
          "batches of %d", (int)hello->batch);
    CHECK(hello->header_offset >= hello->state_offset + 8 * hello->slots &&
              hello->header_offset + hello->slots * (uint64_t)HEADERS <= hello->slot_offset &&
              hello->slot_offset + hello->slots * hello->slot_stride <= hello->memfd_bytes,
          "headers lie over something else");
    CHECK(hello->width == SMALL && hello->height == 1 && strcmp(hello->format, "gray") == 0 &&
              hello->planes == 1 && hello->plane_offset[0] == 0,
          "shape");
    CHECK(hello->camera[0] == 0 && strcmp(hello->output, "detector") == 0, "names");
    expect_batch(&got, 0, 0, 4, 0xf, 0, 0);
    CHECK(got.batch.capacity == CAPACITY, "capacity %d", (int)got.batch.capacity);
    got = next_batch(&reader);
    expect_batch(&got, 1, 0, 1, 0x1, 0, 4);
    CHECK(reader.hellos == 1, "%d hellos", reader.hellos);
    quit(&reader);
    rig_close(&rig, 1000);
}

// Two clients read the same headers; each batch has its own, however often slots are reused.
static void test_ring(enum batch_tail tail)
{
    enum { BATCHES = 8 * SHAPES };
    start(SINK_RING, "yard.ring", tail);
    struct ring_reader reader[2] = {{.fd = reader_join(&rig, 1)}, {.fd = reader_join(&rig, 2)}};
    for (uint64_t i = 0; i < BATCHES; i++) {
        const struct shape *shape = &shapes[i * 5 / 3 % SHAPES];
        const uint64_t first = rig.ordinal;
        const int count = tail == BATCH_ZERO ? CAPACITY : shape->count;
        feed(shape->claimed, shape->failed);
        for (int k = 0; k < 2; k++) {
            struct got_batch got = next_batch(&reader[k]);
            expect_batch(&got, i, 0, count, shape->claimed, shape->failed, first);
            give_back(&reader[k], &got);
        }
    }
    for (int k = 0; k < 2; k++)
        quit(&reader[k]);
    rig_close(&rig, 1000);
}

static void test_ring_losses(void)
{
    start(SINK_RING, "yard.ring", BATCH_CUT);
    struct ring_reader early = {.fd = reader_join(&rig, 1)};
    feed(0x3, 0);
    struct got_batch got = next_batch(&early);
    expect_batch(&got, 0, 0, 2, 0x3, 0, 0);
    give_back(&early, &got);
    rig.batches += 3; // all jobs of these failed
    struct ring_reader late = {.fd = reader_join(&rig, 2)};
    feed(0x2, 0);
    got = next_batch(&early);
    expect_batch(&got, 4, 3, 2, 0x2, 0, 2);
    got = next_batch(&late);
    expect_batch(&got, 4, 0, 2, 0x2, 0, 2);
    quit(&early);
    quit(&late);
    rig_close(&rig, 1000);
}

// --- sockets and files

// Reads the next batch of a stream; `next` reads up to `size` bytes. The caller frees the payload
// and the header.
static bool read_batch(size_t next(void *opaque, void *to, size_t size), void *opaque,
                       struct got_batch *got)
{
    *got = (struct got_batch){0};
    size_t n = next(opaque, &got->batch, sizeof got->batch);
    if (n < sizeof got->batch || memcmp(got->batch.magic, FRAMED_BATCH_MAGIC, 4) != 0) {
        CHECK(n == 0, "%d bytes are no batch", (int)n);
        return false;
    }
    const size_t headers = got->batch.count * got->batch.header_bytes;
    char *bytes = malloc(headers + got->batch.payload_bytes);
    n = next(opaque, bytes, headers + got->batch.payload_bytes);
    CHECK(n == headers + got->batch.payload_bytes, "cut after %zu bytes", n);
    got->header = (const void *)bytes;
    got->payload = (const uint8_t *)bytes + headers;
    return true;
}

static size_t next_of_socket(void *opaque, void *to, size_t size)
{
    return read_up_to(*(int *)opaque, to, size);
}

static size_t next_of_file(void *opaque, void *to, size_t size)
{
    return fread(to, 1, size, opaque);
}

static void test_socket(enum sink_kind kind, enum batch_tail tail, int64_t max_age_ns)
{
    rig_init_batches(&rig, kind, "yard.sock", CAPACITY);
    rig.config.tail = tail;
    rig.config.max_age.ns = max_age_ns;
    rig_open(&rig);
    int fd[2] = {reader_join(&rig, 1), reader_join(&rig, 2)};
    for (uint64_t i = 0; i < 3 * SHAPES; i++) {
        const struct shape *shape = &shapes[i % SHAPES];
        const uint64_t first = rig.ordinal;
        const int count = tail == BATCH_ZERO ? CAPACITY : shape->count;
        rig.batches += i == SHAPES;
        feed(shape->claimed, shape->failed);
        for (int k = 0; k < 2; k++) {
            struct got_batch got;
            CHECK(read_batch(next_of_socket, &fd[k], &got), "no batch %d", (int)i);
            expect_batch(&got, i + (i >= SHAPES), i >= SHAPES, count, shape->claimed, shape->failed,
                         first);
            free((void *)got.header);
        }
    }
    close(fd[0]);
    close(fd[1]);
    rig_close(&rig, 1000);
}

// A client stalls within a batch while the pool is short of slots: the unread rest is copied, and
// the client gets it and the number of missed batches.
static void test_stalled(void)
{
    struct got_batch got;
    rig_init_batches(&rig, SINK_UNIX, "yard.sock", CAPACITY);
    rig.config.slots = 3;
    rig_open(&rig);
    rig_large(&rig);
    int stalled = reader_join(&rig, 1);
    for (int i = 0; i < 10; i++)
        feed(i % 2 ? 0x6 : 0xf, 0);
    CHECK(read_batch(next_of_socket, &stalled, &got), "no batch");
    expect_batch(&got, 0, 0, 4, 0xf, 0, 0);
    free((void *)got.header);
    uint64_t sequence = 0, lost = 0;
    while (sequence < 9 && read_batch(next_of_socket, &stalled, &got)) {
        const bool odd = got.batch.sequence % 2;
        lost += got.batch.sequence - sequence - 1;
        sequence = got.batch.sequence;
        expect_batch(&got, sequence, lost, odd ? 3 : 4, odd ? 0x6 : 0xf, 0,
                     got.header[odd].header.sequence);
        free((void *)got.header);
    }
    CHECK(sequence == 9 && lost > 0, "lost %d up to %d", (int)lost, (int)sequence);
    close(stalled);
    rig_close(&rig, 1000);
}

static void record(unsigned claimed, unsigned failed)
{
    rig_feed_batch(&rig, claimed, failed);
    for (int i = 0; i < 5000 && ledger_in_flight(&rig.ledger) > 0; i++) {
        on_loop(&rig, rig_pump);
        usleep(1000);
    }
}

static void expect_file(const char *path, const struct shape *shape, int batches, uint64_t sequence,
                        uint64_t first)
{
    struct got_batch got;
    FILE *file = fopen(path, "r");
    CHECK(file, "no %s", path);
    for (int i = 0; file && i < batches; i++, sequence++, shape++) {
        CHECK(read_batch(next_of_file, file, &got), "no batch %d", i);
        expect_batch(&got, sequence, 0, shape->count, shape->claimed, shape->failed, first);
        first += (uint64_t)__builtin_popcount(shape->claimed);
        free((void *)got.header);
    }
    CHECK(file && getc(file) == EOF, "more in %s", path);
    if (file)
        fclose(file);
}

static void test_file(void)
{
    start(SINK_FILE, "yard.framed", BATCH_CUT);
    for (int i = 0; i < SHAPES; i++)
        record(shapes[i].claimed, shapes[i].failed);
    expect_file(rig.path, shapes, SHAPES, 0, 0);
    rig_close(&rig, 1000);
}

// numpy reads one array per batch.
static void test_npy(enum batch_tail tail, const char *expected)
{
    char command[512], text[256] = "";
    rig_init_batches(&rig, SINK_FILE, "yard.npy", CAPACITY);
    rig.config.protocol = PROTOCOL_NPY;
    rig.config.tail = tail;
    rig.width = 6;
    rig.height = 2;
    rig_open(&rig);
    record(0xf, 0);
    record(0x2, 0);
    snprintf(command, sizeof command,
             "/usr/bin/python3 -c \"import numpy; f = open('%s', 'rb')\n"
             "for i in range(2): print(numpy.load(f).shape)\nassert not f.read()\"",
             rig.path);
    FILE *pipe = popen(command, "r");
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    CHECK(pclose(pipe) == 0 && n == strlen(expected) && strcmp(text, expected) == 0, "%s", text);
    rig_close(&rig, 1000);
}

static void test_raw(void)
{
    rig_init_batches(&rig, SINK_FILE, "yard.raw", CAPACITY);
    rig.config.protocol = PROTOCOL_RAW;
    rig_open(&rig);
    record(0xf, 0);
    record(0x2, 0);
    CHECK(size_of(rig.path) == (4 + 2) * SMALL, "%d bytes", (int)size_of(rig.path));
    rig_close(&rig, 1000);
}

// The file gets the time of the first filled element.
static void test_time_of_holes(void)
{
    rig_init_batches(&rig, SINK_FILE, "%s.framed", CAPACITY);
    rig.config.sink.timed = true;
    rig.config.segment.ns = 1000000000;
    rig_open(&rig);
    rig.capture_ns = 50 * INT64_C(1000000000);
    record(0xf, 0);
    rig.capture_ns = 70 * INT64_C(1000000000);
    record(0xd, 0x1); // claims elements 0 and 2, which had frames of 50 s before
    record(0x8, 0);
    rig_stop(&rig, 1000);
    expect_file(rig_in_folder(&rig, "50.framed"), (struct shape[]){{0xf, 0, 4}}, 1, 0, 0);
    expect_file(rig_in_folder(&rig, "70.framed"), (struct shape[]){{0xd, 0x1, 4}, {0x8, 0, 4}}, 2,
                1, 4);
    rig_remove(&rig);
}

// --- leftovers

static size_t recorded_bytes(char *to, size_t size, size_t end[2])
{
    start(SINK_FILE, "yard.framed", BATCH_CUT);
    rig.width = 5;
    record(0x3, 0);
    end[0] = (size_t)size_of(rig.path);
    record(0x1, 0);
    end[1] = (size_t)size_of(rig.path);
    FILE *file = fopen(rig.path, "r");
    CHECK(file && fread(to, 1, size, file) == end[1], "%zu bytes", end[1]);
    if (file)
        fclose(file);
    rig_close(&rig, 1000);
    return end[1];
}

// A file that ends at any byte is cut after its last whole batch.
static void test_tails(void)
{
    static char bytes[4096];
    size_t end[2];
    const size_t whole = recorded_bytes(bytes, sizeof bytes, end);
    for (size_t size = 0; size <= whole; size++) {
        rig_init_batches(&rig, SINK_FILE, "%s.framed", CAPACITY);
        rig.config.sink.timed = true;
        FILE *file = fopen(rig_in_folder(&rig, "1.framed.part"), "w");
        CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "write");
        rig_open(&rig);
        rig_stop(&rig, 1000);
        const off_t expected = size < end[0] ? -1 : (off_t)(size < end[1] ? end[0] : end[1]);
        const off_t left = size_of(rig_in_folder(&rig, "1.framed"));
        CHECK(left == expected, "%d of %d bytes", (int)left, (int)size);
        CHECK(size_of(rig_in_folder(&rig, "1.framed.part")) == -1, "a leftover stays");
        rig_remove(&rig);
    }
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    TEST(test_ring_hello());
    TEST(test_ring(BATCH_CUT));
    TEST(test_ring(BATCH_ZERO));
    TEST(test_ring_losses());
    TEST(test_socket(SINK_UNIX, BATCH_CUT, 0));
    TEST(test_socket(SINK_UNIX, BATCH_ZERO, 0));
    TEST(test_socket(SINK_UNIX, BATCH_CUT, 1000000000));
    TEST(test_socket(SINK_TCP, BATCH_CUT, 1000000000));
    TEST(test_stalled());
    TEST(test_file());
    TEST(test_npy(BATCH_CUT, "(4, 2, 6, 1)\n(2, 2, 6, 1)\n"));
    TEST(test_npy(BATCH_ZERO, "(4, 2, 6, 1)\n(4, 2, 6, 1)\n"));
    TEST(test_raw());
    TEST(test_time_of_holes());
    TEST(test_tails());
    return test_end();
}
