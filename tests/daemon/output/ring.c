// The ring sink with many, stuck, dying and lying clients.
#include <sys/mman.h>

#include "tests/daemon/fake_driver.h"
#include "tests/daemon/output/fixture.h"

static struct rig rig;

// One client: the memory of its last hello, mapped as a client maps it.
struct ring_consumer {
    int fd;
    int hellos;
    struct framed_ring_hello hello;
    uint8_t handle[64]; // from a hello with CUDA's IPC
    const uint8_t *memory;
    size_t bytes;
};

static void start(enum overflow overflow, int slots)
{
    rig_init(&rig, SINK_RING, "gate.ring");
    rig.config.overflow = overflow;
    rig.config.slots = slots;
    rig_open(&rig);
}

static struct ring_consumer join(int n)
{
    return (struct ring_consumer){.fd = reader_join(&rig, n)};
}

static void forget_memory(struct ring_consumer *consumer)
{
    if (consumer->memory)
        munmap((void *)consumer->memory, consumer->bytes);
    consumer->memory = NULL;
}

static void quit(struct ring_consumer *consumer)
{
    forget_memory(consumer);
    close(consumer->fd);
}

static void map_hello(struct ring_consumer *consumer, int fd)
{
    forget_memory(consumer);
    consumer->bytes = consumer->hello.memfd_bytes;
    void *memory = mmap(NULL, consumer->bytes, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED, "map: %s", strerror(errno));
    void *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(writable == MAP_FAILED, "a client can write");
    consumer->memory = memory;
    close(fd);
}

// Receives one message and returns its size, 0 at the end. Handles a hello.
static ssize_t receive(struct ring_consumer *consumer, struct framed_ring_frame *frame)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
    struct framed_ring_hello_cuda_ipc bytes; // larger than a frame
    struct iovec piece = {&bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(consumer->fd, &message, MSG_CMSG_CLOEXEC);
    if (n > 0)
        memcpy(frame, &bytes, (size_t)n < sizeof *frame ? (size_t)n : sizeof *frame);
    if (n > 0 && memcmp(frame, FRAMED_RING_MAGIC, 4) == 0) {
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        int fds[2] = {-1, -1};
        consumer->hello = bytes.hello;
        memcpy(consumer->handle, bytes.handle, sizeof consumer->handle);
        const bool has_handle = consumer->hello.memory == FRAMED_RING_CUDA_IPC;
        CHECK(n == (has_handle ? 320 : 256) && n == consumer->hello.hello_bytes, "a hello of %zd",
              n);
        n = sizeof consumer->hello;
        size_t n_fds = consumer->hello.memory == FRAMED_RING_CUDA ? 2 : 1;
        CHECK(rights && rights->cmsg_len == CMSG_LEN(n_fds * sizeof(int)), "%zu descriptors",
              n_fds);
        memcpy(fds, CMSG_DATA(rights), n_fds * sizeof(int));
        consumer->hellos++;
        map_hello(consumer, fds[0]);
        if (n_fds > 1)
            close(fds[1]);
    }
    return n;
}

// Receives the next frame, after a hello if there is one. Returns false at the end.
static bool next_frame(struct ring_consumer *consumer, struct framed_ring_frame *frame)
{
    ssize_t n = receive(consumer, frame);
    if (n == sizeof consumer->hello)
        n = receive(consumer, frame);
    return n == sizeof *frame && memcmp(frame->header.magic, FRAMED_MAGIC, 4) == 0;
}

static uint64_t word(const struct ring_consumer *consumer, const struct framed_ring_frame *frame)
{
    const _Atomic uint64_t *words = (const void *)(consumer->memory + consumer->hello.state_offset);
    return atomic_load(&words[frame->slot]);
}

static bool is_intact(const struct ring_consumer *consumer, const struct framed_ring_frame *frame)
{
    const struct framed_ring_hello *hello = &consumer->hello;
    const uint8_t *payload =
        consumer->memory + hello->slot_offset + frame->slot * hello->slot_stride;
    size_t wrong = 0;
    for (size_t i = 0; i < frame->header.payload_bytes; i++)
        wrong += payload[i] != sample(frame->header.sequence, i);
    return wrong == 0 && word(consumer, frame) == frame->ticket;
}

