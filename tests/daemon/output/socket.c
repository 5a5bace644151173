// Socket sinks with many, late, stalled and dying clients, with every overflow policy.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "tests/daemon/output/fixture.h"

static struct rig rig;

static void start(enum sink_kind kind, enum overflow overflow, int slots)
{
    rig_init(&rig, kind, "gate.sock");
    rig.config.overflow = overflow;
    rig.config.slots = slots;
    rig_open(&rig);
}

static void test_many_clients(enum sink_kind kind)
{
    enum { CLIENTS = 20, FRAMES = 40 };
    int fd[CLIENTS];
    start(kind, OVERFLOW_DROP_OLDEST, 4);
    for (int i = 0; i < CLIENTS; i++)
        fd[i] = reader_join(&rig, i + 1);
    for (int frame = 0; frame < FRAMES; frame++) {
        rig_frame(&rig);
        for (int i = 0; i < CLIENTS; i++)
            expect_frame(fd[i], (uint64_t)frame, 0);
    }
    CHECK(rig_emitted(&rig) == FRAMES, "%d emitted", (int)rig_emitted(&rig));
    for (int i = 0; i < CLIENTS; i++)
        close(fd[i]);
    rig_close(&rig, 1000);
}

static void test_nobody(void)
{
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    CHECK(rig_feed(&rig) == -ENOTCONN, "a slot for nobody");
    CHECK(rig_lost(&rig, LOSS_CLIENT) == 1, "counted otherwise");
    rig_close(&rig, 1000);
}

// Connects while another client is in the middle of a frame.
static void test_late_client(void)
{
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    rig_large(&rig);
    int early = reader_join(&rig, 1);
    for (int i = 0; i < 10; i++)
        rig_frame(&rig);
    int late = reader_join(&rig, 2);
    struct reader reader;
    reader_start(&reader, late);
    rig_frame(&rig);
    rig_frame(&rig);
    CHECK(reader_reaches(&reader, 2), "%d frames", reader.frames);
    CHECK(reader.seen[10] && reader.seen[11], "not the frames since it came");
    close(early);
    rig_close(&rig, 1000);
    pthread_join(reader.thread, NULL);
    CHECK(reader.frames == 2 && reader.lost == 0 && !reader.broken, "lost %d", (int)reader.lost);
}

static void test_stalled_beside_fast(enum sink_kind kind, enum overflow overflow)
{
    enum { FRAMES = 60, SLOTS = 6 };
    struct reader fast, woken;
    start(kind, overflow, SLOTS);
    rig_large(&rig);
    int stalled = reader_join(&rig, 1);
    // It stalls within a frame before the other client connects, and more frames queue for it.
    int before = kind == SINK_TCP ? 12 : SLOTS; // on tcp the kernel takes several of them
    for (int i = 0; i < before; i++)
        rig_frame(&rig);
    reader_start(&fast, reader_join(&rig, 2));
    bool keeps_up = true;
    for (int i = 0; keeps_up && i < FRAMES; i++) {
        rig_frame(&rig);
        keeps_up = reader_reaches(&fast, i + 1);
    }
    CHECK(keeps_up, "the fast one has %d of %d", fast.frames, FRAMES);
    CHECK(fast.lost == 0 && fast.last == rig.ordinal - 1, "the fast one lost %d", (int)fast.lost);

    reader_start(&woken, stalled);
    for (int i = 0; i < 100 && !woken.seen[rig.ordinal - 1]; i++) {
        rig_frame(&rig);
        usleep(10000);
    }
    CHECK(woken.lost + (uint64_t)woken.frames == woken.last + 1, "lost %d read %d last %d",
          (int)woken.lost, woken.frames, (int)woken.last);
    uint64_t second = (uint64_t)(before + FRAMES - SLOTS);
    int old = 0; // frames beyond the kernel's and the pool's
    for (uint64_t i = (uint64_t)before; i < second; i++)
        old += woken.seen[i];
    CHECK(old == 0, "%d frames older than the queue", old);
    rig_close(&rig, 30000); // ends once both have all
    pthread_join(fast.thread, NULL);
    pthread_join(woken.thread, NULL);
    CHECK(!fast.broken && !woken.broken, "cut short");
}

