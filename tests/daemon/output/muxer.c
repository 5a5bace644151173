// A file's contents after each flush, and the index of an MP4.
#include "daemon/output/muxer.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/test.h"

#define NS INT64_C(1000000000)

enum { PICTURE_BYTES = 1000, FILE_BYTES = 8 << 20 };

static struct output_config config;
static struct segment segment = {.config = &config};
static struct {
    uint8_t bytes[FILE_BYTES];
    size_t end;
} file;

// Reads what is in the file so far.
static void read_file(void)
{
    const ssize_t n = pread(segment.fd, file.bytes, FILE_BYTES, 0);
    CHECK(n >= 0 && n < FILE_BYTES, "%zd bytes", n);
    file.end = (size_t)n;
}

// Writes a picture that is not decodable: with such extradata a muxer does not parse it.
static void write_picture(struct muxer *muxer, int number, bool keyframe)
{
    AVPacket *packet = av_packet_alloc();
    CHECK(av_new_packet(packet, PICTURE_BYTES) == 0, "no memory");
    memset(packet->data, 'P', PICTURE_BYTES);
    packet->flags = keyframe ? AV_PKT_FLAG_KEY : 0;
    const struct packet_times times = {number * NS / 25, number * NS / 25};
    CHECK(muxer_write(muxer, packet, &times) == 0, "picture %d", number);
    av_packet_free(&packet);
}

static struct muxer *open_file(enum protocol protocol)
{
    static const uint8_t avcc[] = {1,  66, 0,  30, 255, 0xe1, 0,    4, 0x67,
                                   66, 0,  30, 1,  0,   2,    0x68, 0};
    struct muxer *muxer = NULL;
    AVCodecParameters *stream = avcodec_parameters_alloc();
    config.protocol = protocol;
    segment.fd = memfd_create("clip", MFD_CLOEXEC);
    segment.whole = 0;
    stream->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codec_id = AV_CODEC_ID_H264;
    stream->extradata = av_mallocz(sizeof avcc + AV_INPUT_BUFFER_PADDING_SIZE);
    memcpy(stream->extradata, avcc, sizeof avcc);
    stream->extradata_size = sizeof avcc;
    stream->width = 64;
    stream->height = 48;
    CHECK(muxer_open_file(&muxer, &segment, stream, 1) == 0, "cannot open");
    avcodec_parameters_free(&stream);
    return muxer;
}

static bool holds_pictures(int n)
{
    static uint8_t pictures[20 * PICTURE_BYTES];
    int found = 0;
    read_file();
    memset(pictures, 'P', sizeof pictures);
    for (size_t at = 0; at + PICTURE_BYTES <= file.end;) {
        const bool picture = memcmp(file.bytes + at, pictures, PICTURE_BYTES) == 0;
        found += picture;
        at += picture ? PICTURE_BYTES : 1;
    }
    return found == n;
}

static void test_flush(enum protocol protocol)
{
    struct muxer *muxer = open_file(protocol);
    for (int flush = 0; flush < 3; flush++) {
        for (int i = 0; i < 3; i++)
            write_picture(muxer, 3 * flush + i, flush == 0 && i == 0);
        CHECK(muxer_holds(muxer), "protocol %d: writes a picture of unknown duration", protocol);
        CHECK(muxer_flush(muxer, NS / 25) == 0 && holds_pictures(3 * (flush + 1)),
              "protocol %d: other pictures than %d in the file of %zu bytes", protocol,
              3 * (flush + 1), file.end);
        CHECK(segment.whole == (off_t)file.end, "%lld bytes of %zu", (long long)segment.whole,
              file.end);
    }
    CHECK(muxer_finish(muxer) == 0 && holds_pictures(9), "finished with %zu bytes", file.end);
    muxer_close(muxer);
    close(segment.fd);
}

static uint64_t number_at(size_t at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | file.bytes[at + (size_t)i];
    return number;
}

// Every entry points to the fragment that begins with its keyframe; fragments between them have no
// entry.
static void test_index(int pictures, int distance)
{
    enum { HEADS = 8 + 24, ENTRY = 19, MFRO = 16 };
    struct muxer *muxer = open_file(PROTOCOL_MP4);
    for (int i = 0; i < pictures; i++) {
        write_picture(muxer, i, i % distance == 0);
        if (i % 3 == 2)
            muxer_flush(muxer, -1);
    }
    CHECK(muxer_flush(muxer, NS / 25) == 0, "cannot flush");
    CHECK(muxer_finish(muxer) == 0, "cannot finish");
    muxer_close(muxer);
    read_file();
    close(segment.fd);
    const size_t size = (size_t)number_at(file.end - 4, 4), mfra = file.end - size;
    const int n = (int)number_at(mfra + HEADS - 4, 4);
    CHECK(memcmp(file.bytes + mfra + 4, "mfra", 4) == 0 && size == HEADS + (size_t)n * ENTRY + MFRO,
          "an index of %d entries in %zu bytes", n, size);
    CHECK(n == (pictures + distance - 1) / distance, "%d entries of %d pictures", n, pictures);
    for (int i = 0; i < n; i++) {
        const size_t entry = mfra + HEADS + (size_t)i * ENTRY,
                     moof = (size_t)number_at(entry + 8, 8);
        const uint64_t time = (uint64_t)i * (uint64_t)distance * 90000 / 25;
        CHECK(number_at(entry, 8) == time, "entry %d: time %llu", i,
              (unsigned long long)number_at(entry, 8));
        CHECK(memcmp(file.bytes + moof + 4, "moof", 4) == 0, "entry %d: no moof at %zu", i, moof);
    }
}

int main(void)
{
    TEST(test_flush(PROTOCOL_MP4));
    TEST(test_flush(PROTOCOL_MKV));
    TEST(test_index(100, 10));
    TEST(test_index(7, 1));
    return test_end();
}
