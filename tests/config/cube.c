// .cube files: the tables that they give, and every mistake with its line.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/cube.h"
#include "tests/test.h"

#define CUBE2                                                                                      \
    "0 0 0\n1 0 0\n0 1 0\n1 1 0\n"                                                                 \
    "0 0 1\n1 0 1\n0 1 1\n1 1 1\n"

static struct lut *parse(const char *text)
{
    struct lut *lut = NULL;
    char wrong[CUBE_MISTAKE_MAX] = "";
    int line;
    const int error = cube_parse(&lut, text, strlen(text), LUT_TRILINEAR, &line, wrong);
    CHECK(error == 0, "%d: line %d %s", error, line, wrong);
    return lut;
}

static void check_levels(const char *text, int r, int g, int b, int to_r, int to_g, int to_b)
{
    struct lut *lut = parse(text);
    uint8_t level[3] = {(uint8_t)r, (uint8_t)g, (uint8_t)b};
    if (!lut)
        return;
    lut_pixel(lut, level);
    CHECK(level[0] == to_r && level[1] == to_g && level[2] == to_b,
          "%d %d %d becomes %d %d %d, not %d %d %d: %s", r, g, b, level[0], level[1], level[2],
          to_r, to_g, to_b, text);
    lut_unref(lut);
}

