// The kernel of motion. A cluster of blocks has a camera, and each block some of its rows; GPUs
// without clusters have one block per camera. Data that neighbours and later parts of a step read
// is in shared memory.
//
// The list of moved cells is in ascending order without a sort: each thread counts them in some of
// the block's cells, and a prefix sum gives their places in the list.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CUH
#define FRAMED_KERNELS_CUDA_MOTION_CUH

#include "kernels/cuda/motion_camera.cuh"

// Eight cells of a row.
struct motion_eight {
    unsigned pair[4];
};

static __device__ inline struct motion_eight eight_load(const void *at)
{
    const uint4 v = *(const uint4 *)at;
    return {{v.x, v.y, v.z, v.w}};
}

static __device__ inline void eight_store(void *at, const struct motion_eight *eight)
{
    *(uint4 *)at = {eight->pair[0], eight->pair[1], eight->pair[2], eight->pair[3]};
}

// A thread's share of rows in units of eight cells: a column, and every `step`th row.
struct motion_column {
    int x, row, step;
};

static __device__ inline struct motion_column column_of(const struct motion *m)
{
    const int across = m->stride / MOTION_EIGHT, step = (int)blockDim.x / across;
    const int row = (int)threadIdx.x / across;
    return {(int)threadIdx.x % across * MOTION_EIGHT, row < step ? row : MOTION_ROWS_MAX, step};
}

// --- means

// Starts copying the backgrounds, noise and ages, while the means are made.
static __device__ inline void cells_bring(struct motion_camera *camera,
                                          const struct motion_rows *rows,
                                          const struct motion_planes *planes)
{
    const struct motion *__restrict__ m = &camera->motion;
    const uint16_t *slows = motion_plane(m, &camera->state, MOTION_SLOW);
    const uint16_t *fasts = motion_plane(m, &camera->state, MOTION_FAST);
    const uint16_t *noises = motion_plane(m, &camera->state, MOTION_NOISE);
    const uint16_t *ages = motion_plane(m, &camera->state, MOTION_AGE);
    const int all = (rows->end - rows->first) * m->stride, ahead = rows->first * m->stride;
    const int own = (rows->y1 - rows->y0) * m->stride, own_ahead = rows->y0 * m->stride;
    const int at = (int)threadIdx.x * MOTION_EIGHT, step = (int)blockDim.x * MOTION_EIGHT;
    for (int i = at; i < all; i += step) {
        copy_begin(&planes->slow[i], &slows[ahead + i]);
        copy_begin(&planes->fast[i], &fasts[ahead + i]);
    }
    for (int i = at; i < own; i += step) {
        copy_begin(&planes->mark[i], &noises[own_ahead + i]);
        copy_begin(&planes->age[i], &ages[own_ahead + i]);
    }
}

// The inputs of eight means.
struct motion_sums {
    uint32_t sum[MOTION_EIGHT];
    uint2 mask;
    bool tall;
};

static __device__ inline struct motion_sums
sums_load(const struct motion *__restrict__ m, const uint32_t *__restrict__ sums, int x, int y)
{
    const uint32_t *from = sums + y * m->columns + x;
    struct motion_sums s;
    s.mask = *(const uint2 *)&m->mask[y * m->stride + x];
    s.tall = m->row_tall[y];
    if (m->columns % 4 == 0 && x + MOTION_EIGHT <= m->columns) {
        const uint4 a = ((const uint4 *)from)[0], b = ((const uint4 *)from)[1];
        s.sum[0] = a.x, s.sum[1] = a.y, s.sum[2] = a.z, s.sum[3] = a.w;
        s.sum[4] = b.x, s.sum[5] = b.y, s.sum[6] = b.z, s.sum[7] = b.w;
    } else {
#pragma unroll
        for (int k = 0; k < MOTION_EIGHT; k++)
            s.sum[k] = x + k < m->columns ? from[k] : 0;
    }
    return s;
}