// Successive clients read 0, 1, 2... bytes of a frame and leave; a witness gets everything.
static void test_death_at_any_byte(enum sink_kind kind)
{
    enum { WHOLE = sizeof(struct framed_header) + SMALL };
    char bytes[WHOLE];
    start(kind, OVERFLOW_DROP_OLDEST, 4);
    int witness = reader_join(&rig, 1);
    for (int k = 0; k <= WHOLE; k++) {
        int fd = reader_join(&rig, 2);
        rig_frame(&rig);
        CHECK(read_up_to(fd, bytes, (size_t)k) == (size_t)k, "%d bytes", k);
        close(fd);
        expect_frame(witness, (uint64_t)2 * (uint64_t)k, 0);
        rig_frame(&rig); // on tcp, unread bytes are answered with a reset
        expect_frame(witness, (uint64_t)2 * (uint64_t)k + 1, 0);
        CHECK(rig_has_clients(&rig, 1), "%d clients after %d bytes", rig_clients(&rig), k);
    }
    CHECK(rig_emitted(&rig) == rig.ordinal, "%d emitted", (int)rig_emitted(&rig));
    close(witness);
    rig_close(&rig, 1000);
}

// The same while the sink is in the middle of a frame: no client gets all of it.
static void test_death_within_a_frame(void)
{
    static char bytes[LARGE];
    const size_t cuts[] = {0, 1, 255, 256, 257, 4096, 100000, 500000};
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    rig_large(&rig);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        int fd = reader_join(&rig, 1);
        rig_frame(&rig);
        CHECK(read_up_to(fd, bytes, cuts[i]) == cuts[i], "%zu bytes", cuts[i]);
        close(fd);
        CHECK(rig_has_clients(&rig, 0), "still there after %zu bytes", cuts[i]);
        CHECK(rig_lost(&rig, LOSS_CLIENT) == i + 1 && rig_emitted(&rig) == 0, "%d lost",
              (int)rig_lost(&rig, LOSS_CLIENT));
    }
    rig_close(&rig, 1000);
}

// More clients stall within different frames than there are slots. Some die, some wake up: the
// ledger must have exactly the frames that at least one of them read whole.
static void test_more_stalled_than_slots(bool beside_fast)
{
    enum { STALLED = 12 };
    static struct reader reader[STALLED], fast;
    int fd[STALLED];
    uint64_t whole = 0;
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    rig_large(&rig);
    if (beside_fast)
        reader_start(&fast, reader_join(&rig, 1));
    for (int i = 0; i < STALLED; i++) {
        fd[i] = reader_join(&rig, beside_fast + i + 1);
        rig_frame(&rig);
        CHECK(!beside_fast || reader_reaches(&fast, i + 1), "the fast one waits at %d", i);
    }
    for (int i = 0; i < STALLED; i += 3)
        close(fd[i]);
    CHECK(rig_has_clients(&rig, beside_fast + STALLED - 4), "%d clients", rig_clients(&rig));
    for (int i = 0; i < STALLED; i++)
        if (i % 3)
            reader_start(&reader[i], fd[i]);
    for (int i = 0; i < STALLED; i++)
        CHECK(i % 3 == 0 || reader_reaches(&reader[i], 1), "client %d did not wake", i);
    uint64_t fed = rig.ordinal;
    rig_close(&rig, 5000);
    for (int i = 0; i < STALLED; i++) {
        if (i % 3 == 0)
            continue;
        pthread_join(reader[i].thread, NULL);
        CHECK(reader[i].seen[i] && !reader[i].broken, "client %d lacks its first frame", i);
    }
    if (beside_fast)
        pthread_join(fast.thread, NULL);
    CHECK(!beside_fast || (fast.frames == STALLED && fast.lost == 0), "fast: %d", fast.frames);
    for (uint64_t frame = 0; frame < fed; frame++) {
        bool seen = beside_fast && fast.seen[frame];
        for (int i = 0; i < STALLED; i++)
            seen |= i % 3 && reader[i].seen[frame];
        whole += seen;
    }
    CHECK(rig.ledger.emitted == whole, "%d emitted, %d read", (int)rig.ledger.emitted, (int)whole);
}

