// Tests motion over pictures drawn as sums of cells: every version that this CPU runs against the
// reference, byte by byte, over CASES (from the environment) random grids and scenes with the state
// kept; and the reference against known scenes, to tell motion from light.
//
// usage: motion [SEED]    runs one case alone, with the seed that a failed case prints
#include <errno.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/versions.h"
#include "kernels/motion_step.h"
#include "kernels/statistics.h"
#include "tests/kernels/random.h"
#include "tests/test.h"

enum { CASES = 60, STEPS = 40, GUARD = 64 };

// A camera, and one version's data for it.
struct camera {
    struct statistics statistics;
    struct motion motion;
    struct motion_state *state;
    struct motion_changes *changes;
    struct motion_boxes boxes;
    void *workspace;
};

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    CHECK(p, "no memory");
    return p;
}

static void camera_begin(struct camera *c)
{
    c->state = memory(motion_state_bytes(&c->motion));
    memset(c->state, 0, motion_state_bytes(&c->motion));
    c->changes = memory(motion_changes_bytes(&c->motion));
    memset(c->changes, UNTOUCHED, motion_changes_bytes(&c->motion) + GUARD);
    c->workspace = memory(motion_workspace_bytes(&c->motion));
    memset(c->workspace, UNTOUCHED, motion_workspace_bytes(&c->motion));
    c->boxes = (struct motion_boxes){0};
}

static void camera_end(struct camera *c)
{
    free(c->state);
    free(c->changes);
    free(c->workspace);
}

static int grid_of(struct statistics *s, int width, int height, int columns, int rows)
{
    const struct image image = {.format = PIXEL_GRAY, .width = width, .height = height};
    const struct statistics_params params = {
        .columns = columns, .rows = rows, .black = 16, .white = 235};
    return statistics_init(s, &params, &image);
}

// --- known scenes: 320 x 180 pixels in 160 x 90 cells, 10 pictures a second

enum { COLUMNS = 160, ROWS = 90, AREA = 4, SETTLED = 40 };

static struct camera scene;
static uint32_t sums[MOTION_CELLS_MAX];
static struct random noise;

static int ground(int x, int y)
{
    return 60 + x / 2 + (x / 8 + y / 8) % 2 * 12;
}

// Draws the background in a light with noise, and on it a square of 8 cells.
static void scene_draw(double gain, int shift, int x, int y, int level)
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            const bool on = column >= x && column < x + 8 && row >= y && row < y + 8;
            int luma = on ? level : (int)lrint((ground(column, row) - 16) * gain) + 16 + shift;
            luma = luma * AREA + random_in(&noise, -3, 3);
            sums[row * COLUMNS + column] = (uint32_t)clamp_to(luma, 0, 255 * AREA);
        }
}

static void scene_step(void)
{
    motion_reference(&scene.motion, scene.state, sums, scene.changes, scene.workspace);
    motion_boxes(&scene.motion, scene.changes, &scene.boxes, scene.workspace);
}

static void scene_begin(const struct motion_params *params)
{
    const char *why = NULL;
    noise = (struct random){1};
    CHECK(grid_of(&scene.statistics, 320, 180, 32, 18) == 0, "no grid");
    CHECK(motion_init(&scene.motion, params, &scene.statistics, &why) == 0, "%s", why);
    camera_begin(&scene);
    for (int i = 0; i < SETTLED; i++) {
        scene_draw(1, 0, -9, -9, 0);
        scene_step();
        CHECK(!scene.boxes.moving, "picture %d", i);
        CHECK(!(scene.boxes.flags & MOTION_LEARNING) == (i >= 20), "picture %d", i);
    }
}

static struct motion_params usual(void)
{
    struct motion_params params = motion_defaults();
    params.rate_num = 10;
    params.rate_den = 1;
    return params;
}

// True if equal within one cell, which has 2 pixels.
static bool is_about(int found, int wanted)
{
    return abs(found - wanted) <= 2;
}