static struct framed_ring_return returned(const struct framed_ring_frame *frame)
{
    return (struct framed_ring_return){.slot = frame->slot, .ticket = frame->ticket};
}

static void give_back(struct ring_consumer *consumer, const struct framed_ring_frame *frame)
{
    struct framed_ring_return message = returned(frame);
    CHECK(send(consumer->fd, &message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send: %s",
          strerror(errno));
}

static struct framed_ring_frame expect(struct ring_consumer *consumer, uint64_t sequence,
                                       uint64_t lost)
{
    struct framed_ring_frame frame = {0};
    CHECK(next_frame(consumer, &frame), "no frame %d", (int)sequence);
    CHECK(frame.header.sequence == sequence && frame.header.lost == lost,
          "sequence %d lost %d instead of %d, %d", (int)frame.header.sequence,
          (int)frame.header.lost, (int)sequence, (int)lost);
    return frame;
}

// Waits until the loop has read the returns.
static bool reaches(_Atomic uint64_t *counter, uint64_t value)
{
    for (int i = 0; i < 5000 && atomic_load(counter) < value; i++)
        usleep(1000);
    return atomic_load(counter) == value;
}

static void test_hello(void)
{
    start(OVERFLOW_DROP_OLDEST, 5);
    struct ring_consumer consumer = join(1);
    rig_frame(&rig);
    struct framed_ring_frame frame = expect(&consumer, 0, 0);
    const struct framed_ring_hello *hello = &consumer.hello;
    CHECK(hello->version == FRAMED_VERSION && hello->hello_bytes == 256 && hello->slots == 5 &&
              hello->memory == FRAMED_RING_HOST && hello->device_bytes == 0,
          "head");
    CHECK(hello->slot_bytes == SMALL && hello->slot_stride >= SMALL &&
              hello->slot_offset + 5 * hello->slot_stride <= hello->memfd_bytes,
          "slots");
    CHECK(hello->width == SMALL && hello->height == 1 && strcmp(hello->format, "gray") == 0 &&
              strcmp(hello->dtype, "u8") == 0 && memcmp(hello->layout, "nhwc", 4) == 0 &&
              hello->planes == 1 && hello->plane_stride[0] == SMALL,
          "shape");
    CHECK(strcmp(hello->camera, "gate") == 0 && strcmp(hello->output, "detector") == 0, "names");
    CHECK(hello->batch == 0 && hello->header_offset == 0, "single frames");
    CHECK(is_intact(&consumer, &frame), "the frame is not there");
    CHECK(frame.header.flags & FRAMED_FLAG_FIRST_OF_EPOCH, "first of its epoch");
    rig_frame(&rig);
    frame = expect(&consumer, 1, 0);
    CHECK(!(frame.header.flags & FRAMED_FLAG_FIRST_OF_EPOCH), "not the first");
    CHECK(consumer.hellos == 1, "%d hellos", consumer.hellos);
    quit(&consumer);
    rig_close(&rig, 1000);
}

static void test_many_clients(void)
{
    enum { CLIENTS = 64, FRAMES = 30 };
    static struct ring_consumer consumer[CLIENTS];
    char byte;
    start(OVERFLOW_DROP_OLDEST, 4);
    for (int i = 0; i < CLIENTS; i++)
        consumer[i] = join(i + 1);
    int refused = reader_open(&rig);
    CHECK(recv(refused, &byte, 1, 0) == 0, "the 65th is not closed");
    close(refused);
    for (uint64_t i = 0; i < FRAMES; i++) {
        rig_frame(&rig);
        for (int k = 0; k < CLIENTS; k++) {
            struct framed_ring_frame frame = expect(&consumer[k], i, 0);
            CHECK(is_intact(&consumer[k], &frame), "frame %d of %d", (int)i, k);
            give_back(&consumer[k], &frame);
        }
        CHECK(reaches(&rig.ledger.emitted, i + 1), "%d emitted", (int)rig_emitted(&rig));
    }
    for (int i = 0; i < CLIENTS; i++)
        quit(&consumer[i]);
    rig_close(&rig, 1000);
}

// Frames of another shape in the same region, then too large for it.
static void test_geometry(void)
{
    start(OVERFLOW_DROP_OLDEST, 4);
    struct ring_consumer consumer = join(1);
    rig_frame(&rig);
    struct framed_ring_frame first = expect(&consumer, 0, 0);
    uint64_t bytes = consumer.hello.memfd_bytes;
    rig.width = SMALL / 2;
    rig_frame(&rig);
    struct framed_ring_frame frame = expect(&consumer, 1, 0);
    CHECK(consumer.hellos == 2 && consumer.hello.width == SMALL / 2 && is_intact(&consumer, &frame),
          "%d hellos", consumer.hellos);
    rig_large(&rig);
    rig_frame(&rig);
    frame = expect(&consumer, 2, 0);
    CHECK(consumer.hellos == 3 && consumer.hello.memfd_bytes > bytes &&
              is_intact(&consumer, &frame),
          "%d hellos", consumer.hellos);
    give_back(&consumer, &first);
    give_back(&consumer, &frame);
    CHECK(reaches(&rig.ledger.emitted, 2), "%d emitted", (int)rig_emitted(&rig));
    struct ring_consumer late = join(2);
    rig_frame(&rig);
    frame = expect(&late, 3, 0);
    CHECK(late.hellos == 1 && late.hello.height == (uint32_t)rig.height && is_intact(&late, &frame),
          "late");
    quit(&late);
    quit(&consumer);
    rig_close(&rig, 1000);
}

// To the device and away from it, without a change of shape.
static void test_device(enum ring_memory memory)
{
    const uint32_t kind = memory == RING_CUDA ? FRAMED_RING_CUDA : FRAMED_RING_CUDA_IPC;
    rig_init(&rig, SINK_RING, "gate.ring");
    rig.config.memory = memory;
    rig_open(&rig);
    struct ring_consumer consumer = join(1);
    const struct framed_ring_hello *hello = &consumer.hello;
    for (int turn = 0; turn < 2; turn++) {
        uint64_t sequence = rig.ordinal;
        pool_add_backend(rig.pool, &fake_driver, NULL);
        rig_frame(&rig);
        struct framed_ring_frame frame = expect(&consumer, sequence, 0);
        CHECK(memory == RING_CUDA || memcmp(consumer.handle, "the handle of it", 17) == 0,
              "handle");
        CHECK(hello->memory == kind && hello->slot_offset == 0 &&
                  hello->device_bytes == sizeof device_memory &&
                  memcmp(hello->device_uuid, "the-uuid-of-it.", 16) == 0,
              "not on the device");
        CHECK(word(&consumer, &frame) == frame.ticket, "the frame is not there");
        CHECK(device_memory[frame.slot * hello->slot_stride] == sample(sequence, 0), "nor there");
        pool_remove_backend(rig.pool, NULL);
        CHECK(word(&consumer, &frame) == 0 && exports == 0, "the slot on the device is left");
        rig_frame(&rig);
        frame = expect(&consumer, sequence + 1, 0);
        CHECK(hello->memory == FRAMED_RING_HOST && hello->device_bytes == 0, "still on the device");
        CHECK(is_intact(&consumer, &frame), "the frame is not there");
        give_back(&consumer, &frame);
        CHECK(consumer.hellos == 2 * (turn + 1), "%d hellos", consumer.hellos);
    }
    CHECK(rig_lost(&rig, LOSS_BACKEND) == 2, "%d", (int)rig_lost(&rig, LOSS_BACKEND));
    quit(&consumer);
    rig_close(&rig, 1000);
}

// One client holds every slot and never returns any; the other misses nothing, and the first sees
// which of its frames are still there.
static void test_stuck_beside_fast(void)
{
    enum { FRAMES = 40 };
    struct framed_ring_frame held[FRAMES], frame;
    start(OVERFLOW_DROP_OLDEST, 4);
    struct ring_consumer stuck = join(1), fast = join(2);
    for (uint64_t i = 0; i < FRAMES; i++) {
        rig_frame(&rig);
        held[i] = expect(&stuck, i, 0);
        frame = expect(&fast, i, 0);
        CHECK(is_intact(&fast, &frame), "frame %d", (int)i);
        give_back(&fast, &frame);
        CHECK(word(&stuck, &held[0]) == held[0].ticket, "its oldest was taken");
    }
    int there = 0;
    for (int i = 0; i < FRAMES; i++)
        there += word(&stuck, &held[i]) == held[i].ticket;
    CHECK(there == 4, "%d of its frames are there", there);
    give_back(&stuck, &held[1]); // too late, without harm
    quit(&stuck);
    CHECK(rig_has_clients(&rig, 1), "%d clients", rig_clients(&rig));
    CHECK(reaches(&rig.ledger.emitted, FRAMES), "%d emitted", (int)rig_emitted(&rig));
    quit(&fast);
    rig_close(&rig, 1000);
    CHECK(ledger_lost(&rig.ledger) == 0, "%d lost", (int)ledger_lost(&rig.ledger));
}

// Waits until the loop has read all returns of the nth client.
static bool returned_all(int n)
{
    const struct consumer *consumer = rig.pool->consumers; // the newest one
    for (int i = rig.pool->n_consumers - 1; i > n; i--)
        consumer = consumer->next;
    for (int i = 0; i < 5000 && pool_is_busy(rig.pool, consumer); i++)
        usleep(1000);
    return !pool_is_busy(rig.pool, consumer);
}

// The same with `drop_newest`: alone it keeps its slots, beside another client it does not.
static void test_stuck_under_drop_newest(void)
{
    struct framed_ring_frame frame, first = {0};
    start(OVERFLOW_DROP_NEWEST, 4);
    struct ring_consumer stuck = join(1);
    for (uint64_t i = 0; i < 6; i++)
        rig_frame(&rig);
    CHECK(rig_lost(&rig, LOSS_OVERFLOW) == 2, "%d", (int)rig_lost(&rig, LOSS_OVERFLOW));
    for (uint64_t i = 0; i < 4; i++) {
        frame = expect(&stuck, i, 0);
        CHECK(word(&stuck, &frame) == frame.ticket, "frame %d was taken", (int)i);
        give_back(&stuck, &frame);
    }
    CHECK(reaches(&rig.ledger.emitted, 4), "%d emitted", (int)rig_emitted(&rig));
    struct ring_consumer fast = join(2);
    for (uint64_t i = 6; i < 26; i++) {
        rig_frame(&rig);
        frame = expect(&stuck, i, 2);
        if (i == 6)
            first = frame;
        frame = expect(&fast, i, 0);
        CHECK(is_intact(&fast, &frame), "frame %d", (int)i);
        give_back(&fast, &frame);
        CHECK(word(&stuck, &first) == first.ticket, "its oldest was taken");
        CHECK(returned_all(1), "what the fast one returned was not read");
    }
    CHECK(rig_lost(&rig, LOSS_OVERFLOW) == 2, "%d", (int)rig_lost(&rig, LOSS_OVERFLOW));
    quit(&stuck);
    quit(&fast);
    rig_close(&rig, 1000);
}

// max_age: slots held longer are freed, and the client sees that. Then nothing is left to wait for.
static void test_expiry(enum overflow overflow)
{
    rig_init(&rig, SINK_RING, "gate.ring");
    rig.config.overflow = overflow;
    rig.config.max_age.ns = 50000000;
    rig_open(&rig);
    struct ring_consumer stuck = join(1);
    struct framed_ring_frame held[4];
    for (uint64_t i = 0; i < 4; i++) {
        rig_frame(&rig);
        held[i] = expect(&stuck, i, 0);
        usleep(10000); // their ends are apart too
    }
    CHECK(reaches(&rig.ledger.lost[LOSS_LATE], 4), "%d late", (int)rig_lost(&rig, LOSS_LATE));
    for (int i = 0; i < 4; i++)
        CHECK(word(&stuck, &held[i]) == 0, "frame %d seems to be there", i);
    for (uint64_t i = 4; i < 8; i++) {
        rig_frame(&rig);
        held[i - 4] = expect(&stuck, i, 0);
        give_back(&stuck, &held[i - 4]);
    }
    CHECK(reaches(&rig.ledger.emitted, 4), "%d emitted", (int)rig_emitted(&rig));
    rig_close(&rig, 1000);
    quit(&stuck);
}

// A client that shuts down sending, or sends an empty message, has ended: its returns count, and
// its slots are taken away.
static void test_ends(bool shuts)
{
    start(OVERFLOW_DROP_OLDEST, 4);
    struct ring_consumer consumer = join(1);
    rig_frame(&rig);
    rig_frame(&rig);
    struct framed_ring_frame first = expect(&consumer, 0, 0), second = expect(&consumer, 1, 0);
    give_back(&consumer, &first);
    int rc = shuts ? shutdown(consumer.fd, SHUT_WR) : (int)send(consumer.fd, "", 0, 0);
    CHECK(rc == 0, "%s", strerror(errno));
    CHECK(rig_has_clients(&rig, 0), "%d clients", rig_clients(&rig));
    CHECK(rig_emitted(&rig) == 1 && rig_lost(&rig, LOSS_CLIENT) == 1, "%d emitted",
          (int)rig_emitted(&rig));
    CHECK(word(&consumer, &second) == 0, "the slot that it has is left");
    quit(&consumer);
    rig_close(&rig, 1000);
}

// Without max_age: after a second, but never with `wait`.
static void test_default_age(enum overflow overflow)
{
    start(overflow, 4);
    struct ring_consumer stuck = join(1);
    rig_frame(&rig);
    struct framed_ring_frame frame = expect(&stuck, 0, 0);
    usleep(1300000);
    bool there = word(&stuck, &frame) == frame.ticket;
    CHECK(there == (overflow == OVERFLOW_WAIT), "there: %d", there);
    quit(&stuck);
    rig_close(&rig, 1000);
}

// A client reads no message until its socket is full: it misses frames, counts them, and goes on.
static void test_full_socket(void)
{
    struct framed_ring_frame frame = {0};
    rig_init(&rig, SINK_RING, "gate.ring");
    rig.config.max_age.ns = 150000000; // longer than a busy machine stops this thread
    rig_open(&rig);
    struct ring_consumer deaf = join(1), fast = join(2);
    for (uint64_t i = 0; i < 2000; i++) {
        rig_frame(&rig);
        frame = expect(&fast, i, 0);
        give_back(&fast, &frame);
    }
    int64_t before = cpu_ns();
    usleep(200000);
    CHECK(cpu_ns() - before < 100000000, "spins: %d ms", (int)((cpu_ns() - before) / 1000000));
    uint64_t got = 0;
    uint64_t seen = 0, last = 0;
    struct timeval soon = {.tv_usec = 200000};
    setsockopt(deaf.fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    while (next_frame(&deaf, &frame)) {
        CHECK(got == 0 || frame.header.sequence == last + 1, "a gap at %d", (int)last);
        last = frame.header.sequence;
        got++;
    }
    CHECK(got > 4 && got < 1990, "it was never blocked: %d", (int)got);
    for (uint64_t i = 2000; i < 2010; i++) {
        rig_frame(&rig);
        frame = expect(&fast, i, 0);
        give_back(&fast, &frame);
        CHECK(next_frame(&deaf, &frame), "it does not wake");
        seen += is_intact(&deaf, &frame);
        give_back(&deaf, &frame);
        CHECK(frame.header.lost == frame.header.sequence - got - (i - 2000), "lost %d of %d",
              (int)frame.header.lost, (int)frame.header.sequence);
    }
    CHECK(seen == 10, "%d of its frames are there", (int)seen);
    quit(&deaf);
    quit(&fast);
    rig_close(&rig, 1000);
}

// The camera waits for returns; a client that leaves passes its slots to the next.
static void test_wait(void)
{
    const int frames = 200;
    pthread_t camera;
    struct framed_ring_frame frame;
    start(OVERFLOW_WAIT, 4);
    rig.last = (uint64_t)frames;
    pthread_create(&camera, NULL, rig_camera, &rig);
    struct ring_consumer first = join(1);
    for (uint64_t i = 0; i < 10; i++) {
        frame = expect(&first, i, 0);
        if (i < 7)
            give_back(&first, &frame);
    }
    CHECK(reaches(&rig.ledger.emitted, 7), "%d emitted", (int)rig_emitted(&rig));
    quit(&first);
    CHECK(rig_has_clients(&rig, 0), "%d clients", rig_clients(&rig));
    struct ring_consumer second = join(1);
    for (uint64_t i = 7; i < (uint64_t)frames; i++) {
        frame = expect(&second, i, 0);
        CHECK(is_intact(&second, &frame), "frame %d", (int)i);
        give_back(&second, &frame);
    }
    pthread_join(camera, NULL);
    rig_close(&rig, 1000);
    quit(&second);
    CHECK(rig.ledger.emitted == (uint64_t)frames && ledger_lost(&rig.ledger) == 0, "%d lost",
          (int)ledger_lost(&rig.ledger));
}

// Slots returned with a client's last message are not read again by the next client.
static void test_wait_last_returns(void)
{
    struct framed_ring_frame frame;
    struct framed_ring_return returns[2];
    start(OVERFLOW_WAIT, 4);
    struct ring_consumer first = join(1);
    for (uint64_t i = 0; i < 3; i++) {
        rig_frame(&rig);
        frame = expect(&first, i, 0);
        if (i < 2)
            returns[i] = returned(&frame);
    }
    CHECK(send(first.fd, returns, sizeof returns, 0) == sizeof returns, "send");
    quit(&first);
    CHECK(rig_has_clients(&rig, 0), "%d clients", rig_clients(&rig));
    CHECK(rig_emitted(&rig) == 2, "%d emitted", (int)rig_emitted(&rig));
    struct ring_consumer second = join(1);
    frame = expect(&second, 2, 0);
    give_back(&second, &frame);
    CHECK(reaches(&rig.ledger.emitted, 3), "%d emitted", (int)rig_emitted(&rig));
    quit(&second);
    rig_close(&rig, 1000);
}

// More slots than a socket takes messages: the rest is sent when there is room.
static void test_wait_for_deaf(void)
{
    enum { SLOTS = 256 };
    struct framed_ring_frame frame = {0};
    start(OVERFLOW_WAIT, SLOTS);
    struct ring_consumer deaf = join(1);
    for (int i = 0; i < SLOTS; i++)
        rig_frame(&rig);
    for (uint64_t i = 0; i < SLOTS; i++) {
        frame = expect(&deaf, i, 0);
        CHECK(is_intact(&deaf, &frame), "frame %d", (int)i);
        give_back(&deaf, &frame);
    }
    CHECK(reaches(&rig.ledger.emitted, SLOTS), "%d emitted", (int)rig_emitted(&rig));
    quit(&deaf);
    rig_close(&rig, 1000);
}

// Returns in one message, as a client's last action.
static void test_last_returns(bool unread)
{
    struct framed_ring_return returns[4];
    start(OVERFLOW_DROP_OLDEST, 6);
    struct ring_consumer consumer = join(1);
    for (uint64_t i = 0; i < 4; i++) {
        rig_frame(&rig);
        struct framed_ring_frame frame = expect(&consumer, i, 0);
        returns[i] = returned(&frame);
    }
    if (unread) // unread data makes the kernel report a reset
        rig_frame(&rig);
    CHECK(send(consumer.fd, returns, sizeof returns, 0) == sizeof returns, "send");
    quit(&consumer);
    CHECK(rig_has_clients(&rig, 0), "still there");
    CHECK(rig_emitted(&rig) == 4 && rig_lost(&rig, LOSS_CLIENT) == unread, "%d emitted, %d lost",
          (int)rig_emitted(&rig), (int)rig_lost(&rig, LOSS_CLIENT));
    rig_close(&rig, 1000);
}

static void test_garbage(void)
{
    static const char bytes[257 * sizeof(struct framed_ring_return)]; // one more than allowed
    static const struct framed_ring_return number = {.slot = 4, .ticket = 1},
                                           reserved = {.slot = 0, .reserved = 1, .ticket = 1};
    const struct {
        const void *bytes;
        size_t size;
    } wrong[] = {{bytes, 1},
                 {bytes, 15},
                 {bytes, 17},
                 {bytes, 0},
                 {bytes, sizeof bytes},
                 {&number, sizeof number},
                 {&reserved, sizeof reserved}};
    start(OVERFLOW_DROP_OLDEST, 4);
    struct ring_consumer good = join(1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char rest[512];
        struct ring_consumer bad = join(2);
        rig_frame(&rig);
        struct framed_ring_frame frame = expect(&good, i, 0);
        CHECK(send(bad.fd, wrong[i].bytes, wrong[i].size, 0) == (ssize_t)wrong[i].size, "send");
        CHECK(rig_has_clients(&rig, 1), "%d is taken for a return", (int)i);
        while (recv(bad.fd, rest, sizeof rest, 0) > 0)
            ;
        CHECK(is_intact(&good, &frame), "the good one lost its frame");
        give_back(&good, &frame);
        quit(&bad);
    }
    quit(&good);
    rig_close(&rig, 1000);
}

// Checks that each result belongs to the frame lent with its ticket.
struct found_check {
    struct results_receiver receiver;
    uint64_t ticket; // of sequence 0
    int n, wrong;
};

static struct found_check found_check;

static void check_found(struct results_receiver *receiver, const struct found *found)
{
    struct found_check *check = (struct found_check *)receiver;
    check->n++;
    check->wrong += found->ticket - found->sequence != check->ticket;
}

static void add_found_check(struct rig *of)
{
    results_add_receiver(of->results, &found_check.receiver);
}

// A client that returns nothing: frames that it was just told of are revoked for the next ones,
// while results still record the original frame.
static void test_results_of_revoked(void)
{
    struct framed_ring_result message = {.magic = FRAMED_RING_RESULT_MAGIC,
                                         .version = FRAMED_VERSION};
    struct framed_ring_frame frame;
    pthread_t camera;
    start(OVERFLOW_DROP_OLDEST, 3);
    found_check = (struct found_check){.receiver = {.take = check_found}};
    on_loop(&rig, add_found_check);
    struct ring_consumer consumer = join(1);
    rig_frame(&rig);
    frame = expect(&consumer, 0, 0);
    found_check.ticket = frame.ticket;
    rig.last = 100000;
    pthread_create(&camera, NULL, rig_camera, &rig);
    while (frame.header.sequence < rig.last - 1 && next_frame(&consumer, &frame)) {
        message.slot = frame.slot;
        message.ticket = frame.ticket;
        CHECK(send(consumer.fd, &message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send");
    }
    pthread_join(camera, NULL);
    quit(&consumer);
    CHECK(rig_has_clients(&rig, 0), "the client is still there");
    CHECK(found_check.n > 0 && found_check.wrong == 0, "%d of %d results are of other frames",
          found_check.wrong, found_check.n);
    rig_close(&rig, 1000);
}

static void test_finish(void)
{
    start(OVERFLOW_DROP_OLDEST, 4);
    struct ring_consumer slow = join(1);
    rig_frame(&rig);
    rig_frame(&rig);
    struct framed_ring_frame frame = expect(&slow, 0, 0);
    give_back(&slow, &frame);
    CHECK(reaches(&rig.ledger.emitted, 1), "%d emitted", (int)rig_emitted(&rig));
    rig_close(&rig, 50); // frame 1 does not come back
    CHECK(rig.ledger.lost[LOSS_STOPPING] == 1, "%d", (int)rig.ledger.lost[LOSS_STOPPING]);
    frame = expect(&slow, 1, 0);
    CHECK(!next_frame(&slow, &frame), "no end");
    quit(&slow);
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    TEST(test_hello());
    TEST(test_many_clients());
    TEST(test_geometry());
    TEST(test_device(RING_CUDA));
    TEST(test_device(RING_CUDA_IPC));
    TEST(test_stuck_beside_fast());
    TEST(test_stuck_under_drop_newest());
    TEST(test_expiry(OVERFLOW_DROP_OLDEST));
    TEST(test_expiry(OVERFLOW_DROP_NEWEST));
    TEST(test_expiry(OVERFLOW_WAIT));
    TEST(test_default_age(OVERFLOW_DROP_OLDEST));
    TEST(test_default_age(OVERFLOW_WAIT));
    test_ends(true);
    test_ends(false);
    TEST(test_full_socket());
    TEST(test_wait());
    TEST(test_wait_last_returns());
    TEST(test_wait_for_deaf());
    TEST(test_last_returns(false));
    TEST(test_last_returns(true));
    TEST(test_garbage());
    TEST(test_results_of_revoked());
    TEST(test_finish());
    return test_end();
}
