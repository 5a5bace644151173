// NVDEC and the CPU take over from each other, anywhere in a stream: no picture is lost, doubled or
// out of order.
#include <dlfcn.h>
#include <libavutil/log.h>

#include "daemon/codec/packet_history.h"
#include "tests/daemon/codec/fake_device.h"

// --- sides that come and go

struct changes {
    uint64_t random;
    int one_in; // chances to change sides, before a packet and before a picture
    int leaves, to_device;
    bool was_on_device;
};

static int draw(struct changes *changes, int n)
{
    changes->random ^= changes->random << 13;
    changes->random ^= changes->random >> 7;
    changes->random ^= changes->random << 17;
    return (int)((changes->random >> 20) % (uint64_t)n);
}

static void maybe_change(struct run *run, struct changes *changes)
{
    changes->to_device += on_device(run) && !changes->was_on_device;
    changes->was_on_device = on_device(run);
    if (draw(changes, changes->one_in) > 0)
        return;
    decoder_leave(run->decoder);
    int rc = decoder_join(run->decoder, draw(changes, 3) ? &with_device : &no_device);
    CHECK(rc == 0, "%s", strerror(-rc));
    changes->leaves++;
}

static void decode_changing(struct sequence *sequence, struct run *run, struct changes *changes)
{
    int rc = 0;
    sequence->n = 0;
    while (rc != -ENODATA && sequence->n < PICTURES_MAX) {
        struct frame frame;
        maybe_change(run, changes);
        rc = decoder_receive(run->decoder, &frame);
        CHECK(rc == 0 || rc == -EAGAIN || rc == -ENODATA, "%s", strerror(-rc));
        CHECK(rc < 0 || !frame.lost, "a picture is lost");
        if (rc == 0)
            add(sequence, &frame);
        if (rc == -EAGAIN) {
            maybe_change(run, changes);
            rc = decoder_receive(run->decoder,
                                 &frame); // pictures after the change, before more packets
            if (rc == 0)
                add(sequence, &frame);
            else if (rc == -EAGAIN)
                send_next(run);
        } else if (rc < 0 && rc != -ENODATA) {
            return;
        }
    }
}

static void test_changes(const char *file, int threads, int one_in, uint64_t seed)
{
    struct decode_options options = anywhere;
    struct changes changes = {.random = seed * 0x9e3779b97f4a7c15, .one_in = one_in};
    struct run run;
    char what[64];
    options.threads = threads;
    snprintf(what, sizeof(what), "%s, %d threads, one in %d, seed %d", file, threads, one_in,
             (int)seed);
    if (!run_join(&run, file, &options, &with_device))
        return;
    decode_changing(&got, &run, &changes);
    same(&got, &whole, 0, 0, what);
    CHECK(changes.leaves > 2 && changes.to_device > 0, "%s: left %d times, %d times to the device",
          what, changes.leaves, changes.to_device);
    run_close(&run);
}

// --- single changes

// A running decoder moves to the device at the first keyframe, not before.
static void test_keyframe(const char *file)
{
    struct run run;
    int until = 0;
    decode_all(&whole, file);
    got.n = 0;
    if (!run_open(&run, file, &anywhere))
        return;
    decode_some(&run, 17); // one keyframe each 12
    change(&run, &with_device);
    for (; until < 20 && !on_device(&run); until++)
        decode_some(&run, 1);
    CHECK(until > 6 && until <= 13, "%s: after %d more", file, until);
    decode_some(&run, PICTURES_MAX);
    same(&got, &whole, 0, 0, file);
    run_close(&run);
}

// If more packets came since the last keyframe than are kept, the CPU goes on at the next one.
static void test_too_long(const char *file, int n)
{
    struct run run;
    decode_all(&whole, file);
    got.n = 0;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    decode_some(&run, n);
    CHECK(on_device(&run) && run.lost == 0 && got.n == n, "%d withheld", run.lost);
    change(&run, &no_device);
    CHECK(!on_device(&run), "%s", decoder_describe(run.decoder));
    decode_some(&run, PICTURES_MAX);
    CHECK(run.lost == 400 - n, "%d of %d", run.lost, 400 - n);
    same(&got, &whole, n, 400 - n, file);
    run_close(&run);
}