// All clients keep the same frame without its slot, which later frames reuse; then they leave.
static void test_carried_by_all(bool one_reads)
{
    struct reader reader;
    int fd[3];
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 2);
    rig_large(&rig);
    for (int i = 0; i < 3; i++)
        fd[i] = reader_join(&rig, i + 1);
    rig_frame(&rig);
    rig_frame(&rig);
    rig_frame(&rig); // the slot of frame 0 now holds another one
    close(fd[0]);
    CHECK(rig_has_clients(&rig, 2), "%d clients", rig_clients(&rig));
    CHECK(ledger_in_flight(&rig.ledger) >= 1 && rig_lost(&rig, LOSS_CLIENT) == 0, "counted early");
    if (one_reads)
        reader_start(&reader, fd[1]);
    else
        close(fd[1]);
    CHECK(!one_reads || reader_reaches(&reader, 1), "frame 0 does not come");
    close(fd[2]);
    rig_close(&rig, 5000);
    if (!one_reads) {
        CHECK(rig.ledger.emitted == 0, "%d emitted", (int)rig.ledger.emitted);
        return;
    }
    pthread_join(reader.thread, NULL);
    CHECK(rig.ledger.emitted == (uint64_t)reader.frames, "%d emitted, %d read",
          (int)rig.ledger.emitted, reader.frames);
}

// --- policies

// The camera waits for a first client, and for the next one when that leaves: together they read
// every frame.
static void test_wait(void)
{
    const int frames = 30;
    pthread_t camera;
    struct reader second;
    static char bytes[LARGE];
    rig_init(&rig, SINK_UNIX, "gate.sock");
    rig.config.overflow = OVERFLOW_WAIT;
    rig_large(&rig);
    rig_open(&rig);
    rig.last = (uint64_t)frames;
    pthread_create(&camera, NULL, rig_camera, &rig);
    usleep(50000);
    CHECK(ledger_lost(&rig.ledger) == 0 && rig_emitted(&rig) == 0, "lost before the first client");

    int first = reader_open(&rig);
    for (uint64_t i = 0; i < 5; i++)
        expect_frame(first, i, 0);
    CHECK(read_up_to(first, bytes, 1000) == 1000, "no frame 5");
    close(first);
    usleep(50000);
    reader_start(&second, reader_open(&rig));
    pthread_join(camera, NULL);
    CHECK(reader_reaches(&second, frames - 5), "the second has %d", second.frames);
    CHECK(second.seen[5] && second.lost == 0, "frame 5 is not handed on");
    CHECK(ledger_lost(&rig.ledger) == 0, "%d lost", (int)ledger_lost(&rig.ledger));
    rig_close(&rig, 5000);
    pthread_join(second.thread, NULL);
    CHECK(rig.ledger.emitted == (uint64_t)frames, "%d emitted", (int)rig.ledger.emitted);
}

static void test_drop_newest(void)
{
    struct reader reader;
    start(SINK_UNIX, OVERFLOW_DROP_NEWEST, 4);
    rig_large(&rig);
    int stalled = reader_join(&rig, 1);
    for (int i = 0; i < 20; i++)
        rig_frame(&rig);
    CHECK(rig_lost(&rig, LOSS_OVERFLOW) == 16, "%d lost", (int)rig_lost(&rig, LOSS_OVERFLOW));
    reader_start(&reader, stalled);
    CHECK(reader_reaches(&reader, 4), "%d frames", reader.frames);
    on_loop(&rig, rig_pump);
    rig_frame(&rig);
    CHECK(reader_reaches(&reader, 5), "%d frames", reader.frames);
    rig_close(&rig, 5000);
    pthread_join(reader.thread, NULL);
    for (int i = 0; i < 4; i++)
        CHECK(reader.seen[i], "frame %d", i);
    CHECK(reader.seen[20] && reader.lost == 16, "lost %d", (int)reader.lost);
    CHECK(rig.ledger.emitted == 5, "%d emitted", (int)rig.ledger.emitted);
}

