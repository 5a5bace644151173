// A camera goes back to the hardware decoder that failed: when, and that no picture is lost,
// doubled or other than the cpu's. tests/faults/decoder.c stands in the decoder's place; the
// camera's clock is put ahead.
#include "daemon/decode/hardware_retry.h"

#include <libavutil/log.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/decode/hardware.h"
#include "tests/daemon/decode/decoding.h"

int64_t __real_monotonic_ns(void);
int64_t __wrap_monotonic_ns(void);

enum { PICTURES = 400, KEYFRAMES = 12 }; // of a clip, and their distance

static const int64_t SECOND_NS = INT64_C(1000000000), MINUTE_NS = INT64_C(60000000000);
static const struct decoder_choice v4l2 = {DECODE_HARDWARE, "v4l2m2m", ""};

// Who waits for a condition does so by the real clock: the threads of decoders.
static _Thread_local int64_t ahead_ns;

int64_t __wrap_monotonic_ns(void)
{
    return __real_monotonic_ns() + ahead_ns;
}

// --- pictures, whether their chroma lies in one plane or in two

struct pictures_seen {
    int n;
    struct {
        uint64_t hash;
        int64_t pts_ns;
        uint32_t flags;
    } picture[PICTURES];
};

static struct pictures_seen whole, got; // large

static uint64_t hash_of(const struct image *image)
{
    const bool one = pixel_format_planes(image->format) == 2;
    uint64_t hash = 0xcbf29ce484222325;
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            hash = (hash ^ image->plane[0].data[y * image->plane[0].stride + x]) * 0x100000001b3;
    for (int y = 0; y < image->height / 2; y++)
        for (int x = 0; x < image->width; x++) {
            const int plane = one ? 1 : 1 + x % 2, at = one ? x : x / 2;
            hash = (hash ^ image->plane[plane].data[y * image->plane[plane].stride + at]) *
                   0x100000001b3;
        }
    return hash;
}

static void add(struct pictures_seen *seen, struct frame *frame)
{
    if (seen->n < PICTURES) {
        seen->picture[seen->n].hash = hash_of(&frame->image);
        seen->picture[seen->n].pts_ns = frame->info.pts_ns;
        seen->picture[seen->n].flags = frame->info.flags;
    }
    seen->n++;
    frame_release(frame);
}

static void see_whole(const char *file)
{
    struct run run;
    struct frame frame;
    whole.n = 0;
    if (!run_open(&run, file, &on_cpu))
        return;
    while (run_next(&run, &frame))
        add(&whole, &frame);
    run_close(&run);
}

static void check_same(const struct run *run, const char *what)
{
    CHECK(got.n == whole.n && whole.n == PICTURES && run->lost == 0, "%s: %d pictures, %d lost",
          what, got.n, run->lost);
    for (int i = 0; i < got.n && i < whole.n; i++) {
        const bool equal = got.picture[i].hash == whole.picture[i].hash &&
                           got.picture[i].pts_ns == whole.picture[i].pts_ns &&
                           got.picture[i].flags == whole.picture[i].flags;
        CHECK(equal, "%s: picture %d", what, i);
        if (!equal)
            return;
    }
}

// --- a camera

static struct decode_options options = {.in_flight = 4, .threads = 1};

// Takes up to `n` pictures, at a pace that leaves a trial some time.
static void take(struct run *run, int n)
{
    struct frame frame;
    for (int i = 0; i < n && run_next(run, &frame); i++) {
        add(&got, &frame);
        usleep(1000);
    }
}

static bool on_hardware(const struct run *run)
{
    return !strcmp(decoder_describe(run->decoder), "v4l2m2m h264");
}

