// Which hardware decoders are known, and what is kept of them.
#include "daemon/decode/hardware.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/decode/hardware_decoder.h"
#include "tests/test.h"

int64_t __wrap_monotonic_ns(void);

static int64_t now_ns;

int64_t __wrap_monotonic_ns(void)
{
    return now_ns;
}

static const struct decoder_choice vaapi = {DECODE_HARDWARE, "vaapi", "/dev/dri/renderD129"},
                                   other = {DECODE_HARDWARE, "vaapi", ""},
                                   v4l2 = {DECODE_HARDWARE, "v4l2m2m", ""};

// A device of libavutil, a library's decoders by the end of their names, and by the whole.
static void test_names(void)
{
    struct hardware_decoder decoder;
    CHECK(hardware_decoder_find(&decoder, "vaapi", AV_CODEC_ID_HEVC) == 0 &&
              !strcmp(decoder.codec->name, "hevc") && decoder.device == AV_HWDEVICE_TYPE_VAAPI &&
              decoder.format == AV_PIX_FMT_VAAPI,
          "%s", decoder.codec ? decoder.codec->name : "none");
    CHECK(hardware_decoder_find(&decoder, "v4l2m2m", AV_CODEC_ID_H264) == 0 &&
              !strcmp(decoder.codec->name, "h264_v4l2m2m") &&
              decoder.device == AV_HWDEVICE_TYPE_NONE && decoder.format == AV_PIX_FMT_NONE,
          "%s", decoder.codec ? decoder.codec->name : "none");
    CHECK(hardware_decoder_find(&decoder, "h264_v4l2m2m", AV_CODEC_ID_H264) == 0, "by its name");
    CHECK(hardware_decoder_find(&decoder, "h264_v4l2m2m", AV_CODEC_ID_HEVC) == -ENOTSUP, "H.265");
    CHECK(hardware_decoder_find(&decoder, "cuda", AV_CODEC_ID_AV1) == 0 &&
              !strcmp(decoder.codec->name, "av1"),
          "not libavcodec's first choice for AV1");
    CHECK(hardware_decoder_find(&decoder, "vaapi", AV_CODEC_ID_MPEG2VIDEO) == -ENOTSUP,
          "a codec without exact pictures");
    CHECK(hardware_decoder_find(&decoder, "h264", AV_CODEC_ID_H264) == -ENOTSUP, "the cpu's");
    CHECK(hardware_decoder_is_known("rkmpp") && hardware_decoder_is_known("cuda") &&
              hardware_decoder_is_known("hevc_v4l2m2m"),
          "names");
    CHECK(!hardware_decoder_is_known("vapi") && !hardware_decoder_is_known("hevc") &&
              !hardware_decoder_is_known("drm"),
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

// What `auto` takes: equal by the record, and not banned if there is another. Each failure is news
// once.
static void test_choice(void)
{
    const struct hardware_record record = record_of_two();
    struct decoder_choice choice;
    struct hardware *hardware;
    CHECK(hardware_open(&hardware, &record) == 0, "no memory");
    CHECK(hardware_choose(hardware, AV_CODEC_ID_H264, &choice) &&
              !strcmp(choice.device, vaapi.device) && choice.by == DECODE_HARDWARE,
          "%s", choice.name);
    CHECK(!hardware_choose(hardware, AV_CODEC_ID_AV1, &choice), "%s", choice.name);
    CHECK(hardware_differs(hardware, &v4l2, AV_CODEC_ID_H264) &&
              !hardware_differs(hardware, &v4l2, AV_CODEC_ID_HEVC) &&
              !hardware_differs(hardware, &other, AV_CODEC_ID_H264),
          "differs");
    CHECK(hardware_is_news(hardware, &other, AV_CODEC_ID_H264) &&
              !hardware_is_news(hardware, &other, AV_CODEC_ID_H264) &&
              hardware_is_news(hardware, &other, AV_CODEC_ID_HEVC) &&
              hardware_is_news(hardware, &vaapi, AV_CODEC_ID_H264),
          "news");
    CHECK(hardware_hangs(hardware, &vaapi, "no answer") > 0 &&
              hardware_banned_ns(hardware, &vaapi) > 0 && hardware_banned_ns(hardware, &other) == 0,
          "hangs");
    CHECK(hardware_choose(hardware, AV_CODEC_ID_H264, &choice) &&
              !strcmp(choice.device, vaapi.device),
          "there is no other: %s", choice.name);
    CHECK(hardware_choose(hardware, AV_CODEC_ID_HEVC, &choice) && !strcmp(choice.name, "v4l2m2m"),
          "another: %s", choice.name);
    hardware_close(hardware);
    CHECK(!hardware_choose(NULL, AV_CODEC_ID_H264, &choice) &&
              hardware_banned_ns(NULL, &vaapi) == 0 &&
              hardware_hangs(NULL, &vaapi, "no answer") == 0 &&
              hardware_is_news(NULL, &vaapi, AV_CODEC_ID_H264),
          "nothing is known");
}

// Cameras that hang in the same decoder ban it once; each time that it hangs after a ban the next
// one is twice as long, up to a day, until the decoder has gone a day without.
static void test_bans(void)
{
    const int64_t minute_ns = INT64_C(60000000000), day_ns = 24 * 60 * minute_ns;
    const char *name = "vaapi:/dev/dri/renderD129";
    struct hardware_ban bans[HARDWARE_BANS_MAX];
    struct hardware *hardware;
    CHECK(hardware_open(&hardware, NULL) == 0, "no memory");
    CHECK(hardware_is_news(hardware, &v4l2, AV_CODEC_ID_H264) && hardware_bans(hardware, bans) == 0,
          "a decoder that cannot be opened is no ban");
    for (int64_t ban_ns = 10 * minute_ns; now_ns < 3 * day_ns; ban_ns *= 2) {
        const int64_t most_ns = ban_ns < day_ns ? ban_ns : day_ns;
        const int64_t got_ns = hardware_hangs(hardware, &vaapi, "no answer");
        CHECK(got_ns == most_ns && hardware_hangs(hardware, &vaapi, "no answer") == 0,
              "%lld minutes, not %lld", (long long)(got_ns / minute_ns),
              (long long)(most_ns / minute_ns));
        CHECK(hardware_bans(hardware, bans) == 1 && !strcmp(bans[0].decoder, name) &&
                  !strcmp(bans[0].why, "no answer") && bans[0].left_ns == most_ns,
              "%s, %s, %lld", bans[0].decoder, bans[0].why, (long long)bans[0].left_ns);
        now_ns += most_ns - 1;
        CHECK(hardware_banned_ns(hardware, &vaapi) == 1, "over early");
        now_ns += minute_ns;
        CHECK(hardware_banned_ns(hardware, &vaapi) == 0, "not over");
        CHECK(hardware_bans(hardware, bans) == 1 && bans[0].left_ns == 0, "not told as over");
    }
    now_ns += day_ns;
    CHECK(hardware_hangs(hardware, &vaapi, "no answer") == 10 * minute_ns, "after a day without");
    hardware_close(hardware);
}

int main(void)
{
    TEST(test_names());
    TEST(test_record());
    TEST(test_choice());
    TEST(test_bans());
    return test_end();
}
