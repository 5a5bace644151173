// Packets of access units: how much memory the packets keep that others hold on to.
#include "daemon/input/rtsp_video.h"

#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/input/demux.h"
#include "daemon/rtsp/rtsp_track.h"
#include "tests/test.h"

static void test_small_pictures_take_little_memory(void)
{
    enum { KEYFRAME = 900000, OTHERS = 3000, KEPT = 50 };
    static uint8_t data[KEYFRAME + ACCESS_UNIT_PADDING];
    static const struct sdp_media media = {.codec = SDP_JPEG, .clock_rate = 90000};
    struct rtsp_video *video;
    struct packet packet;
    AVPacket *kept[KEPT];
    size_t sum = 0;
    int rc = rtsp_video_open(&video, &media, NULL, 0);
    CHECK(rc == 0, "%s", strerror(-rc));
    for (int i = 0; i < KEPT && rc == 0; i++) {
        const struct rtsp_unit unit = {
            .unit = {.data = data, .bytes = i % 25 ? OTHERS : KEYFRAME, .received_ns = i + 1},
            .timestamp = 3600 * i,
            .capture_ns = INT64_MIN,
        };
        data[0] = (uint8_t)i;
        rc = rtsp_video_packet(video, &unit, &packet);
        kept[i] = av_packet_clone(packet.av);
        sum += kept[i]->buf->size;
        CHECK(rc == 0 && (size_t)packet.av->size == unit.unit.bytes, "packet %d: %d bytes", i,
              packet.av->size);
    }
    CHECK(sum < 3 * 2 * KEYFRAME, "%zu bytes are kept of 2 keyframes and 48 small pictures", sum);
    for (int i = 0; i < KEPT && rc == 0; i++) {
        CHECK(kept[i]->data[0] == i, "packet %d was overwritten by %d", i, kept[i]->data[0]);
        av_packet_free(&kept[i]);
    }
    rtsp_video_close(video);
}

// As large as units can be, and larger.
static void test_largest(void)
{
    enum { LARGEST = 32 << 20 };
    static const struct sdp_media media = {.codec = SDP_JPEG, .clock_rate = 90000};
    struct rtsp_video *video;
    struct packet packet;
    uint8_t *data = calloc(1, 3 * (size_t)LARGEST);
    struct rtsp_unit unit = {.unit = {.data = data, .bytes = LARGEST}, .capture_ns = INT64_MIN};
    int rc = rtsp_video_open(&video, &media, NULL, 0);
    CHECK(rc == 0 && rtsp_video_packet(video, &unit, &packet) == 0, "of %d bytes", LARGEST);
    unit.unit.bytes = 2 * (size_t)LARGEST;
    CHECK(rc == 0 && rtsp_video_packet(video, &unit, &packet) < 0, "of twice as many");
    rtsp_video_close(video);
    free(data);
}

int main(void)
{
    TEST(test_small_pictures_take_little_memory());
    TEST(test_largest());
    return test_end();
}
