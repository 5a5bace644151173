// The kernel of motion. A block has a camera; a thread has a column of cells, or a share of its
// rows, so that what neighbours have rolls down the column.
//
// The cells that moved are in ascending order without a sort: a warp has 32 neighbouring cells of
// a row, whose votes are a word of a map of all cells, and a prefix sum over the words' counts says
// where each word's cells go in the list.
//
// The reference looks for the median gain and shift bit by bit, and for each bit counts the cells
// that are above their background in that light. Here each cell says up to which gain it is above,
// once; these are counted in bins, and a prefix sum over the bins finds the same gain. A light of
// gain one is the exception, since it is exact, where others are rounded: it has its own count.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CUH
#define FRAMED_KERNELS_CUDA_MOTION_CUH

#include "kernels/cuda/motion_camera.cuh"

// --- sums over a block

// Called by whole warps, whose lanes' values are added.
static __device__ inline void block_add(unsigned *to, unsigned value)
{
    value = warp_sum(value);
    if (threadIdx.x % LANES == 0 && value)
        atomicAdd(to, value);
}

// The sum of `value` over the threads ahead of this one. Called by all.
static __device__ inline unsigned block_prefix(struct motion_block *block, unsigned value,
                                               unsigned *ret_total)
{
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    unsigned sum = value, before = 0, total = 0;
#pragma unroll
    for (int by = 1; by < LANES; by *= 2) {
        const unsigned other = __shfl_up_sync(~0u, sum, by);
        sum += lane >= by ? other : 0;
    }
    if (lane == LANES - 1)
        block->warp[warp] = sum;
    __syncthreads();
    for (int i = 0; i < MOTION_WARPS; i++) {
        before += i < warp ? block->warp[i] : 0;
        total += block->warp[i];
    }
    __syncthreads();
    *ret_total = total;
    return before + sum - value;
}

// --- light

// Up to which gain a cell is above its background: the largest g whose predecessor lights the
// background below the mean; 0 where none does.
static __device__ inline unsigned gain_of(int mean, int ref)
{
    const unsigned above = 32 * (unsigned)(ref - CELL_BLACK), below = CELL_BLACK;
    if (mean <= (int)below)
        return 0;
    const unsigned half = ((unsigned)mean - below + 1) / 2; // above * gain >> 16 is less than that
    const unsigned gain = ((half << 16) - 1) / above + 1;
    return gain < GAINS ? gain : GAINS - 1;
}

// Likewise of a shift, in steps from SHIFT_MIN; -1 where none does.
static __device__ inline int shift_of(int mean, int ref)
{
    const int most = mean - ref - SHIFT_MIN + SHIFT_STEP - 1; // that the step's shift is
    if (mean == 0 || most < 0)
        return -1;
    return most / SHIFT_STEP < SHIFTS ? most / SHIFT_STEP : SHIFTS - 1;
}

// The last bin from which on more than half of `tell` cells lie, or `otherwise`.
static __device__ inline void median_find(struct motion_block *block, const unsigned *bins, int n,
                                          unsigned tell, int *ret_bin)
{
    const int each = (n + MOTION_THREADS - 1) / MOTION_THREADS;
    const int first = threadIdx.x * each, end = min(first + each, n);
    unsigned sum = 0, total;
    for (int i = first; i < end; i++)
        sum += bins[i];
    unsigned before = block_prefix(block, sum, &total);
    for (int i = first; i < end; i++) {
        const unsigned behind = before + bins[i];
        if (2 * (total - before) > tell && 2 * (total - behind) <= tell)
            *ret_bin = i;
        before = behind;
    }
}

