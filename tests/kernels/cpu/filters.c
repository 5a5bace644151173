// Tests the limits of filters that weigh samples: every source in every version for the CPU against
// the reference, byte by byte.
#include "kernels/cpu/versions.h"
#include "tests/kernels/picture.h"
#include "tests/test.h"

// Single pixels and lines, sides around whole registers, and spans from one sample to hundreds.
static const struct {
    int width, height, to_width, to_height;
} shapes[] = {{1, 1, 1, 1},    {1, 1, 5, 3},       {1, 9, 3, 2},     {9, 1, 2, 3},
              {2, 2, 7, 5},    {15, 3, 4, 1},      {31, 7, 33, 2},   {33, 5, 17, 3},
              {63, 8, 17, 7},  {65, 11, 65, 3},    {127, 9, 3, 9},   {129, 3, 43, 1},
              {4096, 3, 8, 2}, {3, 4096, 2, 8},    {4095, 9, 1, 1},  {9, 4095, 1, 1},
              {64, 512, 8, 8}, {1921, 31, 640, 9}, {640, 3, 1025, 2}};

static void *run(op_fn *fn, const struct op *op, const struct image *src)
{
    struct image dst;
    void *result = malloc(op->dst_bytes);
    op_lay_out(op, &dst, result);
    fn(&dst, src, op, (struct band){0, op->dst.height}, false);
    return result;
}

static void check_shape(struct random *random, enum pixel_format source, size_t shape,
                        enum filter filter, int rotate)
{
    const int width = shapes[shape].width, height = shapes[shape].height;
    struct op_params params = {OP_WARP, {.warp = {.scale = 1, .std = {1, 1, 1}}}};
    params.warp.width = shapes[shape].to_width;
    params.warp.height = shapes[shape].to_height;
    params.warp.fit = FIT_STRETCH;
    params.warp.filter = filter;
    params.warp.rotate = rotate;
    struct picture picture = picture_sized(source, width, height, random);
    struct op op;
    const int error = op_init(&op, &params, &picture.image);
    CHECK(error == 0, "%d: %dx%d", error, width, height);
    if (error == 0) {
        void *expected = run(op_reference, &op, &picture.image);
        for (int i = 0; versions[i]; i++) {
            if (!versions[i]->runs())
                continue;
            void *got = run(versions[i]->run[OP_WARP], &op, &picture.image);
            CHECK(memcmp(got, expected, op.dst_bytes) == 0,
                  "%s: %s %dx%d to %dx%d by %d, turned %d", versions[i]->name,
                  pixel_format_name(source), width, height, params.warp.width, params.warp.height,
                  filter, rotate);
            free(got);
        }
        free(expected);
        op_finish(&op);
    }
    picture_free(&picture);
}

static void check_shapes(struct random *random, enum pixel_format source)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int filter = FILTER_AREA; filter <= FILTER_TRIANGLE; filter++)
            for (int rotate = 0; rotate <= 180; rotate += 90)
                check_shape(random, source, i, (enum filter)filter, rotate);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("filters: seed %llu\n", (unsigned long long)random.state);
    for (int i = 0; i < SOURCES; i++)
        TEST(check_shapes(&random, sources[i]));
    return test_end();
}
