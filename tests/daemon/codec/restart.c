// Loops and reconnects keep the decoder that is open on the device, and show no earlier pictures.
#include <libavutil/log.h>

#include "tests/daemon/codec/fake_device.h"

static void test_restart(const char *file)
{
    struct run run;
    decode_all(&whole, file);
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    fake.prepared = fake.asked = 0;
    for (int pass = 0; pass < 8; pass++) {
        got.n = 0;
        decode_some(&run, pass % 3 == 1 ? 13 + pass : PICTURES_MAX); // or from the middle
        CHECK(demux_rewind(run.demux) == 0, "rewind");
        decoder_restart(run.decoder);
        if (pass % 3 != 1)
            same(&got, &whole, 0, 0, file);
    }
    CHECK(fake.prepared == 0 && fake.asked == 1, "%s: opened %d times", file, fake.asked);
    // A decoder on the CPU moves to the device at a restart.
    change(&run, &no_device);
    decode_some(&run, 5);
    change(&run, &with_device);
    CHECK(!on_device(&run) && demux_rewind(run.demux) == 0, "on the cpu");
    decoder_restart(run.decoder);
    CHECK(on_device(&run), "%s", decoder_describe(run.decoder));
    got.n = 0;
    decode_some(&run, PICTURES_MAX);
    same(&got, &whole, 0, 0, file);
    run_close(&run);
}

// A stream that restarts between keyframes shows nothing of its earlier pictures, as on the CPU.
static void test_restart_late(const char *file)
{
    struct sequence *result[] = {&whole, &got};
    int withheld[2] = {0};
    for (int device = 0; device < 2; device++) {
        struct run run;
        struct packet skipped;
        struct frame frame;
        result[device]->n = 0;
        if (!run_join(&run, file, &anywhere, device ? &with_device : &no_device))
            return;
        for (int i = 0; i < 30 && run_next(&run, &frame); i++)
            frame_release(&frame);
        CHECK(demux_rewind(run.demux) == 0, "rewind");
        decoder_restart(run.decoder);
        for (int i = 0; i < 5; i++)
            CHECK(demux_read(run.demux, &skipped) == 0, "packet %d", i);
        while (run_next(&run, &frame))
            add(result[device], &frame);
        withheld[device] = run.lost;
        run_close(&run);
    }
    CHECK(withheld[0] == withheld[1] && withheld[0] > 3, "%d, %d withheld", withheld[0],
          withheld[1]);
    same(&got, &whole, 0, 0, file);
}

// Without B pictures each packet's picture comes with it.
static void test_no_delay(const char *file)
{
    struct run run;
    struct frame frame;
    if (!run_join(&run, file, &anywhere, &with_device))
        return;
    for (int i = 0; i < 40; i++) {
        send_next(&run);
        int rc = decoder_receive(run.decoder, &frame);
        CHECK(rc == 0 && !frame.lost, "%s: packet %d: %s", file, i, strerror(-rc));
        frame_release(&frame);
        CHECK(decoder_receive(run.decoder, &frame) == -EAGAIN, "%s: packet %d: two", file, i);
    }
    run_close(&run);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    fake_open();
    for (size_t i = 0; i < sizeof(clip) / sizeof(*clip); i++) {
        clips_make("128x96", 80, clip[i][0], clip[i][1]);
        TEST(test_restart(clip[i][1]));
    }
    TEST(test_restart_late("closed.mp4"));
    TEST(test_restart_late("flat.ts"));
    TEST(test_no_delay("flat.ts"));
    fake_close();
    clips_close();
    return test_end();
}
