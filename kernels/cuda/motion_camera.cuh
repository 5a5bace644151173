// Motion on CUDA: two cells at once, a camera's device memory, and the light of its picture.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH
#define FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/motion_step.h"

// --- the arithmetic of motion_step.h for two neighbouring cells at once, in the halves of a word.
// Levels are below 2^15, so the upper bit of a half is free: with it set, a half stays above any
// number that is subtracted from it, and the halves do not disturb each other.

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

// --- a camera's device memory, and a block's own memory

enum {
    MOTION_BATCH = 256, // cameras per launch
    // Threads per block: at least MOTION_COLUMNS_MAX / 2, since each row of cells has a thread for
    // two of them.
    MOTION_THREADS_ALONE = 1024, // with one block per camera, before Hopper
#ifndef __CUDACC__
    MOTION_THREADS = 160, // on the host threads are slow
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    MOTION_THREADS = MOTION_THREADS_ALONE,
    MOTION_ROOM = 1, // blocks that must fit on a multiprocessor, which bounds registers
#else
    MOTION_THREADS = 320,
    MOTION_ROOM = 3,
#endif
    MOTION_FEW = 16, // launches of up to so many cameras use more blocks, for shorter steps
    MOTION_BLOCKS_FEW = 8,
    MOTION_BLOCKS_MANY = 2,
    MOTION_WARPS_MOST = MOTION_THREADS_ALONE / LANES,
    MOTION_EIGHT = 8,  // cells that a thread reads at once
    MOTION_AHEAD = 2,  // eights whose sums it reads before it uses the first
    MOTION_DIGIT = 64, // base of the two digits of gains and shifts
};

// In device memory.
struct motion_places {
    const uint32_t *sums;
    struct motion_changes *changes;
    uint16_t *planes; // of struct motion_planes, per block, if shared memory has no room
};

// In device memory. The state's planes follow it.
struct motion_camera {
    struct motion_places at;
    alignas(64) struct motion motion;
    alignas(64) struct motion_state state;
};

struct motion_batch {
    struct motion_camera *camera[MOTION_BATCH];
};

// A block's own rows of cells, and the same with the neighbours' rows that it reads.
struct motion_rows {
    int y0, y1;
    int first, end;
};

static inline FRAMED_HD struct motion_rows motion_rows_of(const struct motion *m, int block,
                                                          int blocks)
{
    const int each = (m->rows + blocks - 1) / blocks;
    const int y0 = block * each < m->rows ? block * each : m->rows;
    const int y1 = y0 + each < m->rows ? y0 + each : m->rows;
    return {y0, y1, y0 > 0 ? y0 - 1 : 0, y1 < m->rows ? y1 + 1 : m->rows};
}

// 16-bit values, in rows of motion.stride cells.
struct motion_planes {
    uint16_t *age, *mark;         // of the block's own rows; marks are noise, and MARK_*
    uint16_t *mean, *slow, *fast; // with the neighbours' rows; slow and fast in the picture's
                                  // light, means with PAIR_UPPER
};

enum { MARK_NOISE = 0x1fff, MARK_EDGE = 1 << 13, MARK_FAST = 1 << 14, MARK_SLOW = 1 << 15 };

static_assert((int)NOISE_MAX <= (int)MARK_NOISE, "bits");

// Includes room for words that are read past the end but not used.
static inline FRAMED_HD size_t motion_planes_bytes(const struct motion *m, int blocks)
{
    const int each = (m->rows + blocks - 1) / blocks;
    return sizeof(uint16_t) * (size_t)(m->stride * (5 * each + 6)) + 16;
}

// A block's counts, in halves of a word: at most MOTION_CELLS_MAX.
enum motion_count {
    // Against slow, and then against fast: cells that show the light, then those clearly above and
    // those clearly below the background.
    COUNT_TELL_ABOVE,
    COUNT_BELOW,
    COUNT_LIGHT,                     // words per background
    COUNT_CHANGED = 2 * COUNT_LIGHT, // against fast, and against both
    COUNTS
};

