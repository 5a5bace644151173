// The light of a picture: counts over all cells, and the median gain and shift if it changed.
//
// The reference finds these bit by bit, and for each bit counts the cells that are above their
// background in that light. Here each cell computes up to which gain it is above. These gains are
// counted by their upper digit; then those with the median's upper digit by their lower one. A
// light of gain one is the exception, because it is exact, while others are rounded: it has its own
// count.
#ifndef FRAMED_KERNELS_CUDA_MOTION_LIGHT_CUH
#define FRAMED_KERNELS_CUDA_MOTION_LIGHT_CUH

#include "kernels/cuda/motion_camera.cuh"

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
