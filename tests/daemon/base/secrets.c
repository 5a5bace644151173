#include "daemon/base/log.h"

#include <string.h>

#include "tests/test.h"

static const struct {
    const char *url, *from, *to;
} cases[] = {
    {"rtsp://h/s", "nothing to hide", "nothing to hide"},
    {"rtsp://u:hunter2@h/s", "u:hunter2 and hunter2, HUNTER2x", "*** and ***, ***x"},
    {"rtsp://u:hunter2@h/s", "hunter, shunts", "hunter, shunts"},
    {"rtsp://u:hunter2@h/s", "reason hunte", "reason ***"}, // cut off
    {"rtsp://u:hunter2@h/s", "reason hunte\n", "reason ***\n"},
    {"rtsp://u:hunter2@h/s", "reason hu", "reason hu"},
    {"rtsp://u:hunter2@h/s", "sent dTpodW50ZXIy", "sent ***"},
    {"rtsp://u:hunter@h/s", "sent dTpodW50ZXI=", "sent ***"},
    {"rtsp://u:hunte@h/s", "sent dTpodW50ZQ==", "sent ***"},
    {"rtsp://u:hun%40ter%2f2@h/s", "hun%40ter%2F2 hun@ter/2", "*** ***"},
    {"rtsp://u:hun%ter@h/s", "hun%ter", "***"},
    {"rtsp://u:12/hun@ter2@h/s", "tcp://u:12?timeout=0 /hun@ter2@h ter2",
     "tcp://u:***?timeout=0 /***@***@h ***"},
    {"rtsp://u:7@h/s", "7 u:7 x7 7x 77 a-7.", "*** *** x7 7x 77 a-***."},
    {"rtsp://hunter2@h/s", "hunter2", "***"},
    {"http://h/s?jwt=hunter2&x=17", "token hunter2, x 17", "token ***, x 17"},
    {"http://h/k=hunter2/s", "hunter2 k", "*** k"},
    {"rtsp://u:hunter2hunter@h/s", "hunter2hunter2hunter", "***"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct secrets *secrets = NULL;
        struct camera_config camera = {.url = (char *)cases[i].url};
        char to[128];
        CHECK(secrets_open(&secrets, &camera) == 0, "%s", cases[i].url);
        secrets_hide(secrets, to, sizeof to, cases[i].from);
        CHECK(!strcmp(to, cases[i].to), "%s, %s: %s", cases[i].url, cases[i].from, to);
        secrets_close(secrets);
    }
}

static void test_options(void)
{
    struct demuxer_option options[] = {{.name = "anything", .value = "hunter2"},
                                       {.name = "http_proxy", .value = "http://u:hunter3@h/"},
                                       {.name = "video_size", .value = "640x480"}};
    struct camera_config camera = {.url = "x.mp4", .options = {options, 3}};
    struct secrets *secrets = NULL;
    char to[128];
    CHECK(secrets_open(&secrets, &camera) == 0, "open");
    secrets_hide(secrets, to, sizeof to, "hunter2 hunter3 640x480 x.mp4");
    CHECK(!strcmp(to, "*** *** *** x.mp4"), "%s", to);
    secrets_close(secrets);
}

static void test_cut(void)
{
    struct camera_config camera = {.url = "rtsp://u:hunter2@h/"};
    struct secrets *secrets = NULL;
    char to[32];
    CHECK(secrets_open(&secrets, &camera) == 0, "open");
    for (size_t size = 4; size < sizeof to; size++) {
        memset(to, 'x', sizeof to);
        secrets_hide(secrets, to, size, "a hunter2 b hunter2 c hunter2 d");
        CHECK(strlen(to) < size && !strncmp(to, "a *** b *** c *** d", strlen(to)), "%zu: %s", size,
              to);
    }
    secrets_close(secrets);
    secrets_close(NULL);
}

int main(void)
{
    TEST(test_cases());
    TEST(test_options());
    TEST(test_cut());
    return test_end();
}