struct motion_factors {
    uint2 of[4]; // for sums of eight cells
};

static __device__ inline struct motion_factors factors_load(const struct motion *__restrict__ m,
                                                            int tall, int x)
{
    const uint2 *of = (const uint2 *)&m->mean_of[tall][x];
    return {{of[0], of[1], of[2], of[3]}};
}

static __device__ inline struct motion_eight
means_of(const struct motion_sums *s, const struct motion_factors *factors, int shift)
{
    const unsigned live[4] = {__byte_perm(s->mask.x, 0, 0x1100), __byte_perm(s->mask.x, 0, 0x3322),
                              __byte_perm(s->mask.y, 0, 0x1100), __byte_perm(s->mask.y, 0, 0x3322)};
    struct motion_eight mean;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned level = pair_upper((s->sum[2 * k] >> shift) * factors->of[k].x,
                                          (s->sum[2 * k + 1] >> shift) * factors->of[k].y);
        mean.pair[k] = (level & live[k]) | PAIR_UPPER;
    }
    return mean;
}

static __device__ inline void means_make(struct motion_camera *camera,
                                         const struct motion_rows *rows,
                                         const struct motion_planes *planes)
{
    const struct motion *__restrict__ m = &camera->motion;
    const uint32_t *__restrict__ sums = camera->at.sums;
    const struct motion_column column = column_of(m);
    const struct motion_factors usual = factors_load(m, 0, column.x);
    for (int first = rows->first + column.row; first < rows->end;
         first += MOTION_AHEAD * column.step) {
        struct motion_sums s[MOTION_AHEAD];
#pragma unroll
        for (int k = 0; k < MOTION_AHEAD; k++)
            s[k] = sums_load(m, sums, column.x, min(first + k * column.step, rows->end - 1));
#pragma unroll
        for (int k = 0; k < MOTION_AHEAD; k++) {
            const int y = first + k * column.step;
            if (y >= rows->end)
                break;
            const struct motion_factors factors = s[k].tall ? factors_load(m, 1, column.x) : usual;
            const struct motion_eight mean = means_of(&s[k], &factors, m->sum_shift);
            eight_store(&planes->mean[(y - rows->first) * m->stride + column.x], &mean);
        }
    }
}

// Counts the block's own cells for the light. Marks cells that are left out with MARK_SLOW.
static __device__ inline void cells_count(const struct motion *__restrict__ m,
                                          const struct motion_rows *rows,
                                          const struct motion_planes *planes,
                                          struct motion_block *block)
{
    const int cells = (rows->y1 - rows->y0) * m->stride;
    const int ahead = (rows->y0 - rows->first) * m->stride;
    struct light_pairs from_slow = {}, from_fast = {};
    for (int i = (int)threadIdx.x * MOTION_EIGHT; i < cells; i += (int)blockDim.x * MOTION_EIGHT) {
        const uint2 mask = *(const uint2 *)&m->mask[rows->y0 * m->stride + i];
        const struct motion_eight mean = eight_load(&planes->mean[ahead + i]);
        const struct motion_eight slow = eight_load(&planes->slow[ahead + i]);
        const struct motion_eight fast = eight_load(&planes->fast[ahead + i]);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            light_count(&from_slow, mean.pair[k], slow.pair[k]);
            light_count(&from_fast, mean.pair[k], fast.pair[k]);
        }
        if ((mask.x & mask.y) != ~0u) {
            struct motion_eight mark = eight_load(&planes->mark[i]);
            mark.pair[0] |= ~__byte_perm(mask.x, 0, 0x1100) & pair_of(MARK_SLOW);
            mark.pair[1] |= ~__byte_perm(mask.x, 0, 0x3322) & pair_of(MARK_SLOW);
            mark.pair[2] |= ~__byte_perm(mask.y, 0, 0x1100) & pair_of(MARK_SLOW);
            mark.pair[3] |= ~__byte_perm(mask.y, 0, 0x3322) & pair_of(MARK_SLOW);
            eight_store(&planes->mark[i], &mark);
        }
    }
    light_add(&block->count[0], &from_slow);
    light_add(&block->count[COUNT_LIGHT], &from_fast);
}

