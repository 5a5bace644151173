// Missing pictures, reported by an input that counts packets: pictures that may refer to them are
// flagged, up to the next keyframe and no further.
#include <libavcodec/packet.h>

#include "tests/daemon/codec/decoding.h"

enum { PICTURES = 75, GROUP = 25, LEFT_OUT = 30 };

static const struct decode_options counted = {
    .decode.by = DECODE_CPU, .in_flight = 4, .losses_known = true};

// For files, several pictures are decoded at a time.
static const struct decode_options not_counted[] = {
    {.decode.by = DECODE_CPU, .in_flight = 4, .threads = 1},
    {.decode.by = DECODE_CPU, .in_flight = 4, .threads = 4},
};

// Sends the next packet to the decoder, except number LEFT_OUT.
static void send_others(struct run *run, int *number, bool counted_there)
{
    struct packet packet;
    int rc = demux_read(run->demux, &packet);
    if (rc == 0 && *number == LEFT_OUT) {
        rc = demux_read(run->demux, &packet);
        packet.reference_lost = counted_there;
        ++*number;
    }
    ++*number;
    CHECK(rc == 0 || rc == -ENODATA, "%s", strerror(-rc));
    CHECK(decoder_send(run->decoder, rc == 0 ? &packet : NULL) == 0, "packet %d", *number);
}

static void test_left_out(const char *encoder, const char *file,
                          const struct decode_options *options, int wanted)
{
    struct run run;
    struct frame frame;
    int number = 0, pictures = 0, flagged = 0, rc;
    clips_make("320x240", PICTURES, encoder, file);
    if (!run_open(&run, file, options))
        return;
    while ((rc = decoder_receive(run.decoder, &frame)) != -ENODATA) {
        if (rc == -EAGAIN) {
            send_others(&run, &number, options->losses_known);
            continue;
        }
        CHECK(rc == 0, "%s", strerror(-rc));
        if (rc < 0)
            break;
        pictures += !frame.lost;
        flagged += !frame.lost && (frame.info.flags & FRAMED_FLAG_DAMAGED);
        frame_release(&frame);
    }
    CHECK(pictures == PICTURES - 1 && flagged == wanted, "%s: %d pictures, %d flagged, not %d",
          file, pictures, flagged, wanted);
    run_close(&run);
}

int main(void)
{
    enum { REST = 2 * GROUP - LEFT_OUT - 1 }; // of the group
    clips_open();
    TEST(test_left_out("-c:v libx264 -bf 0 -g 25", "lost.h264", &counted, REST));
    TEST(test_left_out("-c:v libx265 -x265-params log-level=none:bframes=0:keyint=25:min-keyint=25",
                       "lost.hevc", &counted, REST));
    for (int i = 0; i < 2; i++)
        TEST(test_left_out(
            "-c:v libx265 -x265-params log-level=none:bframes=0:keyint=25:min-keyint=25",
            "lost.hevc", &not_counted[i], REST));
    TEST(test_left_out("-c:v mjpeg", "lost.mjpeg", &counted, 0));
    clips_close();
    return test_end();
}