// A device that fails in mid-stream is left at once, until another device is available.
static void test_failure(const char *file, int pictures)
{
    struct run run;
    decode_all(&whole, file);
    got.n = 0;
    fake.pictures_left = pictures;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    CHECK(on_device(&run), "%s", decoder_describe(run.decoder));
    decode_some(&run, pictures + 5);
    CHECK(!on_device(&run) && run.notices == 1, "%d notices", run.notices);
    fake.pictures_left = -1;
    decode_some(&run, 15);
    CHECK(!on_device(&run), "%s", decoder_describe(run.decoder));
    change(&run, &with_device);
    decode_some(&run, 15);
    CHECK(on_device(&run) && run.notices == 1, "%d notices", run.notices);
    decode_some(&run, PICTURES_MAX);
    same(&got, &whole, 0, 0, file);
    run_close(&run);
}

static void test_refusal(const char *file)
{
    struct run run;
    decode_all(&whole, file);
    got.n = 0;
    fake.refuses = true;
    if (run_join(&run, file, &anywhere, &with_device)) {
        decode_some(&run, PICTURES_MAX);
        CHECK(!on_device(&run) && run.notices == 1, "%d notices", run.notices);
        same(&got, &whole, 0, 0, file);
        run_close(&run);
    }
    fake.refuses = false;
}

static void test_options(void)
{
    struct decode_options options = anywhere;
    struct run run;
    options.decode.by = DECODE_CPU;
    if (run_join(&run, "closed.mp4", &options, &with_device)) {
        CHECK(!on_device(&run), "decode: cpu");
        run_close(&run);
    }
    options.decode.by = DECODE_NVDEC;
    if (run_join(&run, "closed.mp4", &options, &with_device)) {
        CHECK(on_device(&run), "decode: nvdec");
        change(&run, &no_device); // must not be refused any more
        CHECK(!on_device(&run), "after a fallback");
        run_close(&run);
    }
    if (run_join(&run, "none.avi", &options, &with_device)) {
        CHECK(!on_device(&run) && decoder_notice(run.decoder), "what no device decodes");
        run_close(&run);
    }
}

// The time that the device took to open its decoder is reported once, even if the codec is gone.
static void test_held_up(const char *file)
{
    struct run run;
    got.n = 0;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    decode_some(&run, 10);
    CHECK(decoder_held_up_ns(run.decoder) < 40000000, "nothing took time");
    fake.opening_us = 50000;
    change(&run, &with_device);
    decode_some(&run, 30);
    change(&run, &no_device);
    CHECK(decoder_held_up_ns(run.decoder) >= 50000000, "the decoder was not opened anew");
    CHECK(decoder_held_up_ns(run.decoder) == 0, "it is told twice");
    fake.opening_us = 0;
    run_close(&run);
}

// Joins a live camera whose decoder waits for `other`, which has the turn to open.
static bool join_behind(struct run *run, const char *file, struct nvdec_turn *other)
{
    struct decode_options options = anywhere;
    options.low_delay = true;
    decode_all(&whole, file);
    got.n = 0;
    if (!run_join(run, file, &options, &with_device))
        return false;
    CHECK(nvdec_turn_came(other, &fake.device), "another has the turn");
    return true;
}

// A live camera's packets, 40 ms apart, are not decoded while another decoder has the turn to open.
// Then those since the first keyframe are, or, after more than a second, since the last one.
static void test_turn(const char *file, int packets, int skipped)
{
    struct nvdec_turn other = {0};
    struct run run;
    struct frame frame;
    if (!join_behind(&run, file, &other))
        return;
    const int asked = fake.asked;
    for (int i = 0; i < packets; i++) {
        struct packet packet;
        CHECK(demux_read(run.demux, &packet) == 0, "packet %d", i);
        packet.received_ns = (i + 1) * INT64_C(40000000);
        int rc = decoder_send(run.decoder, &packet);
        CHECK(rc == 0, "packet %d: %s", i, strerror(-rc));
        rc = decoder_receive(run.decoder, &frame);
        CHECK(rc == -EAGAIN, "packet %d: %s", i, strerror(-rc));
    }
    CHECK(fake.asked == asked, "opened while another has the turn");
    usleep(20000);
    nvdec_turn_end(&other);
    decode_some(&run, PICTURES_MAX);
    CHECK(run.lost == 0 && on_device(&run), "%d lost, %s", run.lost, decoder_describe(run.decoder));
    CHECK(decoder_held_up_ns(run.decoder) >= 20000000, "the wait is not told");
    same(&got, &whole, 0, skipped, file);
    CHECK(fake.device.turns == 1, "the turn was not given on");
    run_close(&run);
}

