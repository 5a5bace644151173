// URLs of RTSP: the forms that users write and that cameras write into replies; no user and
// password gets into a request line.
#include "daemon/rtsp/url.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

static void test_parse(void)
{
    static const struct {
        const char *url, *text, *host, *user, *password;
        int port;
        bool tls;
    } cases[] = {
        {"rtsp://10.0.0.5/stream1", "rtsp://10.0.0.5/stream1", "10.0.0.5", "", "", 554, false},
        {"rtsp://cam", "rtsp://cam", "cam", "", "", 554, false},
        {"rtsps://cam/s", "rtsps://cam/s", "cam", "", "", 322, true},
        {"RTSPS://cam:7441/s", "rtsps://cam:7441/s", "cam", "", "", 7441, true},
        {"rtsp://u:p@cam:8554/s?a=b#c", "rtsp://cam:8554/s?a=b#c", "cam", "u", "p", 8554, false},
        {"rtsp://u@cam/s", "rtsp://cam/s", "cam", "u", "", 554, false},
        {"rtsp://:p@cam/s", "rtsp://cam/s", "cam", "", "p", 554, false},
        {"rtsp://@cam/s", "rtsp://cam/s", "cam", "", "", 554, false},
        {"rtsp://u:hun@ter@cam/s", "rtsp://cam/s", "cam", "u", "hun@ter", 554, false},
        {"rtsp://u:a:b@cam/s", "rtsp://cam/s", "cam", "u", "a:b", 554, false},
        {"rtsp://u%40x:p%2Fw%3a@cam/s", "rtsp://cam/s", "cam", "u@x", "p/w:", 554, false},
        {"rtsp://u:100%@cam/s", "rtsp://cam/s", "cam", "u", "100%", 554, false},
        {"rtsp://u:%4@cam/s", "rtsp://cam/s", "cam", "u", "%4", 554, false},
        {"rtsp://u:%zz%00%@cam/s", "rtsp://cam/s", "cam", "u", "%zz%00%", 554, false},
        {"rtsp://u:a b@cam/s", "rtsp://cam/s", "cam", "u", "a b", 554, false},
        {"rtsp://cam/s@1?user=x@y", "rtsp://cam/s@1?user=x@y", "cam", "", "", 554, false},
        {"rtsp://cam/a%20b%2f", "rtsp://cam/a%20b%2f", "cam", "", "", 554, false},
        {"rtsp://u:p@[2001:db8::1]:8554/s", "rtsp://[2001:db8::1]:8554/s", "2001:db8::1", "u", "p",
         8554, false},
        {"rtsp://[fe80::1%25eth0]/s", "rtsp://[fe80::1]/s", "fe80::1%eth0", "", "", 554, false},
        {"rtsps://[fe80::1%eth0]:1", "rtsps://[fe80::1]:1", "fe80::1%eth0", "", "", 1, true},
    };
    struct rtsp_url url;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int rc = rtsp_url_parse(&url, cases[i].url);
        CHECK(rc == 0, "%s: %d", cases[i].url, rc);
        CHECK(!strcmp(url.text, cases[i].text), "%s: %s", cases[i].url, url.text);
        CHECK(!strcmp(url.host, cases[i].host), "%s: host %s", cases[i].url, url.host);
        CHECK(!strcmp(url.user, cases[i].user), "%s: user %s", cases[i].url, url.user);
        CHECK(!strcmp(url.password, cases[i].password), "%s: %s", cases[i].url, url.password);
        CHECK(url.port == cases[i].port && url.tls == cases[i].tls, "%s: port %d, tls %d",
              cases[i].url, url.port, url.tls);
    }
}

static void test_other_port(void)
{
    static const struct {
        const char *url, *text; // NULL: it has no other port
    } cases[] = {
        {"rtsps://u:p@cam/s?a@b:1", "rtsps://cam:7441/s?a@b:1"},
        {"rtsps://cam", "rtsps://cam:7441"},
        {"rtsps://[fe80::1%25eth0]/s", "rtsps://[fe80::1]:7441/s"},
        {"rtsps://cam:322/s", NULL},
        {"rtsp://cam/s", NULL},
    };
    struct rtsp_url url;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(rtsp_url_parse(&url, cases[i].url) == 0, "%s", cases[i].url);
        CHECK(rtsp_url_take_other_port(&url) == !!cases[i].text, "%s", cases[i].url);
        CHECK(!cases[i].text || (url.port == 7441 && !strcmp(url.text, cases[i].text)), "%s: %s",
              cases[i].url, url.text);
        CHECK(!rtsp_url_take_other_port(&url), "%s: a third port", cases[i].url);
    }
}

