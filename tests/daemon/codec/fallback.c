// libavcodec's hardware decoders that hold pictures back, fail, fall silent and hang: the CPU takes
// over until the camera connects again, and no picture is lost, doubled or different from the
// CPU's. tests/faults/decoder.c replaces the decoder. The test's clock runs ahead as if packets
// came at a camera's pace.
#include <libavutil/log.h>
#include <unistd.h>

#include "daemon/codec/hardware.h"
#include "daemon/codec/hardware_record.h"
#include "tests/daemon/codec/fake_device.h"

int64_t __real_monotonic_ns(void);
int64_t __wrap_monotonic_ns(void);

enum { PICTURES = 100 }; // of a clip

static const int64_t SECOND_NS = INT64_C(1000000000);
static _Atomic int64_t ahead_ns; // threads waiting on a condition use the real clock

int64_t __wrap_monotonic_ns(void)
{
    return __real_monotonic_ns() + ahead_ns;
}

static struct decode_options on_hardware = {
    .decode = {DECODE_HARDWARE, "v4l2m2m", ""}, .in_flight = 4, .threads = 1};

static void want_fault(const char *fault)
{
    setenv("FRAMED_DECODER", fault, 1);
}

// --- a library's delay

// Sends up to `n` packets of a camera with `fps` per second. Returns the number of pictures.
static int decode_packets(struct run *run, int n, int fps)
{
    int pictures = 0;
    for (int i = 0; i < n; i++) {
        struct frame frame;
        int rc;
        ahead_ns += SECOND_NS / fps;
        send_next(run);
        while ((rc = decoder_receive(run->decoder, &frame)) == 0) {
            pictures++;
            frame_release(&frame);
        }
        CHECK(rc == -EAGAIN, "packet %d: %s", i, strerror(-rc));
    }
    return pictures;
}

// A library may hold pictures back for any look-ahead, in each connection.
static void test_holds(int pictures, int fps)
{
    struct run run;
    char fault[16];
    snprintf(fault, sizeof fault, "hold:%d", pictures);
    want_fault(fault);
    if (!run_join(&run, "flat.mp4", &on_hardware, &no_device))
        return;
    for (int connection = 0; connection < 2; connection++) {
        const int came = decode_packets(&run, 30, fps);
        const char *said = decoder_notice(run.decoder);
        CHECK(!said && came == 30 - pictures, "%d held at %d/s, connection %d: %d, %s", pictures,
              fps, connection, came, said ? said : "");
        CHECK(demux_rewind(run.demux) == 0, "rewind");
        decoder_restart(run.decoder);
    }
    run_close(&run);
}

// --- connections

static bool is_on_hardware(const struct run *run)
{
    return !strcmp(decoder_describe(run->decoder), "v4l2m2m h264");
}

// Decodes the rest of the connection. All of its pictures must be the CPU's.
static void end_connection(struct run *run, const char *what)
{
    decode_some(run, PICTURES_MAX);
    CHECK(whole.n == PICTURES && run->lost == 0, "%s: %d lost", what, run->lost);
    same(&got, &whole, 0, 0, what);
    got.n = 0;
}

static void connect_again(struct run *run, const char *what)
{
    end_connection(run, what);
    CHECK(demux_rewind(run->demux) == 0, "rewind");
    decoder_restart(run->decoder);
}

static bool begin_run(struct run *run, const char *file, const char *fault)
{
    got.n = 0;
    ahead_ns = 0;
    decode_all(&whole, file);
    want_fault(fault);
    return run_join(run, file, &on_hardware, &no_device);
}

static void check_told(struct run *run, const char *fault, int notices, int fallbacks)
{
    const int64_t counted = decoder_fallbacks(run->decoder);
    CHECK(run->notices == notices && counted == fallbacks, "%s: %d notices, %d fallbacks", fault,
          run->notices, (int)counted);
}

// The CPU decodes the rest of the connection, and the hardware the next one.
static void test_next_connection(const char *file, bool low_delay)
{
    struct run run;
    on_hardware.low_delay = low_delay;
    if (!begin_run(&run, file, "fail:20"))
        return;
    decode_some(&run, 10);
    CHECK(is_on_hardware(&run), "%s: %s", file, decoder_describe(run.decoder));
    decode_some(&run, 20);
    want_fault("");
    decode_some(&run, 50);
    CHECK(!is_on_hardware(&run), "%s: in the same connection", file);
    check_told(&run, file, 1, 1);
    connect_again(&run, file);
    CHECK(is_on_hardware(&run), "%s: %s", file, decoder_describe(run.decoder));
    connect_again(&run, file);
    check_told(&run, file, 1, 0);
    want_fault("fail:5");
    end_connection(&run, file);
    check_told(&run, file, 2, 1);
    run_close(&run);
    on_hardware.low_delay = false;
}