static void test_max_age(void)
{
    struct reader reader;
    rig_init(&rig, SINK_UNIX, "gate.sock");
    rig.config.max_age.ns = 300 * 1000000;
    rig_large(&rig);
    rig_open(&rig);
    int stalled = reader_join(&rig, 1);
    for (int i = 0; i < 3; i++)
        rig_frame(&rig);
    usleep(400000);
    reader_start(&reader, stalled);
    CHECK(reader_reaches(&reader, 1), "frame 0, which was on its way, does not come");
    on_loop(&rig, rig_pump);
    CHECK(rig_lost(&rig, LOSS_LATE) == 2, "%d late", (int)rig_lost(&rig, LOSS_LATE));
    rig_frame(&rig);
    CHECK(reader_reaches(&reader, 2), "frame 3 does not come");
    rig_close(&rig, 5000);
    pthread_join(reader.thread, NULL);
    CHECK(reader.last == 3 && reader.lost == 2, "last %d lost %d", (int)reader.last,
          (int)reader.lost);
}

// The kernel holds one small frame for a stalled reader with max_age, though there is room for
// hundreds: the reader finds only that frame, and the next one is new.
static void test_stall_leaves_one_frame(void)
{
    rig_init(&rig, SINK_UNIX, "gate.sock");
    rig.config.max_age.ns = 1000000000;
    rig_open(&rig);
    int fd = reader_join(&rig, 1);
    for (int i = 0; i < 20; i++)
        rig_frame(&rig);
    usleep(1200000);
    rig_frame(&rig);
    expect_frame(fd, 0, 0);
    expect_frame(fd, 20, 19);
    for (uint64_t i = 21; i < 30; i++) { // a reader that goes on gets every frame
        rig_frame(&rig);
        expect_frame(fd, i, 19);
    }
    CHECK(rig_lost(&rig, LOSS_OVERFLOW) + rig_lost(&rig, LOSS_LATE) == 19, "%d lost",
          (int)ledger_lost(&rig.ledger));
    close(fd);
    rig_close(&rig, 1000);
}

// On tcp the kernel takes at most part of a frame beyond the reader's own buffer: at most two
// frames come late, while an unlimited send buffer would hold several.
static void test_stall_over_tcp(void)
{
    struct reader reader;
    int old = 0;
    rig_init(&rig, SINK_TCP, "gate.sock");
    rig.receive_buffer = 16384;
    rig.config.max_age.ns = 500000000;
    rig.width = 1000;
    rig.height = 300;
    rig_open(&rig);
    int fd = reader_join(&rig, 1);
    for (int i = 0; i < 12; i++)
        rig_frame(&rig);
    usleep(700000);
    rig_frame(&rig);
    reader_start(&reader, fd);
    for (int i = 0; i < 5000 && !reader.seen[12]; i++)
        usleep(1000);
    CHECK(reader.seen[12], "the new frame does not come");
    for (int i = 0; i < 12; i++)
        old += reader.seen[i];
    CHECK(old >= 1 && old <= 2, "%d frames from before the stall", old);
    rig_close(&rig, 5000);
    pthread_join(reader.thread, NULL);
    CHECK(!reader.broken && reader.lost == (uint64_t)(12 - old), "lost %d", (int)reader.lost);
}

static int reader_of_turn, sent_in_turn;

// Enlarges the sink's end of the only connection. Returns false if the kernel refuses.
static bool widen_connection(void)
{
    const int wanted = 4 * LARGE;
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_un name;
        socklen_t length = sizeof name, size = sizeof(int);
        int room = 0;
        if (fd == reader_of_turn || getpeername(fd, (struct sockaddr *)&name, &length) < 0 ||
            name.sun_family != AF_UNIX)
            continue;
        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof wanted) < 0)
            setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
        return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) == 0 && room >= wanted;
    }
    return false;
}

static void take_one_turn(struct rig *rig)
{
    sink_pump(rig->sink);
    ioctl(reader_of_turn, FIONREAD, &sent_in_turn);
}