static void test_refused(void)
{
    static const char *const cases[] = {
        "",
        "rtsp:",
        "rtsp:/cam/s",
        "rtsp://",
        "rtsp:///s",
        "rtsp://:554/s",
        "rtsp://u:p@/s",
        "rtspu://cam/s",
        "http://cam/s",
        "cam/s",
        "rtsp://cam:/s",
        "rtsp://cam:0/s",
        "rtsp://cam:65536/s",
        "rtsp://cam:000000554/s",
        "rtsp://cam:5x/s",
        "rtsp://cam:-5/s",
        "rtsp://fe80::1/s",
        "rtsp://[fe80::1/s",
        "rtsp://[]/s",
        "rtsp://[::1]554/s",
        "rtsp://cam/a b",
        "rtsp://cam/a\r\nCSeq: 1",
        "rtsp://ca\x7fm/",
    };
    static const struct rtsp_url untouched = {.port = -7};
    struct rtsp_url url = untouched;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(rtsp_url_parse(&url, cases[i]) == -EINVAL && !memcmp(&url, &untouched, sizeof url),
              "%s", cases[i]);
}

// Parses a URL with a user, a host and a path of these lengths.
static int parse_long(int user, int host, int path)
{
    static char letters[RTSP_URL_MAX], text[2 * RTSP_URL_MAX];
    static struct rtsp_url url;
    memset(letters, 'x', sizeof letters - 1);
    snprintf(text, sizeof text, "rtsp://%.*s@%.*s/%.*s", user, letters, host, letters, path,
             letters);
    return rtsp_url_parse(&url, text);
}

static void test_long(void)
{
    const int head = (int)strlen("rtsp://xxxx/");
    CHECK(parse_long(URL_LOGIN_MAX - 1, 4, 4) == 0 && parse_long(URL_LOGIN_MAX, 4, 4) == -EINVAL,
          "user");
    CHECK(parse_long(4, 255, 4) == 0 && parse_long(4, 256, 4) == -EINVAL, "host");
    CHECK(parse_long(4, 4, RTSP_URL_MAX - 1 - head) == 0, "path");
    CHECK(parse_long(4, 4, RTSP_URL_MAX - head) == -EINVAL, "path too long");
}

static void test_base(void)
{
    static const struct {
        const char *content_base, *content_location, *asked, *base;
    } cases[] = {
        {"rtsp://h/s/", NULL, "rtsp://h/s", "rtsp://h/s/"},
        {"rtsp://h/s/", "rtsp://h/other", "rtsp://h/s", "rtsp://h/s/"},
        {NULL, "rtsp://h/s/", "rtsp://h/s", "rtsp://h/s/"},
        {"", "rtsp://h/s/", "rtsp://h/s", "rtsp://h/s/"},
        {NULL, NULL, "rtsp://h/s?x=1", "rtsp://h/s?x=1"},
        {"*", "", "rtsp://h/s", "rtsp://h/s"},
        // no scheme
        {"192.168.1.10:554/stream0/", NULL, "rtsp://192.168.1.10:554/stream0",
         "rtsp://192.168.1.10:554/stream0/"},
        {"192.168.1.10/stream0/", NULL, "rtsps://10.0.0.1/stream0",
         "rtsps://192.168.1.10/stream0/"},
        {"Cam/stream0/", NULL, "rtsp://cam:8554/stream0", "rtsp://Cam/stream0/"},
        // the scheme twice
        {"rtsp://rtsp://10.0.0.5/s/", NULL, "rtsp://10.0.0.5/s", "rtsp://10.0.0.5/s/"},
        {"rtsp://rtsp://rtsp://10.0.0.5/s/", NULL, "rtsp://h/s", "rtsp://10.0.0.5/s/"},
        // IPv6 without brackets
        {"rtsp://::ffff:192.168.1.2/", NULL, "rtsp://192.168.1.2/", "rtsp://[::ffff:192.168.1.2]/"},
        {"rtsp://::ffff:192.168.1.2:554/", NULL, "rtsp://h/", "rtsp://[::ffff:192.168.1.2]:554/"},
        {"rtsp://fe80::1/s", NULL, "rtsp://h/", "rtsp://[fe80::1]/s"},
        {"rtsp://[fe80::1]:554/s", NULL, "rtsp://h/", "rtsp://[fe80::1]:554/s"},
        // a path
        {"/stream0/", NULL, "rtsp://10.0.0.5:8554/s?x=1", "rtsp://10.0.0.5:8554/stream0/"},
        {"stream0/", NULL, "rtsp://10.0.0.5/live/s", "rtsp://10.0.0.5/live/stream0/"},
        // another host goes into the request line unchanged
        {"rtsp://127.0.0.1/s/", NULL, "rtsp://10.0.0.5/s", "rtsp://127.0.0.1/s/"},
        // user and password never do
        {"rtsp://u:p@x@10.0.0.5/s/", NULL, "rtsp://10.0.0.5/s", "rtsp://10.0.0.5/s/"},
        {"u:p@10.0.0.5:554/s/", NULL, "rtsp://10.0.0.5/s", "rtsp://10.0.0.5:554/s/"},
        // no host
        {"rtsp:///s/", "rtsp://", "rtsp://h/s", "rtsp://h/s"},
        {"//u:p@g/s", NULL, "rtsp://h/s", "rtsp://g/s"},
        // characters that would end the request line
        {"rtsp://h/a b", "rtsp://h/s/", "rtsp://h/s", "rtsp://h/s/"},
        {"rtsp://h/\r\nX: y", NULL, "rtsp://h/s", "rtsp://h/s"},
    };
    char base[RTSP_URL_MAX], big[RTSP_URL_MAX + 20] = "rtsp://h/";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int rc =
            rtsp_url_base(base, cases[i].content_base, cases[i].content_location, cases[i].asked);
        CHECK(rc == 0 && !strcmp(base, cases[i].base), "%zu: %d %s", i, rc, base);
    }
    memset(big + strlen(big), 'x', sizeof big - strlen(big) - 1);
    CHECK(rtsp_url_base(base, big, NULL, "rtsp://h/s") == 0 && !strcmp(base, "rtsp://h/s"), "long");
    CHECK(rtsp_url_base(base, NULL, NULL, big) == -EINVAL, "what was asked is too long");
}