// A camera whose hardware has failed a few pictures ago.
static bool begin(struct run *run, const char *file)
{
    ahead_ns = 0;
    got.n = 0;
    options.decode = v4l2;
    CHECK(hardware_open(&options.hardware, NULL) == 0, "no memory");
    setenv("FRAMED_DECODER", "fail:20", 1);
    if (!run_join(run, file, &options, &no_device))
        return false;
    take(run, 30);
    CHECK(!on_hardware(run) && run->notices == 1 && decoder_fallbacks(run->decoder) == 1,
          "%s: %s, %d notices", file, decoder_describe(run->decoder), run->notices);
    return true;
}

static void end(struct run *run, const char *what)
{
    take(run, PICTURES);
    check_same(run, what);
    run_close(run);
    hardware_close(options.hardware);
    options.hardware = NULL;
}

// --- when

// Not before the minute is over, and then from a keyframe on.
static void test_return(const char *file, bool low_delay)
{
    struct run run;
    options.low_delay = low_delay;
    see_whole(file);
    if (!begin(&run, file))
        return;
    setenv("FRAMED_DECODER", "", 1);
    ahead_ns += 59 * SECOND_NS;
    take(&run, 5 * KEYFRAMES);
    CHECK(!on_hardware(&run), "%s: early", file);
    ahead_ns += SECOND_NS;
    for (int i = 0; i < 15 * KEYFRAMES && !on_hardware(&run); i++)
        take(&run, 1);
    CHECK(on_hardware(&run) && run.notices == 2 && decoder_fallbacks(run.decoder) == 0,
          "%s: %s, %d notices", file, decoder_describe(run.decoder), run.notices);
    end(&run, file);
    options.low_delay = false;
}

// Fails again each time: the trials begin a minute later, two, four, eight and then ten. Whatever
// happens in one, no picture waits for it.
static void test_failures(const char *fault)
{
    static const int minutes[] = {1, 2, 4, 8, 10, 10};
    struct run run;
    if (!begin(&run, "flat.mp4"))
        return;
    setenv("FRAMED_DECODER", fault, 1);
    for (size_t i = 0; i < sizeof minutes / sizeof *minutes; i++) {
        const int64_t early_ns = minutes[i] * MINUTE_NS - 2 * SECOND_NS;
        struct hardware_retry retry = {0};
        for (size_t k = 0; k <= i; k++)
            hardware_retry_later(&retry, &v4l2);
        ahead_ns += early_ns;
        CHECK(!hardware_retry_is_due(&retry, &options), "%s: time %zu: early", fault, i);
        ahead_ns += 2 * SECOND_NS;
        CHECK(hardware_retry_is_due(&retry, &options), "%s: time %zu: late", fault, i);
        take(&run, 3 * KEYFRAMES);
        CHECK(!on_hardware(&run), "%s: %s", fault, decoder_describe(run.decoder));
    }
    CHECK(run.notices == 1, "%s: %d notices", fault, run.notices);
    end(&run, fault);
}

// Hardware that has worked for ten minutes begins with the shortest pause again.
static void test_worked(void)
{
    struct hardware_retry retry = {0};
    for (int i = 0; i < 3; i++)
        hardware_retry_later(&retry, &v4l2);
    retry.worked_ns = monotonic_ns() - 10 * MINUTE_NS + SECOND_NS;
    hardware_retry_later(&retry, &v4l2);
    CHECK(retry.pause_ns == 8 * MINUTE_NS, "%lld s", (long long)(retry.pause_ns / SECOND_NS));
    retry.worked_ns = monotonic_ns() - 10 * MINUTE_NS;
    hardware_retry_later(&retry, &v4l2);
    CHECK(retry.pause_ns == MINUTE_NS, "%lld s", (long long)(retry.pause_ns / SECOND_NS));
}

