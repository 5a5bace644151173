// Packets that are decoded with the key `pictures`: by the filter alone, and by a decoder. The
// decoder's pictures equal a decoder's of all packets.
#include "daemon/codec/picture_filter.h"

#include <libavutil/log.h>

#include "tests/daemon/codec/fake_device.h"

static const int64_t MS = 1000000;

// --- the filter

// Feeds packets 40 ms apart, a keyframe every `distance` of them. Returns the number skipped.
static int feed(struct picture_filter *filter, int64_t *ms, int packets, int distance)
{
    int skipped = 0;
    for (int i = 0; i < packets; i++, *ms += 40)
        skipped += picture_filter_packet(filter, i % distance == 0, false, *ms * MS) == FILTER_SKIP;
    return skipped;
}

static void test_fixed(void)
{
    struct picture_filter all = {.pictures = PICTURES_ALL, .fps = 1};
    struct picture_filter reference = {.pictures = PICTURES_REFERENCE};
    struct picture_filter keyframes = {.pictures = PICTURES_KEYFRAMES};
    for (int i = 0; i < 60; i++) {
        const bool key = i % 12 == 0, disposable = i % 3 == 1;
        const int64_t ns = i * 40 * MS;
        CHECK(picture_filter_packet(&all, key, disposable, ns) == FILTER_DECODE, "%d", i);
        CHECK(picture_filter_packet(&reference, key, disposable, ns) ==
                  (disposable ? FILTER_SKIP : FILTER_DECODE),
              "%d", i);
        CHECK(picture_filter_packet(&keyframes, key, disposable, ns) ==
                  (key ? FILTER_DECODE : FILTER_SKIP),
              "%d", i);
    }
    CHECK(picture_filter_now(&all) == PICTURES_ALL &&
              picture_filter_now(&reference) == PICTURES_REFERENCE &&
              picture_filter_now(&keyframes) == PICTURES_KEYFRAMES,
          "now");
}

static void test_auto(void)
{
    struct picture_filter filter = {.fps = 1};
    int64_t ms = 5000;
    CHECK(feed(&filter, &ms, 75, 25) == 0, "not known yet");
    CHECK(feed(&filter, &ms, 50, 25) == 48, "known behind three distances");
    CHECK(picture_filter_now(&filter) == PICTURES_KEYFRAMES, "now");
    filter.fps = 1.1;
    CHECK(picture_filter_packet(&filter, false, false, ms * MS) == FILTER_WAKE, "more are wanted");
    CHECK(picture_filter_packet(&filter, false, false, ms * MS) == FILTER_WAKE, "said once more");
    picture_filter_wake(&filter);
    CHECK(feed(&filter, &ms, 250, 25) == 0, "keyframes are too few");
    filter.fps = 0.5;
    CHECK(feed(&filter, &ms, 25, 25) == 24, "fewer are wanted");
    filter.fps = 0;
    CHECK(picture_filter_packet(&filter, false, false, ms * MS) == FILTER_WAKE, "all are wanted");
}

// Skipping begins at the next keyframe and ends at a keyframe, with any key.
static void test_unwanted(void)
{
    static const enum decoded_pictures keys[] = {PICTURES_AUTO, PICTURES_ALL, PICTURES_REFERENCE};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct picture_filter filter = {.pictures = keys[i]};
        int64_t ms = 5000;
        CHECK(feed(&filter, &ms, 30, 25) == 0, "key %zu: all are wanted", i);
        filter.fps = -1;
        CHECK(!picture_filter_packet(&filter, false, false, ms * MS), "key %zu: no keyframe yet",
              i);
        CHECK(feed(&filter, &ms, 130, 25) == 124, "key %zu: none is wanted", i);
        CHECK(picture_filter_now(&filter) == PICTURES_KEYFRAMES, "key %zu: now", i);
        filter.fps = 0;
        CHECK(picture_filter_packet(&filter, false, false, ms * MS) == FILTER_SKIP,
              "key %zu: it refers to what was skipped", i);
        CHECK(feed(&filter, &ms, 50, 25) == 0, "key %zu: all are wanted again", i);
        filter.fps = -1;
        feed(&filter, &ms, 30, 25);
        picture_filter_begin(&filter);
        CHECK(!picture_filter_packet(&filter, false, false, ms * MS), "key %zu: another stream", i);
    }
}