// Each connection counts as a fallback; the log reports it once.
static void test_fails(const char *fault)
{
    struct run run;
    if (!begin_run(&run, "flat.mp4", fault))
        return;
    for (int connection = 0; connection < 3; connection++)
        connect_again(&run, fault);
    end_connection(&run, fault);
    check_told(&run, fault, 1, 4);
    run_close(&run);
}

// Not a failure: pictures come late at the end, or the last packet has none.
static void test_end_of(const char *file, const char *fault, int pictures)
{
    struct run run;
    if (!begin_run(&run, file, fault))
        return;
    decode_some(&run, PICTURES_MAX);
    CHECK(got.n == pictures, "%s: %d pictures", fault, got.n);
    check_told(&run, fault, 0, 0);
    run_close(&run);
}

// A decoder without pictures is polled again and again; each call returns.
static void test_silent(const char *fault)
{
    struct run run;
    if (!begin_run(&run, "flat.mp4", fault))
        return;
    const int came = decode_packets(&run, 95, 25);
    const char *said = decoder_notice(run.decoder);
    CHECK(came == 95 && said &&
              !strcmp(said, "v4l2m2m failed (it gives no pictures): decoding on the cpu"),
          "%s: %d, %s", fault, came, said ? said : "");
    want_fault("");
    decoder_restart(run.decoder);
    CHECK(is_on_hardware(&run), "%s: %s", fault, decoder_describe(run.decoder));
    run_close(&run);
}

// --- hangs

// Opens the decoder as another camera does, and returns the result.
static int open_other(const char *device, char *why, size_t size)
{
    struct decoder_choice choice = on_hardware.decode;
    AVCodecParameters *parameters = avcodec_parameters_alloc();
    struct hardware *hardware;
    snprintf(choice.device, sizeof choice.device, "%s", device);
    parameters->codec_type = AVMEDIA_TYPE_VIDEO;
    parameters->codec_id = AV_CODEC_ID_H264;
    const int rc = hardware_open(&hardware, parameters, &choice, false, NULL, why, size);
    if (rc == 0)
        hardware_close(hardware);
    avcodec_parameters_free(&parameters);
    return rc;
}

// Ends the fault, and waits until others may open the decoder.
static void end_fault(const char *fault)
{
    char why[128];
    int rc = 0;
    want_fault("");
    for (int i = 0; i < 500 && (rc = open_other("", why, sizeof why)) == -EBUSY; i++)
        usleep(10000);
    CHECK(rc == 0, "%s: %s", fault, why);
}

// The camera goes on after 3 s, or 0.5 s once it had pictures. Nobody can open the decoder until
// the hanging call returns.
static void test_hang(const char *fault, int64_t least_ns)
{
    struct run run;
    char why[128];
    const int64_t begun_ns = __real_monotonic_ns();
    if (!begin_run(&run, "flat.mp4", fault))
        return;
    connect_again(&run, fault);
    const int64_t took_ns = __real_monotonic_ns() - begun_ns;
    CHECK(took_ns > least_ns && took_ns < least_ns + 2 * SECOND_NS, "%s: %lld ms", fault,
          (long long)(took_ns / 1000000));
    check_told(&run, fault, 1, 2);
    CHECK(!is_on_hardware(&run) && open_other("", why, sizeof why) == -EBUSY &&
              !strcmp(why, "its driver has not returned from a call"),
          "%s: %s", fault, why);
    end_fault(fault);
    connect_again(&run, fault);
    CHECK(is_on_hardware(&run), "%s: %s", fault, decoder_describe(run.decoder));
    end_connection(&run, fault);
    check_told(&run, fault, 1, 0);
    run_close(&run);
}

// Removing a camera does not wait forever.
static void test_leave(void)
{
    struct run run;
    if (!begin_run(&run, "flat.mp4", "hang-close"))
        return;
    decode_some(&run, 10);
    const int64_t begun_ns = __real_monotonic_ns();
    run_close(&run);
    const int64_t took_ns = __real_monotonic_ns() - begun_ns;
    CHECK(took_ns < 10 * SECOND_NS, "%lld ms", (long long)(took_ns / 1000000));
    char why[128];
    CHECK(open_other("", why, sizeof why) == -EBUSY &&
              open_other("/dev/video1", why, sizeof why) == 0,
          "%s", why);
    end_fault("hang-close");
}

