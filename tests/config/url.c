#include "config/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static const struct {
    const char *url, *shown;
} cases[] = {
    {"rtsp://10.0.0.5/stream1", "rtsp://10.0.0.5/stream1"},
    {"rtsp://10.0.0.5:554", "rtsp://10.0.0.5:554"},
    {"rtsp://user:hunter2@10.0.0.5:554/s?a=b", "rtsp://10.0.0.5:554/s"},
    {"rtsp://user@10.0.0.5/s", "rtsp://10.0.0.5/s"},
    {"rtsp://user:hun@ter2@h/s", "rtsp://h/s"},
    {"rtsp://user:hun/ter2@h/s", "rtsp://***"},
    {"rtsp://user:hun?ter2@h/s", "rtsp://***"},
    {"rtsp://user:hun#ter2@h/s", "rtsp://***"},
    {"rtsp://user:12/hun@ter2@h/s", "rtsp://***"},
    {"rtsp://user:hunter2", "rtsp://***"}, // cut before its host
    {"rtsp://user:hunter2@[fe80::1]:554/s", "rtsp://[fe80::1]:554/s"},
    {"RTSPS://user:hunter2@h", "RTSPS://h"},
    {"http://h/?user=hunter2&x=1", "http://h/"},
    {"http://h?jwt=hunter2", "http://h"},
    {"http://h/p#hunter2", "http://h/p"},
    {"http://h/?password=hun@ter2&x=1", "http://***"},
    {"rtsp://h/a/user=hunter2_password=hunter2_channel=1&stream=0", "rtsp://h/a/***"},
    {"http://proxy/?to=rtsp://u:hunter2@h/s", "http://***"},
    {"rtsp://u:${X:-hunter2}@h/${KEY}/s?t=${SIG}", "rtsp://h/${KEY}/s"},
    {"rtsp://${HOST:-a?b@c}:${PORT}/s", "rtsp://${HOST:-a?b@c}:${PORT}/s"},
    {"${WHOLE}", "${WHOLE}"},
    {"user:hunter2@h/s", "***"},
    {"/data/a@b.mp4", "/data/a@b.mp4"},
    {"/data/a=b?c.mp4", "/data/a=b?c.mp4"},
    {"rtsp://h:80: ", "rtsp://***"},
    {"rtsp://h:80:", "rtsp://h:80:"}, // a word of a sentence
    {"", ""},
};

