// No text of a peer moves a terminal's cursor, changes its colours, or reverses text.
#include "daemon/base/log.h"

#include <string.h>

#include "tests/test.h"

static const struct {
    const char *text, *clean;
} cases[] = {
    {"", ""},
    {"Cam 1 \xe2\x80\x93 H\xc3\xb6"
     "f, \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x93\xb7",
     "Cam 1 \xe2\x80\x93 H\xc3\xb6"
     "f, \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x93\xb7"},
    {"\x1b[31mred\x07\x7f", "?[31mred??"},
    {"a\tb\nc\rd", "a?b?c?d"},
    {"\xc2\x9b"
     "31m \xc2\x80\xc2\x9f\xc2\xa0",
     "?31m ??\xc2\xa0"}, // C1
    {"\xe2\x80\xae"
     "evil\xe2\x80\xac",
     "?evil?"},                                                       // U+202E, U+202C
    {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xad", "???"},                  // U+202A, B, D
    {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "????"},     // U+2066 to 2069
    {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "???"},                      // U+200E, F, U+061C
    {"\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\xf3\xa0\x81\x81", "????"}, // separators, tags
    {"\x9b"
     "31m\xff\xc3(\xc0\x80\xe0\x80\x9b",
     "?31m?"
     "?(?????"}, // not UTF-8
    {"\xed\xa0\x80\xf4\x90\x80\x80\xe2\x80", "?????????"},
};

static void test_clean(void)
{
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strcpy(text, cases[i].text);
        peer_text_clean(text);
        CHECK(!strcmp(text, cases[i].clean), "%zu: %s", i, text);
    }
}

static void test_log(void)
{
    char text[64];
    log_scrub(text, sizeof text,
              "10.0.0.5 answered 404 \xc2\x9b"
              "31m\xe2\x80\xae"
              "dnuof \x9b?");
    CHECK(!strcmp(text, "10.0.0.5 answered 404 ?31m?dnuof ??"), "%s", text);
}

int main(void)
{
    TEST(test_clean());
    TEST(test_log());
    return test_end();
}
