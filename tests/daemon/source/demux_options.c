// The check of options before opening a camera agrees with opening it: an option is known exactly
// if opening accepts it.

#include "daemon/source/demux.h"
#include "tests/daemon/clips.h"

static _Atomic bool stop;

static bool is_taken(struct camera_config *camera)
{
    struct demux *demux = NULL;
    char why[256];
    bool opened = demux_open(&demux, camera, NULL, &stop, NULL, why, sizeof why) == 0;
    demux_close(demux);
    return opened || !strstr(why, "knows no option");
}

// `more`: an option that the demuxer always needs, or NULL.
static void compare(const char *url, const char *demuxer, const struct demuxer_option *more)
{
    // Values are harmless where the option is known.
    struct demuxer_option options[] = {
        {.name = "frobnicate", .value = "1"},       {.name = "probesize", .value = "100000"},
        {.name = "fflags", .value = "nobuffer"},    {.name = "blocksize", .value = "4096"},
        {.name = "rw_timeout", .value = "5000000"}, {.name = "seekable", .value = "0"},
        {.name = "framerate", .value = "25"},       {.name = "pixel_format", .value = "yuv420p"},
        {.name = "listen", .value = "0"},           {.name = "rtsp_flags", .value = "none"},
        {.name = "Probesize", .value = "100000"},   {.name = "ignore_editlist", .value = "0"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct duration timeout = {5 * INT64_C(1000000000)};
        struct demuxer_option given[] = {options[i], more ? *more : options[i]};
        struct camera_config camera = {.url = (char *)url,
                                       .demuxer = (char *)demuxer,
                                       .options = {given, more ? 2 : 1},
                                       .connect_timeout = timeout,
                                       .media_timeout = timeout,
                                       .close_timeout = timeout};
        bool known = demuxer_takes_option(&camera, options[i].name), taken = is_taken(&camera);
        // If the demuxer is found by probing, other demuxers may have the option.
        CHECK(demuxer ? known == taken : known || !taken, "%s, %s: %s is %s, and %s", url,
              demuxer ? demuxer : "any", options[i].name, known ? "known" : "unknown",
              taken ? "taken" : "refused");
    }
}

int main(void)
{
    clips_open();
    clips_make("64x48", 3, "-c:v mpeg4", "a.mp4");
    clips_make("64x48", 3, "-c:v mpeg4", "a.nut");
    clips_make("64x48", 3, "-f rawvideo -pix_fmt yuv420p", "a.raw");
    clips_run("mkfifo fifo");
    CHECK(demuxer_exists("rawvideo") && demuxer_exists("nut") && !demuxer_exists("nutt"), "names");
    const struct demuxer_option size = {.name = "video_size", .value = "64x48"};
    TEST(compare("a.mp4", NULL, NULL));
    TEST(compare("a.mp4", "mov", NULL));
    TEST(compare("file:a.nut", "nut", NULL));
    TEST(compare("a.raw", "rawvideo", &size));
    struct camera_config fifo = {.url = "fifo", .demuxer = "nut"};
    CHECK(!demuxer_takes_option(&fifo, "blocksize"), "framed reads a fifo itself");
    CHECK(demuxer_takes_option(&fifo, "probesize"), "what libavformat has itself");
    struct camera_config unknown = {.url = NULL};
    CHECK(demuxer_takes_option(&unknown, "listen") && !demuxer_takes_option(&unknown, "frobnicate"),
          "any");
    clips_close();
    return test_end();
}
