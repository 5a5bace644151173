// Single bits flipped in the slices of H.265 clips with picture hashes. With `check_hashes` all
// pictures that differ from the intact clip's are flagged; without, only pictures with an error
// found by libavcodec. No picture of an intact clip is flagged. SEED selects the bits.
#include <libavcodec/avcodec.h>

#include "daemon/base/log.h"
#include "daemon/bitstream/nal.h"
#include "daemon/source/libav_log.h"
#include "tests/daemon/codec/decoding.h"
#include "tests/kernels/picture.h"

enum {
    PICTURES = 24,
    FLIPS = 30, // per clip
    SIZE = 256, // for more pictures than a clip has
};

struct clip {
    const char *name, *size, *format, *parameters;
    int percent; // least share of the differing pictures that must be flagged
};

// x265 3.5 writes a correct CRC only for luma, and for pictures with one row of blocks. A checksum
// is a sum: errors in it may cancel each other out.
static const struct clip clip_list[] = {
    {"md5.mp4", "170x130", "yuv420p", "hash=1", 100},
    {"crc.ts", "250x62", "yuv420p10le", "hash=2", 95}, // errors may be in chroma alone
    {"luma.ts", "170x130", "yuv420p", "hash=2", 80},
    {"checksum.ts", "170x130", "yuv444p", "hash=3:bframes=0:slices=3", 90},
};

static const struct mode {
    const char *name;
    int threads;
    bool live;
} modes[] = {{"one thread", 1, true}, {"slices", 2, true}, {"pictures", 2, false}};

// --- a decoder's output for a clip

struct shown {
    int64_t pts;
    uint64_t digest;
    bool damaged;
};

struct pictures_of {
    struct shown shown[SIZE];
    int n;
};

static void take(struct decoder *decoder, struct pictures_of *pictures)
{
    struct frame frame;
    while (decoder_receive(decoder, &frame) == 0) {
        if (!frame.lost && pictures->n < SIZE)
            pictures->shown[pictures->n++] =
                (struct shown){frame.info.pts_ns, image_digest(&frame.image),
                               frame.info.flags & FRAMED_FLAG_DAMAGED};
        frame_release(&frame);
    }
}

// --- a clip in memory

struct packets {
    AVPacket *packet[SIZE];
    int n;
    AVCodecParameters *parameters;
};

static void read_all(struct packets *ret, const char *file)
{
    struct run run;
    struct packet packet;
    *ret = (struct packets){.parameters = avcodec_parameters_alloc()};
    if (!run_open(&run, file, &on_cpu))
        abort();
    avcodec_parameters_copy(ret->parameters, run.demux->parameters);
    while (ret->n < SIZE && demux_read(run.demux, &packet) == 0)
        ret->packet[ret->n++] = av_packet_clone(packet.av);
    run_close(&run);
}

static void free_all(struct packets *packets)
{
    for (int i = 0; i < packets->n; i++)
        av_packet_free(&packets->packet[i]);
    avcodec_parameters_free(&packets->parameters);
}

static void decode(struct pictures_of *pictures, const struct packets *packets,
                   const struct mode *mode, bool check_hashes)
{
    const struct decode_options options = {
        .decode.by = DECODE_CPU,
        .in_flight = 4,
        .threads = mode->threads,
        .low_delay = mode->live,
        .check_hashes = check_hashes,
    };
    struct decoder *decoder;
    if (decoder_open(&decoder, packets->parameters, &options) < 0 ||
        decoder_join(decoder, &no_device) < 0)
        abort();
    pictures->n = 0;
    for (int i = 0; i < packets->n; i++) {
        AVPacket *av = packets->packet[i];
        struct packet packet = {
            .av = av, .pts_ns = av->pts, .keyframe = av->flags & AV_PKT_FLAG_KEY};
        decoder_send(decoder, &packet);
        take(decoder, pictures);
    }
    decoder_send(decoder, NULL);
    take(decoder, pictures);
    decoder_close(decoder);
}

// --- one bit

// Flips a bit behind the header of one of the packet's slices, found with nal_next.
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
        if (unit.size > 4 && hevc_unit_type(&unit) >= 0 && hevc_unit_type(&unit) < 32)
            slice[n++] = unit;
    if (n == 0)
        return false;
    unit = slice[random_next(random) % (uint64_t)n];
    size_t at = 2 + random_next(random) % (unit.size - 2);
    packet->data[unit.data - packet->data + (ptrdiff_t)at] ^=
        (unsigned char)(1 << random_in(random, 0, 7));
    return true;
}

