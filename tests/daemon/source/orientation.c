#include "daemon/source/demux.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

// Maps a corner of the picture as the definition does: mirrors, then turns.
static void show(enum orientation orientation, int x, int y, int *shown_x, int *shown_y)
{
    *shown_x = orientation & ORIENTATION_MIRRORED ? -x : x;
    *shown_y = y;
    for (int i = 0; i < (int)orientation % ORIENTATION_MIRRORED; i++) {
        const int turned = *shown_x;
        *shown_x = -*shown_y;
        *shown_y = turned;
    }
}

static void test_all(int scale, int noise)
{
    for (int i = 0; i < 2 * ORIENTATION_MIRRORED; i++) {
        int right_x, right_y, down_x, down_y;
        show((enum orientation)i, 1, 0, &right_x, &right_y);
        show((enum orientation)i, 0, 1, &down_x, &down_y);
        const int32_t matrix[9] = {scale * right_x + noise,
                                   scale * right_y - noise,
                                   0,
                                   scale * down_x - noise,
                                   scale * down_y + noise,
                                   0,
                                   1920 << 16,
                                   -1080,
                                   1 << 30};
        const int orientation = orientation_of(matrix);
        CHECK(orientation == i, "%d is taken for %d", i, orientation);
    }
}

static void test_others(void)
{
    static const int32_t matrices[][9] = {
        {46341, 46341, 0, -46341, 46341, 0, 0, 0, 1 << 30}, // 45 degrees
        {65536, 0, 0, 0, 0, 0, 0, 0, 1 << 30},
        {65536, 65536, 0, 0, 65536, 0, 0, 0, 1 << 30},
        {INT32_MIN, INT32_MIN, 0, INT32_MIN, INT32_MIN, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        CHECK(orientation_of(matrices[i]) == -EINVAL, "%zu: %d", i, orientation_of(matrices[i]));
    const int32_t empty[9] = {0}, wide[9] = {1 << 17, 0, 0, 0, 65536, 0, 0, 0, 1 << 30};
    CHECK(orientation_of(empty) == ORIENTATION_UPRIGHT, "empty");
    CHECK(orientation_of(wide) == ORIENTATION_UPRIGHT, "wide");
}

int main(void)
{
    TEST(test_all(65536, 0));
    TEST(test_all(65536, 20));
    TEST(test_all(1, 0));
    TEST(test_all(INT32_MAX - 20, 20));
    TEST(test_others());
    CHECK(!strcmp(orientation_name(ORIENTATION_MIRRORED | ORIENTATION_QUARTER),
                  "mirrored, then turned by 90 degrees clockwise"),
          "name");
    return test_end();
}
