// Slices of H.265 streams by many tools of an encoder: all are good, nearly none is after a bit
// error, and no bytes do harm. FLIPS says how many bits of each clip are tried (100), SEED which.
#include "daemon/decode/slice_check.h"

#include <libavcodec/avcodec.h>

#include "daemon/bitstream/nal.h"
#include "tests/daemon/decode/decoding.h"
#include "tests/kernels/picture.h"

enum { PACKETS = 64, FOUND_PERCENT = 95, BELIEVED = 8, BELIEVED_AFTER_GOOD = 100 };

static const struct clip {
    const char *name, *format, *parameters;
} clip_list[] = {
    {"plain.mp4", "yuv420p", "bframes=3"},
    {"stream.ts", "yuv420p",
     "repeat-headers=1:aud=1:hrd=1:bitrate=300:vbv-maxrate=300:vbv-bufsize=300"},
    {"ten.mp4", "yuv420p10le", "bframes=2:crf=20"},
    {"gray.mp4", "gray", "crf=24"},
    {"intra.mp4", "yuv420p", "keyint=1:tu-intra-depth=4:crf=16"},
    {"slices.mp4", "yuv420p", "slices=3:ctu=16"},
    {"rows.mp4", "yuv420p", "no-wpp=1:ctu=32:min-cu-size=16"},
    {"parts.mp4", "yuv420p", "rect=1:amp=1:rd=4:tu-inter-depth=3:max-tu-size=16"},
    {"one-ref.mp4", "yuv420p", "ref=1:max-merge=1:no-temporal-mvp=1:no-sao=1:no-signhide=1"},
    {"weights.mp4", "yuv420p", "weightb=1:weightp=1:bframes=4:ref=4:b-pyramid=1"},
    {"lossless.mp4", "yuv420p", "cu-lossless=1:tskip=1:crf=4:rd=5"},
    {"quantizers.mp4", "yuv420p", "aq-mode=2:aq-strength=3:qg-size=8:scaling-list=default"},
    {"open.mp4", "yuv420p", "open-gop=1:keyint=8:bframes=4:temporal-layers=1"},
};

struct packets {
    AVPacket *packet[PACKETS];
    int n;
    AVCodecParameters *parameters;
};

static void make(struct packets *ret, const struct clip *clip)
{
    struct run run;
    struct packet packet;
    clips_run(FFMPEG "-f lavfi -i mandelbrot=size=200x136:rate=25 -frames:v 24 -vf "
                     "noise=alls=12:allf=t,fade=in:0:20 -c:v libx265 -pix_fmt %s -x265-params "
                     "log-level=error:%s %s",
              clip->format, clip->parameters, clip->name);
    *ret = (struct packets){.parameters = avcodec_parameters_alloc()};
    if (!run_open(&run, clip->name, &on_cpu))
        abort();
    avcodec_parameters_copy(ret->parameters, demux_parameters(run.demux));
    while (ret->n < PACKETS && demux_read(run.demux, &packet) == 0)
        ret->packet[ret->n++] = av_packet_clone(packet.av);
    run_close(&run);
}

static void free_packets(struct packets *packets)
{
    for (int i = 0; i < packets->n; i++)
        av_packet_free(&packets->packet[i]);
    avcodec_parameters_free(&packets->parameters);
}

static struct slice_check *open_check(const struct packets *packets)
{
    struct slice_check *check = slice_check_open();
    if (!check)
        abort();
    slice_check_extradata(check, packets->parameters->extradata,
                          (size_t)packets->parameters->extradata_size);
    return check;
}

static int check_all(struct slice_check *check, const struct packets *packets,
                     enum slice_check_result result)
{
    int n = 0;
    for (int i = 0; i < packets->n; i++)
        n += slice_check_packet(check, packets->packet[i]->data,
                                (size_t)packets->packet[i]->size) == result;
    return n;
}