// However much the kernel takes, the loop thread copies part of a frame and then serves the others.
static void test_budget_of_a_turn(void)
{
    struct reader reader;
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    rig_large(&rig);
    reader_of_turn = reader_join(&rig, 1);
    if (!widen_connection()) {
        close(reader_of_turn);
        rig_close(&rig, 1000);
        SKIP("the kernel has no room for a frame in a socket");
        return;
    }
    CHECK(rig_feed(&rig) == 0 && rig_feed(&rig) == 0, "feed");
    on_loop(&rig, take_one_turn);
    CHECK(sent_in_turn > 0 && sent_in_turn <= LARGE / 2, "%d bytes in one turn", sent_in_turn);
    reader_start(&reader, reader_of_turn);
    CHECK(reader_reaches(&reader, 2), "%d frames", reader.frames);
    rig_close(&rig, 5000);
    pthread_join(reader.thread, NULL);
    CHECK(reader.frames == 2 && !reader.broken, "%d frames", reader.frames);
}

// --- coming and going

static int talker;
static char noise[1 << 20];

// Runs on the loop's thread, so that the sink finds all of it at once.
static void fill_talker(struct rig *rig)
{
    (void)rig;
    while (send(talker, noise, sizeof noise, MSG_DONTWAIT) > 0)
        ;
}

// A reader sends, then closes its direction: the stream goes on, and the loop does not spin.
static void test_half_close(enum sink_kind kind)
{
    start(kind, OVERFLOW_DROP_OLDEST, 4);
    int fd = talker = reader_join(&rig, 1);
    on_loop(&rig, fill_talker);
    CHECK(send(fd, noise, sizeof noise, 0) == sizeof noise, "send: %s", strerror(errno));
    rig_frame(&rig);
    expect_frame(fd, 0, 0);
    shutdown(fd, SHUT_WR);
    usleep(20000);
    int64_t before = cpu_ns();
    usleep(200000);
    CHECK(cpu_ns() - before < 100000000, "spins: %d ms", (int)((cpu_ns() - before) / 1000000));
    for (uint64_t i = 1; i < 5; i++) {
        rig_frame(&rig);
        expect_frame(fd, i, 0);
    }
    close(fd);
    rig_close(&rig, 1000);
}

// A close is noticed without any frame: a unix socket's end, and a reset.
static void test_close_is_noticed(enum sink_kind kind)
{
    struct linger reset = {.l_onoff = 1};
    start(kind, OVERFLOW_DROP_OLDEST, 4);
    int fd = reader_join(&rig, 1);
    if (kind == SINK_TCP)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    CHECK(rig_has_clients(&rig, 0), "%d clients", rig_clients(&rig));
    rig_close(&rig, 1000);
}

static void test_client_limit(void)
{
    enum { LIMIT = 70 };
    int fd[LIMIT];
    char byte;
    rig_init(&rig, SINK_UNIX, "gate.sock");
    rig.config.clients = LIMIT;
    rig_open(&rig);
    for (int i = 0; i < LIMIT; i++)
        fd[i] = reader_join(&rig, i + 1);
    int refused = reader_open(&rig);
    CHECK(recv(refused, &byte, 1, 0) == 0, "one more is not closed");
    close(fd[0]);
    CHECK(rig_has_clients(&rig, LIMIT - 1), "%d clients", rig_clients(&rig));
    fd[0] = reader_join(&rig, LIMIT);
    for (int i = 0; i < LIMIT; i++)
        close(fd[i]);
    close(refused);
    rig_close(&rig, 1000);
}