// --- auto

// The choice of `decode: auto` if framed verify recorded the decoder with that driver and speed.
static void test_auto(const char *driver, double fps, bool taken, const char *said)
{
    struct decode_options options = on_hardware;
    struct hardware_record record = {
        .n = 2,
        .list = {
            {.decoder.by = DECODE_CPU, .codec = AV_CODEC_ID_H264, .bits = 8, .fps = 100},
            {.decoder = on_hardware.decode, .codec = AV_CODEC_ID_H264, .bits = 8, .fps = fps}}};
    struct run run;
    snprintf(record.list[1].driver, HARDWARE_DRIVER_MAX, "%s", driver);
    options.decode.by = DECODE_AUTO;
    options.verified = &record;
    want_fault("");
    for (int device = 0; device < 2; device++) {
        if (!run_join(&run, "flat.mp4", &options, device ? &with_device : &no_device))
            return;
        const char *notice = decoder_notice(run.decoder);
        const char *wanted = device ? "nvdec h264" : taken ? "v4l2m2m h264" : "cpu h264";
        CHECK(!strcmp(decoder_describe(run.decoder), wanted), "%s, %.0f: %s", driver, fps,
              decoder_describe(run.decoder));
        CHECK(said && !device ? notice && !strcmp(notice, said) : !notice, "%s, %.0f: %s", driver,
              fps, notice ? notice : "");
        CHECK(decoder_fallbacks(run.decoder) == (said && !device), "%s, %.0f", driver, fps);
        decoder_restart(run.decoder);
        CHECK(decoder_fallbacks(run.decoder) == 0, "%s, %.0f: again", driver, fps);
        run_close(&run);
    }
}

// Hardware's pictures are not compared with their stream's hashes.
static void test_hashes(const char *file, bool told)
{
    struct decode_options options = on_hardware;
    struct run run;
    options.check_hashes = true;
    want_fault("");
    if (!run_join(&run, file, &options, &no_device))
        return;
    const char *notice = decoder_notice(run.decoder);
    CHECK(told
              ? notice && !strcmp(notice, "check_hashes compares no pictures that hardware decodes")
              : !notice,
          "%s: %s", file, notice ? notice : "");
    decoder_restart(run.decoder);
    CHECK(!decoder_notice(run.decoder), "%s: again", file);
    run_close(&run);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    fake_open();
    clips_make("128x96", PICTURES, "-c:v libx264 -bf 0 -g 12", "flat.mp4");
    clips_make("128x96", PICTURES, "-c:v libx264 -bf 3 -g 12 -x264-params scenecut=0:open-gop=1",
               "open.mp4");
    TEST(test_holds(4, 25));
    TEST(test_holds(4, 6));
    TEST(test_holds(12, 3));
    TEST(test_next_connection("flat.mp4", true));
    TEST(test_next_connection("flat.mp4", false));
    TEST(test_next_connection("open.mp4", true));
    TEST(test_next_connection("open.mp4", false));
    TEST(test_fails("open"));
    TEST(test_fails("fail:1"));
    TEST(test_fails("silent:1"));
    TEST(test_fails("silent:30"));
    TEST(test_end_of("open.mp4", "slow-end", PICTURES));
    TEST(test_end_of("flat.mp4", "silent:100", PICTURES - 1));
    TEST(test_silent("silent:1"));
    TEST(test_silent("silent:10"));
    TEST(test_silent("full:10"));
    TEST(test_hang("hang:1", 3 * SECOND_NS));
    TEST(test_hang("hang:50", SECOND_NS / 2));
    TEST(test_hang("hang-open", 3 * SECOND_NS));
    TEST(test_leave());
    clips_make("128x96", 5, "-c:v libx265 -x265-params log-level=none:hash=1", "hash.mp4");
    TEST(test_hashes("hash.mp4", true));
    TEST(test_hashes("flat.mp4", false));
    TEST(test_auto("", 101, true, NULL));
    TEST(test_auto("", 100, false, NULL));
    TEST(
        test_auto("another", 101, false,
                  "v4l2m2m is not used (framed verify found another driver): decoding on the cpu"));
    fake_close();
    clips_close();
    return test_end();
}
