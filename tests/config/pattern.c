// File names with a time: refused patterns, expanded names, and matching.
#include "config/address.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static void test_wrong(void)
{
    static const char *const good[] = {
        "gate.y4m", "/a/%Y%m%d-%H%M%S.y4m", "100%%/%F_%j%z.raw", "%s.npy", "a%%%%Y", "%%"};
    static const char *const bad[] = {"%",       "a%",      "%y",      "/a/%e.raw", "%",
                                      "%%%",     "%-d.raw", "%Ey.raw", "% Y.raw",   "/%Y/a.raw",
                                      "%F/%H.y", "%N.raw",  "%c",      "%5Y",       "%%%n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(!pattern_wrong(good[i]), "%s %s", good[i], pattern_wrong(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(pattern_wrong(bad[i]), "%s is taken", bad[i]);
    CHECK(strstr(pattern_wrong("/%Y/a.raw"), "folder"), "%s", pattern_wrong("/%Y/a.raw"));
}

static void test_plain(void)
{
    char path[] = "/100%%/a%%Y%%.raw";
    CHECK(!pattern_has_time(path) && !pattern_has_time("a") && !pattern_has_time("%%Y"), "time");
    CHECK(pattern_has_time("%%%Y") && pattern_has_time("a%S"), "no time");
    pattern_unescape(path);
    CHECK(!strcmp(path, "/100%/a%Y%.raw"), "%s", path);
}

static void expect_at(const char *zone, time_t time, const char *expected)
{
    char text[128];
    setenv("TZ", zone, 1);
    tzset();
    int rc = pattern_at("/a%%/%Y%m%d-%H%M%S_%j%z%s.raw", time, text, sizeof text);
    CHECK(rc == 0 && !strcmp(text, expected), "%s", text);
}

static void test_at(void)
{
    char text[8];
    expect_at("UTC", 0, "/a%/19700101-000000_001+00000.raw");
    expect_at("Asia/Kathmandu", 1700000000, "/a%/20231115-035820_319+05451700000000.raw");
    expect_at("CET-1CEST,M3.5.0,M10.5.0/3", 1720000000,
              "/a%/20240703-114640_185+02001720000000.raw");
    CHECK(pattern_at("%F", 0, text, sizeof text) < 0, "too long, and taken: %s", text);
}

static void test_matches(void)
{
    static const char path[] = "/data/[a]*-%Y%m%d%%-%s.y4m";
    CHECK(pattern_matches(path, "[a]*-20240703%-1720000000.y4m"), "not its own name");
    CHECK(pattern_matches(path, "[a]*-20240703%-1720000000.12.y4m"), "not one with a number");
    static const char *const others[] = {
        "a*-20240703%-1720000000.y4m",        "[a]x-20240703%-1720000000.y4m",
        "[a]*-2024070a%-1720000000.y4m",      "[a]*-20240703%-.y4m",
        "[a]*-20240703%-1720000000.y4m.part", "[a]*-20240703%-1720000000.1.y4m.part",
        "[a]*-20240703%-1720000000.1x.y4m",   "[a]*-20240703%-1720000000.01.y4m",
        "[a]*-20240703%-1720000000..y4m",     "[a]*-20240703%-172x000000.y4m",
        "[a]*-20240703%-1720000000.1.2.y4m",  "[a]*-20240703%-1720000000",
        "x[a]*-20240703%-1720000000.y4m",     "",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!pattern_matches(path, others[i]), "%s", others[i]);
    CHECK(pattern_matches("%s%d%z", "123405-0130") && pattern_matches("%s%d%z", "105+0000"),
          "runs");
    CHECK(!pattern_matches("%s%d%z", "05+0000"), "too few digits");
    CHECK(pattern_matches("%F-%j", "2024-07-03-185.2"), "no ending");
    CHECK(pattern_matches(".%H%M", ".1159.1"), "a dot that is no ending");
    CHECK(pattern_matches("%H%z", "11-0930"), "a zone");
    CHECK(!pattern_matches("%s.mp4", "2024-notes.mp4"), "a glob would take it");
}

int main(void)
{
    TEST(test_wrong());
    TEST(test_plain());
    TEST(test_at());
    TEST(test_matches());
    return test_end();
}
