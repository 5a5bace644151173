// Signatures of the RFCs' examples, and challenges as cameras write them.

#include <errno.h>
#include <string.h>

#include "daemon/rtsp/messages.h"
#include "tests/test.h"

#define NONCE_7616                                                                                 \
    "realm=\"http-auth@example.org\", nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "    \
    "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
#define CNONCE_7616 "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

// Up to three WWW-Authenticate lines.
static int challenge(struct rtsp_auth *auth, const char *first, const char *second,
                     const char *third)
{
    const char *const lines[] = {first, second, third};
    struct rtsp_message reply = {.status = 401};
    reply.headers[reply.n_headers++] = (struct rtsp_header){"CSeq", "1"};
    for (int i = 0; i < 3 && lines[i]; i++)
        reply.headers[reply.n_headers++] = (struct rtsp_header){"www-AUTHENTICATE", lines[i]};
    return rtsp_auth_challenge(auth, &reply);
}

static bool signs(struct rtsp_auth *auth, const char *user, const char *password,
                  const char *method, const char *url, const char *expected)
{
    char text[1024];
    const int rc = rtsp_auth_sign(auth, user, password, method, url, text, sizeof text);
    const bool same = rc == 0 && !strcmp(text, expected);
    if (!same)
        fprintf(stderr, "%d: %s\ninstead of %s\n", rc, text, expected);
    return same;
}

#define SIGNED_7616(response, algorithm, count)                                                    \
    "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", "                                \
    "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", "            \
    "response=\"" response "\", algorithm=" algorithm ", "                                         \
    "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", qop=auth, nc=" count ", "            \
    "cnonce=\"" CNONCE_7616 "\""

