// Cells in polygons, compared with a test of each cell's middle by hand.
#include "daemon/scene/scene.h"

#include <string.h>

#include "tests/test.h"

// Marks a picture of 40x30 over 4x3 cells of 10x10 pixels.
static const char *marked(const struct polygons *polygons)
{
    static char text[3 * 5];
    static struct statistics cells;
    uint8_t mask[12];
    const struct statistics_params params = {.columns = 4, .rows = 3, .white = 255};
    const struct image image = {.format = PIXEL_YUV420P, .width = 40, .height = 30};
    CHECK(statistics_init(&cells, &params, &image) == 0, "init");
    cells.columns = 4;
    cells.rows = 3;
    for (int i = 0; i <= 4; i++)
        cells.column_edges[i] = 10 * i;
    for (int i = 0; i <= 3; i++)
        cells.row_edges[i] = 10 * i;
    mask_cells(polygons, &cells, mask);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++)
            text[5 * i + k] = mask[4 * i + k] ? '.' : 'x';
        text[5 * i + 4] = i < 2 ? '|' : 0;
    }
    return text;
}

static void check(const char *name, struct polygon list[], int n, const char *expected)
{
    const struct polygons polygons = {list, n};
    const char *got = marked(&polygons);
    CHECK(strcmp(got, expected) == 0, "%s: %s, expected %s", name, got, expected);
}

int main(void)
{
    struct polygon all = {4, {{0, 0}, {40, 0}, {40, 30}, {0, 30}}};
    struct polygon corner = {4, {{0, 0}, {20, 0}, {20, 10}, {0, 10}}};
    struct polygon turned = {4, {{0, 10}, {20, 10}, {20, 0}, {0, 0}}};
    struct polygon near = {4, {{6, 6}, {34, 6}, {34, 24}, {6, 24}}};
    struct polygon triangle = {3, {{0, 0}, {40, 30}, {0, 30}}};
    struct polygon bow = {4, {{0, 0}, {40, 30}, {40, 0}, {0, 30}}};
    struct polygon hollow = {10,
                             {{0, 0},
                              {40, 0},
                              {40, 30},
                              {0, 30},
                              {0, 0},
                              {10, 10},
                              {10, 20},
                              {30, 20},
                              {30, 10},
                              {10, 10}}};
    struct polygon outside = {4, {{100, 0}, {16384, 0}, {16384, 16384}, {100, 16384}}};
    struct polygon two[] = {corner, {4, {{30, 20}, {40, 20}, {40, 30}, {30, 30}}}};
    struct polygon same[] = {corner, corner};
    check("none", NULL, 0, "....|....|....");
    check("all", &all, 1, "xxxx|xxxx|xxxx");
    check("a corner", &corner, 1, "xx..|....|....");
    check("the other way round", &turned, 1, "xx..|....|....");
    check("middles outside", &near, 1, "....|.xx.|....");
    check("a triangle", &triangle, 1, "x...|xx..|xxx.");
    check("a bow", &bow, 1, "x..x|xxxx|x..x");
    check("a hole", &hollow, 1, "xxxx|x..x|xxxx");
    check("beside the picture", &outside, 1, "....|....|....");
    check("two", two, 2, "xx..|....|...x");
    check("one upon the other", same, 2, "xx..|....|....");
    return test_end();
}