static void test_whole(const struct clip *clip, const struct packets *packets)
{
    struct slice_check *check = open_check(packets);
    const int good = check_all(check, packets, SLICES_GOOD);
    CHECK(packets->n == 24 && good == 24, "%s: %d of %d pictures are good", clip->name, good,
          packets->n);
    CHECK(!slice_check_lacks_profile(check), "%s", clip->name);
    slice_check_close(check);
}

// Of a random slice of the packet; the header of a slice has bits that its data do not depend on.
static bool flip(struct random *random, const struct packets *packets, AVPacket *packet)
{
    const AVCodecParameters *own = packets->parameters;
    struct nal_reader reader = {
        .data = packet->data,
        .size = (size_t)packet->size,
        .length_bytes = hevc_length_bytes(own->extradata, (size_t)own->extradata_size),
    };
    struct nal unit, slice[16];
    int n = 0;
    while (n < 16 && nal_next(&reader, &unit))
        if (unit.size > 64 && hevc_unit_type(&unit) >= 0 && hevc_unit_type(&unit) < 32)
            slice[n++] = unit;
    if (n == 0)
        return false;
    unit = slice[random_next(random) % (uint64_t)n];
    const size_t at = 24 + random_next(random) % (unit.size - 24);
    packet->data[unit.data - packet->data + (ptrdiff_t)at] ^=
        (unsigned char)(1 << random_in(random, 0, 7));
    return true;
}

static void test_flips(const struct clip *clip, const struct packets *packets,
                       struct random *random, int flips)
{
    int tried = 0, found = 0;
    for (int i = 0; i < flips; i++) {
        const int victim = random_in(random, 0, packets->n - 1);
        AVPacket *harmed = av_packet_clone(packets->packet[victim]);
        if (!harmed || av_packet_make_writable(harmed) < 0)
            abort();
        if (flip(random, packets, harmed)) {
            struct slice_check *check = open_check(packets);
            slice_check_packet(check, packets->packet[0]->data, (size_t)packets->packet[0]->size);
            tried++;
            found += slice_check_packet(check, harmed->data, (size_t)harmed->size) == SLICES_WRONG;
            slice_check_close(check);
        }
        av_packet_free(&harmed);
    }
    printf("%s: %d of %d bit errors found\n", clip->name, found, tried);
    CHECK(100 * found >= FOUND_PERCENT * tried && tried > 0, "%s: %d of %d", clip->name, found,
          tried);
}

// A packet of fewer bytes is no picture, one byte more does not end where it must.
static void test_ends(const struct clip *clip, const struct packets *packets)
{
    const AVPacket *packet = packets->packet[0];
    uint8_t *copy = malloc((size_t)packet->size + 1);
    if (!copy)
        abort();
    memcpy(copy, packet->data, (size_t)packet->size);
    copy[packet->size] = 0x80;
    for (size_t size = 0; size < (size_t)packet->size; size += 1 + size / 64) {
        struct slice_check *check = open_check(packets);
        uint8_t *cut = malloc(size + 1);
        memcpy(cut, copy, size);
        CHECK(slice_check_packet(check, cut, size) != SLICES_GOOD, "%s, %zu bytes", clip->name,
              size);
        free(cut);
        slice_check_close(check);
    }
    free(copy);
}

static void test_noise(const struct packets *packets, struct random *random)
{
    struct slice_check *check = open_check(packets);
    for (int i = 0; i < 200; i++) {
        AVPacket *packet = av_packet_clone(packets->packet[i % packets->n]);
        if (!packet || av_packet_make_writable(packet) < 0)
            abort();
        for (int n = random_in(random, 1, 40); n > 0; n--)
            packet->data[random_in(random, 0, packet->size - 1)] = (uint8_t)random_next(random);
        slice_check_packet(check, packet->data, (size_t)packet->size);
        av_packet_free(&packet);
    }
    slice_check_close(check);
}

