// A picture's hash, computed as the standard defines it, over sizes and pixel formats; and encoders
// with wrong hashes.
#include "daemon/codec/corruption.h"

#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "tests/kernels/picture.h"
#include "tests/test.h"

static AVFrame *random_frame(struct random *random, enum AVPixelFormat format, int width,
                             int height)
{
    AVFrame *frame = av_frame_alloc();
    frame->format = format;
    frame->width = width;
    frame->height = height;
    if (av_frame_get_buffer(frame, 0) < 0)
        abort();
    for (int p = 0; p < AV_NUM_DATA_POINTERS && frame->buf[p]; p++)
        for (size_t i = 0; i < frame->buf[p]->size; i++)
            frame->buf[p]->data[i] = (uint8_t)random_next(random);
    return frame;
}

// pictureData of the standard's D.3.19, for one component.
static size_t arrange(const AVFrame *frame, int c, uint8_t *data, int *width)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
    const bool chroma = c > 0 && !(format->flags & AV_PIX_FMT_FLAG_RGB);
    const int bytes = format->comp[c].depth > 8 ? 2 : 1;
    const int height =
        chroma ? AV_CEIL_RSHIFT(frame->height, format->log2_chroma_h) : frame->height;
    size_t n = 0;
    *width = chroma ? AV_CEIL_RSHIFT(frame->width, format->log2_chroma_w) : frame->width;
    for (int y = 0; y < height; y++)
        for (int i = 0; i < *width * bytes; i++)
            data[n++] = frame->data[c][y * frame->linesize[c] + i];
    return n;
}

static uint16_t defined_crc(const uint8_t *data, size_t size)
{
    unsigned crc = 0xffff;
    for (size_t bit = 0; bit < (size + 2) * 8; bit++) {
        unsigned high = crc >> 15 & 1;
        unsigned value = bit / 8 < size ? data[bit / 8] >> (7 - bit % 8) & 1 : 0;
        crc = ((crc << 1) + value) & 0xffff;
        crc ^= high * 0x1021;
    }
    return (uint16_t)crc;
}

static uint32_t defined_checksum(const uint8_t *data, int width, size_t size, int bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        const int sample = (int)i / bytes, x = sample % width, y = sample / width;
        sum += (uint32_t)((x & 0xff) ^ (y & 0xff) ^ (x >> 8) ^ (y >> 8) ^ data[i]);
    }
    return sum;
}

static struct picture_hash defined_hash(const AVFrame *frame, enum hash_method method)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
    struct picture_hash hash = {.method = method};
    uint8_t *data = malloc((size_t)frame->width * (size_t)frame->height * 2);
    for (int c = 0; c < format->nb_components; c++) {
        int width;
        size_t size = arrange(frame, c, data, &width);
        uint32_t value = method == HASH_CRC ? (uint32_t)defined_crc(data, size) << 16
                                            : defined_checksum(data, width, size,
                                                               format->comp[c].depth > 8 ? 2 : 1);
        for (int i = 0; i < 4; i++)
            hash.digest[c][i] = (uint8_t)(value >> (24 - 8 * i));
    }
    free(data);
    return hash;
}

static void test_definition(void)
{
    static const enum AVPixelFormat formats[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV420P10,
                                                 AV_PIX_FMT_GRAY8,   AV_PIX_FMT_GBRP,
                                                 AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P12};
    struct random random = {7};
    for (int i = 0; i < 60; i++) {
        AVFrame *frame = random_frame(&random, formats[i % 6], random_in(&random, 1, 700),
                                      random_in(&random, 1, 300));
        for (enum hash_method method = HASH_CRC; method <= HASH_CHECKSUM; method++) {
            struct hash_checker checker = {.matched = {true, true, true}};
            struct picture_hash hash = defined_hash(frame, method);
            CHECK(!hash_checker_finds_errors(&checker, &hash, frame), "%dx%d, method %d",
                  frame->width, frame->height, method);
            frame->data[0][0] ^= 1;
            CHECK(hash_checker_finds_errors(&checker, &hash, frame), "%dx%d, method %d",
                  frame->width, frame->height, method);
            frame->data[0][0] ^= 1;
        }
        av_frame_free(&frame);
    }
}

// One component's hashes are wrong from the first picture on (x265 for chroma), or all are.
static void test_wrong_encoder(bool luma)
{
    struct random random = {9};
    struct hash_checker checker = {0};
    AVFrame *frame = random_frame(&random, AV_PIX_FMT_YUV420P, 64, 48);
    struct picture_hash hash = defined_hash(frame, HASH_CRC);
    hash.digest[luma ? 0 : 1][0] ^= 1;
    for (int i = 0; i < 20; i++)
        CHECK(hash_checker_finds_errors(&checker, &hash, frame) == (luma && i < 8), "picture %d",
              i);
    hash.digest[2][0] ^= 1;
    CHECK(hash_checker_finds_errors(&checker, &hash, frame), "the component that matched");
    av_frame_free(&frame);
}

static void test_first_picture(int component)
{
    struct random random = {11};
    struct hash_checker checker = {0};
    AVFrame *frame = random_frame(&random, AV_PIX_FMT_YUV420P, 64, 48);
    struct picture_hash hash = defined_hash(frame, HASH_CHECKSUM);
    frame->data[component][5] ^= 1;
    CHECK(hash_checker_finds_errors(&checker, &hash, frame), "component %d", component);
    frame->data[component][5] ^= 1;
    CHECK(!hash_checker_finds_errors(&checker, &hash, frame), "the second one");
    frame->data[1][5] ^= 1;
    CHECK(hash_checker_finds_errors(&checker, &hash, frame), "chroma");
    av_frame_free(&frame);
}

int main(void)
{
    TEST(test_definition());
    TEST(test_wrong_encoder(true));
    TEST(test_wrong_encoder(false));
    TEST(test_first_picture(0));
    TEST(test_first_picture(2));
    return test_end();
}
