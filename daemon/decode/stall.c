#include "daemon/decode/stall.h"

enum {
    PICTURES_MIN = 4, // of 32 packets: now and then a decoder makes a picture of noise
    PACKETS_MIN = 50, // a decoder may hold as many back, which at a low rate takes long
    VAIN_MAX = 5,
};
static const int64_t UNKNOWN_DISTANCE_NS = 20 * INT64_C(1000000000); // of cameras that save bits
static const int64_t DISTANCE_MAX_NS = 600 * INT64_C(1000000000);

static void end(struct decode_stall *drought)
{
    drought->begun_ns = 0;
    drought->keyed = false;
}

void decode_stall_connect(struct decode_stall *drought)
{
    end(drought);
    drought->key_ns = 0;
    drought->recent = 0;
}

static void look_for_pictures(struct decode_stall *drought, int64_t pictures)
{
    drought->recent = drought->recent << 1 | (pictures > drought->pictures);
    drought->pictures = pictures;
    if (__builtin_popcount(drought->recent) < PICTURES_MIN)
        return;
    end(drought);
    drought->vain = 0;
}

static void count_from(struct decode_stall *drought, int64_t now_ns)
{
    drought->from_ns = now_ns;
    drought->packets = 0;
}

static void keyframe_came(struct decode_stall *drought, int64_t now_ns)
{
    const int64_t distance_ns = now_ns - drought->key_ns;
    if (distance_ns > drought->distance_ns)
        drought->distance_ns = distance_ns;
    drought->key_ns = now_ns;
    if (!drought->keyed)
        count_from(drought, now_ns);
    drought->keyed = true;
}

// A camera whose keyframes are farther apart than was thought, and which does not begin with one,
// would never show a picture if it were always given the same time; nor would a decoder of many
// threads if it were always given as many packets.
static int64_t wait_for_keyframe_ns(const struct decode_stall *drought)
{
    int64_t distance = drought->distance_ns ? drought->distance_ns : UNKNOWN_DISTANCE_NS;
    for (int i = 0; i < drought->vain && distance < DISTANCE_MAX_NS; i++)
        distance *= 2;
    return distance < DISTANCE_MAX_NS ? distance : DISTANCE_MAX_NS;
}

bool decode_stall_packet(struct decode_stall *drought, int64_t pictures, int64_t now_ns,
                         bool keyframe, int64_t patience_ns)
{
    look_for_pictures(drought, pictures);
    if (!drought->key_ns)
        drought->key_ns = now_ns;
    if (!drought->begun_ns) {
        drought->begun_ns = now_ns;
        count_from(drought, now_ns);
    }
    if (keyframe)
        keyframe_came(drought, now_ns);
    drought->dry_ns = now_ns - drought->begun_ns;
    const int64_t limit_ns = patience_ns + (drought->keyed ? 0 : wait_for_keyframe_ns(drought));
    const bool over =
        ++drought->packets >= PACKETS_MIN << drought->vain && now_ns - drought->from_ns >= limit_ns;
    drought->vain += over && drought->vain < VAIN_MAX;
    return over;
}