// A live camera that comes from another device does not wait: the CPU returns pictures
// until its turn has come and NVDEC takes over after a keyframe.
static void test_bridged(const char *file, int before)
{
    struct nvdec_turn other = {0};
    struct run run;
    struct decode_options options = anywhere;
    options.low_delay = true;
    decode_all(&whole, file);
    got.n = 0;
    if (!run_join(&run, file, &options, &with_device))
        return;
    decode_some(&run, before);
    CHECK(on_device(&run), "%s", decoder_describe(run.decoder));
    CHECK(nvdec_turn_came(&other, &fake.device), "another has the turn");
    decoder_leave(run.decoder);
    CHECK(decoder_join(run.decoder, &with_device) == 0 && !on_device(&run), "not on the cpu");
    decode_some(&run, 15);
    CHECK(got.n == before + 15 && !on_device(&run), "%d pictures, %s", got.n,
          decoder_describe(run.decoder));
    nvdec_turn_end(&other);
    decode_some(&run, PICTURES_MAX);
    CHECK(run.lost == 0 && on_device(&run), "%d lost, %s", run.lost, decoder_describe(run.decoder));
    same(&got, &whole, 0, 0, file);
    CHECK(fake.device.turns == 1, "the turn was not given on");
    run_close(&run);
}

// A decoder that is closed while it waits gives no turn back that it never had.
static void test_closed_waiting(const char *file)
{
    struct nvdec_turn other = {0};
    struct run run;
    struct frame frame;
    if (!join_behind(&run, file, &other))
        return;
    send_next(&run);
    CHECK(decoder_receive(run.decoder, &frame) == -EAGAIN, "decoded while another has the turn");
    run_close(&run);
    CHECK(fake.device.turns == 0, "the turn was taken from the other");
    nvdec_turn_end(&other);
    CHECK(fake.device.turns == 1, "the turn was not given on");
}

// If more packets wait than can be kept, they are decoded without a turn.
static void test_turn_too_late(const char *file)
{
    struct nvdec_turn other = {0};
    struct run run;
    if (!join_behind(&run, file, &other))
        return;
    decode_some(&run, PICTURES_MAX);
    nvdec_turn_end(&other);
    CHECK(run.lost == 0, "%d lost", run.lost);
    same(&got, &whole, 0, 0, file);
    run_close(&run);
}

// The device gets no packet before a stream's first keyframe. `skipped` packets came before the
// connection; `keyframe` is the number of the first keyframe after them.
static void test_begin_late(const char *file, int skipped, int keyframe)
{
    struct packet packet;
    struct run run;
    decode_all(&whole, file);
    got.n = 0;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    const int asked = fake.asked;
    for (int i = 0; i < skipped; i++)
        CHECK(demux_read(run.demux, &packet) == 0, "packet %d", i);
    for (int i = skipped; i < keyframe; i++)
        send_next(&run);
    CHECK(fake.asked == asked, "%s: a packet between keyframes was decoded", file);
    decode_some(&run, PICTURES_MAX);
    CHECK(run.lost == keyframe - skipped && on_device(&run), "%s: %d lost", file, run.lost);
    same(&got, &whole, 0, keyframe, file);
    run_close(&run);
}

// A stream without keyframes begins nevertheless.
static void test_no_keyframe(const char *file)
{
    struct packet packet;
    struct run run;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    const int asked = fake.asked;
    CHECK(demux_read(run.demux, &packet) == 0, "the keyframe");
    for (int i = 0; i < PACKETS_KEPT_MAX; i++)
        send_next(&run);
    CHECK(fake.asked == asked, "begun too early");
    send_next(&run);
    CHECK(fake.asked == asked + 1, "not begun");
    run_close(&run);
}

// --- codecs that cannot be opened

static bool opens_none;

