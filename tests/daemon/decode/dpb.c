// What memory a stream takes, told by its first picture.
#include "daemon/decode/dpb.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/load.h"
#include "config/object.h"
#include "daemon/decode/dpb_files.h"
#include "tests/daemon/clips.h"

enum { SPARE = 5 }; // surfaces that libavcodec adds

static struct stream_memory probe(const char *file)
{
    _Atomic bool stop = false;
    struct duration second = {1000000000};
    struct stream_memory ret = {0};
    struct camera_config config = {.name = (char *)"gate",
                                   .url = (char *)file,
                                   .pace = PACE_REALTIME,
                                   .connect_timeout = second,
                                   .media_timeout = second,
                                   .close_timeout = second};
    int rc = dpb_probe(&ret, &config, &stop);
    CHECK(rc == 0, "%s: %d", file, rc);
    return ret;
}

// `kept` are the pictures that the decoder keeps by the standard.
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
    // A picture that libswscale makes, of as many bits as its result has.
    clips_make("640x360", 5, "-c:v rawvideo -pix_fmt gray16le", "gray.nut");
    check("gray.nut", 640, 360, 24, 1, 0);
    clips_make("640x360", 10, "-c:v libx265 -x265-params log-level=error -pix_fmt yuv420p10le",
               "deep.mp4");
    struct stream_memory deep = probe("deep.mp4");
    CHECK(deep.pixel_bits == 24, "%d bits", deep.pixel_bits);
    CHECK(deep.pictures >= 5 && deep.pictures <= 16, "%d pictures", deep.pictures);
}

// Cameras of one file are looked at once; a file that is none, and what is no file, are left alone.
static void test_files(void)
{
    static const char text[] =
        "cameras:\n"
        "  a: {url: two.mp4, pace: realtime, outputs: {o: {sink: 'ring:/a'}}}\n"
        "  b: {url: none.mp4, outputs: {o: {sink: 'ring:/b'}}}\n"
        "  c: {url: two.mp4, outputs: {o: {sink: 'ring:/c'}}}\n"
        "  d: {url: 'tcp://127.0.0.1:1', outputs: {o: {sink: 'ring:/d'}}}\n";
    static const int widths[] = {320, 0, 320, 0};
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, sizeof text - 1, "test", stderr) == 0, "%s", text);
    dpb_probe_files(config, INT64_C(20000000000));
    for (int i = 0; i < 4; i++)
        CHECK(config->cameras[i].stream.width == widths[i], "%s: %d", config->cameras[i].name,
              config->cameras[i].stream.width);
    struct camera_config *copy = config_copy_camera(&config->cameras[2]);
    CHECK(copy->stream.width == 320, "a copy knows it too");
    config_free_camera(copy);
    config_free(config);
}

// What was looked at in time is known, though there is no time for all.
static void test_many_files(void)
{
    enum { FILES = 1000 };
    char *text = NULL;
    size_t size;
    int known = 0;
    struct config *config = NULL;
    FILE *to = open_memstream(&text, &size);
    fputs("cameras:\n", to);
    for (int i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.mp4", i);
        CHECK(symlink("pyramid.mp4", name) == 0, "%s", name);
        fprintf(to, "  c%d: {url: %s, outputs: {o: {sink: 'ring:/%d'}}}\n", i, name, i);
    }
    fclose(to);
    CHECK(config_load_text(&config, text, size, "test", stderr) == 0, "%d cameras", FILES);
    dpb_probe_files(config, 1000000000);
    for (int i = 0; i < FILES; i++)
        known += config->cameras[i].stream.width == 1280;
    CHECK(known > 0, "%d known", known);
    config_free(config);
    free(text);
}

int main(void)
{
    clips_open();
    TEST(test_streams());
    TEST(test_files());
    TEST(test_many_files());
    clips_close();
    return test_end();
}
