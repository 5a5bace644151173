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
static struct sequence clean; // without losses

int __real_early_output_open(struct early_output **ret, AVCodecContext *);
int __wrap_early_output_open(struct early_output **ret, AVCodecContext *);

int __wrap_early_output_open(struct early_output **ret, AVCodecContext *context)
{
    return without ? -ENOTSUP : __real_early_output_open(ret, context);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

// Packets dropped from a stream, or changed in it; `seed` 0: none.
struct losses {
    unsigned seed;
    bool bits;    // bits are changed; else packets are dropped
    bool gradual; // keyframes only begin a refresh
    int late;     // packets dropped at the start
};

// Times of the pictures that no loss can touch: of packets between a keyframe and the next loss.
static struct {
    bool intact, was_intact; // now, and in the group of pictures before
    int64_t key_ns;
    int n;
    int64_t pts_ns[PICTURES_MAX];
} untouched;

static void note_packet(const struct packet *packet, bool lost, bool gradual)
{
    const bool begins = packet->keyframe && (!gradual || untouched.n == 0);
    if (begins) {
        untouched.was_intact = untouched.intact;
        untouched.key_ns = packet->pts_ns;
    }
    untouched.intact = !lost && (untouched.intact || begins);
    const bool leads = packet->pts_ns < untouched.key_ns; // it may refer to the group before
    if (untouched.intact && (untouched.was_intact || !leads))
        untouched.pts_ns[untouched.n++] = packet->pts_ns;
}

// Returns true if the packet was dropped.
static bool lose(struct losses *losses, struct packet *packet)
{
    if (losses->seed == 0)
        return false;
    losses->seed = losses->seed * 1664525 + 1013904223;
    const bool lost = losses->late-- > 0 || losses->seed >> 24 <= 12;
    note_packet(packet, lost, losses->gradual);
    if (!lost)
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
    to->n = waits->n = untouched.n = 0;
    untouched.intact = untouched.was_intact = false;
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

static int find_time(const struct sequence *sequence, int64_t pts_ns)
{
    int at = 0;
    while (at < sequence->n && sequence->picture[at].pts_ns != pts_ns)
        at++;
    return at;
}

// Checks that the pictures that no loss touches came as in `clean`, that no fewer came than in
// libavcodec's order, `whole`, and that time never went back. libavcodec drops pictures, and mixes
// sequences, if a sequence's first picture or a number of H.264's is missing. A loss makes it flag
// pictures that it decoded before and still held.
static void check_kept(const char *what)
{
    int missing = 0, back = 0, marks = 0;
    for (int i = 0; i < untouched.n; i++) {
        const int at = find_time(&got, untouched.pts_ns[i]);
        const int in_clean = find_time(&clean, untouched.pts_ns[i]);
        missing += at == got.n || in_clean == clean.n ||
                   got.picture[at].hash != clean.picture[in_clean].hash;
    }
    for (int i = 0; i < whole.n; i++)
        marks += whole.picture[i].flags & FRAMED_FLAG_DAMAGED ? 1 : 0;
    for (int i = 0; i < got.n; i++) {
        back += i > 0 && got.picture[i].pts_ns <= got.picture[i - 1].pts_ns;
        marks -= got.picture[i].flags & FRAMED_FLAG_DAMAGED ? 1 : 0;
    }
    CHECK(got.n >= whole.n, "%s: %d pictures of %d", what, got.n, whole.n);
    CHECK(untouched.n > 0, "%s", what);
    CHECK(missing == 0 && back == 0 && marks <= 3,
          "%s: %d of %d missing, %d go back, %d not marked", what, missing, untouched.n, back,
          marks);
}

static void test_losses(const char *file, bool bits)
{
    static struct waits waits;
    decode_all(&clean, file);
    for (unsigned seed = 1; seed <= (follows ? 3 : 8); seed++) {
        char what[64];
        const bool gradual = strcmp(file, "refresh.mp4") == 0;
        const int late = bits || gradual ? 0 : 4 * (int)(seed % 4);
        const struct losses losses = {seed, bits, gradual, late};
        decode_live(file, false, losses, &whole, &waits);
        decode_live(file, true, losses, &got, &waits);
        snprintf(what, sizeof what, "%s, seed %u", file, seed);
        CHECK(whole.n > 100, "%s: %d pictures", what, whole.n);
        check_kept(what);
    }
}

static void pass(struct run *run, const struct packet *packet)
{
    struct frame frame;
    CHECK(decoder_send(run->decoder, packet) == 0, "not taken");
    while (decoder_receive(run->decoder, &frame) == 0) {
        run->lost += frame.lost;
        if (frame.lost)
            continue;
        CHECK(run->frames++ == 0 || frame.info.pts_ns > run->last_pts, "picture %d", run->frames);
        run->last_pts = frame.info.pts_ns;
        frame_release(&frame);
    }
}

// The second of two B pictures comes first, against the stream's parameters: the other one is late,
// and counts as lost.
static void test_crossed(const char *file)
{
    struct run run;
    struct packet packet, first = {.av = NULL};
    int64_t highest_ns = INT64_MIN;
    int packets = 0, late = 0;
    struct decode_options options = live;
    options.decode.by = follows ? DECODE_NVDEC : DECODE_CPU;
    without = false;
    if (!run_join(&run, file, &options, follows ? &with_device : &no_device))
        return;
    for (; demux_read(run.demux, &packet) == 0; packets++) {
        const bool b = packet.pts_ns < highest_ns;
        highest_ns = b ? highest_ns : packet.pts_ns;
        if (b && !first.av) {
            first = packet;
            first.av = av_packet_clone(packet.av);
            continue;
        }
        late += b;
        if (b)
            pass(&run, &packet);
        if (first.av)
            pass(&run, &first);
        av_packet_free(&first.av);
        if (!b)
            pass(&run, &packet);
    }
    if (first.av)
        pass(&run, &first);
    pass(&run, NULL);
    CHECK(run.lost == late && late > 40 && run.frames == packets - late,
          "%d of %d lost, %d of %d shown", run.lost, late, run.frames, packets);
    av_packet_free(&first.av);
    run_close(&run);
}

// Pictures after an IDR picture that is lost are shown.
static void test_lost_idr(const char *file)
{
    struct run run;
    struct packet packet;
    int packets = 0, keys = 0;
    struct decode_options options = live;
    options.decode.by = follows ? DECODE_NVDEC : DECODE_CPU;
    without = false;
    if (!run_join(&run, file, &options, follows ? &with_device : &no_device))
        return;
    while (demux_read(run.demux, &packet) == 0) {
        keys += packet.keyframe;
        if (packet.keyframe && keys == 3)
            continue;
        packets++;
        pass(&run, &packet);
    }
    pass(&run, NULL);
    CHECK(run.lost == 0 && run.frames == packets && keys > 3, "%d lost, %d of %d shown", run.lost,
          run.frames, packets);
    run_close(&run);
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
    TEST(test_crossed("b2.mp4"));
    TEST(test_crossed("b2.mkv"));
    TEST(test_lost_idr("b0.mp4"));
    TEST(test_lost_idr("b2.mp4"));
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