static void test_meaning(void)
{
    check_levels("LUT_3D_SIZE 2\n" CUBE2, 10, 130, 250, 10, 130, 250);
    // red changes fastest
    check_levels("LUT_3D_SIZE 2\n0 0 0\n0 0 0\n0 1 0\n0 1 0\n0 0 1\n0 0 1\n0 1 1\n0 1 1\n", 255,
                 130, 7, 0, 130, 7);
    check_levels("\xef\xbb\xbfTITLE \"a # b\"\r\n\r\n# x\r\n\tLUT_3D_SIZE\t2 # y\r\n" CUBE2, 1, 2,
                 3, 1, 2, 3);
    check_levels("LUT_3D_SIZE 2\nDOMAIN_MIN 0 0 0\nDOMAIN_MAX 2 1 0.5\n" CUBE2, 100, 100, 100, 50,
                 100, 200);
    check_levels("DOMAIN_MAX 2 2 2\nLUT_1D_SIZE 3\n0 0 0\n1 0.5 0.2\n1 1 1\n", 255, 255, 0, 255,
                 128, 0);
    check_levels("LUT_1D_SIZE 2\n1 1 1\n0 0 0\n", 0, 100, 255, 255, 155, 0);
    // the 1D table first: its values set the cube's range
    check_levels("LUT_3D_SIZE 2\nLUT_1D_SIZE 2\nLUT_3D_INPUT_RANGE 0 2\n0 0 0\n2 1 4\n" CUBE2, 100,
                 100, 100, 100, 50, 200);
    check_levels("LUT_1D_SIZE 2\nLUT_1D_INPUT_RANGE 0 0.5\n0 0 0\n1 1 1", 50, 100, 200, 100, 200,
                 255);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text;
        int line;
        const char *wrong; // beginning of the message
    } cases[] = {
        {"", 0, "ends without entries"},
        {"# nothing\n", 1, "ends without entries"},
        {"LUT_3D_SIZE 2\n", 1, "ends without entries"},
        {"LUT_3D_SIZE 1\n", 1, "LUT_3D_SIZE 1 is out of range (2 to 65)"},
        {"LUT_3D_SIZE 66\n", 1, "LUT_3D_SIZE 66 is out of range (2 to 65)"},
        {"\nLUT_1D_SIZE 65537\n", 2, "LUT_1D_SIZE 65537 is out of range (2 to 65536)"},
        {"LUT_3D_SIZE 2.5\n", 1, "LUT_3D_SIZE 2.5 is out of range"},
        {"LUT_3D_SIZE two\n", 1, "has something else in place of number 1"},
        {"LUT_3D_SIZE\n", 1, "has 0 numbers (1)"},
        {"LUT_3D_SIZE 2\nLUT_3D_SIZE 2\n", 2, "says LUT_3D_SIZE a second time"},
        {"LUT_3D_SIZE 2\nGAMMA 2\n", 2, "begins with no keyword (TITLE, "},
        {"LUT_3D_SIZE 2\n0 0 0\n1 0\n", 3, "has 2 numbers (3)"},
        {"LUT_3D_SIZE 2\n0 0 0 # black\n1 0 0 0\n", 3, "has 4 numbers (3)"},
        {"LUT_3D_SIZE 2\n0 0 0\n1 0 0 0 0 0\n", 3, "has more than 4 numbers (3)"},
        {"LUT_3D_SIZE 2\n0 0 0\n1 nan 0\n", 3, "has something else in place of number 2"},
        {"LUT_3D_SIZE 2\n0 0 0\n1 0x1 0\n", 3, "has something else in place of number 2"},
        {"LUT_3D_SIZE 2\n0 0 0\n1 1e400 0\n", 3, "has something else in place of number 2"},
        {"LUT_3D_SIZE 2\n0 0 0\nTITLE \"late\"\n", 3, "has a keyword behind the first entry"},
        {"0 0 0\n", 1, "is an entry ahead of the size"},
        {"LUT_3D_SIZE 2\n" CUBE2 "1 1 1\n", 10, "is an entry too many (8, by the size)"},
        {"LUT_3D_SIZE 2\n0 0 0\n1 1 1\n", 3, "ends after 2 entries (8, by the size)"},
        {"LUT_3D_SIZE 2\nDOMAIN_MAX 1 0 1\n\n0 0 0\n", 2, "ends the input range at 0"},
        {"LUT_3D_SIZE 2\nDOMAIN_MIN 0 0\n", 2, "has 2 numbers (3)"},
        {"LUT_1D_SIZE 2\nLUT_1D_INPUT_RANGE 1 0\n0 0 0\n", 2, "ends the input range at 0"},
        {"LUT_1D_SIZE 2\nLUT_3D_SIZE 2\nDOMAIN_MAX 2 2 2\n0 0 0\n", 4, "ends keywords of which"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lut *lut = NULL;
        char wrong[CUBE_MISTAKE_MAX] = "";
        int line = -1;
        const int error =
            cube_parse(&lut, cases[i].text, strlen(cases[i].text), LUT_TRILINEAR, &line, wrong);
        CHECK(error == -EINVAL && !lut, "%d: %s", error, cases[i].text);
        CHECK(line == cases[i].line, "line %d, not %d: %s", line, cases[i].line, cases[i].text);
        CHECK(!strncmp(wrong, cases[i].wrong, strlen(cases[i].wrong)), "'%s', not '%s': %s", wrong,
              cases[i].wrong, cases[i].text);
    }
}

static void check_file(const char *path, int expected, const char *begins)
{
    struct lut *lut = NULL;
    char wrong[CUBE_MISTAKE_MAX] = "";
    const int error = cube_read(&lut, path, path, LUT_TETRAHEDRAL, wrong);
    CHECK(error == expected && (error == 0) == (lut != NULL), "%s: %d", path, error);
    CHECK(!strncmp(wrong, begins, strlen(begins)), "%s: '%s'", path, wrong);
    lut_unref(lut);
}

static void test_files(void)
{
    check_file("tests/fuzz/cube/cube", 0, "");
    check_file("tests/fuzz/cube/both", 0, "");
    check_file("tests/fuzz/cube/short", -EINVAL,
               "tests/fuzz/cube/short:3: has something else in place of number 2");
    check_file("tests/fuzz/cube/none", -ENOENT, "tests/fuzz/cube/none: No such file");
    check_file("tests/fuzz/cube", -EISDIR, "tests/fuzz/cube: Is a directory");
    check_file("/dev/null", -EINVAL, "/dev/null: no regular file");
}

int main(void)
{
    TEST(test_meaning());
    TEST(test_mistakes());
    TEST(test_files());
    return test_end();
}
