// Packets from a camera to its recorder: bounded, from keyframe to keyframe, all accounted for.
#include "daemon/output/packet_queue.h"

#include <libavcodec/avcodec.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

#define SECOND 1000000000LL

enum { GOP = 5, BYTES = 1000 };

static struct ledger ledger;
static _Atomic bool stop;
static AVPacket *av;
static AVCodecParameters *stream;

// Memory of a keyframe and GOP - 1 other packets.
static size_t group_bytes;

static struct packet_queue *open_queue(int64_t before_ns, bool waits)
{
    struct packet_queue *queue = NULL;
    const struct packet_queue_options options = {
        .before_ns = before_ns,
        .before_bytes_max = 8 * group_bytes,
        .bytes_max = 2 * group_bytes,
        .waits = waits,
        .ledger = &ledger,
    };
    memset(&ledger, 0, sizeof ledger);
    atomic_store(&stop, false);
    CHECK(packet_queue_open(&queue, &options) == 0, "open");
    return queue;
}

// Adds picture `number`, a keyframe if GOP divides it.
static bool add(struct packet_queue *queue, int number, int64_t received_ns)
{
    const struct packet packet = {
        .av = av,
        .pts_ns = number,
        .received_ns = received_ns,
        .keyframe = number % GOP == 0,
    };
    return packet_queue_add(queue, &packet, stream, &stop);
}

// Takes all packets: their numbers must be first, first + 1 and so on up to last.
static void expect(struct packet_queue *queue, int first, int last)
{
    struct queued_packet *packet;
    while ((packet = packet_queue_take(queue))) {
        CHECK(packet->pts_ns == first && (packet->stream != NULL) == (first % GOP == 0),
              "took %d, not %d", (int)packet->pts_ns, first);
        first++;
        ledger_emit(&ledger);
        queued_packet_free(packet);
    }
    CHECK(first == last + 1, "ended before %d, not behind %d", first, last);
}

static void expect_account(uint64_t offered, enum loss reason, uint64_t lost)
{
    CHECK(ledger.offered == offered && ledger.lost[reason] == lost &&
              ledger_lost(&ledger) == lost && ledger_in_flight(&ledger) == 0,
          "offered %d, %s %d, lost %d, in flight %d", (int)ledger.offered, loss_name(reason),
          (int)ledger.lost[reason], (int)ledger_lost(&ledger), (int)ledger_in_flight(&ledger));
}

static void test_always(void)
{
    struct packet_queue *queue = open_queue(0, false);
    for (int i = 3; i < 8; i++) // the first two are dropped
        CHECK(!add(queue, i, i) || i == 7, "told of %d", i);
    CHECK(packet_queue_has_next(queue), "has none");
    expect(queue, 5, 7);
    expect_account(5, LOSS_DAMAGED, 2);
    CHECK(!packet_queue_request(queue, INT64_MAX), "takes a request");
    CHECK(!packet_queue_clip_is_over(queue), "a clip is over");
    add(queue, 8, 8);
    packet_queue_close(queue);
    CHECK(ledger.offered == 6 && ledger.lost[LOSS_STOPPING] == 1, "what waits at the end");
}

// A packet without room is lost with all others up to the next keyframe; waiting ones stay whole.
static void test_overflow(void)
{
    struct packet_queue *queue = open_queue(0, false);
    bool told = false;
    for (int i = 0; i < 13; i++)
        told |= add(queue, i, i);
    CHECK(told, "not told though much waits");
    expect(queue, 0, 9);
    for (int i = 13; i < 17; i++)
        add(queue, i, i);
    expect(queue, 15, 16);
    expect_account(17, LOSS_OVERFLOW, 5);
    packet_queue_close(queue);
}

static void *take_later(void *opaque)
{
    usleep(100000);
    queued_packet_free(packet_queue_take(opaque));
    ledger_emit(&ledger);
    usleep(100000);
    atomic_store(&stop, true);
    return NULL;
}

static void test_waits(void)
{
    struct packet_queue *queue = open_queue(0, true);
    pthread_t thread;
    for (int i = 0; i < 10; i++)
        add(queue, i, i);
    const int64_t begun = monotonic_ns();
    pthread_create(&thread, NULL, take_later, queue);
    add(queue, 10, 10);
    CHECK(monotonic_ns() - begun > SECOND / 20, "did not wait for room");
    add(queue, 11, 11); // until it is stopped
    pthread_join(thread, NULL);
    expect(queue, 1, 10);
    expect_account(12, LOSS_OVERFLOW, 1);
    packet_queue_close(queue);
}

