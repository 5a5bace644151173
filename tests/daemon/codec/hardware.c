// Known hardware decoders, and the record kept about them.
#include "daemon/codec/hardware.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/codec/hardware_record.h"
#include "tests/test.h"

static const struct decoder_choice vaapi = {DECODE_HARDWARE, "vaapi", "/dev/dri/renderD129"},
                                   cpu = {.by = DECODE_CPU},
                                   v4l2 = {DECODE_HARDWARE, "v4l2m2m", ""};

// Finds a device of libavutil, and a library's decoder by suffix or by full name.
static void test_names(void)
{
    struct hardware_decoder decoder;
    CHECK(hardware_find(&decoder, "vaapi", AV_CODEC_ID_HEVC) == 0 &&
              !strcmp(decoder.codec->name, "hevc") && decoder.device == AV_HWDEVICE_TYPE_VAAPI &&
              decoder.format == AV_PIX_FMT_VAAPI,
          "%s", decoder.codec ? decoder.codec->name : "none");
    CHECK(hardware_find(&decoder, "v4l2m2m", AV_CODEC_ID_H264) == 0 &&
              !strcmp(decoder.codec->name, "h264_v4l2m2m") &&
              decoder.device == AV_HWDEVICE_TYPE_NONE && decoder.format == AV_PIX_FMT_NONE,
          "%s", decoder.codec ? decoder.codec->name : "none");
    CHECK(hardware_find(&decoder, "h264_v4l2m2m", AV_CODEC_ID_H264) == 0, "by its name");
    CHECK(hardware_find(&decoder, "h264_v4l2m2m", AV_CODEC_ID_HEVC) == -ENOTSUP, "H.265");
    CHECK(hardware_find(&decoder, "cuda", AV_CODEC_ID_AV1) == 0 &&
              !strcmp(decoder.codec->name, "av1"),
          "not libavcodec's first choice for AV1");
    CHECK(hardware_find(&decoder, "vaapi", AV_CODEC_ID_MPEG2VIDEO) == -ENOTSUP,
          "a codec without exact pictures");
    CHECK(hardware_find(&decoder, "h264", AV_CODEC_ID_H264) == -ENOTSUP, "the cpu's");
    CHECK(hardware_is_known("rkmpp") && hardware_is_known("cuda") &&
              hardware_is_known("hevc_v4l2m2m"),
          "names");
    CHECK(!hardware_is_known("vapi") && !hardware_is_known("hevc") && !hardware_is_known("drm"),
          "names of nothing");
}

// --- the record

static char folder[] = "/tmp/framed-test-XXXXXX", state[64], path[128];

static struct hardware_result result_of(const struct decoder_choice *decoder, enum AVCodecID codec,
                                        int bits, double fps)
{
    return (struct hardware_result){*decoder, codec, bits, fps, ""};
}