static void test_square(void)
{
    const struct motion_params params = usual();
    scene_begin(&params);
    for (int i = 0; i < 20; i++) {
        scene_draw(1, 0, 20 + 2 * i, 40, 200);
        scene_step();
        const struct motion_box *box = scene.boxes.box;
        CHECK(scene.boxes.moving == (i > 0), "picture %d", i);
        CHECK(scene.boxes.count == 1, "picture %d: %u boxes", i, scene.boxes.count);
        CHECK(is_about(box->x2, 2 * (28 + 2 * i)) && is_about(box->y1, 80) && is_about(box->y2, 96),
              "picture %d: %d to %d, %d to %d", i, box->x1, box->x2, box->y1, box->y2);
        CHECK(box->x1 <= 2 * (21 + 2 * i) && box->x1 >= 2 * (20 + 2 * i) - 20, "picture %d: %d", i,
              box->x1);
    }
    for (int i = 0; i < 40; i++) { // it stops, then disappears
        scene_draw(1, 0, 58, 40, 200);
        scene_step();
        CHECK(!scene.boxes.moving || i < 8, "it stands: picture %d", i);
    }
    scene_draw(1, 0, -9, -9, 0);
    scene_step();
    CHECK(scene.boxes.count == 1, "it goes: %u boxes", scene.boxes.count);
    camera_end(&scene);
}

static void test_light(void)
{
    static const struct {
        double gain;
        int shift;
    } lights[] = {{1.1, 0}, {1, 0}, {0.8, 0}, {1, 0}, {1, 12}, {1, -12}, {1, 0}, {1.6, 0}};
    const struct motion_params params = usual();
    scene_begin(&params);
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 30; i++) {
            scene_draw(lights[k].gain, lights[k].shift, -9, -9, 0);
            scene_step();
            CHECK(scene.boxes.count == 0, "light %d, picture %d: %u boxes", k, i,
                  scene.boxes.count);
            CHECK(i > 0 || scene.boxes.flags & MOTION_LIGHT, "light %d, picture %d", k, i);
            const struct motion_light found = scene.changes->slow;
            CHECK(k > 0 || i > 0 || (abs(found.gain - 1126) < 20 && found.shift == 0),
                  "gain 1.1: %d, %d", found.gain, found.shift);
        }
    camera_end(&scene);
}

// A lamp brightens a part of the picture suddenly but softly: cells change, and none has an edge.
static void test_lamp(void)
{
    const struct motion_params params = usual();
    uint32_t changed = 0;
    scene_begin(&params);
    for (int i = 0; i < 20; i++) {
        scene_draw(1, 0, -9, -9, 0);
        for (int y = 0; y < ROWS; y++)
            for (int x = 0; x < COLUMNS; x++) {
                const double far = hypot(x - 60, y - 40) / 15;
                sums[y * COLUMNS + x] += (uint32_t)(30 * AREA * exp(-far * far));
            }
        scene_step();
        changed += scene.boxes.changed;
        CHECK(scene.boxes.count == 0, "picture %d: %u boxes", i, scene.boxes.count);
    }
    CHECK(changed > 100, "%u cells", changed);
    camera_end(&scene);
}

// A light is switched on in a third of the picture, with a hard edge.
static void test_jump(void)
{
    const struct motion_params params = usual();
    scene_begin(&params);
    for (int i = 0; i < 20; i++) {
        scene_draw(1, 0, -9, -9, 0);
        for (int y = 0; y < ROWS; y++)
            for (int x = 0; x < COLUMNS / 3; x++)
                sums[y * COLUMNS + x] += 50 * AREA;
        scene_step();
        CHECK(scene.boxes.count == 0, "picture %d: %u boxes", i, scene.boxes.count);
        CHECK(!(scene.boxes.flags & MOTION_JUMP) == (i >= 6), "picture %d", i);
    }
    camera_end(&scene);
}

// Makes boxes from a list of cells; every other cell has an edge.
static void boxes_of(const int (*cells)[2], int n)
{
    scene.changes->count = (uint32_t)n;
    for (int i = 0; i < n; i++)
        scene.changes->cell[i] =
            (uint16_t)((cells[i][1] * COLUMNS + cells[i][0]) << 1 | (i % 2 == 0));
    motion_boxes(&scene.motion, scene.changes, &scene.boxes, scene.workspace);
}