// Another camera's decoder has hung: none tries it before the ban is over.
static void test_ban(void)
{
    struct run run;
    see_whole("flat.mp4");
    if (!begin(&run, "flat.mp4"))
        return;
    setenv("FRAMED_DECODER", "", 1);
    const int64_t ban_ns = hardware_hangs(options.hardware, &v4l2, "no answer");
    ahead_ns += ban_ns - SECOND_NS;
    take(&run, 5 * KEYFRAMES);
    CHECK(!on_hardware(&run), "it is banned");
    ahead_ns += SECOND_NS;
    for (int i = 0; i < 15 * KEYFRAMES && !on_hardware(&run); i++)
        take(&run, 1);
    CHECK(on_hardware(&run), "the ban is over");
    end(&run, "after a ban");
}

// So does `decode: auto` of a camera that comes within the ban.
static void test_auto(void)
{
    struct run run;
    const struct hardware_record record = {.n = 1, .list[0] = {v4l2, AV_CODEC_ID_H264, true}};
    ahead_ns = 0;
    got.n = 0;
    setenv("FRAMED_DECODER", "", 1);
    CHECK(hardware_open(&options.hardware, &record) == 0, "no memory");
    const int64_t ban_ns = hardware_hangs(options.hardware, &v4l2, "no answer");
    options.decode = (struct decoder_choice){.by = DECODE_AUTO};
    if (!run_join(&run, "flat.mp4", &options, &no_device))
        return;
    take(&run, 30);
    CHECK(!on_hardware(&run) && run.notices == 0, "it is banned");
    ahead_ns += ban_ns;
    for (int i = 0; i < 15 * KEYFRAMES && !on_hardware(&run); i++)
        take(&run, 1);
    CHECK(on_hardware(&run), "the ban is over");
    end(&run, "auto after a ban");
}

// A driver that hangs when it is tried costs its trial and no picture, and is banned then.
static void test_hang(const char *fault)
{
    struct run run;
    int64_t longest_ns = 0;
    if (!begin(&run, "flat.mp4"))
        return;
    setenv("FRAMED_DECODER", fault, 1);
    ahead_ns += MINUTE_NS;
    for (int i = 0; i < 20 * KEYFRAMES && run.notices == 1; i++) {
        const int64_t begun_ns = __real_monotonic_ns();
        take(&run, 1);
        const int64_t took_ns = __real_monotonic_ns() - begun_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        usleep(20000);
    }
    CHECK(run.notices == 2 && !on_hardware(&run), "%s: %d notices", fault, run.notices);
    CHECK(hardware_banned_ns(options.hardware, &v4l2) > 0, "%s: it is not banned", fault);
    CHECK(longest_ns < SECOND_NS / 2, "%s: a picture took %lld ms", fault,
          (long long)(longest_ns / 1000000));
    end(&run, fault);
}

// A camera that goes while its trial hangs does not wait for that.
static void test_leave(void)
{
    struct run run;
    if (!begin(&run, "flat.mp4"))
        return;
    setenv("FRAMED_DECODER", "hang-open", 1);
    ahead_ns += MINUTE_NS;
    take(&run, 5 * KEYFRAMES);
    const int64_t begun_ns = __real_monotonic_ns();
    run_close(&run);
    CHECK(__real_monotonic_ns() - begun_ns < SECOND_NS / 2, "it waits");
    hardware_close(options.hardware);
    options.hardware = NULL;
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    clips_make("128x96", PICTURES, "-c:v libx264 -bf 0 -g 12", "flat.mp4");
    clips_make("128x96", PICTURES, "-c:v libx264 -bf 3 -g 12 -x264-params scenecut=0:open-gop=1",
               "open.mp4");
    TEST(test_return("flat.mp4", true));
    TEST(test_return("flat.mp4", false));
    TEST(test_return("open.mp4", true));
    TEST(test_return("open.mp4", false));
    TEST(test_worked());
    see_whole("flat.mp4");
    TEST(test_failures("open"));
    TEST(test_failures("fail:1"));
    TEST(test_failures("silent:1"));
    TEST(test_ban());
    TEST(test_auto());
    TEST(test_hang("hang:1"));
    TEST(test_hang("hang-open"));
    TEST(test_leave());
    clips_close();
    return test_end();
}
