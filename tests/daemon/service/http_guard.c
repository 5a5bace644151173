// Access control of HTTP requests.
#include "daemon/service/http_client.h"

#include <stddef.h>
#include <string.h>

#include "tests/test.h"

#define TOKEN "Zorngiebel-0123456789"

static int guard(struct http_demands demands, struct http_credentials given)
{
    const char *why = NULL;
    const int status = http_guard(&demands, &given, &why);
    CHECK((status == 0) == !why, "%d: %s", status, why ? why : "no sentence");
    return status;
}

static void test_token(void)
{
    static const char *const wrong[] = {
        NULL, "", TOKEN, "Bearer ", "Bearer " TOKEN "x", "Basic " TOKEN, "Bearer x"};
    const struct http_demands demands = {.token = TOKEN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(guard(demands, (struct http_credentials){.authorization = wrong[i], .looks = true}) ==
                  401,
              "%s", wrong[i] ? wrong[i] : "none");
    CHECK(guard(demands,
                (struct http_credentials){.authorization = "bearer " TOKEN, .looks = true}) == 0,
          "the token");
    CHECK(guard(demands, (struct http_credentials){.looks = true, .open = true}) == 0,
          "an open page");
}

// The second token allows reading, and nothing else.
static void test_read_token(void)
{
    static const struct {
        const char *authorization;
        bool looks, writes, open;
        int status;
    } cases[] = {
        {"Bearer reads-0123456789", true, false, false, 0},
        {"bearer reads-0123456789", true, false, false, 0},
        {"Bearer reads-0123456789", false, true, false, 403},  // PUT, DELETE, pause
        {"Bearer reads-0123456789", false, false, false, 403}, // a check
        {"Bearer reads-0123456789", false, false, true, 403},
        {"Bearer " TOKEN, true, false, false, 0},
        {"Bearer " TOKEN, false, true, false, 0},
        {"Bearer reads-012345678", true, false, false, 401},
        {"Bearer reads-01234567890", true, false, false, 401},
        {NULL, false, true, false, 401},
        {NULL, true, false, true, 0},
    };
    const struct http_demands demands = {
        .token = TOKEN, .read_token = "reads-0123456789", .may_write = true};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct http_credentials given = {.authorization = cases[i].authorization,
                                               .looks = cases[i].looks,
                                               .writes = cases[i].writes,
                                               .open = cases[i].open};
        CHECK(guard(demands, given) == cases[i].status, "case %zu", i);
    }
    CHECK(guard((struct http_demands){.token = TOKEN},
                (struct http_credentials){.authorization = "Bearer ", .looks = true}) == 401,
          "no second token, and an empty one");
}

static void test_host(void)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {{"localhost", 0},
                 {"LOCALHOST:80", 0},
                 {"127.0.0.1:8080", 0},
                 {"[::1]:80", 0},
                 {"[fe80::1]", 0},
                 {"10.0.0.5", 0},
                 {"box.lan:80", 0},
                 {NULL, 0},
                 {"evil.example", 403},
                 {"localhost.evil", 403},
                 {"127.0.0.1.evil:80", 403},
                 {"", 403},
                 {"box.lan.evil", 403},
                 // Text after a name or an address, and invalid forms.
                 {"[::1]evil", 403},
                 {"[::1]evil:80", 403},
                 {"[::1].evil", 403},
                 {"[::1]]", 403},
                 {"[::1", 403},
                 {"[localhost]", 403},
                 {"[127.0.0.1]", 403},
                 {"[]", 403},
                 {"::1", 403},
                 {"::1]", 403},
                 {"[::1%lo]", 403},
                 {"[box.lan]", 403},
                 {"[::1]:", 403},
                 {"[::1]:80x", 403},
                 {"[::1]80", 403},
                 {"[::1]:80:80", 403},
                 {"localhost:", 403},
                 {"localhost:x", 403},
                 {"localhost:80:80", 403},
                 {"localhost:0", 403},
                 {"localhost:-1", 403},
                 {"localhost:65536", 403},
                 {"localhost: 80", 403},
                 {"localhost:80@evil", 403},
                 {"localhost.", 403},
                 {"127.0.0.1.", 403},
                 {"box.lan.:80", 403},
                 {"127.1", 403},
                 {"localhost ", 403},
                 {" localhost", 403},
                 {"a@localhost", 403},
                 {"localhost/", 403},
                 {":80", 403},
                 {"127.0.0.1:99999999999", 403},
                 {"localhost,evil", 403},
                 {"localhost:65535", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct http_credentials given = {.host = cases[i].host, .looks = true};
        CHECK(guard((struct http_demands){.host = "box.lan"}, given) == cases[i].status, "%s",
              cases[i].host ? cases[i].host : "no Host");
        CHECK(guard((struct http_demands){.unix_socket = true}, given) == 0, "by a unix socket");
    }
}

// A refused client learns which keys help.
static void test_host_sentence(void)
{
    const struct http_demands demands = {.host = "127.0.0.1"};
    const struct http_credentials given = {.host = "box.lan:8780", .looks = true};
    const char *why = "";
    CHECK(http_guard(&demands, &given, &why) == 403, "by a name that nobody has configured");
    CHECK(strstr(why, "http: NAME:PORT") && strstr(why, "http_token"), "%s", why);
}

static void test_writing(void)
{
    const struct http_demands may = {.may_write = true, .unix_socket = true},
                              may_not = {.unix_socket = true};
    struct http_credentials given = {.host = "cameras.lan", .writes = true};
    CHECK(guard(may, given) == 0, "no Origin, no body");
    CHECK(guard(may_not, given) == 403, "no http_write");
    given.origin = "https://cameras.lan";
    CHECK(guard(may, given) == 0, "its own Origin");
    static const char *const others[] = {"https://evil.example", "null", "",
                                         "https://cameras.lan.evil", "https://cameras.lan:81"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        given.origin = others[i];
        CHECK(guard(may, given) == 403, "Origin %s", others[i]);
    }
    given.origin = NULL;
    given.has_body = true;
    CHECK(guard(may, given) == 415, "a body of unknown type");
    given.content_type = "application/jsonx";
    CHECK(guard(may, given) == 415, "a body of another type");
    given.content_type = "Application/JSON; charset=utf-8";
    CHECK(guard(may, given) == 0, "a body of JSON");
    given.writes = false;
    CHECK(guard(may_not, given) == 0, "a request that changes nothing");
}

int main(void)
{
    TEST(test_token());
    TEST(test_read_token());
    TEST(test_host());
    TEST(test_host_sentence());
    TEST(test_writing());
    return test_end();
}
