// Tests the fingerprint and its luma against their definition in double.
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/kernels/fingerprint_cases.h"
#include "tests/test.h"

enum { GRIDS = 300 };

// --- the table and the bounds stated by the contract

static void test_table(void)
{
    int largest = 0;
    for (int v = 0; v < FINGERPRINT_FREQUENCIES; v++) {
        int sum = 0, magnitude = 0, wrong = 0;
        for (int x = 0; x < FINGERPRINT_SIDE; x++) {
            const int element = fingerprint_table[v][x];
            wrong += element != lround(4096 * cos(M_PI * (2 * x + 1) * (v + 1) / 64));
            sum += element;
            magnitude += abs(element);
        }
        CHECK(wrong == 0 && sum == 0, "row %d: %d wrong, sum %d", v, wrong, sum);
        largest = magnitude > largest ? magnitude : largest;
    }
    // a row with equal parts of both signs weighs levels of 0 to 255
    const int64_t b = (255 * largest / 2 + 256) >> FINGERPRINT_DROPPED;
    CHECK(b == 21320 && b * largest == 1825333120, "%d, %lld", (int)b, (long long)(b * largest));
}

// --- from cells to the luma

// Returns the overlap of [32 cell, 32 (cell + 1)) and [cells i, cells (i + 1)), divided by 32.
static double share_of(const struct grid *grid, int cell, int i)
{
    const double begin = fmax(32.0 * cell, (double)grid->cells * i);
    const double end = fmin(32.0 * (cell + 1), (double)grid->cells * (i + 1));
    return fmax(end - begin, 0) / 32;
}

static double mean_defined(const struct grid *x, const struct grid *y, const uint32_t *sums, int i,
                           int j)
{
    double sum = 0, pixels = 0;
    for (int row = y->cells * j / 32; row < y->cells && 32 * row < y->cells * (j + 1); row++)
        for (int column = x->cells * i / 32; column < x->cells && 32 * column < x->cells * (i + 1);
             column++) {
            const double share = share_of(x, column, i) * share_of(y, row, j);
            sum += share * sums[row * x->cells + column];
            pixels += share * (x->edges[column + 1] - x->edges[column]) *
                      (y->edges[row + 1] - y->edges[row]);
        }
    return sum / pixels;
}

static bool check_grid(uint64_t seed)
{
    static uint32_t sums[FINGERPRINT_CELLS_MAX * FINGERPRINT_CELLS_MAX];
    static struct fingerprint_cells cells;
    struct random random = {seed};
    struct grid x, y;
    uint8_t luma[FINGERPRINT_LUMA];
    grid_random(&x, &random);
    grid_random(&y, &random);
    sums_random(sums, &x, &y, &random);
    const int error = fingerprint_cells_init(&cells, x.cells, x.edges, y.cells, y.edges);
    fingerprint_luma(&cells, sums, luma);
    int wrong = 0;
    for (int i = 0; i < FINGERPRINT_LUMA; i++) {
        const double mean = mean_defined(&x, &y, sums, i % 32, i / 32);
        wrong += fabs(luma[i] - mean) > 0.5 + 1e-9;
    }
    CHECK(!error && wrong == 0, "seed 0x%llx: %d x %d cells: error %d, %d wrong",
          (unsigned long long)seed, x.cells, y.cells, error, wrong);
    return !error && wrong == 0;
}

static void test_luma(void)
{
    struct random random = random_from(0, NULL);
    int failures = 0;
    for (int i = 0; i < GRIDS && failures < 5; i++)
        failures += !check_grid(random_next(&random));
}

// Halves are rounded up, and nothing is rounded before.
static void test_rounding(void)
{
    struct fingerprint_cells cells;
    int32_t edges[65];
    uint32_t sums[64 * 64];
    uint8_t luma[FINGERPRINT_LUMA];
    for (int i = 0; i <= 64; i++)
        edges[i] = i;
    for (int i = 0; i < 64 * 64; i++) // 4 cells of 1 pixel per area: 7, 7, 8, 8 or 7, 7, 7, 8
        sums[i] = i / 64 % 2 && !(i % 64 >= 32 && i % 2) ? 8 : 7;
    CHECK(fingerprint_cells_init(&cells, 64, edges, 64, edges) == 0, "64 x 64");
    fingerprint_luma(&cells, sums, luma);
    int wrong = 0;
    for (int i = 0; i < FINGERPRINT_LUMA; i++)
        wrong += luma[i] != (i % 32 < 16 ? 8 : 7);
    CHECK(wrong == 0, "%d of 1024", wrong);
    sums[0] = 7; // a picture of 1 pixel
    CHECK(fingerprint_cells_init(&cells, 1, edges, 1, edges) == 0, "1 x 1");
    fingerprint_luma(&cells, sums, luma);
    CHECK(luma[0] == 7 && !memcmp(luma, luma + 1, sizeof luma - 1), "%d", luma[0]);
}