static void test_sinks(void)
{
    struct packet_queue *queue = open_queue(0, false);
    add(queue, 0, 0);
    packet_queue_set_sink(queue, POOL_SINK_REFUSED);
    packet_queue_set_sink(queue, POOL_SINK_OPEN);
    add(queue, 1, 1);
    CHECK(!packet_queue_has_next(queue), "its keyframe was lost");
    packet_queue_set_sink(queue, POOL_SINK_REFUSED);
    add(queue, 5, 5);
    expect(queue, 0, -1);
    expect_account(3, LOSS_SINK, 3);
    packet_queue_set_sink(queue, POOL_SINK_OPEN);
    add(queue, 6, 6);
    expect_account(4, LOSS_SINK, 4);
    add(queue, 10, 10);
    packet_queue_set_sink(queue, POOL_SINK_FINISHING);
    add(queue, 11, 11);
    expect(queue, 10, 10);
    CHECK(ledger.lost[LOSS_STOPPING] == 1, "added while it finishes");
    packet_queue_close(queue);
}

// Packets that came while a server was being connected are old.
static void test_skip(void)
{
    struct packet_queue *queue = open_queue(0, false);
    for (int i = 0; i < 4; i++)
        add(queue, i, i);
    queued_packet_free(packet_queue_take(queue));
    ledger_emit(&ledger);
    CHECK(!packet_queue_skip(queue, LOSS_SINK), "skips to a keyframe that is not there");
    for (int i = 4; i < 8; i++)
        add(queue, i, i);
    CHECK(packet_queue_skip(queue, LOSS_SINK), "does not skip");
    expect(queue, 5, 7);
    expect_account(8, LOSS_SINK, 4);
    packet_queue_close(queue);
}

// A clip begins with the first keyframe of the last 2 s, and ends when its time is over.
static void test_clips(void)
{
    struct packet_queue *queue = open_queue(2 * SECOND, false);
    const int64_t now = monotonic_ns();
    int number = 1; // ten pictures a second; the first three are dropped
    for (; number <= 43; number++)
        add(queue, number, now - (43 - number) * SECOND / 10);
    CHECK(!packet_queue_has_next(queue) && ledger.offered == 0, "takes packets without a request");
    CHECK(packet_queue_request(queue, now + SECOND / 2), "takes no request");
    CHECK(!packet_queue_clip_is_over(queue), "is over at once");
    expect(queue, 25, 43); // those up to 23 are older than 2 s
    for (; number <= 45; number++)
        add(queue, number, now + (number - 43) * SECOND / 10);
    CHECK(packet_queue_request(queue, now + SECOND * 6 / 10), "cannot be made longer");
    for (; number <= 60; number++)
        add(queue, number, now + (number - 43) * SECOND / 10);
    expect(queue, 44, 48);
    expect_account(24, LOSS_DAMAGED, 0);
    usleep(650000);
    CHECK(packet_queue_clip_is_over(queue), "is not over");
    packet_queue_close(queue);
}

// All remembered packets find room at once; their memory is limited in bytes.
static void test_large_clips(void)
{
    struct packet_queue *queue = open_queue(600 * SECOND, false);
    const int64_t now = monotonic_ns();
    for (int i = 0; i < 100; i++)
        add(queue, i, now);
    CHECK(packet_queue_request(queue, now + 5 * SECOND), "takes no request");
    for (int i = 100; i < 104; i++)
        add(queue, i, now);
    expect(queue, 60, 103);
    expect_account(44, LOSS_OVERFLOW, 0);
    packet_queue_close(queue);
}

// Clips that begin while the writer takes nothing share one limit.
static void test_clips_that_wait(void)
{
    struct packet_queue *queue = open_queue(600 * SECOND, false);
    struct queued_packet *packet;
    const int64_t now = monotonic_ns();
    int taken = 0;
    for (int i = 0; i < 40; i++)
        add(queue, i, now);
    for (int i = 0; i < 10; i++)
        CHECK(packet_queue_request(queue, now), "takes no request"); // each clip is over at once
    for (; (packet = packet_queue_take(queue)); queued_packet_free(packet), taken++)
        ledger_emit(&ledger);
    CHECK(taken == 10 * GOP, "%d packets wait", taken);
    expect_account(400, LOSS_OVERFLOW, 400 - 10 * GOP);
    packet_queue_close(queue);
}