static int square_add(int (*cells)[2], int n, int x, int y, int width, int height)
{
    for (int i = 0; i < width * height; i++, n++) {
        cells[n][0] = x + i % width;
        cells[n][1] = y + i / width;
    }
    return n;
}

static int cells_compare(const void *a, const void *b)
{
    const int *p = (const int *)a, *q = (const int *)b;
    return p[1] != q[1] ? p[1] - q[1] : p[0] - q[0];
}

static void test_boxes(void)
{
    static int cells[COLUMNS * ROWS][2];
    struct motion_params params = usual();
    scene_begin(&params);
    int n = square_add(cells, 0, 10, 10, 3, 3);
    n = square_add(cells, n, 13, 13, 3, 3);  // touches the first at a corner
    n = square_add(cells, n, 17, 10, 3, 4);  // one cell between them
    n = square_add(cells, n, 157, 20, 3, 5); // at the right border,
    n = square_add(cells, n, 0, 21, 3, 5);   // and at the left border of the next row
    n = square_add(cells, n, 80, 80, 2, 4);  // one cell too few
    qsort(cells, (size_t)n, sizeof(cells[0]), cells_compare);
    boxes_of(cells, n);
    const struct motion_box expected[] = {
        {20, 20, 32, 32, 18}, {314, 40, 320, 50, 15}, {0, 42, 6, 52, 15}, {34, 20, 40, 28, 12}};
    CHECK(scene.boxes.count == 4 && !memcmp(scene.boxes.box, expected, sizeof(expected)),
          "%u boxes, the first of %u cells", scene.boxes.count, scene.boxes.box[0].cells);
    CHECK(!scene.boxes.moving && scene.boxes.changed == (uint32_t)n, "the first picture");
    boxes_of(cells, n);
    CHECK(scene.boxes.moving, "the second picture");
    scene.motion.params.min_area = 13 * AREA;
    boxes_of(cells, n);
    CHECK(scene.boxes.count == 3, "min_area: %u boxes", scene.boxes.count);
    scene.motion.params.min_area = 0;
    n = 0;
    for (int i = 0; i < 36; i++)
        n = square_add(cells, n, i % 9 * 5, i / 9 * 5, i == 35 ? 4 : 3, 3);
    qsort(cells, (size_t)n, sizeof(cells[0]), cells_compare);
    boxes_of(cells, n);
    CHECK(scene.boxes.count == MOTION_BOXES_MAX && scene.boxes.box[0].cells == 12 &&
              scene.boxes.box[31].x1 == 30 && scene.boxes.box[31].y1 == 30,
          "%u boxes, the last at %d, %d", scene.boxes.count, scene.boxes.box[31].x1,
          scene.boxes.box[31].y1);
    for (int i = 0; i < n; i++)
        scene.changes->cell[i] &= (uint16_t)~1;
    motion_boxes(&scene.motion, scene.changes, &scene.boxes, scene.workspace);
    CHECK(scene.boxes.count == 0 && !scene.boxes.moving, "no edge: %u boxes", scene.boxes.count);
    camera_end(&scene);
}

static void test_mask(void)
{
    static uint8_t mask[COLUMNS * ROWS];
    struct motion_params params = usual();
    params.mask = mask;
    memset(mask, 1, sizeof(mask));
    for (int y = 0; y < ROWS; y++)
        memset(mask + y * COLUMNS, 0, COLUMNS / 2);
    scene_begin(&params);
    for (int i = 0; i < 10; i++) {
        scene_draw(1, 0, 20 + 2 * i, 40, 200);
        scene_step();
        CHECK(scene.boxes.changed == 0, "behind the mask: %u", scene.boxes.changed);
    }
    for (int i = 0; i < 4; i++) {
        scene_draw(1, 0, 100 + 2 * i, 40, 20);
        scene_step();
    }
    CHECK(scene.boxes.moving && scene.boxes.box[0].x1 >= 196, "beside the mask");
    camera_end(&scene);
}

