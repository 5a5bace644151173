// A track that gets packets from a session: facts of a stream that is joined in the middle.
#include "daemon/rtsp/rtsp_track.h"

#include <string.h>

#include "daemon/rtsp/depacketizer.h"
#include "tests/test.h"

enum { KEYFRAME = 0x65, OTHER = 0x41, PICTURES = 5 };

static const int64_t PICTURE_NS = 40000000;

// The packet is read with the unit.
static void put_picture(struct rtsp_track *track, int i, int unit, uint8_t packet[16])
{
    const uint32_t timestamp = 3600u * (uint32_t)i;
    const uint8_t bytes[16] = {
        0x80,
        96 | 0x80,
        0,
        (uint8_t)i,
        0,
        0,
        (uint8_t)(timestamp >> 8),
        (uint8_t)timestamp,
        0,
        0,
        0,
        1,
        (uint8_t)unit,
        0x88,
        0x84,
        (uint8_t)i,
    };
    memcpy(packet, bytes, sizeof bytes);
    CHECK(rtsp_track_put(track, packet, sizeof bytes, (i + 1) * PICTURE_NS) == RTSP_TRACK_MEDIA,
          "picture %d", i);
}

// The first unit may refer to pictures before the track, unless it is a keyframe.
static void test_first_unit(void)
{
    static const struct sdp_media media = {
        .video = true, .codec = SDP_H264, .payload_type = 96, .clock_rate = 90000};
    for (int begins_with_keyframe = 0; begins_with_keyframe < 2; begins_with_keyframe++) {
        struct picture_end_verdict verdict = {0};
        struct rtsp_track *track;
        struct rtsp_unit unit;
        uint8_t packet[16];
        int n = 0;
        int rc = rtsp_track_open(
            &track,
            &(struct rtsp_track_options){.media = &media, .verdict = &verdict, .ordered = true});
        CHECK(rc == 0, "%s", strerror(-rc));
        for (int i = 0; i < PICTURES; i++) {
            put_picture(track, i, i == 0 && begins_with_keyframe ? KEYFRAME : OTHER, packet);
            while (rtsp_track_read(track, (i + 1) * PICTURE_NS, true, &unit) == 0) {
                CHECK(unit.unit.reference_lost == (n == 0 && !begins_with_keyframe),
                      "unit %d of a track that begins with %s keyframe", n,
                      begins_with_keyframe ? "a" : "no");
                n++;
            }
        }
        CHECK(n >= PICTURES - 1, "%d units", n);
        rtsp_track_close(track);
    }
}

int main(void)
{
    TEST(test_first_unit());
    return test_end();
}
