// Tests tiles of many sizes: they cover the area, overlap as requested, stay inside it, and are no
// more than needed.
#include <errno.h>

#include "kernels/image.h"
#include "tests/kernels/picture.h"
#include "tests/test.h"

// Tiles along one axis, taken from their first row or column.
struct axis {
    int n, first, last_end, least_overlap, least_step, most_step;
};

static void axis_add(struct axis *axis, int start, int before, int size)
{
    if (axis->n++ == 0) {
        *axis = (struct axis){.n = 1, .first = start, .least_overlap = size, .least_step = size};
    } else {
        const int step = start - before;
        axis->least_overlap = size - step < axis->least_overlap ? size - step : axis->least_overlap;
        axis->least_step = step < axis->least_step ? step : axis->least_step;
        axis->most_step = step > axis->most_step ? step : axis->most_step;
    }
    axis->last_end = start + size;
}

static void check_axis(const struct axis *axis, int from, int length, const struct tiling *tiling)
{
    CHECK(axis->first == from && axis->last_end == from + length, "%d to %d, not %d to %d",
          axis->first, axis->last_end, from, from + length);
    if (axis->n == 1)
        return;
    CHECK(100 * axis->least_overlap >= tiling->size * tiling->overlap, "%d of %d, not %d%%",
          axis->least_overlap, tiling->size, tiling->overlap);
    CHECK(axis->most_step - axis->least_step <= 1, "steps of %d and %d", axis->least_step,
          axis->most_step);
    // One tile fewer, at the largest allowed steps, would leave part of the area uncovered.
    const int step = tiling->size - (tiling->size * tiling->overlap + 99) / 100;
    CHECK((axis->n - 2) * step + tiling->size < length, "%d tiles of %d, %d%%, along %d", axis->n,
          tiling->size, tiling->overlap, length);
}

static bool is_inside(struct rect tile, struct rect area)
{
    return tile.x >= area.x && tile.y >= area.y && tile.width >= 1 && tile.height >= 1 &&
           tile.x + tile.width <= area.x + area.width &&
           tile.y + tile.height <= area.y + area.height;
}

static int pixels_missed(const struct rect tiles[], int n, struct rect area)
{
    uint8_t *seen = calloc(1, (size_t)area.width * area.height);
    int missed = area.width * area.height;
    for (int i = 0; i < n; i++)
        for (int y = tiles[i].y - area.y; y < tiles[i].y - area.y + tiles[i].height; y++)
            for (int x = tiles[i].x - area.x; x < tiles[i].x - area.x + tiles[i].width; x++) {
                missed -= !seen[(size_t)y * area.width + x];
                seen[(size_t)y * area.width + x] = 1;
            }
    free(seen);
    return missed;
}

static void check_tiles(const struct rect tiles[], int n, const struct tiling *tiling,
                        struct rect area)
{
    const int width = area.width < tiling->size ? area.width : tiling->size;
    const int height = area.height < tiling->size ? area.height : tiling->size;
    struct axis across = {0}, down = {0};
    int outside = 0, other = 0;
    for (int i = 0; i < n; i++) {
        const struct rect tile = tiles[i], before = i > 0 ? tiles[i - 1] : tile;
        outside += !is_inside(tile, area);
        other += tile.width != width || tile.height != height;
        if (i == 0 || tile.x <= before.x) {
            CHECK(i == 0 || tile.y > before.y, "tile %d is out of order", i);
            axis_add(&down, tile.y, before.y, height);
        }
        if (down.n == 1)
            axis_add(&across, tile.x, before.x, width);
        else
            other += i >= across.n && tile.x != tiles[i - across.n].x;
    }
    CHECK(n == across.n * down.n && outside == 0 && other == 0,
          "%d tiles, %d by %d: %d outside, %d unlike", n, across.n, down.n, outside, other);
    check_axis(&across, area.x, area.width, tiling);
    check_axis(&down, area.y, area.height, tiling);
    CHECK(pixels_missed(tiles, n, area) == 0, "%d pixels are in no tile",
          pixels_missed(tiles, n, area));
}

static void test_any(struct random *random)
{
    int full = 0, too_many = 0;
    for (int i = 0; i < 4000; i++) {
        struct rect tiles[TILES_MAX], area;
        struct tiling tiling;
        area.x = random_in(random, 0, 100);
        area.y = random_in(random, 0, 100);
        area.width = random_in(random, 1, 400);
        area.height = random_in(random, 1, 400);
        tiling.size = random_in(random, 1, 300);
        tiling.overlap = random_in(random, 0, 99);
        tiling.full = random_in(random, 0, 1);
        int n = tiles_make(tiles, &tiling, area);
        const bool steps = tiling.size * (100 - tiling.overlap) >= 100;
        CHECK((n == -EINVAL) == !steps, "%d: %d, %d%%", n, tiling.size, tiling.overlap);
        too_many += n == -E2BIG;
        if (n < 0)
            continue;
        if (n > 1 && tiling.full) {
            const struct rect last = tiles[--n];
            CHECK(last.x == area.x && last.y == area.y && last.width == area.width &&
                      last.height == area.height,
                  "the whole area is last");
            full++;
        }
        check_tiles(tiles, n, &tiling, area);
    }
    CHECK(full > 500 && too_many > 100, "%d with the whole, %d too many", full, too_many);
}

static void check_count(int width, int height, int size, int overlap, bool full, int expected)
{
    struct rect tiles[TILES_MAX];
    const struct tiling tiling = {size, overlap, full};
    const int n = tiles_make(tiles, &tiling, (struct rect){0, 0, width, height});
    CHECK(n == expected, "%dx%d at %d and %d%%: %d, not %d", width, height, size, overlap, n,
          expected);
}

static void test_counts(void)
{
    check_count(3840, 2160, 640, 20, true, 8 * 4 + 1);
    check_count(3840, 2160, 640, 20, false, 8 * 4);
    check_count(1920, 1080, 640, 20, true, 4 * 2 + 1);
    check_count(1920, 1080, 640, 0, false, 3 * 2);
    check_count(640, 480, 640, 20, true, 1);
    check_count(641, 480, 640, 20, true, 2 + 1);
    check_count(1, 1, 640, 99, true, 1);
    check_count(16384, 16384, 2048, 0, false, TILES_MAX);
    check_count(16384, 16384, 2048, 0, true, -E2BIG);
    check_count(16384, 16384, 1, 0, false, -E2BIG);
    check_count(100, 100, 0, 20, true, -EINVAL);
    check_count(100, 100, 20, -1, true, -EINVAL);
    check_count(100, 100, 20, 100, true, -EINVAL);
    check_count(100, 100, 1, 50, true, -EINVAL);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("tiles: seed %llu\n", (unsigned long long)random.state);
    TEST(test_counts());
    TEST(test_any(&random));
    return test_end();
}