// --- changes

// Sums and extremes over three cells of a row, or over three rows, for two neighbouring cells.
struct motion_around {
    unsigned slow, fast;     // sums of pair_difference
    unsigned least, largest; // of slow in the picture's light
    unsigned under, over;    // extremes of whole differences from it, plus 2^15
};

// Selectors for the bytes of two words that have the left or right neighbours. At the border a cell
// is its own neighbour.
struct motion_beside {
    unsigned left, right;
};

static __device__ inline struct motion_beside beside_of(const struct motion *m, int pair)
{
    const bool last = pair == (m->columns - 1) / 2;
    return {pair > 0 ? 0x5432u : 0x5454u, !last ? 0x5432u : m->columns % 2 ? 0x1010u : 0x3232u};
}

static __device__ inline struct motion_around around_cell(unsigned mean, unsigned slow,
                                                          unsigned fast)
{
    const unsigned offset = mean - slow; // plus 2^15
    return {pair_difference(offset), pair_difference(mean - fast), slow, slow, offset, offset};
}

static __device__ inline struct motion_around around_of(const struct motion_around *a,
                                                        const struct motion_around *b,
                                                        const struct motion_around *c)
{
    return {a->slow + b->slow + c->slow,
            a->fast + b->fast + c->fast,
            __vminu2(__vminu2(a->least, b->least), c->least),
            __vmaxu2(__vmaxu2(a->largest, b->largest), c->largest),
            __vminu2(__vminu2(a->under, b->under), c->under),
            __vmaxu2(__vmaxu2(a->over, b->over), c->over)};
}

// Reads words left of the first and right of the last one, but does not use them.
static __device__ inline struct motion_around row_around(const unsigned *mean, const unsigned *slow,
                                                         const unsigned *fast, int i,
                                                         struct motion_beside beside)
{
    const struct motion_around here = around_cell(mean[i], slow[i], fast[i]);
    const struct motion_around left = around_cell(__byte_perm(mean[i - 1], mean[i], beside.left),
                                                  __byte_perm(slow[i - 1], slow[i], beside.left),
                                                  __byte_perm(fast[i - 1], fast[i], beside.left));
    const struct motion_around right = around_cell(__byte_perm(mean[i], mean[i + 1], beside.right),
                                                   __byte_perm(slow[i], slow[i + 1], beside.right),
                                                   __byte_perm(fast[i], fast[i + 1], beside.right));
    return around_of(&left, &here, &right);
}

// Returns the marks of two cells; `mark` has their noise, and MARK_SLOW if they are left out.
static __device__ inline unsigned mark_of(const struct motion *m, const struct motion_around *a,
                                          unsigned mark, unsigned slow, unsigned fast,
                                          const struct motion_lights *lights)
{
    const unsigned scale = (unsigned)m->threshold_scale, noise = mark & pair_of(MARK_NOISE);
    const unsigned range = pair_range(a->largest - a->least);
    const unsigned tolerance = pair_tolerance(noise, scale) + range;
    unsigned more_slow = pair_tolerance_more(scale), more_fast = 0;
    if (!light_is_same(lights->slow))
        more_slow += pair_tolerance_light(slow, lights->slow);
    if (!light_is_same(lights->fast))
        more_fast += pair_tolerance_light(fast, lights->fast);
    const unsigned from_slow = ~(pair_unchanged(a->slow, tolerance + more_slow) | mark);
    const unsigned from_fast = ~(pair_unchanged(a->fast, tolerance + more_fast) | mark);
    const unsigned edge =
        from_slow & from_fast & ~pair_even_around(a->over - a->under, range, slow);
    return noise | (from_slow & PAIR_UPPER) | (from_fast & PAIR_UPPER) >> 1 |
           (edge & PAIR_UPPER) >> 2;
}

