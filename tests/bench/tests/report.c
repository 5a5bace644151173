// Tests the bench's table: its columns stay apart for all figures.
#include "tests/bench/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

// Returns the table of one row, in memory that the caller frees.
static char *printed(const struct row *row)
{
    char *text = NULL;
    size_t size;
    struct report report;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    report_open(&report, to, false);
    report_add(&report, row);
    report_close(&report);
    fclose(to);
    return text;
}

// The words after the row's name must equal `expected`, single-spaced.
static void check(const char *name, const char *unit, double value, double limit,
                  const char *expected)
{
    struct row row = row_named("group", "%s", name);
    row.unit = unit;
    row.value = value;
    if (!isnan(limit))
        row_limit(&row, limit, "limit");
    char *text = printed(&row), words[256] = "", *rest = NULL;
    char *line = text ? strstr(text, "\n  ") : NULL;
    for (char *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        strncat(words, *words ? " " : "", sizeof words - strlen(words) - 1);
        strncat(words, word, sizeof words - strlen(words) - 1);
    }
    CHECK(line && strcmp(words, expected) == 0, "'%s', not '%s'", words, expected);
    free(text);
}

// Heading and row must end their columns at the same places.
static void check_heading(void)
{
    struct row row = row_named("group", "name");
    row.unit = "ms";
    row.value = 1;
    row_limit(&row, 2, "words");
    char *text = printed(&row), *line = text ? strstr(text, "\n  ") : NULL;
    if (line) {
        const char *heading = strstr(text, "group");
        CHECK(strstr(heading, "limit ") - heading + 5 == strstr(line, "2.000") - line - 1 + 5, "%s",
              text);
        CHECK(strstr(heading, "ratio") - heading + 5 == strstr(line, " x ") - line - 1 + 2, "%s",
              text);
        CHECK(strstr(heading, "the limit is") - heading == strstr(line, "words") - line - 1, "%s",
              text);
    } else {
        CHECK(line, "nothing is printed");
    }
    free(text);
}

int main(void)
{
    const char *wide = "a-name-as-long-as-there-is-room-for-in-a-row-of-it-0123";
    TEST(check("n", "cores", 4567.25, 44.26, "n 4567.25 cores 44.26 103.191 x limit"));
    TEST(check("n", "frames/s", 1e7, 1234.5, "n 10000000 frames/s 1234 810044.6 % limit"));
    TEST(check("n", "ms", 123456.789, NAN, "n 123456.789 ms - -"));
    TEST(check("n", "frames/s/core", 1e9, 1e9,
               "n 1000000000 frames/s/core 1000000000 100.0 % limit"));
    TEST(check("n", "frames", 5, 0, "n 5 frames 0 - limit"));
    TEST(check("n", "ms", 98765432, 1, "n 98765432.000 ms 1.000 98765432.000 x limit"));
    char expected[128];
    snprintf(expected, sizeof expected, "%s 123456789.0 GB/s 1.0 12345678900.0 %% limit", wide);
    TEST(check(wide, "GB/s", 123456789, 1, expected));
    TEST(check_heading());
    return test_end();
}
