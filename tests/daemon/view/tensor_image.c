// Tensors converted back to their levels, of any type, layout and order.
#include "daemon/view/rendition.h"

#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

enum { WIDTH = 192, HEIGHT = 108, SIDE = 64 };

static uint8_t pixels[WIDTH * HEIGHT * 3 / 2];
static struct image source = {.format = PIXEL_NV12,
                              .width = WIDTH,
                              .height = HEIGHT,
                              .colour = {MATRIX_BT709, RANGE_LIMITED, SITING_LEFT}};

static struct op_params tensor_params(enum dtype dtype, enum layout layout, enum order order)
{
    struct op_params params = {.kind = OP_WARP};
    struct warp_params *warp = &params.warp;
    *warp = (struct warp_params){.width = SIDE,
                                 .height = SIDE,
                                 .fit = FIT_STRETCH,
                                 .dtype = dtype,
                                 .layout = layout,
                                 .order = order,
                                 .scale = 1};
    for (int c = 0; c < 3; c++) {
        const bool is_float = dtype == DTYPE_F16 || dtype == DTYPE_F32;
        warp->std[c] = is_float ? 0.2 + 0.03 * c : 1;
        warp->mean[c] = is_float ? 0.4 + 0.05 * c : dtype == DTYPE_S8 ? 128 : 0;
        warp->scale = is_float ? 1 / 255.0 : 1;
    }
    return params;
}

// Compares with the same geometry as u8, rgb, nhwc.
static void check_tensor(const uint8_t *expected, const struct op_params *params)
{
    const struct warp_params *warp = &params->warp;
    const int n = warp->order == ORDER_GRAY ? 1 : 3;
    struct op op;
    struct result_format format = {
        .dtype = warp->dtype, .layout = warp->layout, .order = warp->order};
    struct tensor_image shown;
    CHECK(op_init(&op, params, &source) == 0, "op");
    uint8_t *data = malloc(op.dst_bytes), *to = malloc((size_t)SIDE * SIDE * CHANNELS_MAX);
    op_lay_out(&op, &format.image, data);
    op_reference(&format.image, &source, &op, (struct band){0, SIDE}, false);
    for (int plane = -1; plane < n; plane++) {
        int wrong = 0;
        CHECK(tensor_image_make(&shown, to, &format, params, plane) && shown.n == n, "shown");
        for (int i = 0; i < SIDE * SIDE * n; i++) {
            const int c = i % n, colour = warp->order == ORDER_BGR ? 2 - c : c;
            const struct component at = component_of(PIXEL_GBRP, colour);
            if (plane >= 0 && c != plane)
                continue;
            const uint8_t *level = plane < 0 && n == 3 ? shown.image.plane[at.plane].data + i / n
                                                       : shown.image.plane[0].data + i / n;
            wrong += *level != expected[i / n * n + colour];
        }
        CHECK(wrong == 0, "type %d, layout %d, order %d, plane %d: %d levels", warp->dtype,
              warp->layout, warp->order, plane, wrong);
    }
    for (int c = 0; c < n; c++) {
        const struct channel *channel = &shown.channel[c];
        const int colour = warp->order == ORDER_BGR ? 2 - c : c;
        int least = 255, most = 0;
        for (int i = colour; i < SIDE * SIDE * n; i += n) {
            least = expected[i] < least ? expected[i] : least;
            most = expected[i] > most ? expected[i] : most;
        }
        const double min = (least * warp->scale - warp->mean[c]) / warp->std[c];
        const double max = (most * warp->scale - warp->mean[c]) / warp->std[c];
        CHECK(fabs(channel->min - min) < 2e-3 && fabs(channel->max - max) < 2e-3,
              "channel %d: %g to %g, not %g to %g", c, channel->min, channel->max, min, max);
        CHECK(channel->mean > channel->min && channel->mean < channel->max, "mean");
        CHECK(channel->name[0] == (n == 1 ? "gray" : "rgb")[n == 1 ? 0 : colour], "%s",
              channel->name);
    }
    CHECK(!tensor_image_make(&shown, to, &format, params, n), "a plane that is not there");
    op_finish(&op);
    free(data);
    free(to);
}

static void test_tensors(void)
{
    static const enum order orders[] = {ORDER_RGB, ORDER_BGR, ORDER_GRAY};
    for (int o = 0; o < 3; o++) {
        const bool gray = orders[o] == ORDER_GRAY;
        const struct op_params plain =
            tensor_params(DTYPE_U8, LAYOUT_NHWC, gray ? ORDER_GRAY : ORDER_RGB);
        uint8_t expected[SIDE * SIDE * 3];
        struct image result;
        struct op op;
        CHECK(op_init(&op, &plain, &source) == 0, "op");
        op_lay_out(&op, &result, expected);
        op_reference(&result, &source, &op, (struct band){0, SIDE}, false);
        op_finish(&op);
        for (int dtype = DTYPE_U8; dtype <= DTYPE_F32; dtype++)
            for (int layout = LAYOUT_NCHW; layout <= LAYOUT_NHWC; layout++) {
                const struct op_params params =
                    tensor_params((enum dtype)dtype, (enum layout)layout, orders[o]);
                check_tensor(expected, &params);
            }
    }
}

int main(void)
{
    for (int i = 0; i < WIDTH * HEIGHT * 3 / 2; i++)
        pixels[i] = (uint8_t)(16 + (i * 7 + i / WIDTH * 3) % 220);
    image_lay_out(&source, pixels);
    TEST(test_tensors());
    return test_end();
}