static __device__ inline void medians_find(const struct motion *m, const struct motion_strip *strip,
                                           const uint16_t *means, const uint16_t *refs,
                                           const struct light_counts *counts,
                                           struct motion_block *block)
{
    for (int i = threadIdx.x; i < GAINS; i += MOTION_THREADS)
        block->gains[i] = 0;
    for (int i = threadIdx.x; i < SHIFTS; i += MOTION_THREADS)
        block->shifts[i] = 0;
    if (threadIdx.x == 0) {
        block->gain = GAIN_MIN;
        block->shift = 0;
    }
    __syncthreads();
    for (int y = strip->y0; y < strip->y1; y++) {
        const int mean = means[y * m->stride + strip->x], ref = refs[y * m->stride + strip->x];
        if (!cell_tells(ref))
            continue;
        const unsigned gain = gain_of(mean, ref);
        const int shift = shift_of(mean, ref);
        if (gain >= GAIN_MIN)
            atomicAdd(&block->gains[gain], 1u);
        if (shift >= 0)
            atomicAdd(&block->shifts[shift], 1u);
    }
    __syncthreads();
    median_find(block, block->gains, GAINS, counts->tell, &block->gain);
    median_find(block, block->shifts, SHIFTS, counts->tell, &block->shift);
    __syncthreads();
    if (threadIdx.x == 0) {
        if (block->gain == GAIN_ONE || block->gain == GAIN_ONE + 1)
            block->gain = GAIN_ONE + (2 * counts->over > counts->tell);
        block->shift = SHIFT_MIN + block->shift * SHIFT_STEP;
    }
    __syncthreads();
}

// As light_of in the reference.
static __device__ inline struct motion_light
light_find(const struct motion *m, const struct motion_strip *strip, const uint16_t *means,
           const uint16_t *refs, struct light_counts *counts, struct motion_block *block)
{
    if (2 * counts->above <= counts->tell && 2 * counts->below <= counts->tell)
        return {GAIN_ONE, 0};
    medians_find(m, strip, means, refs, counts, block);
    const struct motion_light gain = {block->gain, 0}, shift = {GAIN_ONE, block->shift};
    unsigned far_gain = 0, far_shift = 0;
    for (int y = strip->y0; y < strip->y1; y++) {
        const int mean = means[y * m->stride + strip->x], ref = refs[y * m->stride + strip->x];
        far_gain += cell_tells(ref) && abs(mean - cell_lit(ref, gain)) > CELL_FAR;
        far_shift += cell_tells(ref) && abs(mean - cell_lit(ref, shift)) > CELL_FAR;
    }
    block_add(&counts->far_gain, far_gain);
    block_add(&counts->far_shift, far_shift);
    __syncthreads();
    return counts->far_shift < counts->far_gain ? shift : gain;
}

static __device__ inline void light_apply(const struct motion *m, const struct motion_strip *strip,
                                          uint16_t *refs, struct motion_light light)
{
    if (light.gain == GAIN_ONE && light.shift == 0)
        return;
    for (int y = strip->y0; y < strip->y1; y++) {
        uint16_t *ref = &refs[y * m->stride + strip->x];
        *ref = (uint16_t)cell_lit(*ref, light);
    }
}

// --- means

static __device__ inline void light_count(struct light_counts *counts, int mean, int ref)
{
    const bool tells = cell_tells(ref);
    counts->tell += tells;
    counts->over += tells && mean > ref;
    counts->above += tells && mean > ref + cell_even(ref);
    counts->below += tells && mean < ref - cell_even(ref);
}

