// What a box is told by, and what is said of another one.
#include "daemon/base/fingerprint.h"

#include <string.h>

#include "config/config.h"
#include "tests/test.h"

static const struct fingerprint box = {"Intel(R) N100, 4 processors", "NVIDIA L4", "550.54.15"};

static void test_text(void)
{
    char text[FINGERPRINT_TEXT], why[400];
    static const char expected[] =
        "cpu=Intel(R) N100, 4 processors; gpu=NVIDIA L4; driver=550.54.15";
    CHECK(strcmp(fingerprint_text(&box, text), expected) == 0, "%s", text);
    CHECK(!fingerprint_differs(&box, text, why, sizeof why) && !*why, "%s", why);
}

static void test_differences(void)
{
    static const struct {
        const char *text, *why;
    } others[] = {
        {"cpu=Intel(R) N100, 4 processors; gpu=NVIDIA L4; driver=535.1",
         "driver is 550.54.15, was 535.1"},
        {"gpu=none;driver=none;cpu=Intel(R) N100, 2 processors",
         "cpu is Intel(R) N100, 4 processors, was Intel(R) N100, 2 processors; "
         "gpu is NVIDIA L4, was none; driver is 550.54.15, was none"},
        {"cpu=Intel(R) N100, 4 processors; driver=550.54.15", "gpu is NVIDIA L4, was not said"},
        {"my box",
         "cpu is Intel(R) N100, 4 processors, was not said; gpu is NVIDIA L4, was not said; "
         "driver is 550.54.15, was not said"},
        {"cpu=Intel(R) N100, 4 processors; egpu=NVIDIA L4; gpu=NVIDIA L40; driver=550.54.15",
         "gpu is NVIDIA L4, was NVIDIA L40"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char why[400];
        CHECK(fingerprint_differs(&box, others[i].text, why, sizeof why), "%s", others[i].text);
        CHECK(strcmp(why, others[i].why) == 0, "'%s'", why);
    }
}

// A fingerprint that is cut says so much at least, and nothing behind its buffer.
static void test_short(void)
{
    char why[24];
    CHECK(fingerprint_differs(&box, "", why, sizeof why) && strlen(why) == sizeof why - 1, "'%s'",
          why);
}

static void test_this_box(void)
{
    struct fingerprint print, unseen;
    char text[FINGERPRINT_TEXT], why[400];
    fingerprint_read(&print, "NVIDIA \"$H200\", 141 GiB, 3 copy engines");
    CHECK(strstr(print.cpu, " processor") && print.cpu[0] != ' ', "%s", print.cpu);
    CHECK(strcmp(print.gpu, "NVIDIA   H200 ") == 0, "'%s'", print.gpu);
    fingerprint_read(&print, "");
    CHECK(strcmp(print.gpu, "none") == 0 && strcmp(print.driver, "none") == 0, "%s", print.gpu);
    CHECK(!strpbrk(fingerprint_text(&print, text), "\"\\$\n"), "%s", text);
    // Nobody looked for a GPU: then only the processor counts.
    fingerprint_read(&unseen, NULL);
    CHECK(!fingerprint_differs(&unseen, text, why, sizeof why), "%s", why);
    CHECK(fingerprint_differs(&unseen, "cpu=another", why, sizeof why), "another cpu");
    CHECK(!strstr(why, "gpu"), "%s", why);
}

int main(void)
{
    test_text();
    test_differences();
    test_short();
    test_this_box();
    return test_end("fingerprint");
}
