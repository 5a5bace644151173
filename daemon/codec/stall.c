#include "daemon/codec/stall.h"

enum {
    PICTURES_MIN = 4, // of 32 packets: a decoder sometimes makes a picture of noise
    PACKETS_MIN = 50, // a decoder may hold back as many, which takes long at a low rate
    STALLS_MAX = 5,
    FAILED_MIN = 5,  // packets, however fast they come
    FAILED_BACK = 4, // subtracted per picture: over a fifth of the packets with one is no noise
};
static const int64_t FAILING_NS = INT64_C(1000000000);
static const int64_t UNKNOWN_DISTANCE_NS = 20 * INT64_C(1000000000); // for cameras that save bits
static const int64_t DISTANCE_MAX_NS = 600 * INT64_C(1000000000);

void decode_stall_connect(struct decode_stall *stall)
{
    *stall = (struct decode_stall){
        .pictures = stall->pictures, .distance_ns = stall->distance_ns, .stalls = stall->stalls};
}

static void look_for_failures(struct decode_stall *stall, int64_t pictures, int64_t failures,
                              int64_t now_ns)
{
    if (pictures > stall->pictures)
        stall->failed = stall->failed > FAILED_BACK ? stall->failed - FAILED_BACK : 0;
    else if (failures > stall->failures)
        stall->failed++;
    stall->failures = failures;
    if (stall->failed == 0)
        stall->failed_ns = 0;
    else if (!stall->failed_ns)
        stall->failed_ns = now_ns;
}

// Waits twice as long after each connection that ended this way: the camera may not be to blame.
static bool keeps_failing(const struct decode_stall *stall, int64_t now_ns)
{
    return stall->failed >= FAILED_MIN && now_ns - stall->failed_ns >= FAILING_NS << stall->stalls;
}

static void look_for_pictures(struct decode_stall *stall, int64_t pictures)
{
    stall->recent = stall->recent << 1 | (pictures > stall->pictures);
    stall->pictures = pictures;
    if (__builtin_popcount(stall->recent) < PICTURES_MIN)
        return;
    stall->begun_ns = 0;
    stall->keyed = false;
    stall->stalls = 0;
}

static void count_from(struct decode_stall *stall, int64_t now_ns)
{
    stall->from_ns = now_ns;
    stall->packets = 0;
}

static void keyframe_came(struct decode_stall *stall, int64_t now_ns)
{
    const int64_t distance_ns = now_ns - stall->key_ns;
    if (distance_ns > stall->distance_ns)
        stall->distance_ns = distance_ns;
    stall->key_ns = now_ns;
    if (!stall->keyed)
        count_from(stall, now_ns);
    stall->keyed = true;
}

// Doubles the time after each stall. With a fixed time, a camera with rarer keyframes than expected
// that does not begin with one would never show a picture, nor would a decoder of many threads with
// a fixed number of packets.
static int64_t wait_for_keyframe_ns(const struct decode_stall *stall)
{
    int64_t distance = stall->distance_ns ? stall->distance_ns : UNKNOWN_DISTANCE_NS;
    for (int i = 0; i < stall->stalls && distance < DISTANCE_MAX_NS; i++)
        distance *= 2;
    return distance < DISTANCE_MAX_NS ? distance : DISTANCE_MAX_NS;
}

bool decode_stall_packet(struct decode_stall *stall, const struct packet *packet, int64_t pictures,
                         int64_t failures, int64_t patience_ns)
{
    const int64_t now_ns = packet->received_ns;
    if (!stall->key_ns) {
        stall->key_ns = now_ns;
        stall->failures = failures;
    }
    look_for_failures(stall, pictures, failures, now_ns);
    look_for_pictures(stall, pictures);
    if (!stall->begun_ns) {
        stall->begun_ns = now_ns;
        count_from(stall, now_ns);
    }
    if (packet->keyframe)
        keyframe_came(stall, now_ns);
    const bool fails = keeps_failing(stall, now_ns);
    const int64_t limit_ns = patience_ns + (stall->keyed ? 0 : wait_for_keyframe_ns(stall));
    const bool over = fails || (++stall->packets >= PACKETS_MIN << stall->stalls &&
                                now_ns - stall->from_ns >= limit_ns);
    stall->lasted_ns = now_ns - (fails ? stall->failed_ns : stall->begun_ns);
    stall->stalls += over && stall->stalls < STALLS_MAX;
    return over;
}
