// Tests warp_reads where the bytes can be counted by hand.
#include "tests/bench/measure.h"

#include "tests/test.h"

static size_t reads(enum pixel_format format, int side, int size, enum order order, bool every_tap)
{
    const struct op_params params = {.kind = OP_WARP,
                                     .warp = {.width = size,
                                              .height = size,
                                              .fit = FIT_STRETCH,
                                              .order = order,
                                              .scale = 1,
                                              .std = {1, 1, 1}}};
    struct image src = {.format = format, .width = side, .height = side};
    struct op op;
    image_lay_out(&src, NULL);
    CHECK(op_init(&op, &params, &src) == 0, "op");
    size_t bytes = warp_reads(&op.warp, &src, 32, every_tap);
    op_finish(&op);
    return bytes;
}

int main(void)
{
    size_t n = reads(PIXEL_BGR24, 96, 96, ORDER_RGB, false);
    CHECK(n == 96 * 96 * 3, "each pixel once: %zu", n);
    // A third of the size: luma of one row in three, taps of weight 0 on the following row.
    const size_t luma = 32 * 96, chroma = 48 * 96;
    n = reads(PIXEL_NV12, 96, 32, ORDER_RGB, false);
    CHECK(n == luma + chroma, "nv12: %zu", n);
    n = reads(PIXEL_NV12, 96, 32, ORDER_RGB, true);
    CHECK(n == 2 * luma + chroma, "nv12 with every tap: %zu", n);
    n = reads(PIXEL_NV12, 96, 32, ORDER_GRAY, false);
    CHECK(n == luma, "gray: %zu", n);
    return test_end();
}