static struct hardware_record verified(void)
{
    const struct hardware_result results[] = {
        result_of(&cpu, AV_CODEC_ID_H264, 8, 100),     result_of(&cpu, AV_CODEC_ID_HEVC, 8, 80),
        result_of(&cpu, AV_CODEC_ID_HEVC, 10, 60.5),   result_of(&v4l2, AV_CODEC_ID_H264, 8, 150),
        result_of(&vaapi, AV_CODEC_ID_H264, 8, 412.5), result_of(&vaapi, AV_CODEC_ID_HEVC, 8, 79.5),
        result_of(&v4l2, AV_CODEC_ID_HEVC, 10, 61)};
    struct hardware_record record = {0};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        hardware_record_add(&record, &results[i]);
    snprintf(record.list[4].driver, HARDWARE_DRIVER_MAX, "VAAPI driver: 23.1.1 ().");
    return record;
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void test_record(void)
{
    const struct hardware_record wrote = verified();
    struct hardware_record read;
    struct stat status;
    char part[160];
    snprintf(part, sizeof part, "%s.part", path);
    CHECK(hardware_record_read(&read, state) == -ENOENT, "a record before any");
    CHECK(mkdir(state, 0755) == 0 && symlink("/dev/full", part) == 0, "%s", part);
    CHECK(hardware_record_write(&wrote, state) == 0, "not written");
    CHECK(lstat(path, &status) == 0 && status.st_mode == (S_IFREG | 0644), "%o", status.st_mode);
    CHECK(hardware_record_read(&read, state) == 0 && read.n == wrote.n, "%d results", read.n);
    for (int i = 0; i < read.n; i++)
        CHECK(read.list[i].decoder.by == wrote.list[i].decoder.by &&
                  !strcmp(read.list[i].decoder.name, wrote.list[i].decoder.name) &&
                  !strcmp(read.list[i].decoder.device, wrote.list[i].decoder.device) &&
                  !strcmp(read.list[i].driver, wrote.list[i].driver) &&
                  read.list[i].codec == wrote.list[i].codec &&
                  read.list[i].bits == wrote.list[i].bits && read.list[i].fps == wrote.list[i].fps,
              "result %d", i);
    hardware_record_forget(&read, &vaapi);
    CHECK(read.n == wrote.n - 2, "%d results", read.n);
    hardware_record_forget(&read, &cpu);
    CHECK(read.n == wrote.n - 5, "%d results", read.n);
}

// Other libraries or another version of framed: there are no results, and failed decoders are tried
// again.
static void test_stale(void)
{
    char libraries[HARDWARE_LIBRARIES_MAX], text[512];
    struct hardware_record read;
    hardware_record_libraries(libraries);
    CHECK(!strncmp(libraries, "FFmpeg ", 7) && strstr(libraries, ", Linux "), "%s", libraries);
    snprintf(text, sizeof text, "framed decoders 2\n%s\ndecoder vaapi h264 8 100 a driver\n",
             libraries);
    write_text(text);
    CHECK(hardware_record_read(&read, state) == 0 && read.n == 1, "%d results", read.n);
    snprintf(text, sizeof text, "framed decoders 2\n%s.\ndecoder vaapi h264 8 100\n", libraries);
    write_text(text);
    CHECK(hardware_record_read(&read, state) == -ESTALE && read.n == 0, "%d results", read.n);
    snprintf(text, sizeof text, "framed decoders 2\n%s.\ndecoder cpu h264 8 100\n", libraries);
    write_text(text);
    CHECK(hardware_record_read(&read, state) == -ESTALE && read.n == 0, "%d results", read.n);
    snprintf(text, sizeof text, "framed decoders 3\n%s\ndecoder vaapi h264 8 100\n", libraries);
    write_text(text);
    CHECK(hardware_record_read(&read, state) == -ESTALE && read.n == 0, "%d results", read.n);
    write_text("framed decoders 1\nkey 00ff\ndecoder vaapi h264 equal\n");
    CHECK(hardware_record_read(&read, state) == -ESTALE && read.n == 0, "%d results", read.n);
}

static void test_garbage(void)
{
    char libraries[HARDWARE_LIBRARIES_MAX], text[512];
    struct hardware_record read;
    snprintf(text, sizeof text,
             "framed decoders 2\n%s\ndecoder abcdefghijklmnopqrstuvwxyz h264 8 100\n"
             "decoder vaapi none 8 100\ndecoder vaapi\n\ndecoder vaapi hevc 8 fast\n"
             "decoder vaapi hevc 10 61.5 a driver",
             hardware_record_libraries(libraries));
    write_text(text);
    CHECK(hardware_record_read(&read, state) == 0 && read.n == 1 && read.list[0].bits == 10 &&
              read.list[0].fps == 61.5 && !strcmp(read.list[0].driver, "a driver"),
          "%d results", read.n);
    write_text("framed login pauses 1\nkey 00ff\ndecoder vaapi hevc equal\n");
    CHECK(hardware_record_read(&read, state) == -EBADMSG && read.n == 0, "of another file");
    write_text("");
    CHECK(hardware_record_read(&read, state) == -EBADMSG && read.n == 0, "an empty file");
}

// --- the choice of `auto`

static void expect(const struct hardware_record *record, const AVCodecParameters *parameters,
                   const struct decoder_choice *wanted, const char *what)
{
    const struct hardware_result *result = hardware_record_choose(record, parameters);
    CHECK(wanted ? result && !strcmp(result->decoder.name, wanted->name) &&
                       !strcmp(result->decoder.device, wanted->device)
                 : !result,
          "%s: %s", what, result ? result->decoder.name : "the cpu");
}

// The fastest decoder, if it is faster than the CPU for that codec and depth.
static void test_choice(void)
{
    const struct hardware_record record = verified();
    AVCodecParameters stream = {.codec_id = AV_CODEC_ID_H264, .profile = -99};
    stream.format = AV_PIX_FMT_YUVJ420P;
    expect(&record, &stream, &vaapi, "H.264");
    expect(NULL, &stream, NULL, "without a record");
    stream.format = AV_PIX_FMT_YUV420P10;
    expect(&record, &stream, NULL, "H.264 of 10 bits was not verified");
    stream.format = AV_PIX_FMT_YUV422P;
    expect(&record, &stream, NULL, "nor was 4:2:2");
    stream.codec_id = AV_CODEC_ID_HEVC;
    stream.format = AV_PIX_FMT_YUV420P;
    expect(&record, &stream, NULL, "slower");
    stream.format = AV_PIX_FMT_YUV420P10;
    expect(&record, &stream, &v4l2, "H.265 of 10 bits");
    stream.codec_id = AV_CODEC_ID_AV1;
    expect(&record, &stream, NULL, "AV1");
}

// Over RTSP the format is unknown before the first picture.
static void test_depth(void)
{
    static uint8_t baseline[] = {0, 0, 0, 1, 0x67, 66, 0, 30},
                   high10[] = {0, 0, 1, 0x67, 110, 0, 30},
                   main10[] = {0, 0, 1, 0x40, 1, 12, 1, 0, 0, 1, 0x42, 1, 1, 2, 0x20};
    const struct hardware_record record = verified();
    AVCodecParameters stream = {
        .codec_id = AV_CODEC_ID_H264, .profile = -99, .format = AV_PIX_FMT_NONE};
    expect(&record, &stream, NULL, "nothing is known");
    stream.profile = 66 | 1 << 9; // constrained
    expect(&record, &stream, &vaapi, "Baseline");
    stream.profile = -99;
    stream.extradata = baseline;
    stream.extradata_size = sizeof baseline;
    expect(&record, &stream, &vaapi, "an SPS of Baseline");
    stream.extradata = high10;
    stream.extradata_size = sizeof high10;
    expect(&record, &stream, NULL, "an SPS of High 10");
    stream.codec_id = AV_CODEC_ID_HEVC;
    stream.extradata = main10;
    stream.extradata_size = sizeof main10;
    expect(&record, &stream, &v4l2, "an SPS of Main 10");
}

static void test_description(void)
{
    struct hardware_record record = verified();
    char text[512];
    hardware_record_describe(&record, text, sizeof text);
    CHECK(!strcmp(text,
                  "vaapi:/dev/dri/renderD129 for h264 of 8 bits (412 pictures/s, the CPU 100), "
                  "the CPU for hevc of 8 bits (80 pictures/s, vaapi:/dev/dri/renderD129 80), "
                  "v4l2m2m for hevc of 10 bits (61 pictures/s, the CPU 60)"),
          "%s", text);
    hardware_record_describe(&record, text, 20);
    CHECK(!strcmp(text, "vaapi:/dev/dri/rend"), "%s", text);
    record.n = 3;
    hardware_record_describe(&record, text, sizeof text);
    CHECK(!text[0], "%s", text);
}

int main(void)
{
    CHECK(mkdtemp(folder), "no folder");
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(path, sizeof path, "%s/decoders", state);
    TEST(test_names());
    TEST(test_record());
    TEST(test_stale());
    TEST(test_garbage());
    TEST(test_choice());
    TEST(test_depth());
    TEST(test_description());
    unlink(path);
    rmdir(state);
    rmdir(folder);
    return test_end();
}