// The number of cells with each digit of a gain, or of a shift.
struct light_digits {
    unsigned upper[MOTION_DIGIT], lower[MOTION_DIGIT];
};

// A block's memory; the cluster reads its counts.
struct alignas(16) motion_block {
    unsigned count[COUNTS];
    struct motion_step step;
    unsigned warp[MOTION_WARPS_MOST];
    struct motion_state head; // without the planes
    // If the light changed, per background: digits, cells above the background at all, cells far
    // from it in the light of the gain, and of the shift.
    struct light_digits gain[2], shift[2];
    unsigned over[2], far_gain[2], far_shift[2];
    int gain_found, shift_found;
};

// --- the light of a picture: counts over all cells, and the median gain and shift if it changed
//
// The reference finds these bit by bit, and for each bit counts the cells that are above their
// background in that light. Here each cell computes up to which gain it is above. These gains are
// counted by their upper digit; then those with the median's upper digit by their lower one. A
// light of gain one is the exception, because it is exact, while others are rounded: it has its own
// count.

// A thread's counts, each as 2^15.
struct light_pairs {
    unsigned tell, above, below;
};

static __device__ inline void light_count(struct light_pairs *counts, unsigned mean, unsigned ref)
{
    const unsigned tells = pair_tells(ref), even = pair_even(ref);
    const unsigned not_above = ((ref + even) | PAIR_UPPER) - mean + PAIR_UPPER;
    counts->tell = pair_count(tells, counts->tell);
    counts->above = pair_count(tells & ~not_above, counts->above);
    counts->below = pair_count(tells & ~(mean - (ref - even)), counts->below);
}

// Called by whole warps.
static __device__ inline void count_add(unsigned *to, unsigned count)
{
    count = warp_sum(count);
    if (threadIdx.x % LANES == 0 && count)
        atomicAdd(to, count);
}

static __device__ inline void light_add(unsigned to[COUNT_LIGHT], const struct light_pairs *counts)
{
    count_add(&to[COUNT_TELL_ABOVE], counts->tell >> 15 | counts->above >> 15 << 16);
    count_add(&to[COUNT_BELOW], counts->below >> 15);
}

// --- another light

// Returns up to which gain a cell is above its background: the largest g whose predecessor lights
// the background below the mean, or 0 if none does.
static __device__ inline unsigned gain_of(int mean, int ref)
{
    const unsigned above = 32 * (unsigned)(ref - CELL_BLACK), below = CELL_BLACK;
    if (mean <= (int)below)
        return 0;
    const unsigned half = ((unsigned)mean - below + 1) / 2; // above * gain >> 16 is less than this
    const unsigned gain = ((half << 16) - 1) / above + 1;
    return gain < 1 << GAIN_BITS ? gain : (1 << GAIN_BITS) - 1;
}

// Returns the same for a shift, in steps from SHIFT_MIN, or -1 if none does.
static __device__ inline int shift_of(int mean, int ref)
{
    const int most = mean - ref - SHIFT_MIN + SHIFT_STEP - 1; // maximum of the step's shift
    if (mean == 0 || most < 0)
        return -1;
    return min(most / SHIFT_STEP, (1 << SHIFT_BITS) - 1);
}

