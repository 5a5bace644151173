// A stream counts as undecodable not while a keyframe may still come, nor for lack of packets, but
// soon if nothing is missing and still nothing can be decoded.
#include "daemon/codec/stall.h"

#include "tests/test.h"

static const int64_t MS = 1000000, START = 5000 * INT64_C(1000000000);
enum {
    PATIENCE_MS = 10000,
    SOME_PACKETS_MS = 28 * 40, // packets without a picture after others, until they are too many
};

struct stream {
    struct decode_stall stall;
    int64_t now_ms, pictures, failures;
    bool fails; // packets without a picture failed to decode
};

static bool put_packet(struct stream *s, bool keyframe)
{
    const struct packet packet = {.received_ns = START + s->now_ms * MS, .keyframe = keyframe};
    return decode_stall_packet(&s->stall, &packet, s->pictures, s->failures, PATIENCE_MS * MS);
}

// Feeds a picture per `decodes` packets (0: none), packets 40 ms apart, keyframes `keys_ms` apart
// (0: none), the first after `key_ms`. Returns the ms until the stall ends the connection; -1: not
// within `limit_ms`.
static int64_t run(struct stream *s, int64_t limit_ms, int64_t key_ms, int64_t keys_ms, int decodes)
{
    int64_t begin = s->now_ms;
    for (int64_t at = 0; at < limit_ms; at += 40) {
        const bool key = at == key_ms || (keys_ms && at > key_ms && (at - key_ms) % keys_ms == 0);
        s->now_ms = begin + at;
        if (put_packet(s, key))
            return at;
        const bool decoded = decodes && at / 40 % decodes == 0;
        s->pictures += decoded;
        s->failures += s->fails && !decoded;
    }
    return -1;
}

static void test_decodable(void)
{
    struct stream s = {0};
    CHECK(run(&s, 600000, 0, 1000, 1) == -1, "with keyframes");
    CHECK(run(&s, 600000, -1, 0, 1) == -1, "with none");
}

// A rare picture that a decoder makes of noise is no sign of life; a picture per four packets may
// be the stream's way.
static void test_few_pictures(void)
{
    struct stream s = {0};
    CHECK(run(&s, 600000, 0, 1000, 4) == -1, "one of four");
    s = (struct stream){0};
    CHECK(run(&s, 600000, 0, 1000, 25) == PATIENCE_MS, "one of twenty-five");
}

static void test_keyframes_that_fail(void)
{
    struct stream s = {0};
    CHECK(run(&s, 600000, 0, 1000, 0) == PATIENCE_MS, "from the start");
    decode_stall_connect(&s.stall);
    CHECK(run(&s, 600000, 4000, 1000, 0) == 4000 + PATIENCE_MS, "from the keyframe on");
    CHECK(s.stall.lasted_ns == (4000 + PATIENCE_MS) * MS, "%lld", (long long)s.stall.lasted_ns);
    decode_stall_connect(&s.stall);
    run(&s, 30000, 0, 1000, 1);
    CHECK(run(&s, 600000, 0, 1000, 0) == 2000 + PATIENCE_MS, "behind pictures");
}

// A camera joined far from its next keyframe gets more time on each attempt, until it shows one.
static void test_awaited_keyframe(void)
{
    struct stream s = {0};
    int64_t wait_ms[] = {20000, 40000, 80000, 160000, 320000, 600000, 600000};
    for (size_t i = 0; i < sizeof wait_ms / sizeof *wait_ms; i++) {
        decode_stall_connect(&s.stall);
        int64_t dry = run(&s, 1000000, -1, 0, 0);
        CHECK(dry == PATIENCE_MS + wait_ms[i], "try %zu: %lld ms", i, (long long)dry);
    }
    decode_stall_connect(&s.stall);
    CHECK(run(&s, 500000, 495000, 0, 0) == -1, "the keyframe came");
    run(&s, 2000, 0, 0, 1);
    int64_t dry = run(&s, 600000, -1, 0, 0);
    CHECK(dry == SOME_PACKETS_MS + PATIENCE_MS + 495000, "its distance is known: %lld ms",
          (long long)dry);
}

