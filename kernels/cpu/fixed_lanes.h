// The arithmetic of kernels/fixed.h in 16-bit lanes. Every CPU's vectors have these functions in
// addition to vector.h:
//   adds_s16, mulhrs_s16, fma_f32     as adds16 and mulhrs of fixed.h; a * b + c
//   weigh_pairs, step7_pairs          lanes hold two samples, the left one in the low byte: the sum
//                                     of both times the bytes of `weights`, which sum to 128, to 7
//                                     fraction bits centred on 128; the right sample minus the left
//                                     one, to 7 fraction bits
//   pack_u8, pack_level6              two vectors to one of bytes: saturated; level_of of each lane
//   pack_quarters                     kept_of(lane, 2)
//   store_zipped                      lanes of two vectors, alternating
//   halves_load, halves_store         two halves of a vector, at two addresses
//   halves_zip, halves_split          a0 a1 ... b0 b1 ... to a0 b0 a1 b1 ..., and back
//   store_triples                     3 * PIXELS bytes: a, b and c, alternating
//   gather_pairs                      two bytes of `row` per lane, indexed by the lane's bytes from
//                                     base[lane / 4] on; `reach`: a constant index of `reaches`
//   levels_widened, words_widened     FLOATS bytes, or 16-bit words, to lanes of 32 bits
//   load_half, store_half             FLOATS binary16 to floats, and back
//   max_u8, min_u8, abs_s16,
//   max_s16, min_s16                  of each lane
//   mulhi_s16, mulhi_u16              a * b >> 16
//   weigh_bytes                       lanes hold two bytes: low byte * `low` + high byte * `high`,
//                                     two constants
//   max_f32, min_f32                  a > b ? a : b; a < b ? a : b
//   select_s32                        a where the mask's lane is all ones, b where it is 0
//   lanes_bits                        bits of such a mask, lane 0 in the lowest bit
#ifndef FRAMED_KERNELS_CPU_FIXED_LANES_H
#define FRAMED_KERNELS_CPU_FIXED_LANES_H

#if defined(__aarch64__)
#include "kernels/cpu/vector_neon.h"
#else
#include "kernels/cpu/vector_x86.h"
#endif
#include "kernels/fixed.h"

// sample_load for words in memory order.
static inline FRAMED_HD vec_s16 samples_10bit(enum pixel_format format, vec_s16 words)
{
    return format == PIXEL_P010 ? (vec_s16)((vec_u16)words >> 6) : words & 1023;
}

// `weight`: the right tap's, Q15.
static inline FRAMED_HD vec_s16 horizontal8_lanes(vec_s16 pairs, vec_s16 weight)
{
    return weigh_pairs(pairs, all_s16(128)) + mulhrs_s16(step7_pairs(pairs), weight);
}

static inline FRAMED_HD vec_s16 horizontal10_lanes(vec_s16 left, vec_s16 right, vec_s16 weight)
{
    return (left << 5) - 16384 + mulhrs_s16((right - left) << 5, weight);
}

static inline FRAMED_HD vec_s16 vertical_lanes(vec_s16 top, vec_s16 bottom, vec_s16 weight)
{
    return top + mulhrs_s16(bottom - top, weight);
}

// struct yuv_to_rgb in registers.
struct rgb_registers {
    vec_s16 y, rv, gu, gv, bu, offset;
};

static inline FRAMED_HD struct rgb_registers rgb_registers_of(const struct yuv_to_rgb *c)
{
    return (struct rgb_registers){all_s16(c->y),  all_s16(c->rv), all_s16(c->gu),
                                  all_s16(c->gv), all_s16(c->bu), all_s16(c->offset)};
}

struct rgb6_lanes {
    vec_s16 r, g, b;
};

static inline FRAMED_HD vec_s16 luma6_lanes(const struct rgb_registers *c, vec_s16 y)
{
    return adds_s16(mulhrs_s16(y, c->y), c->offset);
}

static inline FRAMED_HD struct rgb6_lanes yuv_to_rgb6_lanes(const struct rgb_registers *c,
                                                            vec_s16 y, vec_s16 u, vec_s16 v)
{
    const vec_s16 yy = luma6_lanes(c, y);
    struct rgb6_lanes q;
    q.r = adds_s16(yy, mulhrs_s16(v, c->rv));
    q.g = adds_s16(adds_s16(yy, mulhrs_s16(u, c->gu)), mulhrs_s16(v, c->gv));
    q.b = adds_s16(adds_s16(yy, u), mulhrs_s16(u, c->bu));
    return q;
}

// Halved by a product, since v + 1 may overflow in lanes after the last pixel, whose content is
// arbitrary.
static inline FRAMED_HD vec_s16 channel6_lanes(vec_s16 v)
{
    return mulhrs_s16(v, all_s16(1 << 14)) + (128 * 64 + LEVEL6_HALF);
}

static inline FRAMED_HD vec_s16 gray6_lanes(struct rgb6_lanes q, const vec_s16 weight[3])
{
    return mulhrs_s16(q.r - LEVEL6_HALF, weight[0]) + mulhrs_s16(q.g - LEVEL6_HALF, weight[1]) +
           (mulhrs_s16(q.b - LEVEL6_HALF, weight[2]) + LEVEL6_HALF);
}

// kept_interpolated before clamping.
static inline FRAMED_HD vec_s16 kept_interpolated_lanes(vec_s16 v)
{
    return mulhrs_s16(v, all_s16(256)) + 128;
}

#endif
