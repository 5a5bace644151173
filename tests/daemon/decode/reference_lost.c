// Pictures that never came, as an input tells it that counts what comes: those that may refer to
// them are flagged, up to the next keyframe and no further.
#include <libavcodec/packet.h>

#include "tests/daemon/decode/decoding.h"

enum { PICTURES = 75, GROUP = 25, LEFT_OUT = 30 };

static const struct decode_options counted = {
    .decode.by = DECODE_CPU, .in_flight = 4, .losses_known = true};

// Gives the decoder the next packet, but not number LEFT_OUT.
static void send_others(struct run *run, int *number)
{
    struct packet packet;
    int rc = demux_read(run->demux, &packet);
    if (rc == 0 && *number == LEFT_OUT) {
        rc = demux_read(run->demux, &packet);
        packet.reference_lost = true;
        ++*number;
    }
    ++*number;
    CHECK(rc == 0 || rc == -ENODATA, "%s", strerror(-rc));
    CHECK(decoder_send(run->decoder, rc == 0 ? &packet : NULL) == 0, "packet %d", *number);
}

static void test_left_out(const char *encoder, const char *file, int wanted)
{
    struct run run;
    struct frame frame;
    int number = 0, pictures = 0, flagged = 0, rc;
    clips_make("320x240", PICTURES, encoder, file);
    if (!run_open(&run, file, &counted))
        return;
    while ((rc = decoder_receive(run.decoder, &frame)) != -ENODATA) {
        if (rc == -EAGAIN) {
            send_others(&run, &number);
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
    TEST(test_left_out("-c:v libx264 -bf 0 -g 25", "lost.h264", REST));
    TEST(test_left_out("-c:v libx265 -x265-params log-level=none:bframes=0:keyint=25:min-keyint=25",
                       "lost.hevc", REST));
    TEST(test_left_out("-c:v mjpeg", "lost.mjpeg", 0));
    clips_close();
    return test_end();
}
