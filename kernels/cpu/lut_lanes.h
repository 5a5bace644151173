// Applies a LUT to levels in planes, for the templates of the warp.
#ifndef FRAMED_KERNELS_CPU_LUT_LANES_H
#define FRAMED_KERNELS_CPU_LUT_LANES_H

#include "kernels/lut.h"

#if defined(__aarch64__)
static inline void lut_planes(const struct lut *lut, uint8_t *r, uint8_t *g, uint8_t *b, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t level[3] = {r[i], g[i], b[i]};
        lut_pixel(lut, level);
        r[i] = level[0];
        g[i] = level[1];
        b[i] = level[2];
    }
}
#else
#include "kernels/cpu/vector_x86.h"

// In AVX2 and AVX-512, half a register of pixels at a time: positions and weights in 16-bit lanes,
// then four pixels (AVX2: two) per register. A pixel's 16 bytes of a lut_plane are multiplied by
// the bytes of its weights: high parts, and low parts of 7 bits.
//
// Pixels in 16-bit lanes are in the order of packing two vectors of 32-bit lanes: each 128 bits
// hold four of the first and four of the second.

enum {
    LUT_RUN = 2 * FLOATS,    // pixels whose places are computed together
    LUT_CHUNK = 8 * LUT_RUN, // pixels that are looked up together
    QUARTERS = VECTOR_BYTES / 16,
};

// Places of pixels in the planes: the offset of the cell in bytes; and for each side of the cell
// along red, the weights of its four corners as of weight_bytes.
struct lut_places {
    alignas(64) uint32_t offset[LUT_CHUNK];
    alignas(64) uint64_t weight[2][LUT_CHUNK]; // two pixels per 128 bits: see weights_store
};

// --- positions

static inline FRAMED_HD vec_u16 min_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)MM(min_epu16)((mm)a, (mm)b);
}

static inline FRAMED_HD vec_u16 max_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)MM(max_epu16)((mm)a, (mm)b);
}

// Saturates at 0.
static inline FRAMED_HD vec_u16 subs_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)MM(subs_epu16)((mm)a, (mm)b);
}

// a * b >> WEIGHT_BITS for weights.
static inline FRAMED_HD vec_u16 mul_weights(vec_u16 a, vec_u16 b)
{
    return mulhi_u16(a << 1, b << 1);
}

// Cells and weights of levels along one axis.
static inline FRAMED_HD void axis_place(const struct lut *lut, int c, bool linear, vec_u16 level,
                                        vec_u16 *cell, vec_u16 *weight)
{
    if (linear) {
        const vec_u16 at = level * (uint16_t)(lut->points - 1);
        const vec_u16 whole = (at + 1 + (at >> 8)) >> 8; // at / 255
        *cell = min_u16(whole, (vec_u16)all_s16((int16_t)(lut->points - 2)));
        const vec_u16 rest = at - ((*cell << 8) - *cell);
        *weight = (rest << 6) + ((rest + 2) >> 2); // rest * WEIGHT_ONE / 255, rounded
        return;
    }
    alignas(64) uint16_t levels[LUT_RUN], cells[LUT_RUN], weights[LUT_RUN];
    store_u8(levels, (vec_u8)level);
    for (int i = 0; i < LUT_RUN; i++) {
        cells[i] = lut->cell[c][levels[i]];
        weights[i] = lut->weight[c][levels[i]];
    }
    *cell = (vec_u16)load_u8(cells);
    *weight = (vec_u16)load_u8(weights);
}

static inline FRAMED_HD void offsets_store(uint32_t *to, const struct lut *lut,
                                           const vec_u16 cell[3])
{
    const mm step = (mm)all_s32(lut->step_red | 1 << 16);
    const mm rest = (mm)(cell[1] * (uint16_t)lut->step_green + cell[2]), red = (mm)cell[0];
    const mm low = MM(madd_epi16)(MM(unpacklo_epi16)(red, rest), step);
    const mm high = MM(madd_epi16)(MM(unpackhi_epi16)(red, rest), step);
    store_u8(to, (vec_u8)((vec_u32)low << 4));
    store_u8(to + FLOATS, (vec_u8)((vec_u32)high << 4));
}

static inline FRAMED_HD void trilinear_lanes(const vec_u16 at[3], vec_u16 weight[2][4])
{
    const vec_u16 g = at[1], b = at[2], both = mul_weights(g, b);
    const vec_u16 near_far[4] = {WEIGHT_ONE - g - b + both, b - both, g - both, both};
    for (int i = 0; i < 4; i++) {
        weight[1][i] = mul_weights(near_far[i], at[0]);
        weight[0][i] = near_far[i] - weight[1][i];
    }
}

static inline FRAMED_HD void tetrahedral_lanes(const vec_u16 at[3], vec_u16 weight[2][4])
{
    const vec_u16 r = at[0], g = at[1], b = at[2];
    const vec_u16 rg = max_u16(r, g), rb = max_u16(r, b), gb = max_u16(g, b);
    weight[0][0] = WEIGHT_ONE - max_u16(rg, b);
    weight[0][1] = subs_u16(b, rg);
    weight[0][2] = subs_u16(g, rb);
    weight[0][3] = subs_u16(min_u16(g, b), r);
    weight[1][0] = subs_u16(r, gb);
    weight[1][1] = subs_u16(min_u16(r, b), g);
    weight[1][2] = subs_u16(min_u16(r, g), b);
    weight[1][3] = min_u16(min_u16(r, g), b);
}