static void test_rfc7616(void)
{
    static const struct {
        const char *algorithm, *first, *second;
    } cases[] = {
        {"MD5", SIGNED_7616("8ca523f5e9506fed4657c9700eebdbec", "MD5", "00000001"),
         SIGNED_7616("4b5d595ecf2db9df612ea5b45cd97101", "MD5", "00000002")},
        {"SHA-256",
         SIGNED_7616("753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1", "SHA-256",
                     "00000001"),
         NULL},
        {"MD5-sess", SIGNED_7616("e783283f46242139c486a698fec7211d", "MD5-sess", "00000001"), NULL},
        {"SHA-256-sess",
         SIGNED_7616("2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7",
                     "SHA-256-sess", "00000001"),
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rtsp_auth auth = {0};
        char line[512];
        snprintf(line, sizeof line, "Digest %s, qop=\"auth, auth-int\", algorithm=%s", NONCE_7616,
                 cases[i].algorithm);
        CHECK(challenge(&auth, line, NULL, NULL) == 0, "%s", line);
        strcpy(auth.cnonce, CNONCE_7616);
        CHECK(signs(&auth, "Mufasa", "Circle of Life", "GET", "/dir/index.html", cases[i].first),
              "%s", cases[i].algorithm);
        CHECK(!cases[i].second || signs(&auth, "Mufasa", "Circle of Life", "GET", "/dir/index.html",
                                        cases[i].second),
              "%s: the second one counts on", cases[i].algorithm);
    }
}

#define CHALLENGE_2617                                                                             \
    "Digest realm=\"testrealm@host.com\", %snonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"%s"
#define SIGNED_2617                                                                                \
    "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", "                                   \
    "nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", uri=\"/dir/index.html\", "

static void test_rfc2617(void)
{
    struct rtsp_auth auth = {0};
    char line[512];
    snprintf(line, sizeof line, CHALLENGE_2617, "qop=\"auth,auth-int\", ",
             ", opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"");
    CHECK(challenge(&auth, line, NULL, NULL) == 0, "%s", line);
    strcpy(auth.cnonce, "0a4f113b");
    CHECK(signs(&auth, "Mufasa", "Circle Of Life", "GET", "/dir/index.html",
                SIGNED_2617 "response=\"6629fae49393a05397450978507c4ef1\", "
                            "opaque=\"5ccc069c403ebaf9f0171e9517f40e41\", qop=auth, nc=00000001, "
                            "cnonce=\"0a4f113b\""),
          "with qop");
    // The erratum to RFC 2069's example.
    snprintf(line, sizeof line, CHALLENGE_2617, "", "");
    auth = (struct rtsp_auth){0};
    CHECK(challenge(&auth, line, NULL, NULL) == 0, "%s", line);
    for (int i = 0; i < 2; i++)
        CHECK(signs(&auth, "Mufasa", "CircleOfLife", "GET", "/dir/index.html",
                    SIGNED_2617 "response=\"1949323746fe6a43ef61f9606e7febea\""),
              "without qop");
    snprintf(line, sizeof line, CHALLENGE_2617, "qop=\"auth-int\", ", "");
    CHECK(challenge(&auth, line, NULL, NULL) == 0 && !auth.qop_auth, "%s", line);
}

// A colon in a password, quotes and backslashes in names, the URL byte for byte.
static void test_quoting(void)
{
    struct rtsp_auth auth = {0};
    CHECK(challenge(&auth,
                    "Digest realm=\"IP \\\"Camera\\\"(12345)\", nonce=abc, algorithm=SHA-256", NULL,
                    NULL) == 0,
          "challenge");
    CHECK(!strcmp(auth.realm, "IP \"Camera\"(12345)"), "%s", auth.realm);
    CHECK(signs(&auth, "ad\"m\\in", "p@ss:\"w\\", "DESCRIBE", "rtsp://10.0.0.5/a%20b?c=d",
                "Digest username=\"ad\\\"m\\\\in\", realm=\"IP \\\"Camera\\\"(12345)\", "
                "nonce=\"abc\", uri=\"rtsp://10.0.0.5/a%20b?c=d\", "
                "response=\"5b04becab0dd201e221631ce3a0bdc0b6770831ce82889f053300984656f8e96\", "
                "algorithm=SHA-256"),
          "quoted");
}

static void test_basic(void)
{
    struct rtsp_auth auth = {0};
    char text[64], plain[1024];
    CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "rtsp://h/", text, sizeof text) == 0 && !*text,
          "before any challenge: %s", text);
    CHECK(challenge(&auth, "Basic realm=\"x\"", NULL, NULL) == 0, "challenge");
    CHECK(signs(&auth, "Aladdin", "open sesame", "PLAY", "rtsp://h/",
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
          "RFC 7617's example");
    const size_t whole = strlen("Basic dTpw") + 1;
    CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "rtsp://h/", text, whole) == 0, "just fits");
    for (size_t size = 1; size < whole; size++)
        CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "rtsp://h/", text, size) == -ENOBUFS &&
                  strlen(text) < size,
              "%zu bytes", size);
    memset(plain, 'x', sizeof plain - 1);
    plain[sizeof plain - 1] = 0;
    CHECK(rtsp_auth_sign(&auth, plain, "p", "PLAY", "rtsp://h/", text, sizeof text) == -ENOBUFS,
          "a user of a thousand letters");
}

#define MD5    "Digest realm=\"r\", nonce=\"m\", algorithm=MD5"
#define SHA256 "Digest realm=\"r\", nonce=\"s\", algorithm=\"SHA-256\""
#define BASIC  "Basic realm=\"r\""