// Brings the cells' means and backgrounds, and counts what they tell of the light.
static __device__ inline void means_make(const struct motion_camera *camera,
                                         const struct motion_strip *strip,
                                         const struct motion_planes *planes,
                                         struct motion_block *block)
{
    const struct motion *__restrict__ m = camera->motion;
    const uint16_t *slow = motion_plane(m, camera->state, MOTION_SLOW);
    const uint16_t *fast = motion_plane(m, camera->state, MOTION_FAST);
    const int stride = m->stride, columns = m->columns, shift = m->sum_shift, x = strip->x;
    const bool dead = x >= columns;
    const uint32_t mean_of[2] = {dead ? 0 : m->mean_of[0][x], dead ? 0 : m->mean_of[1][x]};
    struct light_counts counts[2] = {};
#pragma unroll MOTION_AHEAD
    for (int y = strip->y0; y < strip->y1; y++) {
        const int i = y * stride + x;
        const uint32_t sum = dead ? 0 : camera->sums[y * columns + x];
        const int mean = cell_mean(sum, shift, mean_of[m->row_tall[y]], m->mask[i]);
        planes->mean[i] = (uint16_t)mean;
        planes->slow[i] = slow[i];
        planes->fast[i] = fast[i];
        light_count(&counts[0], mean, slow[i]);
        light_count(&counts[1], mean, fast[i]);
    }
    for (int i = 0; i < 2; i++) { // each is less than 65536 in a block
        const unsigned tell = warp_sum(counts[i].tell | counts[i].over << 16);
        const unsigned off = warp_sum(counts[i].above | counts[i].below << 16);
        if (threadIdx.x % LANES == 0) {
            atomicAdd(&block->light[i].tell, tell & 0xffff);
            atomicAdd(&block->light[i].over, tell >> 16);
            atomicAdd(&block->light[i].above, off & 0xffff);
            atomicAdd(&block->light[i].below, off >> 16);
        }
    }
}

// --- changes

// What three cells of a row have, or those of three rows.
struct motion_around {
    int slow, fast;     // sums of the differences
    int least, largest; // of lit slow
    int under, over;    // the ends of whole differences from it
};

// Cells x - 1, x and x + 1 of row y, or those of the border. Other threads mark them meanwhile.
static __device__ inline struct motion_around row_around(const struct motion_planes *planes,
                                                         const struct motion *m, int x, int y)
{
    struct motion_around a = {0, 0, CELL_WHITE, 0, CELL_WHITE, -CELL_WHITE};
    const int row = clamp_to(y, 0, m->rows - 1) * m->stride;
#pragma unroll
    for (int dx = -1; dx <= 1; dx++) {
        const int i = row + clamp_to(x + dx, 0, m->columns - 1);
        const int mean = planes->mean[i] & LEVEL, slow = planes->slow[i];
        a.slow += cell_difference(mean, slow);
        a.fast += cell_difference(mean, planes->fast[i] & LEVEL);
        a.least = min(a.least, slow);
        a.largest = max(a.largest, slow);
        a.under = min(a.under, mean - slow);
        a.over = max(a.over, mean - slow);
    }
    return a;
}

static __device__ inline struct motion_around around_of(const struct motion_around row[3])
{
    return {row[0].slow + row[1].slow + row[2].slow,
            row[0].fast + row[1].fast + row[2].fast,
            min(min(row[0].least, row[1].least), row[2].least),
            max(max(row[0].largest, row[1].largest), row[2].largest),
            min(min(row[0].under, row[1].under), row[2].under),
            max(max(row[0].over, row[1].over), row[2].over)};
}