static void test_overdue(void)
{
    struct picture_filter filter = {.fps = 1};
    int64_t ms = 0;
    feed(&filter, &ms, 125, 25);
    CHECK(feed(&filter, &ms, 32, 99) == 31, "a keyframe may be late");
    CHECK(picture_filter_packet(&filter, false, false, ms * MS) == FILTER_WAKE, "too late");
    picture_filter_wake(&filter);
    CHECK(feed(&filter, &ms, 75, 25) == 0, "to be learnt again");
    CHECK(feed(&filter, &ms, 50, 25) > 0, "learnt again");
    filter.unfit = true;
    picture_filter_wake(&filter);
    CHECK(feed(&filter, &ms, 250, 25) == 0, "not keyframes that one begins with");
    picture_filter_begin(&filter);
    CHECK(feed(&filter, &ms, 75, 25) == 0 && feed(&filter, &ms, 50, 25) == 48, "another stream");
}

// --- a decoder

static struct decode_options options = {
    .decode.by = DECODE_CPU, .threads = 1, .in_flight = 4, .losses_known = true};

static int index_in_whole(int64_t pts_ns)
{
    int at = 0;
    while (at < whole.n && whole.picture[at].pts_ns != pts_ns)
        at++;
    return at;
}

// Checks that the pictures are among all pictures, with rising times.
static void check_among_all(const char *what)
{
    int wrong = 0, back = 0;
    for (int i = 0; i < got.n; i++) {
        const int at = index_in_whole(got.picture[i].pts_ns);
        wrong += at == whole.n || whole.picture[at].hash != got.picture[i].hash ||
                 whole.picture[at].flags != got.picture[i].flags;
        back += i > 0 && got.picture[i].pts_ns <= got.picture[i - 1].pts_ns;
    }
    CHECK(wrong == 0 && back == 0, "%s: %d wrong, %d go back", what, wrong, back);
}

static int lost_before = -1; // the packet behind a loss

// Decodes, and requests all pictures from packet `wake` on; returns that packet's pts.
static int64_t decode_waking(const char *file, double fps, int wake, int *decoded_before)
{
    struct run run;
    struct frame frame;
    struct packet packet;
    int64_t pts_ns = INT64_MIN;
    got.n = 0;
    if (!run_open(&run, file, &options))
        return 0;
    decoder_set_fps(run.decoder, fps);
    for (int n = 0; demux_read(run.demux, &packet) == 0; n++) {
        if (n == wake) {
            decoder_set_fps(run.decoder, 0);
            *decoded_before = got.n;
            pts_ns = packet.pts_ns;
        }
        packet.reference_lost = n == lost_before;
        CHECK(decoder_send(run.decoder, &packet) == 0, "%s", file);
        while (decoder_receive(run.decoder, &frame) == 0) {
            CHECK(!frame.lost, "%s: lost behind %d packets", file, n);
            if (!frame.lost)
                add(&got, &frame);
        }
    }
    CHECK(decoder_send(run.decoder, NULL) == 0, "%s", file);
    while (decoder_receive(run.decoder, &frame) == 0)
        add(&got, &frame);
    run_close(&run);
    return pts_ns;
}

static void test_modes(const char *file, int keyframes, bool learns)
{
    int none;
    options.pictures = PICTURES_KEYFRAMES;
    decode_waking(file, 0, -1, &none);
    CHECK(got.n == keyframes, "%s: %d keyframes", file, got.n);
    check_among_all(file);
    options.pictures = PICTURES_REFERENCE;
    decode_waking(file, 0, -1, &none);
    CHECK(got.n > whole.n / 4 && got.n <= whole.n / 2, "%s: %d of %d", file, got.n, whole.n);
    check_among_all(file);
    options.pictures = PICTURES_ALL;
    decode_waking(file, 1, -1, &none);
    CHECK(got.n == whole.n, "%s: %d of %d", file, got.n, whole.n);
    options.pictures = PICTURES_AUTO;
    decode_waking(file, 1, -1, &none);
    CHECK(learns ? got.n >= 75 && got.n < 90 : got.n == whole.n, "%s: %d of %d", file, got.n,
          whole.n);
    check_among_all(file);
}

