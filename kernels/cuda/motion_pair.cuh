// The arithmetic of motion_step.h for two neighbouring cells at once, in the halves of a word.
// Levels are below 2^15, so the upper bit of a half is free: with it set, a half stays above any
// number that is subtracted from it, and the halves do not disturb each other.
#ifndef FRAMED_KERNELS_CUDA_MOTION_PAIR_CUH
#define FRAMED_KERNELS_CUDA_MOTION_PAIR_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/motion_step.h"

static constexpr unsigned PAIR_UPPER = 0x80008000u; // the halves' upper bits

// Returns a number from 0 to 65535 in both halves.
static __device__ constexpr unsigned pair_of(int number)
{
    return (unsigned)number * 0x10001u;
}

static __device__ inline unsigned pair_low(unsigned pair)
{
    return pair & 0xffff;
}

static __device__ inline unsigned pair_high(unsigned pair)
{
    return pair >> 16;
}

// Combines the upper halves of two 32-bit numbers.
static __device__ inline unsigned pair_upper(unsigned low, unsigned high)
{
    return __byte_perm(low, high, 0x7632);
}

// Combines bits 8 to 23 of two 32-bit numbers.
static __device__ inline unsigned pair_middle(unsigned low, unsigned high)
{
    return __byte_perm(low, high, 0x6521);
}

// Returns a >= b in the upper bits; the other bits have no meaning. b is less than 2^15.
static __device__ inline unsigned pair_reaches(unsigned a, unsigned b)
{
    return (a | PAIR_UPPER) - b;
}

static __device__ inline unsigned pair_distance(unsigned a, unsigned b)
{
    return __vmaxu2(a, b) - __vminu2(a, b);
}

static __device__ inline unsigned pair_mulhi(unsigned pair, unsigned factor)
{
    return pair_upper(pair_low(pair) * factor, pair_high(pair) * factor);
}

static __device__ inline unsigned pair_shifted(unsigned pair, int bits)
{
    return pair >> bits & pair_of(0xffff >> bits);
}

// Adds the number of set upper bits to `count`, each as 2^15. The other bits of `upper` must be 0.
static __device__ inline unsigned pair_count(unsigned upper, unsigned count)
{
    return __dp2a_lo(upper, 0x0101u, count);
}

// --- motion

// Returns cell_difference + DIFFERENCE_MAX, given mean - background + 2^15.
static __device__ inline unsigned pair_difference(unsigned offset)
{
    constexpr int least = 0x8000 - DIFFERENCE_MAX;
    return __viaddmin_u16x2(__vmaxu2(offset, pair_of(least)), pair_of(0x10000 - least),
                            pair_of(2 * DIFFERENCE_MAX));
}

// Returns cell_tells in the upper bits.
static __device__ inline unsigned pair_tells(unsigned background)
{
    return pair_reaches(background, pair_of(CELL_DIM)) &
           pair_reaches(pair_of(CELL_BRIGHT), background) & PAIR_UPPER;
}

// Like cell_even.
static __device__ inline unsigned pair_even(unsigned background)
{
    return pair_shifted(background, 8) + pair_shifted(background, 9);
}

// Returns mulhi by RANGE_SHARE.
static __device__ inline unsigned pair_range(unsigned range)
{
    static_assert(RANGE_SHARE % 256 == 0 && RANGE_SHARE < 65536, "a byte");
    constexpr unsigned share = RANGE_SHARE / 256;
    return pair_middle(__dp2a_lo(range, share, 0u), __dp2a_lo(range, share << 8, 0u));
}

// Returns the tolerance of cell_changed against the fast background, without the parts of range and
// light. It never saturates. Against the slow background it is larger by pair_tolerance_more.
static __device__ inline unsigned pair_tolerance(unsigned noise, unsigned threshold_scale)
{
    const unsigned wanted = pair_of(FAST_THRESHOLD) + pair_shifted(noise * 5, 5);
    return pair_middle(pair_low(wanted) * threshold_scale, pair_high(wanted) * threshold_scale);
}

static __device__ inline unsigned pair_tolerance_more(unsigned threshold_scale)
{
    static_assert((SLOW_THRESHOLD - FAST_THRESHOLD) % 256 == 0, "scaled without a rest");
    return pair_of((SLOW_THRESHOLD - FAST_THRESHOLD) / 256) * threshold_scale;
}

// Returns the additional tolerance in another light.
static __device__ inline unsigned pair_tolerance_light(unsigned lit, struct motion_light light)
{
    return pair_mulhi(lit, abs(light.gain - GAIN_ONE) * 8) + pair_of(abs(light.shift) >> 3);
}

// Returns, in the upper bits, whether the cell is unchanged. `differences`: the sum of nine
// pair_difference. Up to nine times their maximum, mulhi by NINTH divides by nine.
static __device__ inline unsigned pair_unchanged(unsigned differences, unsigned tolerance)
{
    const unsigned distance = pair_distance(differences, pair_of(9 * DIFFERENCE_MAX));
    return pair_reaches(__vminu2(tolerance, pair_of(DIFFERENCE_MAX)) * 9 + pair_of(8), distance);
}

// Returns, in the upper bits, whether the cell has no edge. `range` comes from pair_range.
static __device__ inline unsigned pair_even_around(unsigned uneven, unsigned range, unsigned lit)
{
    static_assert(EDGE_SHARE == 65536 >> 3, "a shift");
    const unsigned above = __vmaxu2(lit, pair_of(CELL_BLACK)) - pair_of(CELL_BLACK);
    return pair_reaches(pair_shifted(above, 3) + range, __vminu2(uneven, pair_of(0x7fff)));
}

// Like cell_average. `offset`: the distance to the target, plus 2^15. The halves of `share` are
// less than 2^15.
static __device__ inline unsigned pair_average(unsigned average, unsigned offset, unsigned share,
                                               unsigned rounding)
{
    const unsigned way = offset ^ PAIR_UPPER; // signed
    const unsigned low = __byte_perm(average, rounding, 0x1054);
    const unsigned high = __byte_perm(average, rounding, 0x3254);
    return pair_upper(low + (unsigned)((int)(int16_t)way * (int)pair_low(share)),
                      high + (unsigned)(((int)way >> 16) * (int)pair_high(share)));
}

// Like cell_noise; the shares are in both halves.
static __device__ inline unsigned pair_noise(unsigned noise, unsigned residual, unsigned share_up,
                                             unsigned share_down, unsigned rounding)
{
    const unsigned limit = pair_of(RESIDUAL_LEAST) + pair_shifted(noise * 6, NOISE_BITS);
    const unsigned capped = __vminu2(__vminu2(residual, limit), pair_of(RESIDUAL_MAX));
    const unsigned offset = pair_reaches(capped << NOISE_BITS, noise);
    const unsigned up = pair_mask(offset); // also set if equal, which changes nothing
    const unsigned share = (share_up & up) | (share_down & ~up);
    return __vminu2(__vmaxu2(pair_average(noise, offset, share, rounding), pair_of(NOISE_MIN)),
                    pair_of(NOISE_MAX));
}

#endif
