// NVDEC, as far as this machine has it.
#include "daemon/codec/nvdec.h"

#include <libavutil/log.h>

#include "tests/daemon/codec/decoding.h"

#define X264_TWO_B "-c:v libx264 -bf 2 -g 24 -x264-params scenecut=0:b-adapt=0:b-pyramid=none"
#define X265_TWO_B                                                                                 \
    "-c:v libx265 -x265-params "                                                                   \
    "log-level=none:keyint=24:scenecut=0:bframes=2:b-adapt=0:b-pyramid=0"

// Downloaded pictures of NVDEC equal the CPU's, also for a live source, whose pictures are taken
// before libavcodec's output.
static void test_nvdec_same(struct decode_device *device, const char *file, const char *format,
                            bool live)
{
    struct decode_target use = {.driver = &cpu_backend, .device = device};
    struct decode_options options = {.decode.by = DECODE_NVDEC, .in_flight = 4, .low_delay = live};
    struct run run;
    struct frame frame;
    size_t size, at = 0;
    clips_run(FFMPEG "-i %s -f rawvideo -pix_fmt %s raw", file, format);
    unsigned char *raw = clips_read("raw", &size);
    if (run_join(&run, file, &options, &use)) {
        for (; run_next(&run, &frame); frame_release(&frame)) {
            struct image tight = frame.image;
            size_t bytes = image_lay_out(&tight, NULL);
            CHECK(frame.image.memory != MEMORY_CUDA && at + bytes <= size &&
                      differing(&frame.image, raw + at) == 0,
                  "%s: frame %d", file, run.frames);
            at += bytes;
        }
        CHECK(!strncmp(decoder_describe(run.decoder), "nvdec ", 6) && at == size, "%s: %s", file,
              decoder_describe(run.decoder));
        run_close(&run);
    }
    free(raw);
}

// A live source's picture waits only for pictures shown before it. The clip has two B pictures in a
// row: none waits for more than three packets, and two of three for none.
static void test_nvdec_early(struct decode_device *device, const char *file)
{
    struct backend_driver driver = {
        .takes_cuda = true, .pin = cpu_backend.pin, .unpin = cpu_backend.unpin};
    struct decode_target use = {.driver = &driver, .device = device};
    struct decode_options options = {.decode.by = DECODE_NVDEC, .in_flight = 4, .low_delay = true};
    struct run run;
    struct frame frame;
    struct packet packet;
    int packets = 0, pictures = 0, longest = 0, at_once = 0;
    if (!run_join(&run, file, &options, &use))
        return;
    while (demux_read(run.demux, &packet) == 0) {
        packet.received_ns = ++packets; // serves as its number
        CHECK(decoder_send(run.decoder, &packet) == 0, "%s", file);
        for (; decoder_receive(run.decoder, &frame) == 0; frame_release(&frame)) {
            const int wait = packets - (int)frame.info.received_ns;
            CHECK(frame.image.memory == MEMORY_CUDA, "%d", frame.image.memory);
            longest = packets > 75 && wait > longest ? wait : longest;
            at_once += packets > 75 && wait == 0;
            pictures += packets > 75;
        }
    }
    CHECK(!strncmp(decoder_describe(run.decoder), "nvdec ", 6), "%s",
          decoder_describe(run.decoder));
    CHECK(longest <= 3 && 2 * at_once >= pictures && pictures > 50, "%s: %d of %d at once, most %d",
          file, at_once, pictures, longest);
    run_close(&run);
}

