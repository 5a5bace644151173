// A stream's memory needs, predicted from its first picture.
#include "daemon/codec/buffers.h"

#include "tests/daemon/codec/decoding.h"

enum { SPARE = 5 }; // surfaces that libavcodec adds

static struct stream_memory probe(const char *file)
{
    static const struct decode_options one_thread = {
        .decode.by = DECODE_CPU, .threads = 1, .in_flight = 4};
    struct stream_memory ret = {0};
    struct frame frame;
    struct run run;
    if (!run_open(&run, file, &one_thread))
        return ret;
    decoder_memory(run.decoder, &ret);
    CHECK(ret.width == 0, "%s: known before its first picture", file);
    CHECK(run_next(&run, &frame), "%s: no picture", file);
    decoder_memory(run.decoder, &ret);
    frame_release(&frame);
    run_close(&run);
    return ret;
}

// `kept`: pictures that the decoder keeps by the standard.
static void check(const char *file, int width, int height, int bits, int kept, int surfaces)
{
    struct stream_memory got = probe(file);
    CHECK(got.width == width && got.height == height, "%s: %dx%d", file, got.width, got.height);
    CHECK(got.pixel_bits == bits, "%s: %d bits", file, got.pixel_bits);
    CHECK(got.pictures == kept, "%s: %d pictures, not %d", file, got.pictures, kept);
    CHECK(got.surfaces == surfaces + SPARE, "%s: %d surfaces, not %d", file, got.surfaces,
          surfaces + SPARE);
}

#define X264 "-c:v libx264 -preset ultrafast -pix_fmt yuv420p "

static void test_streams(void)
{
    clips_make("320x180", 10, X264 "-bf 0 -refs 2 -level 3", "two.mp4");
    check("two.mp4", 320, 180, 12, 2, 2 + 15);
    clips_make("320x180", 40, X264 "-bf 0 -refs 9 -level 1.3", "nine.h264");
    check("nine.h264", 320, 180, 12, 9, 18);
    clips_make("1280x720", 20,
               X264 "-refs 3 -level 3.1 -x264-params bframes=3:b-pyramid=normal:b-adapt=0",
               "pyramid.mp4");
    check("pyramid.mp4", 1280, 720, 12, 5, 4 + 5); // 4 and 2 that wait, of 5 that the level allows
    clips_make("640x360", 5, "-c:v mjpeg -pix_fmt yuvj420p", "intra.avi");
    check("intra.avi", 640, 360, 12, 0, 0);
    clips_make("640x360", 5, "-c:v mjpeg -pix_fmt yuvj422p", "wide.avi");
    check("wide.avi", 640, 360, 16, 0, 0); // kernels read 4:2:2: no picture is converted
    // A picture converted by libswscale, with the bits of the result.
    clips_make("640x360", 5, "-c:v rawvideo -pix_fmt gray16le", "gray.nut");
    check("gray.nut", 640, 360, 24, 1, 0);
    clips_make("640x360", 10, "-c:v libx265 -x265-params log-level=error -pix_fmt yuv420p10le",
               "deep.mp4");
    struct stream_memory deep = probe("deep.mp4");
    CHECK(deep.pixel_bits == 24, "%d bits", deep.pixel_bits);
    CHECK(deep.pictures >= 5 && deep.pictures <= 16, "%d pictures", deep.pictures);
}

int main(void)
{
    clips_open();
    TEST(test_streams());
    clips_close();
    return test_end();
}
