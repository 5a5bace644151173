#include "kernels/element.h"

#include <math.h>
#include <string.h>

size_t element_bytes(enum dtype dtype)
{
    static const size_t bytes[] = {
        [DTYPE_U8] = 1, [DTYPE_S8] = 1, [DTYPE_F16] = 2, [DTYPE_F32] = 4};
    return bytes[dtype];
}

static int integer_of(double x, int lo, int hi)
{
    return (int)fmin(fmax(floor(x + 0.5), lo), hi);
}

// IEEE 754 binary16; written by hand because not every supported compiler has the type.
static uint16_t half_of(double x)
{
    const int sign = signbit(x) ? 0x8000 : 0;
    const double magnitude = fabs(x);
    if (magnitude >= 0x1p16) // smaller values that round up to it become infinity below
        return (uint16_t)(sign | 0x7c00);
    int exponent;
    frexp(magnitude, &exponent);
    if (magnitude < 0x1p-14) // subnormal: same spacing as the smallest normal numbers
        exponent = -13;
    // A normal number has 1024 to 2048 steps; the leading one increments the exponent field.
    const int steps = (int)rint(ldexp(magnitude, 11 - exponent));
    return (uint16_t)(sign | (((exponent + 13) << 10) + steps));
}

static struct level_sum sum_of(double slope, double origin)
{
    // The finest grid on which the value of every level fits a float.
    const double reach = fmax(fabs(origin), fabs(origin + 255 * slope));
    if (!isnormal(reach))
        return (struct level_sum){NAN, NAN, NAN, NAN}; // sum_holds rejects it
    const double grid = ldexp(1, ilogb(reach) - 23);
    const double a = rint(slope / grid) * grid, b = rint(origin / grid) * grid;
    return (struct level_sum){(float)a, (float)b, (float)(slope - a), (float)(origin - b)};
}

static bool sum_holds(const struct warp *warp, int c)
{
    const struct level_sum sum = warp->sum[c];
    for (int level = 0; level < 256; level++) {
        const float x = (float)level, y = fmaf(x, sum.a, sum.b) + fmaf(x, sum.c, sum.d);
        const float *table = &warp->table.f32[c][level];
        if (isnan(y)) // in no table, and half_of does not take it
            return false;
        if (warp->dtype == DTYPE_F16 ? half_of(y) != warp->table.f16[c][level]
                                     : memcmp(&y, table, sizeof(y)) != 0)
            return false;
    }
    return true;
}

static void sums_init(struct warp *warp, const struct warp_params *params)
{
    warp->summed = warp->dtype == DTYPE_F16 || warp->dtype == DTYPE_F32;
    for (int c = 0; warp->summed && c < warp->channels; c++) {
        warp->sum[c] = sum_of(params->scale / params->std[c], -params->mean[c] / params->std[c]);
        warp->summed = sum_holds(warp, c);
    }
}

static void fill_init(struct warp *warp, const struct warp_params *params)
{
    const size_t bytes = element_bytes(warp->dtype);
    for (int c = 0; c < warp->channels; c++) {
        const double mean = params->mean[c] / params->scale;
        warp->fill[c] = params->fill[c];
        if (params->fill_mean) // not finite for a scale of 0
            warp->fill[c] = (uint8_t)(isfinite(mean) ? integer_of(mean, 0, 255) : 0);
        else
            memcpy(&warp->fill_element[c],
                   (const uint8_t *)&warp->table + (256 * c + warp->fill[c]) * bytes, bytes);
    }
}

void element_tables_init(struct warp *warp, const struct warp_params *params)
{
    for (int c = 0; c < warp->channels; c++) {
        for (int level = 0; level < 256; level++) {
            const double x = (level * params->scale - params->mean[c]) / params->std[c];
            switch (warp->dtype) {
            case DTYPE_U8:
                warp->table.u8[c][level] = (uint8_t)integer_of(x, 0, 255);
                break;
            case DTYPE_S8:
                warp->table.s8[c][level] = (int8_t)integer_of(x, -128, 127);
                break;
            case DTYPE_F16:
                warp->table.f16[c][level] = half_of(x);
                break;
            case DTYPE_F32:
                warp->table.f32[c][level] = (float)x;
                break;
            }
        }
    }
    sums_init(warp, params);
    fill_init(warp, params);
}