// Stores the first FLOATS pixels, then the others; each half starts with 0, 1, 4, 5, 8, 9, ...
static inline FRAMED_HD void weights_store(uint64_t *to, const vec_u16 w[4])
{
    const mm a = (mm)weight_bytes(w[0]), b = (mm)weight_bytes(w[1]);
    const mm c = (mm)weight_bytes(w[2]), d = (mm)weight_bytes(w[3]);
    const mm ab[2] = {MM(unpacklo_epi16)(a, b), MM(unpackhi_epi16)(a, b)};
    const mm cd[2] = {MM(unpacklo_epi16)(c, d), MM(unpackhi_epi16)(c, d)};
    for (int half = 0; half < 2; half++) {
        store_u8(to + half * FLOATS, (vec_u8)MM(unpacklo_epi32)(ab[half], cd[half]));
        store_u8(to + half * FLOATS + FLOATS / 2, (vec_u8)MM(unpackhi_epi32)(ab[half], cd[half]));
    }
}

// Makes LUT_RUN pixels from the chunk's pixel i on.
static inline FRAMED_HD void places_make(struct lut_places *places, int i, const struct lut *lut,
                                         bool linear, bool tetrahedral, const vec_u16 level[3])
{
    vec_u16 cell[3], at[3], weight[2][4];
    for (int c = 0; c < 3; c++)
        axis_place(lut, c, linear, level[c], &cell[c], &at[c]);
    offsets_store(places->offset + i, lut, cell);
    if (tetrahedral)
        tetrahedral_lanes(at, weight);
    else
        trilinear_lanes(at, weight);
    for (int side = 0; side < 2; side++)
        weights_store(places->weight[side] + i, weight[side]);
}

// --- sums

// Loads 16 bytes for every fourth pixel.
static inline FRAMED_HD mm planes_load(const uint8_t *plane, const uint32_t *offset)
{
    __m128i quarter[QUARTERS];
    for (int i = 0; i < QUARTERS; i++)
        quarter[i] = _mm_loadu_si128((const void *)(plane + offset[4 * i]));
    return quarters_join(quarter);
}

// Repeats the high or low bytes of the first or second pixel of each 128 bits four times.
static inline FRAMED_HD mm bytes_spread(mm weights, int second, int high)
{
    const int32_t bytes = 0x06040200 + 0x01010101 * (8 * second + high);
    return MM(shuffle_epi8)(weights, (mm)all_s32(bytes));
}

// FLOATS pixels from the chunk's pixel i on: words of R, G, B and one arbitrary byte.
static inline FRAMED_HD mm places_look_up(const struct lut_places *places, int i,
                                          const uint8_t *near, const uint8_t *far)
{
    mm sum[4];
    for (int k = 0; k < 4; k++) {
        const uint32_t *offset = places->offset + i + k;
        const int at = i + k / 2 * (FLOATS / 2);
        const mm w0 = (mm)load_u8(places->weight[0] + at);
        const mm w1 = (mm)load_u8(places->weight[1] + at);
        sum[k] = lut_sums(bytes_spread(w0, k % 2, 1), bytes_spread(w0, k % 2, 0),
                          bytes_spread(w1, k % 2, 1), bytes_spread(w1, k % 2, 0),
                          planes_load(near, offset), planes_load(far, offset));
    }
    const mm low = MM(packs_epi32)(sum[0], sum[1]), high = MM(packs_epi32)(sum[2], sum[3]);
    return MM(packus_epi16)(low, high);
}

// --- planes

// LUT_RUN levels of a plane to 16-bit lanes, in the order of packing.
static inline FRAMED_HD mm plane_load(const uint8_t *at)
{
    return MM(packus_epi32)((mm)levels_widened(at), (mm)levels_widened(at + FLOATS));
}

static inline FRAMED_HD void planes_chunk(const struct lut *lut, bool linear, bool tetrahedral,
                                          uint8_t *const plane[3], int from, int n)
{
    struct lut_places places;
    const uint8_t *near = (const uint8_t *)lut->plane;
    const uint8_t *far = near + (ptrdiff_t)lut->step_red * LUT_PLANE;
    for (int i = 0; i < n; i += LUT_RUN) {
        vec_u16 level[3];
        for (int c = 0; c < 3; c++)
            level[c] = (vec_u16)plane_load(plane[c] + from + i);
        places_make(&places, i, lut, linear, tetrahedral, level);
    }
    for (int i = 0; i < n; i += FLOATS)
        words_part(plane[0] + from + i, plane[1] + from + i, plane[2] + from + i,
                   places_look_up(&places, i, near, far));
}

// In place, for planes R, G and B. May write pixels after the last one, up to a whole LUT_RUN.
static inline void lut_planes(const struct lut *lut, uint8_t *r, uint8_t *g, uint8_t *b, int n)
{
    uint8_t *const plane[3] = {r, g, b};
    const bool tetrahedral = lut->interpolation == LUT_TETRAHEDRAL;
    for (int i = 0; i < n; i += LUT_CHUNK) {
        const int m = n - i < LUT_CHUNK ? n - i : LUT_CHUNK;
        if (lut->linear && !tetrahedral)
            planes_chunk(lut, true, false, plane, i, m);
        else if (lut->linear)
            planes_chunk(lut, true, true, plane, i, m);
        else
            planes_chunk(lut, false, tetrahedral, plane, i, m);
    }
}
#endif

#endif
