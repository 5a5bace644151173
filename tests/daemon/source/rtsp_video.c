// Packets of access units: memory kept by packets that others still hold, and facts of the stream.
#include "daemon/source/rtsp_video.h"

#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/rtsp_track.h"
#include "daemon/source/demux.h"
#include "tests/test.h"

static void test_small_pictures_take_little_memory(void)
{
    enum { KEYFRAME = 900000, OTHERS = 3000, KEPT = 50 };
    static uint8_t data[KEYFRAME];
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
            .time_ns = 40000000 * i,
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

// A unit of the largest size.
static void test_largest(void)
{
    enum { LARGEST = 32 << 20 };
    static const struct sdp_media media = {.codec = SDP_JPEG, .clock_rate = 90000};
    struct rtsp_video *video;
    struct packet packet;
    uint8_t *data = calloc(1, LARGEST);
    const struct rtsp_unit unit = {.unit = {.data = data, .bytes = LARGEST},
                                   .capture_ns = INT64_MIN};
    int rc = rtsp_video_open(&video, &media, NULL, 0);
    CHECK(rc == 0 && rtsp_video_packet(video, &unit, &packet) == 0, "of %d bytes", LARGEST);
    rtsp_video_close(video);
    free(data);
}

// x264's output at 64x48 and at 96x80: SPS, PPS, IDR.
static const uint8_t small[] = {
    0, 0,    0,    1,    0x67, 0x42, 0xc0, 0x0a, 0xda, 0x11, 0xec, 0x04, 0x40, 0,
    0, 3,    0,    0x40, 0,    0,    0x0c, 0x83, 0xc4, 0x89, 0xa8, 0,    0,    0,
    1, 0x68, 0xce, 0x0f, 0xc8, 0,    0,    1,    0x65, 0x88, 0x84, 0x3a, 0x26, 0x28,
    0, 0x09, 0x02, 0xc9, 0xc9, 0xc9, 0xd7, 0x5d, 0x75, 0xd7, 0x5d, 0x75, 0xe0,
};
static const uint8_t large[] = {
    0,    0,    0,    1,    0x67, 0x42, 0xc0, 0x0a, 0xda, 0x18, 0xbb, 0x01, 0x10, 0,
    0,    3,    0,    0x10, 0,    0,    3,    3,    0x20, 0xf1, 0x22, 0x6a, 0,    0,
    0,    1,    0x68, 0xce, 0x0f, 0xc8, 0,    0,    1,    0x65, 0x88, 0x84, 0x3a, 0x26,
    0x28, 0,    0x09, 0x02, 0xc9, 0xc9, 0xc9, 0xc9, 0xc9, 0xd7, 0x5d, 0x75, 0xd7, 0x5d,
    0x75, 0xd7, 0x5d, 0x75, 0xd7, 0x5d, 0x75, 0xd7, 0x5d, 0x75, 0xd7, 0x5d, 0x75, 0xe0,
};
enum { SMALL_SETS = 33, LARGE_SETS = 34 }; // bytes before the IDR

static void send_keyframe(struct rtsp_video *video, const uint8_t *data, size_t bytes)
{
    struct packet packet;
    const struct rtsp_unit unit = {.unit = {.data = data, .bytes = bytes, .keyframe = true},
                                   .capture_ns = INT64_MIN};
    CHECK(rtsp_video_packet(video, &unit, &packet) == 0, "no packet");
}

static void check_stream(const struct rtsp_video *video, int width, int height, const uint8_t *sets,
                         size_t bytes, const char *when)
{
    const AVCodecParameters *stream = video->parameters;
    CHECK(stream->width == width && stream->height == height, "%dx%d %s", stream->width,
          stream->height, when);
    CHECK((size_t)stream->extradata_size == bytes && !memcmp(stream->extradata, sets, bytes),
          "other parameter sets %s", when);
}

// A camera whose picture size changes announces that in the stream, perhaps only once.
static void test_parameters_follow_the_stream(void)
{
    static const struct sdp_media media = {.codec = SDP_H264, .clock_rate = 90000};
    struct rtsp_video *video;
    int rc = rtsp_video_open(&video, &media, small, SMALL_SETS);
    CHECK(rc == 0, "%s", strerror(-rc));
    if (rc < 0)
        return;
    send_keyframe(video, small, sizeof small);
    check_stream(video, 64, 48, small, SMALL_SETS, "at first");
    rc = rtsp_video_sets(video, large, LARGE_SETS);
    send_keyframe(video, large, sizeof large);
    CHECK(rc == 0, "%s", strerror(-rc));
    check_stream(video, 96, 80, large, LARGE_SETS, "after a change");
    rc = rtsp_video_sets(video, large, LARGE_SETS);
    send_keyframe(video, large + LARGE_SETS, sizeof large - LARGE_SETS);
    check_stream(video, 96, 80, large, LARGE_SETS, "where they are not said again");
    rc = rtsp_video_sets(video, NULL, 0);
    check_stream(video, 96, 80, large, LARGE_SETS, "where none are known");
    rtsp_video_close(video);
}

int main(void)
{
    TEST(test_small_pictures_take_little_memory());
    TEST(test_largest());
    TEST(test_parameters_follow_the_stream());
    return test_end();
}