static void test_mistakes(void)
{
    static uint8_t nothing[MOTION_CELLS_MAX];
    const struct motion_params wrong[] = {
        {.sensitivity = 0},
        {.sensitivity = 101},
        {.sensitivity = 50, .min_area = -1},
        {.sensitivity = 50, .rate_num = 1},
        {.sensitivity = 50, .rate_num = 481, .rate_den = 2},
        {.sensitivity = 50, .mask = nothing},
    };
    struct statistics s;
    CHECK(grid_of(&s, 320, 180, 32, 18) == 0, "no grid");
    for (int i = 0; i < 6; i++) {
        const char *why = NULL;
        CHECK(motion_init(&scene.motion, &wrong[i], &s, &why) == -EINVAL && why, "%d", i);
    }
    struct motion_params right = motion_defaults();
    right.rate_num = MOTION_RATE_MAX;
    right.rate_den = 1;
    CHECK(motion_init(&scene.motion, &right, &s, NULL) == 0, "the largest rate");
    CHECK(grid_of(&s, 1920, 1080, 64, 36) == 0, "no grid");
    CHECK(motion_init(&scene.motion, &right, &s, NULL) == -EINVAL, "57600 cells");
}

// In binary64: a cell's mean is within 1/50 level of the true one, for any size.
static void test_means(void)
{
    static const int sizes[][2] = {{1920, 1080}, {768, 432}, {640, 360}, {64, 36}, {16384, 16384}};
    const struct motion_params params = motion_defaults();
    for (int i = 0; i < 5; i++) {
        struct statistics s;
        CHECK(grid_of(&s, sizes[i][0], sizes[i][1], 32, 18) == 0, "no grid");
        CHECK(motion_init(&scene.motion, &params, &s, NULL) == 0, "no motion");
        double worst = 0;
        for (int y = 0; y < s.rows; y++)
            for (int x = 0; x < s.columns; x++) {
                const int area = (s.column_edges[x + 1] - s.column_edges[x]) *
                                 (s.row_edges[y + 1] - s.row_edges[y]);
                const uint32_t sum = (uint32_t)((x * 7919 + y * 104729) % (255 * area + 1));
                const int mean = cell_mean(sum, scene.motion.sum_shift,
                                           scene.motion.mean_of[scene.motion.row_tall[y]][x], 1);
                CHECK(cell_mean(255 * (uint32_t)area, scene.motion.sum_shift,
                                scene.motion.mean_of[scene.motion.row_tall[y]][x], 1) <= CELL_WHITE,
                      "white");
                worst = fmax(worst, fabs(mean / 128.0 - (double)sum / area));
            }
        CHECK(worst <= 1 / 50.0, "%d x %d: off by %g", sizes[i][0], sizes[i][1], worst);
    }
}

// An average is within 1/32 level of the true one, and reaches its target.
static void test_averages(void)
{
    double truth = 5000;
    int average = 5000;
    for (uint32_t n = 0; n < 4000; n++) {
        average = cell_average(average, 5700, 300, step_rounding(n));
        truth += (5700 - truth) * 300 / 65536;
        CHECK(fabs(average - truth) < 4, "picture %u: %d, not %g", n, average, truth);
    }
    CHECK(average >= 5699, "%d", average);
}

// --- versions

static bool check_step(const struct camera *a, const struct camera *b, uint64_t seed, int step,
                       const char *version)
{
    const bool state = !memcmp(a->state, b->state, motion_state_bytes(&a->motion));
    const bool changes = !memcmp(a->changes, b->changes, motion_changes_bytes(&a->motion) + GUARD);
    CHECK(state && changes,
          "%s: again: tests/kernels/motion 0x%llx: step %d, %d x %d: %s, %u and %u cells", version,
          (unsigned long long)seed, step, a->motion.columns, a->motion.rows,
          state ? "changes" : "state", a->changes->count, b->changes->count);
    return state && changes;
}

static long seen_cells, seen_light, seen_jumps;

