// Tests statistics of luma: the reference against its definition in double, over every source;
// every version that this CPU runs against the reference over CASES (from the environment) random
// pictures; the geometry of cells; the refusals of init.
//
// usage: statistics [SEED]    runs one case alone, with the seed that a failed case prints
#include <errno.h>
#include <math.h>

#include "kernels/cpu/versions.h"
#include "kernels/statistics.h"
#include "tests/kernels/definition.h"
#include "tests/test.h"

enum { CASES = 1500, CELLS = STATISTICS_CELLS_MAX * STATISTICS_CELLS_MAX };

static const uint64_t DIGEST = 0x6b0519914467581b;

static uint32_t cells[CELLS + 1], expected_cells[CELLS + 1];

// --- the definition

static double luma_of(const struct image *image, int x, int y)
{
    if (is_10bit(image->format))
        return floor(sample_get(image, 0, x, y) / 4.0);
    if (components(image->format) == 1 || image->format > PIXEL_GBRP)
        return sample_get(image, 0, x, y);
    double kr, kb;
    matrix_weights(image->colour.matrix, &kr, &kb);
    const double r = half_up(kr * 32768) / 32768, b = half_up(kb * 32768) / 32768;
    return half_up(r * sample_get(image, 0, x, y) + (1 - r - b) * sample_get(image, 1, x, y) +
                   b * sample_get(image, 2, x, y));
}

static double luma_mirrored(const struct image *image, int x, int y)
{
    const int w = image->width, h = image->height;
    x = w == 1 ? 0 : x < 0 ? -x : x >= w ? 2 * w - 2 - x : x;
    y = h == 1 ? 0 : y < 0 ? -y : y >= h ? 2 * h - 2 - y : y;
    return luma_of(image, x, y);
}

// Values in double, which holds these sums exactly.
struct definition {
    double sum, squares, laplacian, black, white, histogram[STATISTICS_BINS], min, max;
};

static struct definition define(const struct image *image, const struct statistics_params *params)
{
    struct definition d = {.min = INFINITY, .max = -INFINITY};
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++) {
            const double c = luma_of(image, x, y);
            d.sum += c;
            d.squares += c * c;
            d.min = fmin(d.min, c);
            d.max = fmax(d.max, c);
            d.black += c <= params->black;
            d.white += c >= params->white;
            d.histogram[(int)floor(c / 4)]++;
            d.laplacian +=
                fabs(4 * c - luma_mirrored(image, x - 1, y) - luma_mirrored(image, x + 1, y) -
                     luma_mirrored(image, x, y - 1) - luma_mirrored(image, x, y + 1));
        }
    return d;
}

static double sum_within(const struct image *image, int x0, int y0, int x1, int y1)
{
    double sum = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            sum += luma_of(image, x, y);
    return sum;
}

static void check_cells(const struct statistics *s, const struct image *image)
{
    int wrong = 0;
    for (int row = 0; row < s->rows; row++)
        for (int column = 0; column < s->columns; column++) {
            const double w = image->width, h = image->height;
            const int x0 = (int)floor(column * w / s->columns),
                      x1 = (int)floor((column + 1) * w / s->columns);
            const int y0 = (int)floor(row * h / s->rows), y1 = (int)floor((row + 1) * h / s->rows);
            wrong += cells[row * s->columns + column] != sum_within(image, x0, y0, x1, y1);
        }
    CHECK(wrong == 0 && cells[s->columns * s->rows] == UNTOUCHED, "%d of %d x %d cells", wrong,
          s->columns, s->rows);
    static uint8_t means[STATISTICS_GRID_MAX * STATISTICS_GRID_MAX];
    statistics_grid(s, cells, means);
    double worst = 0;
    for (int row = 0; row < s->grid_rows; row++)
        for (int column = 0; column < s->grid_columns; column++) {
            const int x0 = column * image->width / s->grid_columns,
                      x1 = (column + 1) * image->width / s->grid_columns;
            const int y0 = row * image->height / s->grid_rows,
                      y1 = (row + 1) * image->height / s->grid_rows;
            const double mean = sum_within(image, x0, y0, x1, y1) / (x1 - x0) / (y1 - y0);
            worst = fmax(worst, fabs(means[row * s->grid_columns + column] - mean));
        }
    CHECK(worst <= 0.5 + 1e-9, "grid: off by %g", worst);
}

