// Colours of pictures if their stream does not specify them, or if no kernel supports them.
#include <libavutil/log.h>

#include "tests/daemon/codec/decoding.h"

// Decodes the first picture of a file. The caller releases `*frame` and closes `*run`.
static bool decode_first(struct run *run, struct frame *frame, const char *file)
{
    if (!run_open(run, file, &on_cpu))
        return false;
    const bool came = run_next(run, frame);
    CHECK(came, "%s: no picture", file);
    if (!came)
        run_close(run);
    return came;
}

// A horizontal ramp of levels from 0 to 255, which full range keeps unchanged.
static void test_gray(const char *format, const char *encoder, const char *file, enum range range)
{
    struct run run;
    struct frame frame;
    clips_run(FFMPEG "-f lavfi -i color=black:s=256x16:r=5:d=1,format=gray,geq=lum=X -frames:v 1 "
                     "-pix_fmt %s %s %s",
              format, encoder, file);
    if (!decode_first(&run, &frame, file))
        return;
    const struct image *image = &frame.image;
    const struct plane *luma = &image->plane[0];
    CHECK(colour_resolve(image->colour, image->height).range == range, "%s: range %d", file,
          image->colour.range);
    for (int x = 0; x < 256; x += 51) {
        const int level = image->format == PIXEL_YUV420P10 ? ((uint16_t *)(void *)luma->data)[x] / 4
                                                           : luma->data[x];
        CHECK(abs(level - x) <= 2, "%s: level %d is %d", file, x, level);
    }
    frame_release(&frame);
    run_close(&run);
}

static void test_matrix(const char *matrix, bool said)
{
    struct run run;
    struct frame frame;
    char file[64];
    snprintf(file, sizeof file, "%s.mkv", matrix);
    clips_run(FFMPEG "-f lavfi -i testsrc2=s=64x64:r=25 -frames:v 12 -pix_fmt yuv444p -c:v libx264 "
                     "-x264-params colormatrix=%s %s",
              matrix, file);
    if (!run_open(&run, file, &on_cpu))
        return;
    while (run_next(&run, &frame))
        frame_release(&frame);
    CHECK(run.frames == 12 && run.notices == said, "%s: %d pictures, %d notices", matrix,
          run.frames, run.notices);
    run_close(&run);
}

// The notice names the colours that are assumed.
static void test_notice(void)
{
    struct run run;
    struct frame frame;
    if (!run_open(&run, "YCgCo.mkv", &on_cpu))
        return;
    const char *notice = NULL;
    for (int rc = -EAGAIN; rc == -EAGAIN; rc = decoder_receive(run.decoder, &frame))
        send_next(&run);
    notice = decoder_notice(run.decoder);
    CHECK(notice && strstr(notice, "ycgco") && strstr(notice, "bt601"), "%s",
          notice ? notice : "nothing is said");
    frame_release(&frame);
    run_close(&run);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    TEST(test_gray("gray", "-c:v rawvideo", "gray.nut", RANGE_FULL));
    TEST(test_gray("gray16le", "-c:v ffv1", "gray16.mkv", RANGE_FULL));
    TEST(test_gray("gray10le", "-c:v ffv1", "gray10.mkv", RANGE_FULL));
    TEST(test_gray("gray12le", "-c:v ffv1", "gray12.mkv", RANGE_FULL));
    TEST(test_gray("ya8", "-c:v png", "alpha.png", RANGE_FULL));
    TEST(test_gray("gray", "-c:v png", "gray.png", RANGE_FULL));
    TEST(test_gray("gray", "-c:v mjpeg -q:v 1", "gray.jpg", RANGE_FULL));
    TEST(test_gray("gray", "-c:v libx264 -qp 1 -bsf:v h264_metadata=video_full_range_flag=0",
                   "limited.mkv", RANGE_LIMITED));
    static const char *const other[] = {"YCgCo", "SMPTE2085", "ICtCp", "chroma-derived-nc",
                                        "bt2020c"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        TEST(test_matrix(other[i], true));
    TEST(test_notice());
    TEST(test_matrix("bt709", false));
    TEST(test_matrix("undef", false));
    TEST(test_matrix("fcc", false));
    clips_close();
    return test_end();
}