static void test_belief(const struct packets *packets)
{
    struct slice_check *check = open_check(packets);
    const AVPacket *whole = packets->packet[0];
    for (int i = 0; i < 2 * BELIEVED; i++) {
        enum slice_check_result result =
            slice_check_packet(check, whole->data, (size_t)whole->size - 8);
        CHECK(result == (i < BELIEVED ? SLICES_WRONG : SLICES_UNKNOWN), "picture %d", i);
    }
    CHECK(slice_check_packet(check, whole->data, (size_t)whole->size) == SLICES_GOOD, "whole");
    for (int i = 0; i < 2 * BELIEVED_AFTER_GOOD; i++) {
        enum slice_check_result result =
            slice_check_packet(check, whole->data, (size_t)whole->size - 8);
        CHECK(result == (i < BELIEVED_AFTER_GOOD ? SLICES_WRONG : SLICES_UNKNOWN),
              "picture %d behind a good one", i);
    }
    slice_check_close(check);
}

// Noise in the place of parameter sets, and of a picture that refers to some which never came.
static void test_noise_sets(const struct packets *packets)
{
    static const struct {
        const char *name;
        uint8_t data[20];
    } sets[] = {
        {"SPS", {0, 0, 1, 66, 1, 1, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 255, 255}},
        {"PPS", {0, 0, 1, 68, 1, 0xc1}},
        {"PPS of SPS 7", {0, 0, 1, 68, 1, 0x88, 0x01, 0xc6, 0x00, 0x48}},
    };
    static const uint8_t slice[] = {0, 0, 1, 38, 1, 0x8d, 128, 128}; // of PPS 5
    struct slice_check *check = slice_check_open();
    if (!check)
        abort();
    CHECK(slice_check_packet(check, slice, sizeof slice) == SLICES_UNKNOWN, "before all sets");
    for (int i = 0; i < 4; i++) {
        const AVPacket *whole = packets->packet[i];
        CHECK(slice_check_packet(check, whole->data, (size_t)whole->size) == SLICES_GOOD,
              "behind noise as %s", i > 0 ? sets[i - 1].name : "a slice");
        CHECK(slice_check_packet(check, slice, sizeof slice) == SLICES_WRONG, "without sets");
        if (i < 3)
            slice_check_packet(check, sets[i].data, sizeof sets[i].data);
    }
    slice_check_close(check);
}

static void test_unknown(void)
{
    struct packets packets;
    make(&packets, &(struct clip){"444.mp4", "yuv444p", "bframes=3"});
    struct slice_check *check = open_check(&packets);
    CHECK(check_all(check, &packets, SLICES_UNKNOWN) == packets.n, "4:4:4");
    CHECK(slice_check_lacks_profile(check), "4:4:4");
    slice_check_close(check);
    packets.parameters->extradata_size = 0;
    struct slice_check *bare = slice_check_open();
    CHECK(bare && check_all(bare, &packets, SLICES_UNKNOWN) == packets.n, "no parameter sets");
    slice_check_close(bare);
    free_packets(&packets);
}

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int main(void)
{
    struct random random = {(uint64_t)number_of("SEED", 20240229)};
    clips_open();
    for (size_t i = 0; i < sizeof clip_list / sizeof *clip_list; i++) {
        struct packets packets;
        make(&packets, &clip_list[i]);
        TEST(test_whole(&clip_list[i], &packets));
        TEST(test_flips(&clip_list[i], &packets, &random, number_of("FLIPS", 100)));
        test_noise(&packets, &random); // does not crash, and has no check that says so
        if (i == 0) {
            test_ends(&clip_list[i], &packets);
            TEST(test_belief(&packets));
        }
        if (!strcmp(clip_list[i].name, "stream.ts"))
            TEST(test_noise_sets(&packets));
        free_packets(&packets);
    }
    TEST(test_unknown());
    clips_close();
    return test_end();
}