static void test_choice(void)
{
    static const struct {
        const char *first, *second, *third;
        enum rtsp_auth_scheme best, only_first;
    } cases[] = {
        {SHA256, NULL, NULL, RTSP_AUTH_SHA256, RTSP_AUTH_SHA256}, // Hikvision's OEMs
        {MD5, SHA256, NULL, RTSP_AUTH_SHA256, RTSP_AUTH_MD5},
        {BASIC, MD5, SHA256, RTSP_AUTH_SHA256, RTSP_AUTH_MD5},
        {SHA256, BASIC, MD5, RTSP_AUTH_SHA256, RTSP_AUTH_SHA256},
        {BASIC, MD5, NULL, RTSP_AUTH_MD5, RTSP_AUTH_MD5},
        {BASIC ", " MD5 ", " SHA256, NULL, NULL, RTSP_AUTH_SHA256, RTSP_AUTH_MD5},
        {MD5 ", " BASIC, NULL, NULL, RTSP_AUTH_MD5, RTSP_AUTH_MD5},
        {"Basic, " MD5, NULL, NULL, RTSP_AUTH_MD5, RTSP_AUTH_MD5},
        {"digest REALM = r , Nonce = n", NULL, NULL, RTSP_AUTH_MD5, RTSP_AUTH_MD5},
        {"Digest realm=\"r\" nonce=\"n\" random=\"a=b, Basic c\"", NULL, NULL, RTSP_AUTH_MD5,
         RTSP_AUTH_MD5},
        {"Digest realm=r nonce=n algorithm=SHA256", NULL, NULL, RTSP_AUTH_SHA256, RTSP_AUTH_SHA256},
        {"Digest nonce=n, a-parameter-with-a-very-long-name-indeed=x, nonce-count=3", NULL, NULL,
         RTSP_AUTH_MD5, RTSP_AUTH_MD5},
        {"Digest realm=\"r\", nonce=\"n\", fresh, algorithm=SHA-256", NULL, NULL, RTSP_AUTH_SHA256,
         RTSP_AUTH_SHA256},
        {"NTLM", "Bearer realm=\"r\", " MD5, NULL, RTSP_AUTH_MD5, RTSP_AUTH_MD5},
        {"Digest realm=\"r\"", "Basic", NULL, RTSP_AUTH_BASIC, RTSP_AUTH_BASIC},
        {",, ,", "\"=\"=,\"", MD5, RTSP_AUTH_MD5, RTSP_AUTH_MD5},
    };
    static const char *const none[] = {
        "", "Negotiate", "Digest", "Digest nonce=\"\"", "Digestive nonce=\"x\"", "=,=",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rtsp_auth auth = {0}, first = {.first_only = true};
        CHECK(challenge(&auth, cases[i].first, cases[i].second, cases[i].third) == 0, "%zu", i);
        CHECK(auth.scheme == cases[i].best, "%s: %d", cases[i].first, auth.scheme);
        CHECK(challenge(&first, cases[i].first, cases[i].second, cases[i].third) == 0, "%zu", i);
        CHECK(first.scheme == cases[i].only_first && first.first_only, "%s, the first: %d",
              cases[i].first, first.scheme);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct rtsp_auth auth = {.scheme = RTSP_AUTH_MD5, .nonce = "before"};
        CHECK(challenge(&auth, none[i], NULL, NULL) == -ENOENT && !strcmp(auth.nonce, "before"),
              "%s", none[i]);
    }
}

