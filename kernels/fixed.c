#include "kernels/fixed.h"

#include <math.h>

enum { Q15 = 1 << 15 };

struct luma_weights {
    double r, g, b;
};

// bt601-8bit has rounded coefficients for writing; its samples read as bt601, limited.
static struct colour as_read(struct colour colour)
{
    if (colour.matrix == MATRIX_BT601_8BIT) {
        colour.matrix = MATRIX_BT601;
        colour.range = RANGE_LIMITED;
    }
    return colour;
}

static struct luma_weights luma_weights_of(enum matrix matrix)
{
    struct luma_weights k = {.r = 0.299, .b = 0.114};
    if (matrix == MATRIX_BT709)
        k = (struct luma_weights){.r = 0.2126, .b = 0.0722};
    else if (matrix == MATRIX_BT2020)
        k = (struct luma_weights){.r = 0.2627, .b = 0.0593};
    k.g = 1 - k.r - k.b;
    return k;
}

static int q15(double x)
{
    return (int)floor(x * Q15 + 0.5);
}

struct colour colour_override(struct colour over, struct colour under)
{
    if (over.matrix == MATRIX_UNSPECIFIED)
        over.matrix = under.matrix;
    if (over.range == RANGE_UNSPECIFIED)
        over.range = under.range;
    if (over.siting == SITING_UNSPECIFIED)
        over.siting = under.siting;
    return over;
}

bool colour_same_samples(struct colour a, struct colour b)
{
    a = as_read(a);
    b = as_read(b);
    return a.matrix == b.matrix && a.range == b.range;
}

struct yuv_to_rgb colour_to_rgb(struct colour colour, int bits)
{
    const struct luma_weights k = luma_weights_of(colour.matrix);
    const bool full = as_read(colour).range == RANGE_FULL;
    // Kernels use a quarter of a 10-bit sample; full range ends at 1023, not at 4 * 255.
    const double unit = full && bits == 10 ? 4 * 255 / 1023.0 : 1;
    const double luma = unit * (full ? 1 : 255 / 219.0);
    const double chroma = unit * (full ? 1 : 255 / 224.0);
    const int black = full ? 0 : 16;
    return (struct yuv_to_rgb){
        .y = (int16_t)q15(luma / 2),
        .rv = (int16_t)q15(chroma * (1 - k.r)),
        .gu = (int16_t)q15(-chroma * (1 - k.b) * k.b / k.g),
        .gv = (int16_t)q15(-chroma * (1 - k.r) * k.r / k.g),
        .bu = (int16_t)q15(chroma * (1 - k.b) - 1),
        .offset = (int16_t)(floor((128 - black) * luma * 64 + 0.5) + LEVEL6_HALF),
    };
}

static struct rgb_to_yuv to_yuv_bt601_8bit(void)
{
    return (struct rgb_to_yuv){
        .row = {{66, 129, 25}, {-38, -74, 112}, {112, -94, -18}},
        .round = {16 << 8, 128 << 8, 128 << 8},
        .shift = 8,
    };
}

struct rgb_to_yuv colour_to_yuv(struct colour colour)
{
    if (colour.matrix == MATRIX_BT601_8BIT)
        return to_yuv_bt601_8bit();
    const struct luma_weights k = luma_weights_of(colour.matrix);
    const bool full = colour.range == RANGE_FULL;
    const double luma = full ? 1 : 219 / 255.0;
    const double chroma = full ? 1 : 224 / 255.0;
    const int half = Q15 / 2;
    struct rgb_to_yuv c = {
        .row = {{q15(luma * k.r), 0, q15(luma * k.b)},
                {q15(-chroma * k.r / (1 - k.b) / 2), 0, q15(chroma / 2)},
                {q15(chroma / 2), 0, q15(-chroma * k.b / (1 - k.r) / 2)}},
        .round = {(full ? 0 : 16 * Q15) + half, 128 * Q15 + half, 128 * Q15 + half},
        .shift = 15,
    };
    // G takes the rounding remainder, so that white stays white and gray has no colour.
    c.row[0][1] = q15(luma) - c.row[0][0] - c.row[0][2];
    c.row[1][1] = -c.row[1][0] - c.row[1][2];
    c.row[2][1] = -c.row[2][0] - c.row[2][2];
    return c;
}

void colour_gray_weights(enum matrix matrix, int16_t weight[3])
{
    const struct luma_weights k = luma_weights_of(matrix);
    weight[0] = (int16_t)q15(k.r);
    weight[2] = (int16_t)q15(k.b);
    weight[1] = (int16_t)(Q15 - weight[0] - weight[2]);
}

struct position luma_position(void)
{
    return (struct position){.add = 2, .shift = 2};
}

// Half the luma position; centred chroma lies half a luma pixel further.
static struct position chroma_position(int sub, bool centred)
{
    return sub == 0 ? luma_position() : (struct position){centred ? 4 - 32768 : 4, 3};
}

struct position chroma_position_x(enum pixel_format format, enum siting siting)
{
    return chroma_position(pixel_layout_of(format).sub_x, siting == SITING_CENTER);
}

struct position chroma_position_y(enum pixel_format format, enum siting siting)
{
    return chroma_position(pixel_layout_of(format).sub_y, siting != SITING_TOPLEFT);
}