// Streams that NVDEC cannot decode come entirely from the CPU, with one notice.
static void test_step_down(struct decode_device *device)
{
    struct backend_driver driver = {
        .takes_cuda = true, .pin = cpu_backend.pin, .unpin = cpu_backend.unpin};
    struct decode_target use = {.driver = &driver, .device = device};
    struct decode_options options = {.decode.by = DECODE_NVDEC, .in_flight = 4};
    clips_make("320x180", 30, "-c:v libx264 -pix_fmt yuv422p -bf 2", "422.mp4");
    clips_make("320x180", 30, "-c:v libx264 -pix_fmt yuv420p10le -bf 2", "hi10.mp4");
    struct run run = run_through("hi10.mp4", &options, &use);
    CHECK(run.frames == 30 && run.notices == 1 && run.damaged == 0, "%d frames, %d notices",
          run.frames, run.notices);
    run = run_through("422.mp4", &options, &use);
    CHECK(run.frames == 30 && run.notices >= 1 && run.damaged == 0, "%d frames", run.frames);
    clips_run(FFMPEG "-i nvdec.mp4 -c copy -bsf:v h264_mp4toannexb nvdec.h264");
    clips_run(FFMPEG "-i 422.mp4 -c copy -bsf:v h264_mp4toannexb 422.h264");
    clips_run("cat nvdec.h264 422.h264 > then422.h264");
    run = run_through("then422.h264", &options, &use);
    CHECK(run.frames == 90 && run.notices >= 1 && run.damaged == 0,
          "%d frames, %d notices, %d damaged", run.frames, run.notices, run.damaged);
    run = run_through("gbrp.mkv", &options, &use);
    CHECK(run.frames == 12 && run.notices == 1, "%d frames", run.frames);
}

static void test_nvdec(void)
{
    struct decode_device *device;
    int rc = decode_device_open(&device, 0, 0);
    CHECK(rc == 0 || (rc == -ENODEV && !device), "%s", strerror(-rc));
    if (rc < 0) {
        SKIP("no NVDEC: only its absence is tested");
        return;
    }
    clips_make("64x64", 12, "-c:v libx264rgb -qp 0", "gbrp.mkv");
    clips_make("320x180", 60, "-c:v libx264 -bf 2", "nvdec.mp4");
    clips_make("320x180", 60, "-c:v libx265 -x265-params log-level=none", "nvdec.mkv");
    clips_make("320x180", 150, X264_TWO_B, "twob.ts");
    clips_make("320x180", 150, X265_TWO_B, "twob.mkv");
    for (int live = 0; live <= 1; live++) {
        test_nvdec_same(device, "nvdec.mp4", "nv12", live);
        test_nvdec_same(device, "nvdec.mkv", "nv12", live);
        test_nvdec_same(device, "twob.ts", "nv12", live);
        test_nvdec_same(device, "twob.mkv", "nv12", live);
    }
    test_nvdec_early(device, "twob.ts");
    test_nvdec_early(device, "twob.mkv");
    test_step_down(device);
    struct backend_driver driver = {
        .takes_cuda = true, .pin = cpu_backend.pin, .unpin = cpu_backend.unpin};
    struct decode_target use = {.driver = &driver, .device = device};
    struct decode_options options = {.decode.by = DECODE_AUTO, .in_flight = 4};
    struct run run;
    struct frame frame;
    if (run_join(&run, "nvdec.mp4", &options, &use)) {
        for (; run_next(&run, &frame); frame_release(&frame))
            CHECK(frame.image.memory == MEMORY_CUDA && frame.image.format == PIXEL_NV12, "%d",
                  frame.image.memory);
        CHECK(run.frames == 60 && run.notices == 0, "%d frames", run.frames);
        run_close(&run);
    }
    decode_device_close(device);
}

// NVDEC decodes only codecs for which its bytes equal the CPU's.
static void test_codecs(void)
{
    CHECK(nvdec_find(AV_CODEC_ID_H264) && nvdec_find(AV_CODEC_ID_HEVC), "h264, hevc");
    CHECK(nvdec_find(AV_CODEC_ID_AV1) && !strcmp(nvdec_find(AV_CODEC_ID_AV1)->name, "av1"), "av1");
    CHECK(!nvdec_find(AV_CODEC_ID_MJPEG) && !nvdec_find(AV_CODEC_ID_FFV1), "mjpeg, ffv1");
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    TEST(test_codecs());
    TEST(test_nvdec());
    clips_close();
    return test_end();
}
