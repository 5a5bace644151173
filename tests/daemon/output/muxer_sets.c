// File headers: a stream's parameter sets are the camera's bytes, and may be anything.
#include "daemon/output/muxer.h"

#include <errno.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/bitstream/nal.h"
#include "tests/daemon/clips.h"

enum { DAMAGED = 4000, SETS_MAX = 4096 };

static unsigned char *clip;
static size_t clip_size;

// Writes a header as a recording does; MP4's is written with the first packet.
static int write_header(enum protocol protocol, const uint8_t *sets, size_t size)
{
    AVCodecParameters *stream = avcodec_parameters_alloc();
    AVPacket *packet = av_packet_alloc();
    const struct output_config config = {.protocol = protocol};
    struct segment nowhere = {.config = &config, .fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
    struct muxer *muxer = NULL;
    stream->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codec_id = AV_CODEC_ID_HEVC;
    stream->width = stream->height = 64;
    if (size > 0) {
        stream->extradata = av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE);
        stream->extradata_size = (int)size;
        memcpy(stream->extradata, sets, size);
    }
    av_new_packet(packet, (int)clip_size);
    memcpy(packet->data, clip, clip_size);
    int rc = muxer_open_file(&muxer, &nowhere, stream, 0);
    if (rc == 0)
        rc = muxer_write(muxer, packet, &(struct packet_times){0, 0});
    if (rc == 0)
        rc = muxer_flush(muxer, 40000000);
    muxer_close(muxer);
    close(nowhere.fd);
    av_packet_free(&packet);
    avcodec_parameters_free(&stream);
    return rc;
}

// Copies the clip's parameter sets, the SPS last; `*sps` is its offset.
static size_t sets_of(uint8_t *to, size_t *sps)
{
    size_t size = 0;
    for (int wanted = 0; wanted < 3; wanted++) {
        static const int types[] = {32, 34, 33};
        struct nal_reader reader = {.data = clip, .size = clip_size};
        struct nal nal;
        while (nal_next(&reader, &nal) && hevc_unit_type(&nal) != types[wanted])
            ;
        memcpy(to + size, "\0\0\0\1", 4);
        *sps = size + 4;
        memcpy(to + *sps, nal.data, nal.size);
        size = *sps + nal.size;
    }
    return size;
}

static void encode(const char *pixels)
{
    free(clip);
    clips_run(FFMPEG "-f lavfi -i testsrc2=size=64x64:rate=25 -frames:v 1 -pix_fmt %s -c:v libx265"
                     " -x265-params log-level=error -f hevc clip.h265",
              pixels);
    clip = clips_read("clip.h265", &clip_size);
}

static void test_whole_sets_make_a_header(void)
{
    static const char *pixels[] = {"yuv420p", "yuv420p10", "yuv422p", "yuv444p", "gray"};
    uint8_t sets[SETS_MAX];
    size_t sps;
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) {
        encode(pixels[i]);
        const size_t size = sets_of(sets, &sps);
        CHECK(write_header(PROTOCOL_MP4, sets, size) == 0, "mp4 of %s", pixels[i]);
        CHECK(write_header(PROTOCOL_MKV, sets, size) == 0, "mkv of %s", pixels[i]);
    }
}

static void test_missing_sets_are_an_error(void)
{
    CHECK(write_header(PROTOCOL_MP4, NULL, 0) == -EINVAL, "mp4 without sets");
    CHECK(write_header(PROTOCOL_MKV, NULL, 0) == -EINVAL, "mkv without sets");
}

// libavformat needs a second or more for each damaged SPS if it looks for pictures after it.
static void test_damaged_sets_take_no_time(void)
{
    uint8_t sets[SETS_MAX], damaged[SETS_MAX];
    size_t sps, written = 0;
    encode("yuv420p");
    const size_t size = sets_of(sets, &sps);
    const int64_t start_ns = monotonic_ns();
    srand(1);
    for (int i = 0; i < DAMAGED; i++) {
        const size_t left = i % 2 ? size : sps + 3 + (size_t)rand() % (size - sps - 3);
        memcpy(damaged, sets, size);
        for (int flips = rand() % 4 + (i % 2); flips > 0; flips--)
            damaged[sps + 2 + (size_t)rand() % (size - sps - 2)] ^= (uint8_t)(1 << rand() % 8);
        written += write_header(i % 4 < 2 ? PROTOCOL_MP4 : PROTOCOL_MKV, damaged, left) == 0;
    }
    const double s = (double)(monotonic_ns() - start_ns) / 1e9;
    CHECK(s < 20, "%d damaged sets take %.1f s", DAMAGED, s);
    CHECK(written > 0 && written < DAMAGED, "%zu of %d make a header", written, DAMAGED);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    TEST(test_whole_sets_make_a_header());
    TEST(test_missing_sets_are_an_error());
    TEST(test_damaged_sets_take_no_time());
    free(clip);
    clips_close();
    return test_end();
}
