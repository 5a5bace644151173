// Servers and subjects of NATS: each part of a URL is taken as it stands, or refused with a reason.
#include "config/nats_url.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static void test_good(void)
{
    static const struct {
        const char *url, *servers, *subject;
    } cases[] = {
        {"nats://h/s", "h:4222", "s"},
        {"nats://10.0.0.1:1/a.b-c.D_9", "10.0.0.1:1", "a.b-c.D_9"},
        {"nats://a,b.example:65535,c/x", "a:4222,b.example:65535,c:4222", "x"},
        {"nats://[::1]/x", "[::1]:4222", "x"},
        {"nats://[fe80::1%eth0]:42,h:1/x.y", "[fe80::1%eth0]:42,h:1", "x.y"},
        {"nats://1,2,3,4,5,6,7,8/x", "1:4222,2:4222,3:4222,4:4222,5:4222,6:4222,7:4222,8:4222",
         "x"},
        {"nats://h/a$b", "h:4222", "a$b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nats_url url;
        const char *wrong = nats_url_parse(&url, cases[i].url);
        CHECK(!wrong, "%s %s", cases[i].url, wrong ? wrong : "");
        CHECK(strcmp(url.servers, cases[i].servers) == 0 &&
                  strcmp(url.subject, cases[i].subject) == 0,
              "%s: %s and %s", cases[i].url, url.servers, url.subject);
    }
}

static void test_bad(void)
{
    static const struct {
        const char *url, *why;
    } cases[] = {
        {"", "no address"},
        {"nats:/h/s", "no address"},
        {"tls://h/s", "no address"},
        {"nats://", "no subject"},
        {"nats://h", "no subject"},
        {"nats://h/", "no subject"},
        {"nats:///s", "without a host"},
        {"nats://,h/s", "without a host"},
        {"nats://h,/s", "without a host"},
        {"nats://h h/s", "without a host"},
        {"nats://[]/s", "without a host"},
        {"nats://[::1/s", "without a host"},
        {"nats://[::1]x/s", "port"},
        {"nats://h:/s", "port"},
        {"nats://h:0/s", "port"},
        {"nats://h:65536/s", "port"},
        {"nats://h:4222x/s", "port"},
        {"nats://h:1:2/s", "port"},
        {"nats://1,2,3,4,5,6,7,8,9/x", "more than 8"},
        {"nats://u@h/s", "a user or a password"},
        {"nats://u:p@h/s", "a user or a password"},
        {"nats://h/.s", "empty token"},
        {"nats://h/s.", "empty token"},
        {"nats://h/s..t", "empty token"},
        {"nats://h/.", "empty token"},
        {"nats://h/*", "wildcard"},
        {"nats://h/s.>", "wildcard"},
        {"nats://h/s t", "a character"},
        {"nats://h/s\tt", "a character"},
        {"nats://h/s/t", "a character"},
        {"nats://h/s?t", "a character"},
        {"nats://h/s\xc3\xa4", "a character"},
        {"nats://h/$JS.API.STREAM.DELETE.x", "the server's own"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nats_url url;
        const char *wrong = nats_url_parse(&url, cases[i].url);
        CHECK(wrong && strstr(wrong, cases[i].why), "%s %s", cases[i].url,
              wrong ? wrong : "is good");
    }
}

// The longest that fit, and one byte more.
static void test_lengths(void)
{
    char text[2 * NATS_SERVERS_BYTES], subject[NATS_SUBJECT_MAX + 2] = "", host[NATS_SERVERS_BYTES];
    struct nats_url url;
    memset(subject, 's', NATS_SUBJECT_MAX);
    snprintf(text, sizeof text, "nats://h/%s", subject);
    CHECK(!nats_url_parse(&url, text) && strcmp(url.subject, subject) == 0, "%s", url.subject);
    snprintf(text, sizeof text, "nats://h/%ss", subject);
    CHECK(nats_url_parse(&url, text) != NULL, "a subject of %d bytes", NATS_SUBJECT_MAX + 1);
    memset(host, 'h', sizeof host);
    const int most = NATS_SERVERS_BYTES - 1 - (int)strlen(":4222");
    snprintf(text, sizeof text, "nats://%.*s/s", most, host);
    CHECK(!nats_url_parse(&url, text) && strlen(url.servers) == NATS_SERVERS_BYTES - 1, "a host");
    snprintf(text, sizeof text, "nats://%.*s/s", most + 1, host);
    CHECK(nats_url_parse(&url, text) != NULL, "a host of one byte more");
}

int main(void)
{
    TEST(test_good());
    TEST(test_bad());
    TEST(test_lengths());
    return test_end();
}