int avcodec_open2(AVCodecContext *context, const AVCodec *codec, AVDictionary **options)
{
    __typeof__(&avcodec_open2) real = (__typeof__(real))dlsym(RTLD_NEXT, "avcodec_open2");
    return opens_none ? AVERROR(ENOMEM) : real(context, codec, options);
}

// The change to the device can open neither its decoder nor the CPU's. From then on every call
// returns the error, until a codec can be opened.
static void test_not_reopened(const char *file)
{
    struct run run;
    struct frame frame;
    int rc;
    if (!run_open(&run, file, &anywhere))
        return;
    CHECK(run_next(&run, &frame), "no picture");
    frame_release(&frame);
    CHECK(decoder_join(run.decoder, &with_device) == 0, "joined");
    opens_none = true;
    while ((rc = decoder_receive(run.decoder, &frame)) == 0 || rc == -EAGAIN) {
        if (rc == 0)
            frame_release(&frame);
        else
            send_next(&run);
    }
    CHECK(rc == -ENOMEM, "%s", strerror(-rc));
    decoder_restart(run.decoder);
    rc = decoder_receive(run.decoder, &frame);
    CHECK(rc == -ENOMEM, "%s", strerror(-rc));
    rc = decoder_send(run.decoder, NULL);
    CHECK(rc == -ENOMEM, "%s", strerror(-rc));
    decoder_leave(run.decoder);
    CHECK(decoder_join(run.decoder, &with_device) == -ENOMEM, "joined without a codec");
    opens_none = false;
    decoder_leave(run.decoder);
    CHECK(decoder_join(run.decoder, &no_device) == 0, "not joined");
    send_next(&run);
    CHECK(run_next(&run, &frame), "no picture");
    frame_release(&frame);
    run_close(&run);
}

// A decoder that has left NVDEC has no codec until it joins again.
static void test_left(const char *file)
{
    struct run run;
    struct frame frame;
    got.n = 0;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    decode_some(&run, 5);
    decoder_leave(run.decoder);
    CHECK(decoder_send(run.decoder, NULL) == -ENOTSUP, "sent");
    CHECK(decoder_receive(run.decoder, &frame) == -ENOTSUP, "received");
    run_close(&run);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    fake_open();
    for (size_t i = 0; i < sizeof(clip) / sizeof(*clip); i++) {
        const char *file = clip[i][1];
        clips_make("128x96", 80, clip[i][0], file);
        decode_all(&whole, file);
        CHECK(whole.n == 80, "%s: %d pictures", file, whole.n);
        for (uint64_t seed = 1; seed <= 6; seed++)
            TEST(test_changes(file, seed % 3 == 0 ? 4 : 1, seed % 2 ? 8 : 25, seed));
        TEST(test_keyframe(file));
    }
    TEST(test_failure("vp9.mkv", 30));
    TEST(test_failure("open.mkv", 31));
    TEST(test_refusal("closed.mp4"));
    TEST(test_held_up("closed.mp4"));
    TEST(test_turn("closed.mp4", 20, 0));
    TEST(test_turn("closed.mp4", 40, 36));
    TEST(test_turn("open.mkv", 30, 0));
    TEST(test_bridged("closed.mp4", 5));
    TEST(test_bridged("open.mkv", 20));
    TEST(test_bridged("vp9.mkv", 14));
    TEST(test_closed_waiting("closed.mp4"));
    TEST(test_begin_late("closed.mp4", 5, 12));
    TEST(test_begin_late("flat.ts", 13, 24));
    clips_make("64x48", 600, "-c:v libx264 -bf 0 -g 400 -x264-params scenecut=0", "long.mp4");
    TEST(test_too_long("long.mp4", 350));
    TEST(test_turn_too_late("long.mp4"));
    TEST(test_no_keyframe("long.mp4"));
    clips_make("64x48", 600, "-c:v libx264 -bf 3 -g 400 -x264-params scenecut=0", "longer.mp4");
    TEST(test_too_long("longer.mp4", 361));
    clips_make("64x48", 3, "-c:v mjpeg", "none.avi");
    TEST(test_not_reopened("closed.mp4"));
    TEST(test_left("closed.mp4"));
    TEST(test_options());
    fake_close();
    clips_close();
    return test_end();
}