// Marks what changed, in the planes. Called by whole warps.
static __device__ inline void
changes_find(const struct motion_camera *camera, const struct motion_strip *strip,
             const struct motion_planes *planes, struct motion_light slow_light,
             struct motion_light fast_light, struct motion_block *block)
{
    const struct motion *__restrict__ m = camera->motion;
    const uint16_t *noises = motion_plane(m, camera->state, MOTION_NOISE);
    const int stride = m->stride, x = strip->x;
    unsigned fast_count = 0, both_count = 0;
    struct motion_around row[3];
    row[1] = row_around(planes, m, x, strip->y0 - 1);
    row[2] = row_around(planes, m, x, strip->y0);
    for (int first = strip->y0; first < strip->y1; first += MOTION_AHEAD) {
        uint16_t noise[MOTION_AHEAD];
#pragma unroll
        for (int k = 0; k < MOTION_AHEAD; k++)
            noise[k] = noises[min(first + k, strip->y1 - 1) * stride + x];
#pragma unroll
        for (int k = 0; k < MOTION_AHEAD; k++) {
            const int y = first + k, i = y * stride + x;
            if (y >= strip->y1)
                break;
            row[0] = row[1], row[1] = row[2], row[2] = row_around(planes, m, x, y + 1);
            const struct motion_around a = around_of(row);
            const int slow = planes->slow[i], fast = planes->fast[i], range = a.largest - a.least;
            const bool live = m->mask[i];
            const bool from_slow =
                live && cell_changed(m, a.slow, noise[k], SLOW_THRESHOLD, range, slow, slow_light);
            const bool from_fast =
                live && cell_changed(m, a.fast, noise[k], FAST_THRESHOLD, range, fast, fast_light);
            const bool moved = from_slow && from_fast;
            const unsigned both = __ballot_sync(~0u, moved);
            const unsigned edges =
                __ballot_sync(~0u, moved && cell_edge(a.over - a.under, range, slow));
            planes->mean[i] |= (uint16_t)(from_slow ? CHANGED : 0);
            planes->fast[i] |= (uint16_t)(from_fast ? CHANGED : 0);
            if (x % LANES == 0) {
                block->map.moved[i / LANES] = both;
                block->map.edges[i / LANES] = edges;
            }
            fast_count += from_fast;
            both_count += moved;
        }
    }
    block_add(&block->fast, fast_count);
    block_add(&block->both, both_count);
}

// --- backgrounds

// As cell_update in the reference.
static __device__ inline void backgrounds_update(const struct motion_camera *camera,
                                                 const struct motion_strip *strip,
                                                 const struct motion_planes *planes,
                                                 const struct motion_step *step)
{
    const struct motion *__restrict__ m = camera->motion;
    uint16_t *slows = motion_plane(m, camera->state, MOTION_SLOW);
    uint16_t *fasts = motion_plane(m, camera->state, MOTION_FAST);
    uint16_t *noises = motion_plane(m, camera->state, MOTION_NOISE);
    uint16_t *ages = motion_plane(m, camera->state, MOTION_AGE);
    const int stride = m->stride, after = m->absorb_after;
    for (int first = strip->y0; first < strip->y1; first += MOTION_AHEAD) {
        uint16_t old_age[MOTION_AHEAD], noise[MOTION_AHEAD];
#pragma unroll
        for (int k = 0; k < MOTION_AHEAD; k++) {
            const int i = min(first + k, strip->y1 - 1) * stride + strip->x;
            old_age[k] = ages[i];
            noise[k] = noises[i];
        }
#pragma unroll
        for (int k = 0; k < MOTION_AHEAD; k++) {
            const int y = first + k, i = y * stride + strip->x;
            if (y >= strip->y1)
                break;
            const int mean = planes->mean[i] & LEVEL, fast = planes->fast[i] & LEVEL;
            const bool from_slow = planes->mean[i] & CHANGED, from_fast = planes->fast[i] & CHANGED;
            const int older = min(old_age[k] + 1, after);
            const int age = from_slow && !from_fast && !step->jump ? older : 0;
            int share = step->slow_share;
            if (!step->settling && from_slow && from_fast)
                share = 0;
            else if (!step->settling && age == after)
                share = m->absorb_share;
            ages[i] = (uint16_t)age;
            slows[i] = (uint16_t)cell_average(planes->slow[i], mean, share, step->rounding);
            fasts[i] = (uint16_t)cell_average(fast, mean, step->fast_share, step->rounding);
            if (!step->jump)
                noises[i] = (uint16_t)cell_noise(m, noise[k], abs(mean - fast), step->rounding);
        }
    }
}

// --- the list