static __device__ inline void changes_find(const struct motion *__restrict__ m,
                                           const struct motion_rows *rows,
                                           const struct motion_planes *planes,
                                           const struct motion_lights *lights,
                                           struct motion_block *block)
{
    const int across = m->stride / 2, strips = (int)blockDim.x / across;
    const int strip = (int)threadIdx.x / across, pair = (int)threadIdx.x % across;
    const int each = (rows->y1 - rows->y0 + strips - 1) / strips;
    const int y0 = min(rows->y0 + strip * each, rows->y1), y1 = min(y0 + each, rows->y1);
    const unsigned *const mean = (const unsigned *)planes->mean;
    const unsigned *const slow = (const unsigned *)planes->slow;
    const unsigned *const fast = (const unsigned *)planes->fast;
    unsigned *const marks = (unsigned *)planes->mark;
    const struct motion_beside beside = beside_of(m, pair);
    unsigned fast_count = 0, both_count = 0;
    if (strip < strips && y0 < y1) {
        int i = (y0 - rows->first) * across + pair, to = (y0 - rows->y0) * across + pair;
        struct motion_around above = row_around(mean, slow, fast, y0 > 0 ? i - across : i, beside);
        struct motion_around here = row_around(mean, slow, fast, i, beside);
#pragma unroll 1
        for (int y = y0; y < y1; y++) {
            const int next = y < m->rows - 1 ? i + across : i;
            const struct motion_around below = row_around(mean, slow, fast, next, beside);
            const struct motion_around around = around_of(&above, &here, &below);
            const unsigned mark = mark_of(m, &around, marks[to], slow[i], fast[i], lights);
            marks[to] = mark;
            fast_count = pair_count(mark & pair_of(MARK_FAST), fast_count);
            both_count = pair_count(mark & mark << 1 & pair_of(MARK_SLOW), both_count);
            above = here, here = below;
            i = next, to += across;
        }
    }
    count_add(&block->count[COUNT_CHANGED], fast_count >> 14 | both_count >> 15 << 16);
}

// --- backgrounds

// Like cell_update in the reference.
static __device__ inline void backgrounds_update(struct motion_camera *camera,
                                                 const struct motion_rows *rows,
                                                 const struct motion_planes *planes,
                                                 const struct motion_step *step)
{
    const struct motion *__restrict__ m = &camera->motion;
    const int from = rows->y0 * m->stride, cells = (rows->y1 - rows->y0) * m->stride;
    const int ahead = (rows->y0 - rows->first) * m->stride;
    uint16_t *slows = motion_plane(m, &camera->state, MOTION_SLOW) + from;
    uint16_t *fasts = motion_plane(m, &camera->state, MOTION_FAST) + from;
    uint16_t *noises = motion_plane(m, &camera->state, MOTION_NOISE) + from;
    uint16_t *ages = motion_plane(m, &camera->state, MOTION_AGE) + from;
    const unsigned after = pair_of(m->absorb_after), rounding = (unsigned)step->rounding;
    const unsigned settled = step->settling ? 0 : ~0u, aging = step->jump ? 0 : ~0u;
    const unsigned slow_share = pair_of(step->slow_share), absorb_share = pair_of(m->absorb_share);
    const unsigned fast_share = pair_of(step->fast_share);
    const unsigned up = pair_of(m->noise_up_share), down = pair_of(m->noise_down_share);
    const bool slow_all = step->slow_share == SHARE_ALL, fast_all = step->fast_share == SHARE_ALL;
    const bool jump = step->jump;
    for (int i = (int)threadIdx.x * MOTION_EIGHT; i < cells; i += (int)blockDim.x * MOTION_EIGHT) {
        const struct motion_eight mean = eight_load(&planes->mean[ahead + i]);
        const struct motion_eight mark = eight_load(&planes->mark[i]);
        struct motion_eight slow = eight_load(&planes->slow[ahead + i]);
        struct motion_eight fast = eight_load(&planes->fast[ahead + i]);
        struct motion_eight age = eight_load(&planes->age[i]), noise;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned from_slow = pair_mask(mark.pair[k]);
            const unsigned from_fast = pair_mask(mark.pair[k] << 1);
            const unsigned older = __viaddmin_u16x2(age.pair[k], pair_of(1), after);
            age.pair[k] = older & from_slow & ~from_fast & aging;
            const unsigned stays = from_slow & from_fast & settled;
            const unsigned absorbed = pair_mask(pair_reaches(age.pair[k], after)) & settled;
            const unsigned share = (slow_share & ~(stays | absorbed)) | (absorb_share & absorbed);
            const unsigned to_slow = mean.pair[k] - slow.pair[k];
            const unsigned to_fast = mean.pair[k] - fast.pair[k];
            noise.pair[k] = pair_noise(mark.pair[k] & pair_of(MARK_NOISE),
                                       pair_distance(to_fast, PAIR_UPPER), up, down, rounding);
            slow.pair[k] = slow_all ? mean.pair[k] ^ PAIR_UPPER
                                    : pair_average(slow.pair[k], to_slow, share, rounding);
            fast.pair[k] = fast_all ? mean.pair[k] ^ PAIR_UPPER
                                    : pair_average(fast.pair[k], to_fast, fast_share, rounding);
        }
        eight_store(&slows[i], &slow);
        eight_store(&fasts[i], &fast);
        eight_store(&ages[i], &age);
        if (!jump)
            eight_store(&noises[i], &noise);
    }
}