static void case_draw(const struct camera *c, struct random *r, int step, uint32_t *to)
{
    const int kind = random_in(r, 0, 9);
    const double gain = kind == 0 ? 0.3 + 0.01 * random_in(r, 0, 300) : 1;
    const int shift = kind == 1 ? random_in(r, -70, 70) : 0, grain = random_in(r, 0, 9);
    for (int y = 0; y < c->motion.rows; y++)
        for (int x = 0; x < c->motion.columns; x++) {
            const struct statistics *s = &c->statistics;
            const int area = (s->column_edges[x + 1] - s->column_edges[x]) *
                             (s->row_edges[y + 1] - s->row_edges[y]);
            int luma = (int)(ground(x, y) * gain) + shift + random_in(r, -grain, grain);
            luma = (x + step) % 60 < 9 && y % 40 > 30 ? 255 - luma : luma;
            luma = kind == 2 ? random_in(r, 0, 1) * 255 : luma;
            to[y * c->motion.columns + x] = (uint32_t)(clamp_to(luma, 0, 255) * area);
        }
}

static bool check_case(uint64_t seed)
{
    static struct camera cameras[2];
    static uint8_t mask[MOTION_CELLS_MAX];
    struct random r = {seed};
    struct motion_params params = motion_defaults();
    struct statistics *s = &cameras[0].statistics;
    bool same = true;
    const int columns = random_in(&r, 1, 40), rows = random_in(&r, 1, 25);
    const int width = random_in(&r, 1, 2000);
    CHECK(grid_of(s, width, random_in(&r, 1, 1200), columns, rows) == 0, "no grid");
    params.sensitivity = random_in(&r, 1, 100);
    params.rate_num = random_in(&r, 1, 60);
    params.rate_den = 1;
    for (int i = 0; i < MOTION_CELLS_MAX; i++)
        mask[i] = i == 0 || random_in(&r, 0, 20);
    params.mask = random_in(&r, 0, 1) ? mask : NULL;
    CHECK(motion_init(&cameras[0].motion, &params, s, NULL) == 0, "no motion");
    for (int i = 0; versions[i] && same; i++) {
        if (!versions[i]->runs() || versions[i]->motion == motion_reference)
            continue;
        struct random pictures = {seed};
        cameras[1] = cameras[0];
        camera_begin(&cameras[0]);
        camera_begin(&cameras[1]);
        for (int step = 0; step < STEPS && same; step++) {
            case_draw(&cameras[0], &pictures, step, sums);
            motion_reference(&cameras[0].motion, cameras[0].state, sums, cameras[0].changes,
                             cameras[0].workspace);
            versions[i]->motion(&cameras[1].motion, cameras[1].state, sums, cameras[1].changes,
                                cameras[1].workspace);
            same = check_step(&cameras[0], &cameras[1], seed, step, versions[i]->name);
            seen_cells += cameras[0].changes->count;
            seen_light += !!(cameras[0].changes->flags & MOTION_LIGHT);
            seen_jumps += !!(cameras[0].changes->flags & MOTION_JUMP);
        }
        camera_end(&cameras[0]);
        camera_end(&cameras[1]);
    }
    return same;
}

static void test_versions(struct random *random)
{
    bool same = true;
    for (long i = cases_from(CASES); i > 0 && same; i--)
        same = check_case(random_next(random));
    CHECK(cases_from(CASES) < CASES || (seen_cells > 1000 && seen_light > 100 && seen_jumps > 10),
          "too little: %ld cells, %ld lights, %ld jumps", seen_cells, seen_light, seen_jumps);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    if (argc > 1) {
        check_case(random.state);
        return test_end();
    }
    TEST(test_means());
    TEST(test_averages());
    TEST(test_square());
    TEST(test_light());
    TEST(test_lamp());
    TEST(test_jump());
    TEST(test_boxes());
    TEST(test_mask());
    TEST(test_mistakes());
    if (version_find(NULL)->motion == motion_reference)
        SKIP("no version of motion beside the reference");
    else
        TEST(test_versions(&random));
    return test_end();
}