static void check_definition(enum pixel_format format, struct random *random)
{
    static const enum matrix matrices[] = {MATRIX_BT601, MATRIX_BT709, MATRIX_BT2020};
    struct picture picture = picture_random(format, 90, random);
    picture.image.colour.matrix = matrices[random_in(random, 0, 2)];
    const struct statistics_params params = {random_in(random, 0, 64), random_in(random, 0, 64),
                                             (uint8_t)random_in(random, 0, 99),
                                             (uint8_t)random_in(random, 100, 255), true};
    struct statistics s;
    struct luma_statistics found;
    CHECK(statistics_init(&s, &params, &picture.image) == 0, "init");
    cells[s.columns * s.rows] = UNTOUCHED;
    statistics_reference(&s, &picture.image, &found, cells);
    const struct definition d = define(&picture.image, &params);
    int bins = 0;
    for (int i = 0; i < STATISTICS_BINS; i++)
        bins += (double)found.histogram[i] != d.histogram[i];
    CHECK((double)found.sum == d.sum && (double)found.squares == d.squares && found.min == d.min &&
              found.max == d.max && found.black == d.black && found.white == d.white && bins == 0 &&
              found.pixels == (uint32_t)(picture.image.width * picture.image.height) &&
              (double)found.laplacian == d.laplacian,
          "%s %dx%d: %d bins; laplacian %.0f, not %.0f", pixel_format_name(format),
          picture.image.width, picture.image.height, bins, (double)found.laplacian, d.laplacian);
    check_cells(&s, &picture.image);
    picture_free(&picture);
}

static void test_definition(struct random *random)
{
    for (int i = 0; i < SOURCES; i++)
        for (int k = 0; k < 20; k++)
            check_definition(sources[i], random);
}

// --- geometry

static void test_geometry(void)
{
    static const struct {
        int columns, rows, width, height, grid_columns, grid_rows, split;
    } cases[] = {
        {0, 0, 1920, 1080, 32, 18, 5}, {0, 0, 320, 180, 32, 18, 5}, {0, 0, 319, 180, 32, 18, 4},
        {0, 0, 1920, 179, 32, 18, 4},  {0, 0, 64, 36, 32, 18, 1},   {0, 0, 20, 10, 20, 10, 1},
        {64, 64, 640, 640, 64, 64, 5}, {1, 1, 1, 1, 1, 1, 1},       {1, 1, 16384, 16384, 1, 1, 5},
    };
    struct statistics s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct statistics_params params = {cases[i].columns, cases[i].rows, 0, 255, true};
        const struct image src = {
            .format = PIXEL_GRAY, .width = cases[i].width, .height = cases[i].height};
        CHECK(statistics_init(&s, &params, &src) == 0, "init");
        CHECK(s.grid_columns == cases[i].grid_columns && s.grid_rows == cases[i].grid_rows &&
                  s.split == cases[i].split && s.columns == s.grid_columns * s.split &&
                  s.rows == s.grid_rows * s.split,
              "%dx%d: %d x %d by %d", src.width, src.height, s.grid_columns, s.grid_rows, s.split);
        CHECK(s.column_edges[0] == 0 && s.column_edges[s.columns] == src.width &&
                  s.row_edges[0] == 0 && s.row_edges[s.rows] == src.height,
              "the outer edges");
    }
}

static void test_refusals(void)
{
    const struct statistics_params good = {0, 0, 16, 235, true};
    const struct image image = {.format = PIXEL_NV12, .width = 64, .height = 48};
    struct statistics s;
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct statistics_params p = good;                                                         \
        struct image src = image;                                                                  \
        change;                                                                                    \
        CHECK(statistics_init(&s, &p, &src) == -EINVAL, #change);                                  \
    } while (0)
    REFUSED(p.columns = STATISTICS_GRID_MAX + 1);
    REFUSED(p.columns = -1);
    REFUSED(p.rows = STATISTICS_GRID_MAX + 1);
    REFUSED(p.rows = -1);
    REFUSED(p.black = p.white);
    REFUSED(src.width = 0);
    REFUSED(src.height = IMAGE_SIDE_MAX + 1);
    REFUSED(src.format = PIXEL_YUV24);
    REFUSED(src.format = PIXEL_NONE);
#undef REFUSED
}

// --- versions