static void test_refusals(void)
{
    static struct fingerprint_cells cells;
    const int32_t good[] = {0, 3, 4}, begins[] = {1, 3, 4}, empty[] = {0, 3, 3};
    const int32_t large[] = {0, 3, IMAGE_SIDE_MAX + 1};
    static int32_t many[FINGERPRINT_CELLS_MAX + 2];
    for (int i = 0; i < FINGERPRINT_CELLS_MAX + 2; i++)
        many[i] = i;
    CHECK(fingerprint_cells_init(&cells, 2, good, 2, good) == 0, "good");
    CHECK(fingerprint_cells_init(&cells, 2, begins, 2, good) == -EINVAL, "begins at 1");
    CHECK(fingerprint_cells_init(&cells, 2, good, 2, empty) == -EINVAL, "an empty cell");
    CHECK(fingerprint_cells_init(&cells, 2, large, 2, good) == -EINVAL, "too large");
    CHECK(fingerprint_cells_init(&cells, 0, good, 2, good) == -EINVAL, "no cell");
    CHECK(fingerprint_cells_init(&cells, 2, good, FINGERPRINT_CELLS_MAX + 1, many) == -EINVAL,
          "too many");
}

// --- from the luma to the bits

static int double_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Computes coefficients in levels times pixels. Returns the median.
static double coefficients_defined(const uint8_t luma[FINGERPRINT_LUMA], double ret[64])
{
    double sorted[64];
    for (int i = 0; i < 64; i++) {
        ret[i] = 0;
        for (int at = 0; at < FINGERPRINT_LUMA; at++)
            ret[i] += luma[at] * cos(M_PI * (2 * (at % 32) + 1) * (i % 8 + 1) / 64) *
                      cos(M_PI * (2 * (at / 32) + 1) * (i / 8 + 1) / 64);
    }
    memcpy(sorted, ret, sizeof sorted);
    qsort(sorted, 64, sizeof sorted[0], double_compare);
    return (sorted[31] + sorted[32]) / 2;
}

// A bit may differ if rounding can move the coefficient past the median.
static void test_definition(void)
{
    enum { PICTURES = 100 };
    struct random random = random_from(0, NULL);
    int wrong = 0, near = 0;
    for (int i = 0; i < PICTURES; i++) {
        uint8_t luma[FINGERPRINT_LUMA];
        double number[64];
        uint64_t bits;
        luma_random(luma, &random);
        fingerprint_reference((const uint8_t(*)[FINGERPRINT_LUMA])luma, &bits, 1);
        const double median = coefficients_defined(luma, number);
        for (int bit = 0; bit < 64; bit++) {
            const bool close = fabs(number[bit] - median) < 4;
            near += close;
            wrong += !close && (number[bit] > median) != (bits >> bit & 1);
        }
    }
    CHECK(wrong == 0 && near < PICTURES * 64 / 2, "%d wrong, %d too near", wrong, near);
}

// Raising all levels keeps the fingerprint; half of the bits are set, except with ties; a single
// frequency sets its own bit, and clears it if negative.
static void test_rules(void)
{
    struct random random = random_from(0, NULL);
    uint8_t luma[2][FINGERPRINT_LUMA];
    uint64_t bits[2];
    for (int i = 0; i < FINGERPRINT_LUMA; i++) {
        luma[0][i] = (uint8_t)random_in(&random, 0, 200);
        luma[1][i] = luma[0][i] + 55;
    }
    fingerprint_reference(luma, bits, 2);
    CHECK(bits[0] == bits[1] && __builtin_popcountll(bits[0]) == 32, "%016llx, %016llx",
          (unsigned long long)bits[0], (unsigned long long)bits[1]);
    for (int bit = 0; bit < 64; bit++) {
        for (int i = 0; i < FINGERPRINT_LUMA; i++) {
            const double wave = cos(M_PI * (2 * (i % 32) + 1) * (bit % 8 + 1) / 64) *
                                cos(M_PI * (2 * (i / 32) + 1) * (bit / 8 + 1) / 64);
            luma[0][i] = (uint8_t)lround(127.5 + 127 * wave);
            luma[1][i] = (uint8_t)lround(127.5 - 127 * wave);
        }
        fingerprint_reference(luma, bits, 2);
        CHECK((bits[0] >> bit & 1) && !(bits[1] >> bit & 1), "bit %d", bit);
    }
    memset(luma, 99, sizeof luma);
    fingerprint_reference(luma, bits, 2);
    CHECK(bits[0] == 0 && bits[1] == 0, "all alike: no bit is above the median");
}

int main(void)
{
    TEST(test_table());
    TEST(test_luma());
    TEST(test_rounding());
    TEST(test_refusals());
    TEST(test_definition());
    TEST(test_rules());
    return test_end();
}