// Counts one digit of the block's gains and shifts.
static __device__ inline void digits_count(const struct motion *m, const struct motion_rows *rows,
                                           const struct motion_planes *planes, const uint16_t *refs,
                                           struct motion_block *block, int of, bool lower)
{
    const int ahead = (rows->y0 - rows->first) * m->stride;
    const int cells = (rows->y1 - rows->y0) * m->stride;
    struct light_digits *const gains = &block->gain[of], *const shifts = &block->shift[of];
    unsigned over = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < cells; i += blockDim.x) {
        const int mean = planes->mean[ahead + i] & 0x7fff, ref = refs[ahead + i];
        if (!cell_tells(ref))
            continue;
        const int gain = (int)gain_of(mean, ref), shift = shift_of(mean, ref);
        if (!lower) {
            over += mean > ref;
            if (gain >= GAIN_MIN)
                atomicAdd(&gains->upper[gain / MOTION_DIGIT], 1u);
            if (shift >= 0)
                atomicAdd(&shifts->upper[shift / MOTION_DIGIT], 1u);
        } else {
            if (gain / MOTION_DIGIT == block->gain_found)
                atomicAdd(&gains->lower[gain % MOTION_DIGIT], 1u);
            if (shift >= 0 && shift / MOTION_DIGIT == block->shift_found)
                atomicAdd(&shifts->lower[shift % MOTION_DIGIT], 1u);
        }
    }
    if (!lower && over)
        atomicAdd(&block->over[of], over);
}

// Returns the last digit such that it and larger ones, with `*behind` more, have more than half of
// `tell` cells, or -1. Adds the cells of larger digits to `*behind`. Called by a whole warp.
static __device__ inline int digit_find(const unsigned digits[MOTION_DIGIT], unsigned tell,
                                        unsigned *behind)
{
    const int lane = threadIdx.x % LANES;
    int found = -1;
    for (int half = 1; half >= 0 && found < 0; half--) {
        unsigned from = cluster_sum(&digits[half * LANES + lane]);
        for (int by = 1; by < LANES; by *= 2) {
            const unsigned other = __shfl_down_sync(~0u, from, by);
            from += lane + by < LANES ? other : 0;
        }
        const unsigned more = __ballot_sync(~0u, 2 * (*behind + from) > tell);
        const int last = 31 - __clz((int)more);
        const unsigned larger = __shfl_sync(~0u, from, (last + 1) % LANES);
        const unsigned all = __shfl_sync(~0u, from, 0);
        found = last < 0 ? -1 : half * LANES + last;
        *behind += last < 0 ? all : last < LANES - 1 ? larger : 0;
    }
    return found;
}

// Finds the median gain and shift: the block's gain_found and shift_found, in every block.
static __device__ inline void medians_find(const struct motion *m, const struct motion_rows *rows,
                                           const struct motion_planes *planes, const uint16_t *refs,
                                           struct motion_block *block, int of, unsigned tell)
{
    const int warp = threadIdx.x / LANES;
    unsigned gains_behind = 0, shifts_behind = 0;
    digits_count(m, rows, planes, refs, block, of, false);
    cluster_sync();
    if (warp == 0) {
        const int gain = digit_find(block->gain[of].upper, tell, &gains_behind);
        const int shift = digit_find(block->shift[of].upper, tell, &shifts_behind);
        block->gain_found = gain;
        block->shift_found = shift;
    }
    __syncthreads();
    digits_count(m, rows, planes, refs, block, of, true);
    cluster_sync();
    if (warp == 0) {
        const int gain = block->gain_found, shift = block->shift_found;
        int found = GAIN_MIN, step = 0;
        if (gain >= 0)
            found = gain * MOTION_DIGIT + digit_find(block->gain[of].lower, tell, &gains_behind);
        if (found == GAIN_ONE || found == GAIN_ONE + 1)
            found = GAIN_ONE + (2 * cluster_sum(&block->over[of]) > tell);
        if (shift >= 0)
            step = shift * MOTION_DIGIT + digit_find(block->shift[of].lower, tell, &shifts_behind);
        __syncwarp();
        block->gain_found = found;
        block->shift_found = SHIFT_MIN + step * SHIFT_STEP;
    }
    __syncthreads();
}