static struct statistics_params params_random(struct random *random)
{
    const int black = random_in(random, 0, 254);
    return (struct statistics_params){
        random_in(random, 0, STATISTICS_GRID_MAX), random_in(random, 0, STATISTICS_GRID_MAX),
        (uint8_t)black, (uint8_t)random_in(random, black + 1, 255), random_in(random, 0, 3) > 0};
}

// Most are some registers wide; some exceed a block of any version, or are very high.
static struct picture picture_of_case(struct random *random)
{
    const enum pixel_format format = sources[random_in(random, 0, SOURCES - 1)];
    const int kind = random_in(random, 0, 39);
    if (kind == 0)
        return picture_sized(format, random_in(random, 2000, 4200), random_in(random, 1, 40),
                             random);
    if (kind == 1)
        return picture_sized(format, random_in(random, 1, 140), random_in(random, 500, 2000),
                             random);
    return picture_random(format, 300, random);
}

static bool check_case(uint64_t seed)
{
    struct random random = {seed};
    struct picture picture = picture_of_case(&random);
    const struct image *src = &picture.image;
    const struct statistics_params params = params_random(&random);
    struct statistics s;
    struct luma_statistics expected, found;
    bool same = true;
    CHECK(statistics_init(&s, &params, src) == 0, "init");
    const size_t n = (size_t)(s.columns * s.rows) + 1;
    expected_cells[n - 1] = UNTOUCHED;
    statistics_reference(&s, src, &expected, expected_cells);
    for (int i = 0; versions[i] && versions[i]->statistics != statistics_reference; i++) {
        if (!versions[i]->runs())
            continue;
        memset(cells, UNTOUCHED, n * sizeof *cells);
        memset(&found, UNTOUCHED, sizeof found);
        cells[n - 1] = UNTOUCHED;
        versions[i]->statistics(&s, src, &found, cells);
        const bool equal =
            found.sum == expected.sum && found.squares == expected.squares &&
            found.laplacian == expected.laplacian && found.pixels == expected.pixels &&
            found.black == expected.black && found.white == expected.white &&
            found.min == expected.min && found.max == expected.max &&
            memcmp(found.histogram, expected.histogram, sizeof found.histogram) == 0 &&
            memcmp(cells, expected_cells, n * sizeof *cells) == 0;
        CHECK(equal, "%s: again: tests/kernels/statistics 0x%llx: %s %dx%d", versions[i]->name,
              (unsigned long long)seed, pixel_format_name(src->format), src->width, src->height);
        same = same && equal;
    }
    picture_free(&picture);
    return same;
}

static void test_versions(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int failures = 0;
    if (versions[0]->statistics == statistics_reference)
        SKIP("this machine has the reference alone");
    for (long i = 0; i < cases && failures < 5; i++)
        failures += !check_case(argc > 1 ? random.state : random_next(&random));
}

// --- a digest

static uint64_t digest_add(uint64_t digest, uint64_t value) // FNV-1a
{
    for (int i = 0; i < 8; i++)
        digest = (digest ^ (value >> 8 * i & 0xff)) * 0x100000001b3;
    return digest;
}

// Must be the same on every machine: the results of fixed pictures.
static void test_digest(void)
{
    const struct statistics_params params = {0, 0, 16, 235, true};
    uint64_t digest = 0xcbf29ce484222325;
    for (int i = 0; i < SOURCES; i++) {
        struct random random = {sources[i]};
        struct picture picture = picture_new(sources[i], 241, 139, STRIDES_TIGHT);
        struct statistics s;
        struct luma_statistics found;
        picture_fill(&picture.image, CONTENT_RANDOM, &random);
        CHECK(statistics_init(&s, &params, &picture.image) == 0, "init");
        version_find(NULL)->statistics(&s, &picture.image, &found, cells);
        const uint64_t values[] = {found.sum,   found.squares, found.laplacian, found.pixels,
                                   found.black, found.white,   found.min,       found.max};
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            digest = digest_add(digest, values[k]);
        for (int k = 0; k < STATISTICS_BINS; k++)
            digest = digest_add(digest, found.histogram[k]);
        for (int k = 0; k < s.columns * s.rows; k++)
            digest = digest_add(digest, cells[k]);
        picture_free(&picture);
    }
    CHECK(digest == DIGEST, "%016llx", (unsigned long long)digest);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    TEST(test_geometry());
    TEST(test_refusals());
    TEST(test_definition(&random));
    TEST(test_versions(argc, argv));
    TEST(test_digest());
    return test_end();
}