// Without a free descriptor, the new client waits in the queue, and the loop sleeps.
static void test_no_descriptors(void)
{
    struct rlimit limit, none;
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    memcpy(path.sun_path, rig.path, sizeof path.sun_path);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = (struct rlimit){(rlim_t)fd, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    CHECK(connect(fd, (struct sockaddr *)&path, sizeof path) == 0, "connect");
    int64_t before = cpu_ns();
    usleep(600000);
    CHECK(cpu_ns() - before < 200000000, "spins: %d ms", (int)((cpu_ns() - before) / 1000000));
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK(rig_has_clients(&rig, 1), "%d clients", rig_clients(&rig));
    close(fd);
    rig_close(&rig, 1000);
}

// y4m cannot change its size: the connection ends with the frame, and a new one starts with the
// size.
static void test_geometry_ends_y4m(void)
{
    char bytes[512];
    rig_init(&rig, SINK_UNIX, "gate.sock");
    rig.config.protocol = PROTOCOL_Y4M;
    rig_open(&rig);
    int fd = reader_join(&rig, 1);
    rig_frame(&rig);
    rig_frame(&rig);
    rig.width = SMALL / 2;
    rig_frame(&rig);
    size_t n = read_up_to(fd, bytes, sizeof bytes);
    const char *header = "YUV4MPEG2 W64 H1 F25:1 Ip A1:1 Cmono XCOLORRANGE=FULL\n";
    CHECK(n == strlen(header) + 2 * (strlen("FRAME\n") + SMALL), "%zu bytes before the end", n);
    CHECK(memcmp(bytes, header, strlen(header)) == 0, "%.60s", bytes);
    close(fd);
    fd = reader_join(&rig, 1);
    rig_frame(&rig);
    CHECK(read_up_to(fd, bytes, 14) == 14 && memcmp(bytes, "YUV4MPEG2 W32 ", 14) == 0, "%.14s",
          bytes);
    close(fd);
    rig_close(&rig, 1000);
    CHECK(rig.ledger.emitted == 3 && rig.ledger.lost[LOSS_CLIENT] == 1, "%d emitted",
          (int)rig.ledger.emitted);
}

static void test_finish_drains(enum sink_kind kind, int64_t max_age_ns)
{
    struct reader reader;
    rig_init(&rig, kind, "gate.sock");
    rig.config.overflow = OVERFLOW_WAIT;
    rig.config.max_age.ns = max_age_ns;
    if (max_age_ns == 0)
        rig_large(&rig);
    rig_open(&rig);
    int fd = reader_join(&rig, 1);
    for (int i = 0; i < 4; i++)
        rig_frame(&rig);
    reader_start(&reader, fd);
    rig_close(&rig, 5000);
    pthread_join(reader.thread, NULL);
    CHECK(reader.frames == 4 && !reader.broken, "%d frames", reader.frames);
    CHECK(rig.ledger.emitted == 4, "%d emitted", (int)rig.ledger.emitted);
}

static void test_finish_gives_up(void)
{
    start(SINK_UNIX, OVERFLOW_DROP_OLDEST, 4);
    rig_large(&rig);
    int fd = reader_join(&rig, 1);
    for (int i = 0; i < 3; i++)
        rig_frame(&rig);
    int64_t before = monotonic_ns();
    rig_close(&rig, 100);
    CHECK(monotonic_ns() - before < 2000000000, "took too long");
    CHECK(rig.ledger.lost[LOSS_STOPPING] == 3, "%d", (int)rig.ledger.lost[LOSS_STOPPING]);
    close(fd);
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    TEST(test_nobody());
    TEST(test_many_clients(SINK_UNIX));
    TEST(test_many_clients(SINK_TCP));
    TEST(test_late_client());
    TEST(test_stalled_beside_fast(SINK_UNIX, OVERFLOW_DROP_OLDEST));
    TEST(test_stalled_beside_fast(SINK_UNIX, OVERFLOW_DROP_NEWEST));
    TEST(test_stalled_beside_fast(SINK_TCP, OVERFLOW_DROP_OLDEST));
    TEST(test_death_at_any_byte(SINK_UNIX));
    TEST(test_death_at_any_byte(SINK_TCP));
    TEST(test_death_within_a_frame());
    TEST(test_more_stalled_than_slots(true));
    TEST(test_more_stalled_than_slots(false));
    TEST(test_carried_by_all(true));
    TEST(test_carried_by_all(false));
    TEST(test_wait());
    TEST(test_drop_newest());
    TEST(test_max_age());
    TEST(test_stall_leaves_one_frame());
    TEST(test_stall_over_tcp());
    TEST(test_budget_of_a_turn());
    TEST(test_half_close(SINK_UNIX));
    TEST(test_half_close(SINK_TCP));
    TEST(test_close_is_noticed(SINK_UNIX));
    TEST(test_close_is_noticed(SINK_TCP));
    TEST(test_client_limit());
    TEST(test_no_descriptors());
    TEST(test_geometry_ends_y4m());
    TEST(test_finish_drains(SINK_UNIX, 0));
    TEST(test_finish_drains(SINK_UNIX, INT64_C(3600000000000)));
    TEST(test_finish_drains(SINK_TCP, INT64_C(3600000000000)));
    TEST(test_finish_gives_up());
    return test_end();
}