// Groups remembered from before a reconnect stay, though the new connection begins with old
// packets; packets after those are dropped up to the next keyframe.
static void test_old_packets(void)
{
    for (int late = 0; late < 2; late++) {
        struct packet_queue *queue = open_queue(1000 * SECOND, false);
        const int64_t now = monotonic_ns();
        packet_queue_set_sink(queue, POOL_SINK_OPEN);
        for (int i = 0; i < 7; i++)
            add(queue, i, now);
        for (int i = 5; i < 7; i++)
            packet_queue_add(queue,
                             &(struct packet){.av = av,
                                              .pts_ns = i,
                                              .received_ns = now,
                                              .keyframe = i % GOP == 0,
                                              .old = true},
                             stream, &stop);
        if (late)
            add(queue, 8, now);
        CHECK(packet_queue_request(queue, INT64_MAX), "refused");
        expect(queue, 0, 6);
        add(queue, 9, now);
        expect(queue, 10, 9);
        for (int i = 10; i < 12; i++)
            add(queue, i, now);
        expect(queue, 10, 11);
        expect_account(10, LOSS_DAMAGED, 1);
        packet_queue_close(queue);
    }
}

static void test_eager(void)
{
    const struct packet_queue_options options = {
        .bytes_max = 100 * group_bytes, .eager = true, .ledger = &ledger};
    struct packet_queue *queue = NULL;
    CHECK(packet_queue_open(&queue, &options) == 0 && add(queue, 0, 0), "told of nothing");
    packet_queue_close(queue);
}

// Small pictures, which a camera's thread copies to buffers of 1 KiB: the process grows by no more
// than the queue's limit.
static void test_memory(void)
{
    enum { PACKETS = 20000, PICTURE = 300, BUFFER = 1 << 10, LIMIT = 4 << 20 };
    const struct packet_queue_options options = {.bytes_max = LIMIT, .ledger = &ledger};
    struct packet_queue *queue = NULL;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    SKIP("the memory of packets: a sanitizer has memory of its own");
    return;
#endif
    AVBufferPool *pool = av_buffer_pool_init(BUFFER, NULL);
    AVPacket *picture = av_packet_alloc();
    memset(&ledger, 0, sizeof ledger);
    CHECK(pool && picture && packet_queue_open(&queue, &options) == 0, "memory");
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < PACKETS; i++) {
        picture->buf = av_buffer_pool_get(pool);
        picture->data = picture->buf->data;
        picture->size = PICTURE;
        const struct packet packet = {.av = picture, .pts_ns = i, .keyframe = i == 0};
        packet_queue_add(queue, &packet, stream, &stop);
        av_packet_unref(picture);
    }
    const size_t grown = mallinfo2().uordblks - before;
    CHECK(grown <= LIMIT && grown > LIMIT / 4 * 3, "%zu bytes for a limit of %d", grown, LIMIT);
    CHECK(ledger.lost[LOSS_OVERFLOW] > 0, "nothing is lost");
    packet_queue_close(queue);
    av_packet_free(&picture);
    av_buffer_pool_uninit(&pool);
}

static size_t memory_of_group(void)
{
    const struct packet_queue_options options = {.bytes_max = 1 << 20, .ledger = &ledger};
    struct packet_queue *queue = NULL;
    struct queued_packet *packet;
    size_t bytes = 0;
    CHECK(packet_queue_open(&queue, &options) == 0, "open");
    for (int i = 0; i < GOP; i++)
        add(queue, i, i);
    for (; (packet = packet_queue_take(queue)); queued_packet_free(packet))
        bytes += packet->memory;
    packet_queue_close(queue);
    return bytes;
}

int main(void)
{
    av = av_packet_alloc();
    stream = avcodec_parameters_alloc();
    CHECK(av && stream && av_new_packet(av, BYTES) == 0, "memory");
    group_bytes = memory_of_group();
    CHECK(group_bytes > GOP * BYTES, "%zu bytes", group_bytes);
    TEST(test_always());
    TEST(test_overflow());
    TEST(test_waits());
    TEST(test_sinks());
    TEST(test_skip());
    TEST(test_clips());
    TEST(test_large_clips());
    TEST(test_clips_that_wait());
    TEST(test_old_packets());
    TEST(test_eager());
    TEST(test_memory());
    av_packet_free(&av);
    avcodec_parameters_free(&stream);
    return test_end();
}