// All pictures are requested at some packet: from it on none is missing.
static void test_wake(const char *file)
{
    options.pictures = PICTURES_AUTO;
    for (int wake = 90; wake < 126; wake += 5) {
        int before = 0;
        char what[64];
        snprintf(what, sizeof what, "%s, packet %d", file, wake);
        const int64_t pts_ns = decode_waking(file, 1, wake, &before);
        check_among_all(what);
        const int from = index_in_whole(pts_ns), left = whole.n - from;
        CHECK(before < wake && got.n - before >= left, "%s: %d behind %d, %d left", what, got.n,
              before, left);
        for (int i = 1; i <= left && i <= got.n; i++)
            CHECK(got.picture[got.n - i].pts_ns == whole.picture[whole.n - i].pts_ns,
                  "%s: %d from the end", what, i);
        CHECK(got.n - before <= left + 4, "%s: %d of the past", what, got.n - before - left);
    }
}

// Pictures are requested again after a loss among the skipped ones: they are damaged up to the next
// keyframe.
static void test_wake_after_loss(const char *file)
{
    int before = 0, damaged = 0;
    options.pictures = PICTURES_AUTO;
    lost_before = 85;
    decode_waking(file, 1, 95, &before);
    lost_before = -1;
    for (int i = before; i < got.n; i++)
        damaged += (got.picture[i].flags & FRAMED_FLAG_DAMAGED) != 0;
    CHECK(damaged >= 4 && damaged <= 8, "%s: %d damaged", file, damaged);
}

// A stream that is joined between keyframes, none of them an IDR picture: each is shown at once.
static void test_joined(const char *file, bool device)
{
    struct run run;
    struct packet packet;
    struct frame frame;
    int keyframes = 0, shown = 0, late = 0;
    options.pictures = PICTURES_KEYFRAMES;
    options.decode.by = device ? DECODE_NVDEC : DECODE_CPU;
    if (!run_join(&run, file, &options, device ? &with_device : &no_device))
        return;
    for (int n = 0; demux_read(run.demux, &packet) == 0; n++) {
        if (n < 30)
            continue;
        keyframes += packet.keyframe;
        CHECK(decoder_send(run.decoder, &packet) == 0, "%s", file);
        for (; decoder_receive(run.decoder, &frame) == 0; frame_release(&frame))
            shown += !frame.lost;
        late += shown < keyframes;
    }
    CHECK(keyframes == 4 && late == 0, "%s: %d keyframes, %d late", file, keyframes, late);
    run_close(&run);
}

static void test_clip(const char *encoder, const char *file, bool live, bool learns)
{
    options.low_delay = live;
    clips_make("128x96", 150, encoder, file);
    decode_all(&whole, file);
    CHECK(whole.n == 150, "%s: %d", file, whole.n);
    test_modes(file, 6, learns);
    if (learns)
        test_wake(file);
}

#define X264 "-c:v libx264 -g 25 -bf 2 -x264-params scenecut=0:b-adapt=0:b-pyramid=none"
#define X265 "-c:v libx265 -x265-params log-level=none:keyint=25:scenecut=0:bframes=2:b-adapt=0"

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    TEST(test_fixed());
    TEST(test_auto());
    TEST(test_unwanted());
    TEST(test_overdue());
    clips_open();
    for (int live = 0; live <= 1; live++) {
        TEST(test_clip(X264, "closed.mp4", live, true));
        TEST(test_clip(X264 ":open-gop=1", "open.mp4", live, live));
        TEST(test_clip(X265 ":b-pyramid=0:open-gop=0", "closed.mkv", live, true));
        TEST(test_clip(X265 ":b-pyramid=0:open-gop=1", "open.mkv", live, true));
        TEST(test_wake_after_loss("closed.mkv"));
    }
    fake_open();
    TEST(test_joined("open.mp4", false));
    TEST(test_joined("open.mp4", true));
    fake_close();
    clips_close();
    return test_end();
}
