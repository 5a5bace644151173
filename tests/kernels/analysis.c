// Tests that an analyser gives the results of the three ops run one after another, over a sequence
// of pictures, and refuses every parameter that one of the ops refuses.
#include <errno.h>

#include "kernels/backend.h"
#include "tests/kernels/picture.h"
#include "tests/test.h"

enum { PICTURES = 30, CELLS = STATISTICS_CELLS_MAX * STATISTICS_CELLS_MAX };

// Results of the references for the same pictures.
static struct {
    uint32_t cells[CELLS];
    uint8_t grid[STATISTICS_GRID_MAX * STATISTICS_GRID_MAX];
    _Alignas(64) uint8_t state[1 << 18], changes[1 << 17], workspace[1 << 19];
    struct motion_boxes boxes;
} reference;

static void expect_same(const struct analysis *analysis, const struct image *image,
                        const struct analysis_result *got)
{
    const struct statistics *statistics = &analysis->statistics;
    struct luma_statistics luma = {0};
    uint8_t small[1][FINGERPRINT_LUMA];
    uint64_t fingerprint;
    struct motion_changes *changes = (struct motion_changes *)reference.changes;
    statistics_reference(statistics, image, &luma, reference.cells);
    motion_reference(&analysis->motion, (struct motion_state *)reference.state, reference.cells,
                     changes, reference.workspace);
    motion_boxes(&analysis->motion, changes, &reference.boxes, reference.workspace);
    fingerprint_luma(&analysis->fingerprint, reference.cells, small[0]);
    fingerprint_reference(small, &fingerprint, 1);
    CHECK(got->luma.sum == luma.sum && got->luma.squares == luma.squares &&
              got->luma.laplacian == luma.laplacian && got->luma.black == luma.black &&
              got->luma.white == luma.white && got->luma.min == luma.min &&
              got->luma.max == luma.max,
          "other statistics");
    CHECK(memcmp(got->luma.histogram, luma.histogram, sizeof luma.histogram) == 0,
          "other histogram");
    statistics_grid(statistics, reference.cells, reference.grid);
    CHECK(memcmp(got->grid, reference.grid,
                 (size_t)(statistics->grid_columns * statistics->grid_rows)) == 0,
          "another grid");
    CHECK(got->fingerprint == fingerprint, "another fingerprint");
    CHECK(got->motion->changed == reference.boxes.changed &&
              got->motion->flags == reference.boxes.flags &&
              got->motion->moving == reference.boxes.moving &&
              got->motion->count == reference.boxes.count &&
              memcmp(got->motion->box, reference.boxes.box,
                     got->motion->count * sizeof *got->motion->box) == 0,
          "other motion");
}

// Draws a square that moves over noise.
static void draw(struct image *image, int number, struct random *random)
{
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++) {
            const bool inside = x / 40 == number % 8 && y / 40 == 1;
            sample_put(image, 0, x, y, (inside ? 200 : 80) + random_in(random, 0, 3), 0);
        }
}

static void test_pictures(struct random *random)
{
    static struct analysis analysis;
    struct analysis_params params = {
        .statistics = {.black = 16, .white = 235, .all = true},
        .motion = motion_defaults(),
    };
    struct picture picture = picture_sized(PIXEL_NV12, 640, 360, random);
    struct analyser *analyser;
    struct analysis_result result;
    int moved = 0;
    params.motion.rate_num = 5; // learning takes 10 pictures
    params.motion.rate_den = 1;
    CHECK(analysis_init(&analysis, &params, &picture.image, NULL) == 0, "is not 0");
    CHECK(cpu_backend.analyser_open(NULL, &analyser, &analysis, &picture.image) == 0, "is not 0");
    for (int i = 0; i < PICTURES; i++) {
        draw(&picture.image, i, random);
        CHECK(cpu_backend.analyse(analyser, &picture.image, &result) == 0, "is not 0");
        expect_same(&analysis, &picture.image, &result);
        moved += result.motion->moving;
    }
    CHECK(moved >= 10, "%d pictures with motion", moved);
    cpu_backend.analyser_close(analyser);
    picture_free(&picture);
}

static void test_refusals(struct random *random)
{
    static struct analysis analysis;
    struct picture picture = picture_sized(PIXEL_NV12, 64, 48, random);
    struct analysis_params params = {.statistics = {.black = 16, .white = 235},
                                     .motion = motion_defaults()};
    const char *why = NULL;
    CHECK(analysis_init(&analysis, &params, &picture.image, &why) == 0, "is not 0");
    params.statistics.columns = STATISTICS_GRID_MAX + 1;
    CHECK(analysis_init(&analysis, &params, &picture.image, &why) == -EINVAL, "is not -EINVAL");
    params.statistics.columns = 0;
    params.motion.sensitivity = 0;
    CHECK(analysis_init(&analysis, &params, &picture.image, &why) == -EINVAL, "is not -EINVAL");
    CHECK(why != NULL, "without a reason");
    picture_free(&picture);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    TEST(test_pictures(&random));
    TEST(test_refusals(&random));
    return test_end();
}