// --- the list

// Returns the sum of `value` over the threads before this one. Called by all threads.
static __device__ inline unsigned block_prefix(struct motion_block *block, unsigned value)
{
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    unsigned sum = value, before = 0;
#pragma unroll
    for (int by = 1; by < LANES; by *= 2) {
        const unsigned other = __shfl_up_sync(~0u, sum, by);
        sum += lane >= by ? other : 0;
    }
    if (lane == LANES - 1)
        block->warp[warp] = sum;
    __syncthreads();
    for (int i = 0; i < warp; i++)
        before += block->warp[i];
    return before + sum - value;
}

// Returns, in the upper bits, which of two cells moved.
static __device__ inline unsigned moved_of(unsigned mark)
{
    return mark & mark << 1 & pair_of(MARK_SLOW);
}

// Writes the block's moved cells to the list, from place `at` on.
static __device__ inline void list_write(const struct motion *m, const struct motion_rows *rows,
                                         const struct motion_planes *planes,
                                         struct motion_block *block, uint16_t *list, unsigned at)
{
    const int across = m->stride / MOTION_EIGHT, all = across * (rows->y1 - rows->y0);
    const int each = (all + (int)blockDim.x - 1) / (int)blockDim.x;
    const int first = min((int)threadIdx.x * each, all), end = min(first + each, all);
    unsigned count = 0;
    for (int i = first; i < end; i++) {
        const struct motion_eight mark = eight_load(&planes->mark[i * MOTION_EIGHT]);
#pragma unroll
        for (int k = 0; k < 4; k++)
            count = pair_count(moved_of(mark.pair[k]), count);
    }
    at += block_prefix(block, count >> 15);
    if (!count)
        return;
    for (int i = first * MOTION_EIGHT; i < end * MOTION_EIGHT; i++) {
        const unsigned mark = planes->mark[i];
        const int cell = (rows->y0 + i / m->stride) * m->columns + i % m->stride;
        if ((mark & MARK_SLOW) && (mark & MARK_FAST))
            list[at++] = (uint16_t)(cell << 1 | !!(mark & MARK_EDGE));
    }
}

// --- a step