// Like motion_light_median in the reference.
static __device__ inline struct motion_light
light_median(const struct motion *m, const struct motion_rows *rows,
             const struct motion_planes *planes, const uint16_t *refs, struct motion_block *block,
             int of, unsigned tell)
{
    medians_find(m, rows, planes, refs, block, of, tell);
    const struct motion_light gain = {block->gain_found, 0}, shift = {GAIN_ONE, block->shift_found};
    const int ahead = (rows->y0 - rows->first) * m->stride;
    const int cells = (rows->y1 - rows->y0) * m->stride;
    unsigned far_gain = 0, far_shift = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < cells; i += blockDim.x) {
        const int mean = planes->mean[ahead + i] & 0x7fff, ref = refs[ahead + i];
        far_gain += cell_tells(ref) && abs(mean - cell_lit(ref, gain)) > CELL_FAR;
        far_shift += cell_tells(ref) && abs(mean - cell_lit(ref, shift)) > CELL_FAR;
    }
    count_add(&block->far_gain[of], far_gain);
    count_add(&block->far_shift[of], far_shift);
    cluster_sync();
    return cluster_sum(&block->far_shift[of]) < cluster_sum(&block->far_gain[of]) ? shift : gain;
}

// Against both backgrounds.
struct motion_lights {
    struct motion_light slow, fast;
};

static __device__ inline bool light_is_same(struct motion_light light)
{
    return light.gain == GAIN_ONE && light.shift == 0;
}

// Converts the background to the changed light, and returns that light.
static __device__ inline struct motion_light
light_follow(const struct motion *m, const struct motion_rows *rows,
             const struct motion_planes *planes, uint16_t *refs, struct motion_block *block, int of,
             unsigned tell)
{
    const struct motion_light light = light_median(m, rows, planes, refs, block, of, tell);
    for (int i = threadIdx.x; i < (rows->end - rows->first) * m->stride; i += blockDim.x)
        refs[i] = (uint16_t)cell_lit(refs[i], light);
    return light;
}

// Like light_of in the reference. Called after the cluster has counted.
static __device__ inline struct motion_lights lights_find(const struct motion *m,
                                                          const struct motion_rows *rows,
                                                          const struct motion_planes *planes,
                                                          struct motion_block *block)
{
    enum { WORDS = 2 * COUNT_LIGHT };
    const int lane = threadIdx.x % LANES, rank = lane / WORDS;
    struct motion_lights lights = {{GAIN_ONE, 0}, {GAIN_ONE, 0}};
    unsigned count = rank < cluster_size() ? *cluster_at(&block->count[lane % WORDS], rank) : 0;
    unsigned tell[2];
    bool other[2];
#pragma unroll
    for (int by = WORDS; by < LANES; by *= 2)
        count += __shfl_xor_sync(~0u, count, by);
#pragma unroll
    for (int of = 0; of < 2; of++) {
        const unsigned both = __shfl_sync(~0u, count, of * COUNT_LIGHT + COUNT_TELL_ABOVE);
        tell[of] = both & 0xffff;
        other[of] = 2 * (both >> 16) > tell[of] ||
                    2 * __shfl_sync(~0u, count, of * COUNT_LIGHT + COUNT_BELOW) > tell[of];
    }
    if (!other[0] && !other[1])
        return lights;
    for (int i = threadIdx.x; i < 2 * MOTION_DIGIT; i += blockDim.x) {
        const int of = i / MOTION_DIGIT, digit = i % MOTION_DIGIT;
        block->gain[of].upper[digit] = block->gain[of].lower[digit] = 0;
        block->shift[of].upper[digit] = block->shift[of].lower[digit] = 0;
    }
    if (threadIdx.x < 2)
        block->over[threadIdx.x] = block->far_gain[threadIdx.x] = block->far_shift[threadIdx.x] = 0;
    __syncthreads();
    if (other[0])
        lights.slow = light_follow(m, rows, planes, planes->slow, block, 0, tell[0]);
    if (other[1])
        lights.fast = light_follow(m, rows, planes, planes->fast, block, 1, tell[1]);
    __syncthreads();
    return lights;
}

#endif