// A camera that has offered Digest once gets no password in clear text.
static void test_basic_after_digest(void)
{
    static const struct {
        const char *first, *second;
        bool encrypted, offered_before, basic, refused;
    } cases[] = {
        {BASIC, NULL, false, false, true, false},
        {BASIC, NULL, false, true, false, true},
        {BASIC, NULL, true, true, true, false},
        {"Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512-256", BASIC, false, false, false,
         true},
        {BASIC, "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512-256", false, false, false,
         true},
        {"Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512-256", BASIC, true, false, true, false},
        {BASIC, MD5, false, false, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rtsp_auth auth = {.encrypted = cases[i].encrypted,
                                 .digest_offered = cases[i].offered_before,
                                 .first_only = true};
        challenge(&auth, cases[i].first, cases[i].second, NULL);
        CHECK((auth.scheme == RTSP_AUTH_BASIC) == cases[i].basic, "%zu: %d", i, auth.scheme);
        CHECK(auth.basic_refused == cases[i].refused || auth.scheme == RTSP_AUTH_MD5, "%zu", i);
        CHECK(auth.digest_offered == (cases[i].offered_before || cases[i].second), "%zu", i);
    }
}

// Parsed parameters; a challenge that is too long to echo is rejected.
static void test_parameters(void)
{
    static char line[3000];
    struct rtsp_auth auth = {0};
    CHECK(challenge(&auth, "Digest realm=\"a, b\", nonce=n, opaque=\"\", qop=auth, stale=TRUE, x=1",
                    NULL, NULL) == 0,
          "challenge");
    CHECK(!strcmp(auth.realm, "a, b") && !strcmp(auth.nonce, "n") && !*auth.algorithm, "%s %s",
          auth.realm, auth.nonce);
    CHECK(auth.has_opaque && auth.qop_auth && auth.stale && !auth.session, "flags");
    CHECK(challenge(&auth, MD5, NULL, NULL) == 0 && !auth.has_opaque && !auth.qop_auth &&
              !auth.stale,
          "flags of the one before");
    CHECK(challenge(&auth, "Digest realm=r nonce=a qop=\"au, aut\"", "Digest nonce=b", NULL) == 0 &&
              !strcmp(auth.nonce, "a") && !strcmp(auth.realm, "r") && !auth.qop_auth,
          "the first of two alike: %s", auth.nonce);
    for (int bytes = 2047; bytes <= 2048; bytes++) {
        snprintf(line, sizeof line, "Digest nonce=\"%0*d\"", bytes, 7);
        auth = (struct rtsp_auth){0};
        CHECK(challenge(&auth, line, NULL, NULL) == (bytes < 2048 ? 0 : -ENOENT), "%d bytes",
              bytes);
        CHECK(strlen(auth.nonce) == (bytes < 2048 ? 2047 : 0), "%zu", strlen(auth.nonce));
    }
}

static void test_nonces(void)
{
    struct rtsp_auth auth = {0};
    char first[128], text[512];
    CHECK(challenge(&auth, SHA256 ", qop=auth", NULL, NULL) == 0 && !auth.new_nonce, "the first");
    for (int i = 0; i < 3; i++)
        CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "u", text, sizeof text) == 0, "sign");
    strcpy(first, auth.cnonce);
    CHECK(strlen(first) == 32 && auth.count == 3, "cnonce %s, count %u", first, auth.count);
    CHECK(challenge(&auth, SHA256 ", qop=auth", NULL, NULL) == 0 && !auth.new_nonce && !auth.stale,
          "the same again");
    CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "u", text, sizeof text) == 0, "sign");
    CHECK(auth.count == 4 && !strcmp(first, auth.cnonce), "goes on at %u", auth.count);
    CHECK(challenge(&auth, "Digest nonce=t, algorithm=SHA-256, qop=auth, stale=true", NULL, NULL) ==
                  0 &&
              auth.new_nonce && auth.stale,
          "another");
    CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "u", text, sizeof text) == 0, "sign");
    CHECK(auth.count == 1 && strcmp(first, auth.cnonce) != 0 && strstr(text, "nc=00000001"), "%s",
          text);
}

static void test_no_room(void)
{
    struct rtsp_auth auth = {0};
    char text[512];
    CHECK(challenge(&auth, MD5, NULL, NULL) == 0, "challenge");
    CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "rtsp://h/", text, sizeof text) == 0, "fits");
    const size_t whole = strlen(text) + 1;
    for (size_t size = 1; size <= whole; size++)
        CHECK(rtsp_auth_sign(&auth, "u", "p", "PLAY", "rtsp://h/", text, size) ==
                      (size < whole ? -ENOBUFS : 0) &&
                  strlen(text) < size,
              "%zu of %zu bytes", size, whole);
}

int main(void)
{
    TEST(test_rfc7616());
    TEST(test_rfc2617());
    TEST(test_quoting());
    TEST(test_basic());
    TEST(test_choice());
    TEST(test_basic_after_digest());
    TEST(test_parameters());
    TEST(test_nonces());
    TEST(test_no_room());
    return test_end();
}