static __device__ inline void list_write(const struct motion *m, struct motion_block *block,
                                         struct motion_changes *changes)
{
    const int across = m->stride / LANES, words = across * m->rows;
    const int each = (words + MOTION_THREADS - 1) / MOTION_THREADS;
    const int first = threadIdx.x * each, end = min(first + each, words);
    unsigned count = 0, total;
    for (int i = first; i < end; i++)
        count += __popc(block->map.moved[i]);
    unsigned at = block_prefix(block, count, &total);
    for (int i = first; i < end; i++)
        for (unsigned bits = block->map.moved[i]; bits; bits &= bits - 1) {
            const int bit = __ffs((int)bits) - 1;
            const int cell = i / across * m->columns + i % across * LANES + bit;
            changes->cell[at++] = (uint16_t)(cell << 1 | (block->map.edges[i] >> bit & 1));
        }
    if (threadIdx.x == 0)
        changes->count = total;
}

// --- a step

static __device__ inline struct motion_planes planes_at(uint16_t *base, const struct motion *m)
{
    const int cells = m->stride * m->rows;
    return {base, base + cells, base + 2 * cells};
}

static __device__ inline struct motion_strip strip_of(const struct motion *m)
{
    const int strips = MOTION_THREADS / m->stride, strip = threadIdx.x / m->stride;
    const int rows = (m->rows + strips - 1) / strips;
    const int y0 = strip < strips ? min(strip * rows, m->rows) : m->rows;
    return {(int)threadIdx.x % m->stride, y0, min(y0 + rows, m->rows)};
}

static __device__ inline void motion_run(const struct motion_camera *camera,
                                         struct motion_block *block, uint16_t *room)
{
    const struct motion *__restrict__ m = camera->motion;
    struct motion_changes *changes = camera->changes;
    const struct motion_planes planes = planes_at(room, m);
    const struct motion_strip strip = strip_of(m);
    const bool has_cells = strip.y0 < strip.y1; // alike in a warp
    const int head = (int)(sizeof block->head / sizeof(uint32_t));
    for (int i = threadIdx.x; i < head; i += MOTION_THREADS)
        ((uint32_t *)&block->head)[i] = ((const uint32_t *)camera->state)[i];
    if (threadIdx.x == 0) {
        block->light[0] = block->light[1] = {};
        block->fast = block->both = 0;
    }
    __syncthreads();
    means_make(camera, &strip, &planes, block);
    __syncthreads();
    struct motion_light slow = {GAIN_ONE, 0}, fast = {GAIN_ONE, 0};
    if (block->head.steps > 0) {
        slow = light_find(m, &strip, planes.mean, planes.slow, &block->light[0], block);
        __syncthreads();
        fast = light_find(m, &strip, planes.mean, planes.fast, &block->light[1], block);
    }
    light_apply(m, &strip, planes.slow, slow);
    light_apply(m, &strip, planes.fast, fast);
    __syncthreads();
    if (has_cells)
        changes_find(camera, &strip, &planes, slow, fast, block);
    __syncthreads();
    if (threadIdx.x == 0) {
        changes->slow = slow;
        changes->fast = fast;
        block->step =
            motion_step_of(m, &block->head, {(int)block->fast, (int)block->both}, changes);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < head; i += MOTION_THREADS)
        ((uint32_t *)camera->state)[i] = ((const uint32_t *)&block->head)[i];
    backgrounds_update(camera, &strip, &planes, &block->step);
    if (!block->step.settling)
        list_write(m, block, changes);
    else if (threadIdx.x == 0)
        changes->count = 0;
}

// A block has camera blockIdx.x. Its memory holds the planes, too, where they fit.
static __global__ void __launch_bounds__(MOTION_THREADS, 1)
    motion_kernel(const __grid_constant__ struct motion_batch batch)
{
#ifdef __CUDACC__
    extern __shared__ uint4 block_room[];
#else
    static uint4 block_room[sizeof(struct motion_block) / sizeof(uint4) + 1];
#endif
    struct motion_block *block = (struct motion_block *)block_room;
    const struct motion_camera *camera = batch.camera[blockIdx.x];
    if (sizeof *block + motion_planes_bytes(camera->motion) <= batch.shared_bytes)
        motion_run(camera, block, (uint16_t *)(block + 1));
    else
        motion_run(camera, block, camera->planes);
}

#endif