static void test_kind(void)
{
    static const struct {
        const char *url;
        enum url_kind kind;
    } kinds[] = {
        {"rtsp://h/", URL_RTSP},   {"rtsps://h/", URL_RTSP},  {"RTSPS://h/", URL_RTSP},
        {"rtspu://h/", URL_NONE},  {"rtspss://h/", URL_NONE}, {"tcp://h:1", URL_TCP},
        {"unix:/run/x", URL_UNIX}, {"pipe:0", URL_PIPE},      {"file:a", URL_FILE},
        {"rtsps", URL_FILE},       {"http://h/", URL_NONE},   {"", URL_NONE},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        CHECK(config_url_kind(kinds[i].url) == kinds[i].kind, "%s: %d", kinds[i].url,
              config_url_kind(kinds[i].url));
    CHECK(config_url_has_host("rtsps://h/s") && config_url_has_host("rtsps://u:p@h:7441/s") &&
              !config_url_has_host("rtsps:///s") && !config_url_has_host("rtsps://h:0/s"),
          "rtsps");
}

// Reports why an input cannot be read.
static void test_mistakes(void)
{
    static const struct {
        const char *url, *mistake; // NULL: no mistake
    } mistakes[] = {
        {"rtsp://10.0.0.5/s", NULL},
        {"rtsp://cam/s@1", NULL},
        {"rtsp://cam:554/user@x/s", NULL},
        {"rtsp://10.0.0.5:554/to/admin:x@10.0.0.6/s", NULL},
        {"rtsp://[::1]:554/to/admin:x@10.0.0.6/s", NULL},
        {"rtsp://u:p%2Fw@ss@10.0.0.5/s", NULL},
        {"/data/a@b.mp4", NULL},
        {"a@b.mp4", NULL},
        {"a:b.mp4", NULL},
        {"./10.0.0.5:554/s", NULL},
        {"file:10.0.0.5:554/s", NULL},
        {"2026.11.28.mp4", NULL},
        {"rtsp://admin:pa/ss@10.0.0.5/s", "%2F %3F %23 %40 %3A %25"},
        {"rtsp://admin:pa#ss@10.0.0.5/s", "%2F %3F %23"},
        {"rtsp://admin:pa?ss@10.0.0.5/s", "%2F %3F %23"},
        {"rtsp://admin:12/34@10.0.0.5/s", "an @ behind its host (in a user name"},
        {"rtsp://admin:12#34@10.0.0.5/s", "an @ behind its host"},
        {"rtsps://admin:12?34@cam:322/s", "an @ behind its host"},
        {"rtsp://admin:12/34@localhost/s", "an @ behind its host"},
        {"rtsp://admin:1@2/3@[::1]/s", "an @ behind its host"},
        {"rtsp://john.doe:12/34@10.0.0.5/s", "an @ behind its host"},
        {"rtsp://j@doe.example:12#34@cam.lan/s", "an @ behind its host"},
        {"rtsp://cam.lan:554/to/admin:x@10.0.0.6/s", NULL},
        {"rtsp://cam.lan/admin@10.0.0.6/s", NULL},
        {"admin:pa/ss@10.0.0.5/s", "has no scheme"},
        {"admin:pa#ss@10.0.0.5:554/s", "has no scheme"},
        {"admin:12?34@cam.lan", "has no scheme"},
        {"admin:1@2/3@[::1]/s", "has no scheme"},
        {"data/a:b@c.mp4", NULL},
        {"data:a/b@c", NULL},
        {"rtsp:10.0.0.5/s", "has no host"},
        {"10.0.0.5:554/s", "has no scheme"},
        {"admin:secret@cam/s", "has no scheme"},
        {"admin:secret@10.0.0.5:554/s", "has no scheme"},
        {"cam:554", "has no scheme"},
        {"10.0.0.5/s", "has no scheme"},
        {"rtsp//10.0.0.5/s", "has no scheme"},
        {"http://10.0.0.5/s", "is not an input"},
        {"", "is not an input"},
        {"rtsp://10.0.0.5/live stream", "has a blank"},
        {"rtsp://10.0.0.5/s\x7f", "has a blank or a control character"},
        {"rtsp://u:a b@10.0.0.5/s", NULL},
        {"pipe:x", "descriptor"},
    };
    static char letters[5000], url[10000];
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const char *said = config_url_mistake(mistakes[i].url);
        CHECK(mistakes[i].mistake ? said && strstr(said, mistakes[i].mistake) : !said, "%s: %s",
              mistakes[i].url, said);
    }
    static const struct {
        const char *format, *mistake;
        int most; // letters
    } limits[] = {{"rtsp://u:%.*s@h/s", "password of more than 4095", 4095},
                  {"rtsp://%.*s:p@h/s", "user name or a password of more", 4095},
                  {"rtsp://%.*s@h/s", "user name or a password of more", 4095},
                  {"rtsp://u:p@h/s?jwt=%.*s", "longer than 4080", 4072},
                  {"rtsp://%.*s/s", "host of more than 255", 255}};
    memset(letters, 'x', sizeof letters - 1);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int more = 0; more < 2; more++) {
            snprintf(url, sizeof url, limits[i].format, limits[i].most + more, letters);
            const char *said = config_url_mistake(url);
            CHECK(more ? said && strstr(said, limits[i].mistake) : !said, "%s, %d more: %s",
                  limits[i].format, more, said);
        }
}

static void test_login(void)
{
    static const struct {
        const char *url, *user, *password, *wanted;
    } logins[] = {
        {"rtsp://h:554/s?x=1", "u", "p", "rtsp://u:p@h:554/s?x=1"},
        {"rtsp://a:b@h/s", "u", "p", "rtsp://u:p@h/s"},
        {"rtsp://h/path@x", "u", "p", "rtsp://u:p@h/path@x"},
        {"rtsps://[::1]:1/", "a b", "@:/?#%&'\"\xc3\xa4",
         "rtsps://a%20b:%40%3A%2F%3F%23%25%26%27%22%C3%A4@[::1]:1/"},
        {"rtsp://h", "", "", "rtsp://:@h"},
        {"/a/file", "u", "p", NULL},
        {"rtsp:///s", "u", "p", NULL},
    };
    for (size_t i = 0; i < sizeof logins / sizeof *logins; i++) {
        char *url = NULL;
        const int rc =
            config_url_with_login(&url, logins[i].url, logins[i].user, logins[i].password);
        CHECK(logins[i].wanted ? rc == 0 && url && !strcmp(url, logins[i].wanted)
                               : rc == -EINVAL && !url,
              "%s: %d %s", logins[i].url, rc, url ? url : "");
        free(url);
    }
}

int main(void)
{
    TEST(test_kind());
    TEST(test_mistakes());
    TEST(test_login());
    char to[128], small[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_url_shown(cases[i].url, to, sizeof to);
        CHECK(!strcmp(to, cases[i].shown), "%s: %s", cases[i].url, to);
        CHECK(!strstr(to, "hun"), "a secret got out: %s", to);
        for (size_t size = 1; size <= sizeof small; size++) {
            memset(small, 'x', sizeof small);
            config_url_shown(cases[i].url, small, size);
            CHECK(strlen(small) < size && !strncmp(small, to, strlen(small)), "%s cut to %zu: %s",
                  cases[i].url, size, small);
        }
    }
    return test_end();
}