struct tally {
    int flips, visible, told; // flips; that change a picture; with all changed ones flagged
    int differ, flagged;      // pictures that differ; flagged ones among them
    int lost, spared;         // missing pictures; flagged pictures that do not differ
};

static const struct shown *of_time(const struct pictures_of *pictures, int64_t pts)
{
    for (int i = 0; i < pictures->n; i++)
        if (pictures->shown[i].pts == pts)
            return &pictures->shown[i];
    return NULL;
}

static void compare(struct tally *tally, const struct pictures_of *whole,
                    const struct pictures_of *harmed)
{
    int differ = 0, flagged = 0;
    for (int i = 0; i < harmed->n; i++) {
        const struct shown *got = &harmed->shown[i], *want = of_time(whole, got->pts);
        bool differs = !want || want->digest != got->digest;
        differ += differs;
        flagged += differs && got->damaged;
        tally->spared += !differs && got->damaged;
    }
    tally->flips++;
    tally->visible += differ > 0;
    tally->told += differ > 0 && flagged == differ;
    tally->differ += differ;
    tally->flagged += flagged;
    tally->lost += whole->n - harmed->n;
}

static void try_flip(struct tally *tally, struct random *random, struct packets *packets,
                     const struct pictures_of *whole, const struct mode *mode)
{
    struct pictures_of *harmed = malloc(sizeof *harmed);
    AVPacket **victim = &packets->packet[random_next(random) % (uint64_t)packets->n];
    AVPacket *kept = *victim;
    *victim = av_packet_clone(kept);
    if (!harmed || av_packet_make_writable(*victim) < 0)
        abort();
    if (flip(random, packets, *victim)) {
        for (int checks = 0; checks < 2; checks++) {
            decode(harmed, packets, mode, checks);
            compare(&tally[checks], whole, harmed);
        }
    }
    av_packet_free(victim);
    *victim = kept;
    free(harmed);
}

static void test_clip(const struct clip *clip, const struct mode *mode, struct random *random)
{
    struct packets packets;
    struct pictures_of *whole = malloc(sizeof *whole);
    struct tally tally[2] = {0}; // without hashes, and with
    int flagged = 0;
    read_all(&packets, clip->name);
    decode(whole, &packets, mode, true);
    for (int i = 0; i < whole->n; i++)
        flagged += whole->shown[i].damaged;
    CHECK(whole->n > 0 && flagged == 0, "%s: %d of %d pictures of a whole clip are flagged",
          clip->name, flagged, whole->n);
    for (int i = 0; i < FLIPS; i++)
        try_flip(tally, random, &packets, whole, mode);
    for (int checks = 0; checks < 2; checks++)
        printf("%s, %s, %s hashes: %d flips, %d visible, %d of these told; %d pictures differ, %d "
               "of these flagged; %d lost, %d flagged that do not differ\n",
               clip->name, mode->name, checks ? "with" : "without", tally[checks].flips,
               tally[checks].visible, tally[checks].told, tally[checks].differ,
               tally[checks].flagged, tally[checks].lost, tally[checks].spared);
    const struct tally *with = &tally[1], *without = &tally[0];
    CHECK(100 * with->flagged >= clip->percent * with->differ,
          "%s, %s: %d of %d pictures are not flagged", clip->name, mode->name,
          with->differ - with->flagged, with->differ);
    CHECK(2 * without->flagged < without->differ, "%s, %s: %d of %d pictures without hashes",
          clip->name, mode->name, without->flagged, without->differ);
    free_all(&packets);
    free(whole);
}

static void make(const struct clip *clip)
{
    clips_run(FFMPEG "-f lavfi -i testsrc2=size=%s:rate=25 -frames:v %d -c:v libx265 -pix_fmt %s "
                     "-x265-params log-level=error:keyint=12:%s %s",
              clip->size, PICTURES, clip->format, clip->parameters, clip->name);
}

int main(void)
{
    const char *seed = getenv("SEED");
    struct random random = {seed ? (uint64_t)atoi(seed) : 20240229};
    clips_open();
    log_open(LOG_LEVEL_ERROR);
    libav_log_open();
    for (size_t i = 0; i < sizeof clip_list / sizeof *clip_list; i++) {
        make(&clip_list[i]);
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
            TEST(test_clip(&clip_list[i], &modes[m], &random));
    }
    clips_close();
    return test_end();
}