static __device__ inline struct motion_planes planes_at(uint16_t *base, const struct motion *m,
                                                        const struct motion_rows *rows)
{
    const int own = (rows->y1 - rows->y0) * m->stride, all = (rows->end - rows->first) * m->stride;
    uint16_t *const mean = base + 2 * own;
    return {base, base + own, mean, mean + all, mean + 2 * all};
}

// Counts of all blocks, and of those before this one.
struct motion_found {
    struct motion_counts all;
    unsigned both_before;
};

static __device__ inline struct motion_found changes_gather(const struct motion_block *block)
{
    const int lane = threadIdx.x % LANES, rank = cluster_rank();
    const unsigned count =
        lane < cluster_size() ? *cluster_at(&block->count[COUNT_CHANGED], lane) : 0;
    const unsigned all = warp_sum(count), before = warp_sum(lane < rank ? count : 0);
    return {{(int)(all & 0xffff), (int)(all >> 16)}, before >> 16};
}

static __device__ inline void motion_run(struct motion_camera *camera, struct motion_block *block,
                                         uint16_t *room)
{
    const struct motion *__restrict__ m = &camera->motion;
    struct motion_changes *changes = camera->at.changes;
    const struct motion_rows rows = motion_rows_of(m, cluster_rank(), cluster_size());
    const struct motion_planes planes = planes_at(room, m, &rows);
    const int thread = threadIdx.x, head = (int)(sizeof block->head / sizeof(uint32_t));
    static_assert(sizeof block->head / sizeof(uint32_t) <= MOTION_THREADS, "a word each");
    cells_bring(camera, &rows, &planes);
    const uint32_t word = thread < head ? ((const uint32_t *)&camera->state)[thread] : 0;
    means_make(camera, &rows, &planes);
    if (thread < head)
        ((uint32_t *)&block->head)[thread] = word;
    if (thread < COUNTS)
        block->count[thread] = 0;
    copies_end();
    __syncthreads();
    cells_count(m, &rows, &planes, block);
    cluster_sync();
    const struct motion_lights lights = lights_find(m, &rows, &planes, block);
    changes_find(m, &rows, &planes, &lights, block);
    cluster_sync();
    const struct motion_found found = changes_gather(block);
    cluster_arrive();
    if (thread == 0) {
        struct motion_changes seen = {};
        seen.slow = lights.slow;
        seen.fast = lights.fast;
        block->step = motion_step_of(m, &block->head, found.all, &seen);
        seen.count = block->step.settling ? 0 : (uint32_t)found.all.both;
        if (cluster_rank() == 0)
            *changes = seen;
    }
    __syncthreads();
    if (cluster_rank() == 0 && thread < head)
        ((uint32_t *)&camera->state)[thread] = ((const uint32_t *)&block->head)[thread];
    backgrounds_update(camera, &rows, &planes, &block->step);
    if (!block->step.settling && block->count[COUNT_CHANGED] >> 16)
        list_write(m, &rows, &planes, block, changes->cell, found.both_before);
    cluster_wait();
}

// A cluster has a camera: blockIdx.x counts blocks. The planes are in shared memory, or in the
// camera's memory if a block has no room for them.
template <bool SHARED>
static __global__ void __launch_bounds__(MOTION_THREADS, MOTION_ROOM)
    motion_kernel(const __grid_constant__ struct motion_batch batch)
{
#ifdef __CUDACC__
    extern __shared__ uint4 block_room[];
    struct motion_block *block = (struct motion_block *)block_room;
#else
    struct motion_block *block = (struct motion_block *)block_memory(sizeof *block);
#endif
    struct motion_camera *camera = batch.camera[(int)blockIdx.x / cluster_size()];
    if constexpr (SHARED) {
        motion_run(camera, block, (uint16_t *)(block + 1));
    } else {
        const size_t bytes = motion_planes_bytes(&camera->motion, cluster_size());
        motion_run(camera, block, camera->at.planes + cluster_rank() * bytes / sizeof(uint16_t));
    }
}

#endif
