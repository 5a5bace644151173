// Early output for live sources: the same pictures as libavcodec's own output, in the same order,
// with the same times and flags, only earlier.
#include <libavutil/log.h>

#include "daemon/codec/early_output.h"
#include "tests/daemon/codec/fake_device.h"

#define X264 "-c:v libx264 -threads 1 -g 24 -x264-params scenecut=0:"
#define X265 "-c:v libx265 -x265-params log-level=none:pools=none:frame-threads=1:scenecut=0:"

static const struct decode_options live = {
    .decode.by = DECODE_CPU, .threads = 2, .low_delay = true, .in_flight = 4, .losses_known = true};

enum { FRAMES = 150, ANY = 99 };

struct stream {
    const char *encoder, *file;
    int waits[2]; // most packets: median wait of the second half, and its longest wait
};

// Packets between a picture's own and the one after which it was shown, by order of showing.
struct waits {
    int n, of[PICTURES_MAX];
};

// --- the same decoder without early output; and one with complete pictures only in its output

static bool without, follows;

int __real_early_output_open(struct early_output **ret, const struct AVCodecParameters *);
int __wrap_early_output_open(struct early_output **ret, const struct AVCodecParameters *);

int __wrap_early_output_open(struct early_output **ret, const struct AVCodecParameters *parameters)
{
    return without ? -ENOTSUP : __real_early_output_open(ret, parameters);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

// Packets dropped from a stream, or changed in it; `seed` 0: none.
struct losses {
    unsigned seed;
    bool bits; // bits are changed; else packets are dropped
};

static bool lose(struct losses *losses, struct packet *packet)
{
    if (losses->seed == 0)
        return false;
    losses->seed = losses->seed * 1664525 + 1013904223;
    if (losses->seed >> 24 > 12)
        return false;
    if (losses->bits && av_packet_make_writable(packet->av) == 0)
        packet->av->data[(losses->seed >> 8) % (unsigned)packet->av->size] ^= 0x10;
    return !losses->bits;
}

// Decodes as a camera does: takes all pictures before it sends the next packet.
static void decode_live(const char *file, bool early, struct losses losses, struct sequence *to,
                        struct waits *waits)
{
    struct run run;
    struct frame frame;
    struct packet packet;
    int packets = 0, lost = 0;
    to->n = waits->n = 0;
    without = !early;
    struct decode_options options = live;
    options.decode.by = follows ? DECODE_NVDEC : DECODE_CPU;
    if (!run_join(&run, file, &options, follows ? &with_device : &no_device))
        return;
    CHECK(on_device(&run) == follows, "%s: %s", file, decoder_describe(run.decoder));
    for (bool more = true; more;) {
        more = demux_read(run.demux, &packet) == 0;
        if (more && lose(&losses, &packet))
            continue;
        if (more)
            packet.received_ns = ++packets; // serves as its number
        CHECK(decoder_send(run.decoder, more ? &packet : NULL) == 0, "%s", file);
        while (decoder_receive(run.decoder, &frame) == 0) {
            lost += frame.lost;
            if (frame.lost)
                continue;
            waits->of[waits->n++] = packets - (int)frame.info.received_ns;
            add(to, &frame);
        }
    }
    CHECK(losses.seed || lost == 0, "%s: %d lost", file, lost);
    run_close(&run);
}

static void test_stream(const struct stream *stream)
{
    static struct waits waits;
    char file[64];
    snprintf(file, sizeof file, "%s", stream->file);
    if (!follows)
        clips_make("96x80", FRAMES, stream->encoder, file);
    decode_all(&whole, file);
    decode_live(file, true, (struct losses){0}, &got, &waits);
    CHECK(whole.n >= FRAMES - 2, "%s: %d pictures", file, whole.n);
    same(&got, &whole, 0, 0, file);
    const int half = waits.n / 2;
    qsort(waits.of + half, (size_t)(waits.n - half), sizeof(int), compare);
    const int median = waits.of[half + (waits.n - half) / 2], most = waits.of[waits.n - 1];
    CHECK(median <= stream->waits[0] && most <= stream->waits[1], "%s: median %d, most %d", file,
          median, most);
}

static const struct stream streams[] = {
    {X264 "bframes=0", "b0.mp4", {0, 0}},
    {X264 "bframes=2:b-bias=-100:b-adapt=1", "claimed.mp4", {0, 0}},
    {X264 "bframes=1:b-adapt=0", "b1.mp4", {0, 1}},
    {X264 "bframes=2:b-adapt=0:b-pyramid=none", "b2.mp4", {0, 2}},
    {X264 "bframes=3:b-adapt=0:b-pyramid=none", "b3.mp4", {0, 3}},
    {X264 "bframes=3:b-adapt=0:b-pyramid=normal", "b3p.mp4", {0, 3}},
    {X264 "bframes=5:b-adapt=0:b-pyramid=strict", "b5p.mp4", {0, 5}},
    {X264 "bframes=5:b-adapt=2", "b5a.mp4", {0, 5}},
    {X264 "bframes=2:open-gop=1", "open.mp4", {0, 3}},
    {X264 "bframes=0:intra-refresh=1", "refresh.mp4", {0, 0}},
    {X264 "bframes=2:b-adapt=0:slices=4", "slices.mp4", {0, 2}},
    {X264 "bframes=2:b-adapt=0 -flags +ildct+ilme -field_order tt", "fields.mp4", {0, 3}},
    {X264 "bframes=2:b-adapt=0:repeat-headers=1", "b2.h264", {ANY, ANY}},
    {X264 "bframes=0:repeat-headers=1", "b0.ts", {0, 0}},
    {X264 "bframes=2:b-adapt=0:repeat-headers=1", "b2.ts", {0, 2}},
    {X264 "bframes=2:b-adapt=0:b-pyramid=normal:open-gop=1", "open.ts", {0, 3}},
    {X265 "keyint=24:bframes=0", "b0.mkv", {0, 0}},
    {X265 "keyint=24:bframes=2:b-adapt=0:b-pyramid=0:open-gop=0", "b2.mkv", {0, 2}},
    {X265 "keyint=24:bframes=4:b-adapt=0:open-gop=0", "b4.mkv", {0, 4}},
    {X265 "keyint=24:bframes=4:b-adapt=2:open-gop=1", "open.mkv", {1, 4}},
    {X265 "keyint=24:bframes=3:open-gop=0:radl=2", "radl.mkv", {1, 4}},
    {X265 "keyint=24:bframes=2:interlace=tff", "fields.mkv", {1, 2}},
    {X265 "keyint=24:bframes=2:repeat-headers=1", "b2h.ts", {1, 2}},
};

// Checks that each picture of `whole` came, unchanged unless damaged, and that time never went
// back. libavcodec drops pictures, and mixes sequences, if a sequence's first picture or a number
// of H.264's is missing. A loss makes it flag pictures that it decoded before and still held.
static void check_kept(const char *what)
{
    int missing = 0, back = 0, marks = 0;
    for (int i = 0; i < whole.n; i++) {
        int at = 0;
        while (at < got.n && got.picture[at].hash != whole.picture[i].hash)
            at++;
        const bool damaged = whole.picture[i].flags & FRAMED_FLAG_DAMAGED;
        missing += at == got.n && !damaged;
        marks += damaged;
    }
    for (int i = 0; i < got.n; i++) {
        back += i > 0 && got.picture[i].pts_ns <= got.picture[i - 1].pts_ns;
        marks -= got.picture[i].flags & FRAMED_FLAG_DAMAGED ? 1 : 0;
    }
    CHECK(got.n >= whole.n, "%s: %d pictures of %d", what, got.n, whole.n);
    CHECK((missing == 0 || follows) && back == 0 && marks <= 2 + follows,
          "%s: %d missing, %d go back, %d not marked", what, missing, back, marks);
}

// The reference is the same decoder in its own order.
static void test_losses(const char *file, bool bits)
{
    static struct waits waits;
    for (unsigned seed = 1; seed <= (follows ? 3 : 8); seed++) {
        char what[64];
        const struct losses losses = {seed, bits};
        decode_live(file, false, losses, &whole, &waits);
        decode_live(file, true, losses, &got, &waits);
        snprintf(what, sizeof what, "%s, seed %u", file, seed);
        CHECK(whole.n > 100, "%s: %d pictures", what, whole.n);
        check_kept(what);
    }
}

// The parameters change in mid-stream.
static void test_resize(const char *encoder, const char *ending)
{
    static struct waits waits;
    char file[64];
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "part%d.%s", i, ending);
        clips_make(i == 1 ? "80x96" : "96x80", 40, encoder, file);
    }
    clips_run("cat part0.%s part1.%s part2.%s > resized.%s", ending, ending, ending, ending);
    snprintf(file, sizeof file, "resized.%s", ending);
    decode_live(file, false, (struct losses){0}, &whole, &waits);
    decode_live(file, true, (struct losses){0}, &got, &waits);
    CHECK(whole.n == 120, "%d", whole.n);
    same(&got, &whole, 0, 0, file);
}

static void test_all(void)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        TEST(test_stream(&streams[i]));
    TEST(test_losses("b0.mp4", false));
    TEST(test_losses("b2.ts", false));
    TEST(test_losses("b3p.mp4", false));
    TEST(test_losses("refresh.mp4", false));
    TEST(test_losses("fields.mp4", false));
    TEST(test_losses("b4.mkv", false));
    TEST(test_losses("open.mkv", false));
    TEST(test_losses("b2.ts", true));
    TEST(test_losses("b3p.mp4", true));
    TEST(test_losses("b4.mkv", true));
    TEST(test_resize(X264 "bframes=2:b-adapt=0:repeat-headers=1", "ts"));
    TEST(test_resize(X265 "keyint=24:bframes=2:repeat-headers=1", "ts"));
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    fake_open();
    test_all();
    follows = true;
    test_all();
    fake_close();
    clips_close();
    return test_end();
}
