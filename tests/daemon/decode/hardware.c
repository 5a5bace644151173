// Which hardware decoders are known, and what is kept of them.
#include "daemon/decode/hardware.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/decode/hardware_record.h"
#include "tests/test.h"

static const struct decoder_choice vaapi = {DECODE_HARDWARE, "vaapi", "/dev/dri/renderD129"},
                                   v4l2 = {DECODE_HARDWARE, "v4l2m2m", ""};

// A device of libavutil, a library's decoders by the end of their names, and by the whole.
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

static struct hardware_record record_of_two(void)
{
    struct hardware_record record = {.n = 4};
    hardware_record_key(record.key);
    record.list[0] = (struct hardware_result){v4l2, AV_CODEC_ID_H264, false};
    record.list[1] = (struct hardware_result){vaapi, AV_CODEC_ID_H264, true};
    record.list[2] = (struct hardware_result){vaapi, AV_CODEC_ID_HEVC, true};
    record.list[3] = (struct hardware_result){v4l2, AV_CODEC_ID_HEVC, true};
    return record;
}

static void test_record(void)
{
    char folder[] = "/tmp/framed-test-XXXXXX", inner[64], path[128];
    const struct hardware_record wrote = record_of_two();
    struct hardware_record read;
    CHECK(mkdtemp(folder), "no folder");
    snprintf(inner, sizeof inner, "%s/state", folder);
    snprintf(path, sizeof path, "%s/decoders", inner);
    CHECK(strlen(wrote.key) == 64, "key %s", wrote.key);
    CHECK(hardware_record_read(&read, inner) == -ENOENT, "a record before any");
    CHECK(hardware_record_write(&wrote, inner) == 0, "not written");
    CHECK(hardware_record_read(&read, inner) == 0 && !strcmp(read.key, wrote.key) && read.n == 4,
          "%d results, key %s", read.n, read.key);
    for (int i = 0; i < read.n; i++)
        CHECK(!strcmp(read.list[i].decoder.name, wrote.list[i].decoder.name) &&
                  !strcmp(read.list[i].decoder.device, wrote.list[i].decoder.device) &&
                  read.list[i].codec == wrote.list[i].codec &&
                  read.list[i].equal == wrote.list[i].equal,
              "result %d", i);
    FILE *file = fopen(path, "w");
    fputs("framed decoders 1\nkey 00ff\ndecoder abcdefghijklmnopqrstuvwxyz h264 equal\n"
          "decoder vaapi none equal\ndecoder vaapi\n\ndecoder vaapi hevc same\n",
          file);
    fclose(file);
    CHECK(hardware_record_read(&read, inner) == 0 && read.n == 1 && !read.list[0].equal,
          "%d results", read.n);
    file = fopen(path, "w");
    fputs("framed login pauses 1\nkey 00ff\ndecoder vaapi hevc equal\n", file);
    fclose(file);
    CHECK(hardware_record_read(&read, inner) == -EBADMSG && read.n == 0, "of another file");
    unlink(path);
    rmdir(inner);
    rmdir(folder);
}

static void test_choice(void)
{
    const struct hardware_record record = record_of_two();
    const struct decoder_choice *choice = hardware_record_choose(&record, AV_CODEC_ID_H264);
    CHECK(choice && !strcmp(choice->device, vaapi.device), "%s", choice ? choice->name : "none");
    CHECK(!hardware_record_choose(&record, AV_CODEC_ID_AV1) &&
              !hardware_record_choose(NULL, AV_CODEC_ID_H264),
          "nothing is known");
}

int main(void)
{
    TEST(test_names());
    TEST(test_record());
    TEST(test_choice());
    return test_end();
}
