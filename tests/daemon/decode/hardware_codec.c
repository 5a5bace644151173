// A hardware decoder of libavcodec, in whose place tests/faults/decoder.c stands: what is its way
// and what is a fault. A clock of the test's own goes ahead as if packets came at a camera's pace.
#include <libavutil/log.h>

#include "daemon/decode/hardware.h"
#include "tests/daemon/decode/decoding.h"

int64_t __real_monotonic_ns(void);
int64_t __wrap_monotonic_ns(void);

static _Atomic int64_t ahead_ns;

int64_t __wrap_monotonic_ns(void)
{
    return __real_monotonic_ns() + ahead_ns;
}

static struct decode_options on_hardware = {
    .decode = {DECODE_HARDWARE, "v4l2m2m", ""}, .in_flight = 4, .threads = 1};

// Gives it up to `n` packets of a camera with so many a second, and takes what comes of them. How
// many pictures that are.
static int decode_packets(struct run *run, int n, int fps)
{
    int pictures = 0;
    for (int i = 0; i < n; i++) {
        struct frame frame;
        int rc;
        ahead_ns += INT64_C(1000000000) / fps;
        send_next(run);
        while ((rc = decoder_receive(run->decoder, &frame)) == 0) {
            pictures++;
            frame_release(&frame);
        }
        CHECK(rc == -EAGAIN, "packet %d: %s", i, strerror(-rc));
    }
    return pictures;
}

// A library keeps pictures back for as long as it likes to look ahead: each time it begins.
static void test_holds(int pictures, int fps)
{
    struct run run;
    char fault[16];
    snprintf(fault, sizeof fault, "hold:%d", pictures);
    setenv("FRAMED_DECODER", fault, 1);
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

// A library that takes no packet comes back from each call, so that other cameras may open it: it
// does not hang.
static void test_full(void)
{
    struct run run;
    ahead_ns = 0; // who waits for a condition does so by the real clock
    setenv("FRAMED_DECODER", "full:30", 1);
    CHECK(hardware_open(&on_hardware.hardware, NULL) == 0, "no memory");
    if (run_join(&run, "flat.mp4", &on_hardware, &no_device)) {
        const int came = decode_packets(&run, 40, 1000);
        const char *said = decoder_notice(run.decoder);
        CHECK(came == 40 && said &&
                  !strcmp(said, "v4l2m2m failed (it gives no pictures): decoding on the cpu"),
              "%d, %s", came, said ? said : "");
        CHECK(hardware_banned_ns(on_hardware.hardware, &on_hardware.decode) == 0, "it is banned");
        run_close(&run);
    }
    hardware_close(on_hardware.hardware);
    on_hardware.hardware = NULL;
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    clips_make("128x96", 80, "-c:v libx264 -bf 0 -g 12", "flat.mp4");
    TEST(test_holds(4, 25));
    TEST(test_holds(4, 6));
    TEST(test_holds(12, 3));
    TEST(test_full());
    clips_close();
    return test_end();
}
