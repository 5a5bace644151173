// What a rehearsal makes of a configuration.
#include "daemon/tune/rehearsal.h"

#include <string.h>

#include "tests/test.h"

// A clip that stands for a live camera is decoded without delay, as the camera would be: a setting
// whose gain is a delay does not win. One that stands for a file is decoded as that file.
static void test_low_delay(bool live)
{
    static const char text[] =
        "cameras:\n"
        "  gate: {url: 'rtsp://192.0.2.1/a', outputs: {o: {sink: 'tcp:0'}}}\n"
        "  door: {url: x.mp4, outputs: {o: {sink: 'tcp:1'}}}\n";
    const struct rehearsal rehearsal = {.folder = "/tmp", .clip = "/clip.mp4", .live = live};
    struct config *config = NULL;
    CHECK(config_load_text(&config, text, strlen(text), "text", stderr) == 0, "load");
    CHECK(rehearsal_prepare(config, &rehearsal) == 0, "prepare");
    CHECK(config->cameras[0].low_delay, "the clip has the delay of a file");
    CHECK(!config->cameras[1].low_delay, "a file is decoded as a live camera");
    CHECK(strcmp(config->cameras[0].url, "/clip.mp4") == 0, "%s", config->cameras[0].url);
    config_free(config);
}

int main(void)
{
    test_low_delay(false);
    test_low_delay(true);
    return test_end("rehearsal");
}