static void test_known_distance(void)
{
    struct stream s = {0};
    run(&s, 30000, 0, 2000, 1);
    CHECK(run(&s, 600000, -1, 0, 0) == SOME_PACKETS_MS + PATIENCE_MS + 2000, "two seconds");
    decode_stall_connect(&s.stall); // the time between two connections is no distance
    s.now_ms += 3600000;
    run(&s, 30000, 0, 1000, 1);
    decode_stall_connect(&s.stall);
    CHECK(run(&s, 600000, -1, 0, 0) == PATIENCE_MS + 2000, "still");
}

// A decoder holds back a number of pictures, however long they take.
static void test_low_rate(void)
{
    struct stream s = {0};
    int packets = 0;
    for (; !put_packet(&s, true); packets++)
        s.now_ms += 1000;
    CHECK(packets == 49, "%d packets", packets);
    decode_stall_connect(&s.stall);
    for (; !put_packet(&s, true); packets++)
        s.now_ms += 1000;
    CHECK(packets == 49 + 99, "%d packets, and twice as many", packets);
}

// An expected keyframe makes no difference, and an occasional picture neither.
static void test_failures(void)
{
    for (int decodes = 0; decodes <= 20; decodes += 20) {
        struct stream s = {0};
        run(&s, 30000, 0, 10000, 1);
        s.fails = true;
        const int64_t most_ms = decodes ? 1800 : 1040;
        const int64_t took_ms = run(&s, 60000, -1, 0, decodes);
        CHECK(took_ms >= 1000 && took_ms <= most_ms, "over after %lld ms", (long long)took_ms);
        CHECK(s.stall.lasted_ns >= 1000 * MS && s.stall.lasted_ns <= took_ms * MS, "%lld",
              (long long)s.stall.lasted_ns);
    }
}

// Each third packet may complete the stream's only picture; the others are parts of it.
static void test_failures_between_pictures(void)
{
    struct stream s = {.fails = true};
    CHECK(run(&s, 600000, 0, 1000, 3) == -1, "one of three");
}

// Attempts at a camera that is not to blame become rarer, until it shows pictures.
static void test_failures_again(void)
{
    struct stream s = {.fails = true};
    for (int64_t wait_ms = 1000, i = 0; i < 7; i++, wait_ms *= wait_ms < 32000 ? 2 : 1) {
        decode_stall_connect(&s.stall);
        const int64_t took_ms = run(&s, 600000, 0, 10000, 0);
        CHECK(took_ms >= wait_ms && took_ms <= wait_ms + 80, "try %d: %lld ms", (int)i,
              (long long)took_ms);
    }
    decode_stall_connect(&s.stall);
    run(&s, 10000, 0, 1000, 1);
    CHECK(run(&s, 600000, 0, 10000, 0) <= 1080, "behind pictures");
}

// At least five packets, however rare they are, and a burst does not count as a second.
static void test_failures_at_low_rate(void)
{
    struct stream s = {0};
    int packets = 0;
    for (; !put_packet(&s, true); packets++, s.failures++)
        s.now_ms += 1000;
    CHECK(packets == 5, "%d packets", packets);
    s = (struct stream){0};
    for (packets = 0; packets < 200 && !put_packet(&s, true); packets++, s.failures++)
        s.now_ms += 1;
    CHECK(packets == 200, "%d packets in as many ms", packets);
}

int main(void)
{
    TEST(test_decodable());
    TEST(test_few_pictures());
    TEST(test_keyframes_that_fail());
    TEST(test_awaited_keyframe());
    TEST(test_known_distance());
    TEST(test_low_rate());
    TEST(test_failures());
    TEST(test_failures_between_pictures());
    TEST(test_failures_again());
    TEST(test_failures_at_low_rate());
    return test_end();
}