static void test_track(void)
{
    static const struct {
        const char *base, *control, *appended, *merged;
    } cases[] = {
        {"rtsp://h/s/", "trackID=1", "rtsp://h/s/trackID=1", "rtsp://h/s/trackID=1"},
        {"rtsp://h/s", "trackID=1", "rtsp://h/s/trackID=1", "rtsp://h/trackID=1"},
        {"rtsp://h", "trackID=1", "rtsp://h/trackID=1", "rtsp://h/trackID=1"},
        {"rtsp://h/s", "/trackID=1", "rtsp://h/s/trackID=1", "rtsp://h/trackID=1"},
        {"rtsp://h/s", "?ctype=video", "rtsp://h/s?ctype=video", "rtsp://h/s?ctype=video"},
        {"rtsp://h/s?a=1", "?ctype=video", "rtsp://h/s?a=1?ctype=video", "rtsp://h/s?ctype=video"},
        // Dahua: after the query
        {"rtsp://h/cam/realmonitor?channel=1&subtype=1", "trackID=0",
         "rtsp://h/cam/realmonitor?channel=1&subtype=1/trackID=0", "rtsp://h/cam/trackID=0"},
        {"rtsp://h/s?url=/a/b/", "trackID=0", "rtsp://h/s?url=/a/b/trackID=0",
         "rtsp://h/trackID=0"},
        {"rtsp://h:8554/s", "//g/t", "rtsp://h:8554/s//g/t", "rtsp://g/t"},
        {"rtsp://h/s", "//u:p@g/t", "rtsp://h/s//u:p@g/t", "rtsp://g/t"},
        // absolute
        {"rtsp://h/s", "rtsp://g/t", "rtsp://g/t", "rtsp://g/t"},
        {"rtsp://h/s", "http://g/t?x", "http://g/t?x", "http://g/t?x"},
        {"rtsp://h/s", "rtsp://u:p@g/t", "rtsp://g/t", "rtsp://g/t"},
        {"rtsp://h/s", "rtsp://rtsp://g/t", "rtsp://g/t", "rtsp://g/t"},
        // the base
        {"rtsp://h/s", NULL, "rtsp://h/s", "rtsp://h/s"},
        {"rtsp://h/s", "", "rtsp://h/s", "rtsp://h/s"},
        {"rtsp://h/s", "*", "rtsp://h/s", "rtsp://h/s"},
    };
    char url[RTSP_URL_MAX], big[RTSP_URL_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(rtsp_url_of_track(url, cases[i].base, cases[i].control, false) == 0 &&
                  !strcmp(url, cases[i].appended),
              "%s on %s: %s", cases[i].control, cases[i].base, url);
        CHECK(rtsp_url_of_track(url, cases[i].base, cases[i].control, true) == 0 &&
                  !strcmp(url, cases[i].merged),
              "%s on %s, merged: %s", cases[i].control, cases[i].base, url);
    }
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    for (int merged = 0; merged < 2; merged++) {
        CHECK(rtsp_url_of_track(url, "rtsp://h/", big, merged) == -EINVAL, "too long");
        CHECK(rtsp_url_of_track(url, "rtsp://h/", "a\r\nb", merged) == -EINVAL, "two lines");
    }
}

int main(void)
{
    TEST(test_parse());
    TEST(test_other_port());
    TEST(test_refused());
    TEST(test_long());
    TEST(test_base());
    TEST(test_track());
    return test_end();
}
