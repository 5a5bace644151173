// The kernels of detection, in this order:
//   detect_scan_*  makes keys of the candidates among all anchors of all pictures, in the order of
//                  an atomic counter; they are sorted later, so this order does not matter
//   detect_finish  one block per picture: sorts, makes boxes, suppresses and writes the result
// A picture's counters in device memory are reset by their last reader, for the next batch.
#ifndef FRAMED_KERNELS_CUDA_DETECT_CUH
#define FRAMED_KERNELS_CUDA_DETECT_CUH

#include "kernels/cuda/detect_scan.cuh"

// --- sorts the best keys of a list of any length, in one block

// Returns, in lane i, the sum of `x` of lanes 0 to i.
static __device__ inline uint32_t sum_up_to_lane(uint32_t x)
{
    const unsigned lane = threadIdx.x % LANES_OF_WARP;
    for (unsigned apart = 1; apart < LANES_OF_WARP; apart *= 2) {
        const uint32_t before = __shfl_sync(~0u, x, (lane - apart) % LANES_OF_WARP);
        x += lane >= apart ? before : 0;
    }
    return x;
}

// Returns the largest of the `wanted` smallest of n keys, found digit by digit from the highest.
static __device__ inline uint64_t keys_bound(const uint64_t *keys, uint32_t n, uint32_t wanted)
{
    enum { BINS = 256, BINS_OF_LANE = BINS / LANES_OF_WARP };
    __shared__ uint32_t bins[BINS];
    __shared__ uint64_t bound;
    if (threadIdx.x == 0)
        bound = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < BINS; i += FINISH_THREADS)
            bins[i] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            if (shift == 56 || keys[i] >> (shift + 8) == bound >> (shift + 8))
                atomicAdd(&bins[keys[i] >> shift & (BINS - 1)], 1u);
        __syncthreads();
        if (threadIdx.x < LANES_OF_WARP) { // the digit at which the sum of bins reaches `wanted`
            const uint32_t *own = bins + threadIdx.x * BINS_OF_LANE;
            uint32_t mine = 0;
            for (int i = 0; i < BINS_OF_LANE; i++)
                mine += own[i];
            const uint32_t sum = sum_up_to_lane(mine);
            const bool here = sum >= wanted && sum - mine < wanted;
            const unsigned where = __ballot_sync(~0u, here);
            uint32_t rest = wanted - (sum - mine);
            if (here) {
                int digit = 0;
                for (; own[digit] < rest; digit++)
                    rest -= own[digit];
                bound |= (uint64_t)(threadIdx.x * BINS_OF_LANE + digit) << shift;
            }
            wanted = __shfl_sync(~0u, rest, __ffs((int)where) - 1);
        }
        __syncthreads();
    }
    return bound;
}

// Copies the best m of n keys to `to`, in any order, and pads with the largest possible key.
static __device__ inline void keys_take(uint64_t *to, const uint64_t *keys, uint32_t n, uint32_t m,
                                        uint32_t padded)
{
    __shared__ uint32_t taken;
    if (n > m) {
        const uint64_t bound = keys_bound(keys, n, m);
        if (threadIdx.x == 0)
            taken = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            if (keys[i] <= bound)
                to[atomicAdd(&taken, 1u)] = keys[i];
    } else {
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            to[i] = keys[i];
    }
    for (uint32_t i = m + threadIdx.x; i < padded; i += FINISH_THREADS)
        to[i] = ~(uint64_t)0;
}

// Keys exchanged between threads; the two buffers alternate, so a step needs only one barrier.
struct meeting {
    uint64_t keys[2][FINISH_THREADS];
};

// Returns a thread's key after a step, from its own key and the one `apart` places away.
static __device__ inline uint64_t key_of_pair(uint64_t key, uint64_t other, uint32_t i,
                                              uint32_t apart, uint32_t run)
{
    const bool smaller = ((i & apart) == 0) == ((i & run) == 0);
    return (key < other) == smaller ? key : other;
}

// Sorts the keys of a warp, one per thread at i in the list, into sorted runs.
static __device__ inline uint64_t key_sort(uint64_t key, uint32_t i)
{
#pragma unroll
    for (uint32_t run = 2; run <= LANES_OF_WARP; run *= 2)
#pragma unroll
        for (uint32_t apart = run / 2; apart > 0; apart /= 2)
            key = key_of_pair(key, __shfl_xor_sync(~0u, key, apart), i, apart, run);
    return key;
}

// Merges sorted runs of half of `run` keys into runs of `run`, more than a warp's. If that is more
// than FINISH_THREADS, its first steps are already done.
static __device__ inline uint64_t key_merge(uint64_t key, uint32_t i, uint32_t run,
                                            struct meeting *meet, int *turn)
{
    uint32_t apart = run < FINISH_THREADS ? run / 2 : FINISH_THREADS / 2;
    for (; apart >= LANES_OF_WARP; apart /= 2) {
        meet->keys[*turn][threadIdx.x] = key;
        __syncthreads();
        key = key_of_pair(key, meet->keys[*turn][threadIdx.x ^ apart], i, apart, run);
        *turn ^= 1;
    }
#pragma unroll
    for (apart = LANES_OF_WARP / 2; apart > 0; apart /= 2)
        key = key_of_pair(key, __shfl_xor_sync(~0u, key, apart), i, apart, run);
    return key;
}

// Sorts the best m of n keys to `to`, with room for a power of two, at least FINISH_THREADS.
static __device__ inline void keys_sort(uint64_t *to, const uint64_t *keys, uint32_t n, uint32_t m,
                                        struct meeting *meet)
{
    int turn = 0;
    uint32_t length = LANES_OF_WARP; // number of keys to sort
    while (length < m)
        length *= 2;
    const uint32_t part = FINISH_THREADS, padded = length < part ? part : length;
    keys_take(to, keys, n, m, padded);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < padded; i += part) {
        uint64_t key = key_sort(to[i], i);
        for (uint32_t run = 2 * LANES_OF_WARP; run <= length && run <= part; run *= 2)
            key = key_merge(key, i, run, meet, &turn);
        to[i] = key;
    }
    for (uint32_t run = 2 * part; run <= length; run *= 2) {
        for (uint32_t apart = run / 2; apart >= part; apart /= 2) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < length / 2; i += part) {
                const uint32_t a = 2 * i - (i & (apart - 1)), b = a + apart;
                const uint64_t x = to[a], y = to[b];
                if ((x > y) == ((a & run) == 0)) {
                    to[a] = y;
                    to[b] = x;
                }
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < length; i += part)
            to[i] = key_merge(to[i], i, run, meet, &turn);
    }
    __syncthreads();
}

// --- decides in one block which boxes of a picture are kept

// The boxes of a round: the best remaining ones, or the next ones if every box suppresses others.
struct keep_round {
    unsigned all, open; // bits of boxes in the round, and of boxes that may be kept
    int place[LANES_OF_WARP];
    int32_t label[LANES_OF_WARP];
    struct detect_corners box[LANES_OF_WARP];
    unsigned before[LANES_OF_WARP]; // bits of the earlier boxes that suppress box i
};

// The rule for one box suppressing another, in registers.
struct keep_rule {
    float one, overlap;
    bool rotated;
};

// Not inlined: rotated boxes would take registers from all others.
static __device__ __noinline__ float quotient_called(const struct detect *d,
                                                     const struct detect_boxes *boxes, int i, int j)
{
    return quotient_of(d, boxes, i, j);
}

// Sets the bits of dropped boxes, and those past the last box.
static __device__ inline void gone_init(uint32_t *gone, const struct detect_boxes *boxes, int m)
{
    for (int at = threadIdx.x / LANES_OF_WARP; at * LANES_OF_WARP < m; at += FINISH_WARPS) {
        const int i = at * LANES_OF_WARP + (int)(threadIdx.x % LANES_OF_WARP);
        const unsigned bits = __ballot_sync(~0u, i >= m || boxes->label[i] == LABEL_GONE);
        if (threadIdx.x % LANES_OF_WARP == 0)
            gone[at] = bits;
    }
    __syncthreads();
}

// Returns the position of the set bit with k set bits below it, which must exist.
static __device__ inline int bit_after(uint32_t bits, int k)
{
    int at = 0;
    for (int half = LANES_OF_WARP / 2; half > 0; half /= 2) {
        const int below = __popc(bits >> at & ((1u << half) - 1));
        at += k >= below ? half : 0;
        k -= k >= below ? below : 0;
    }
    return at;
}

// Called by one warp: returns, in lane k, the (k + 1)th place from word `at` on whose bit is clear
// in `gone`, or -1.
static __device__ inline int place_left(const uint32_t *gone, int at, int m)
{
    const int lane = threadIdx.x % LANES_OF_WARP, words = (m + LANES_OF_WARP - 1) / LANES_OF_WARP;
    int place = -1;
    for (int n = 0; at < words && n < LANES_OF_WARP; at += LANES_OF_WARP) {
        const uint32_t left = at + lane < words ? ~gone[at + lane] : 0;
        const int count = __popc(left), sum = (int)sum_up_to_lane((uint32_t)count);
        const int wanted = lane - n;
        int word = 0; // number of leading words with at most `wanted` places in all
        for (int half = LANES_OF_WARP / 2; half > 0; half /= 2)
            word += __shfl_sync(~0u, sum, word + half - 1) <= wanted ? half : 0;
        const int before = __shfl_sync(~0u, sum - count, word);
        const uint32_t bits = __shfl_sync(~0u, left, word);
        const int all = __shfl_sync(~0u, sum, LANES_OF_WARP - 1);
        if (wanted >= 0 && wanted < all)
            place = (at + word) * LANES_OF_WARP + bit_after(bits, wanted - before);
        n += all;
    }
    return place;
}

// Called by one warp: takes all boxes of word `at` if `fast`, else the first ones left from there
// on, and sets their bits.
static __device__ inline void round_take(struct keep_round *round, uint32_t *gone,
                                         const struct detect_boxes *boxes, bool fast, int at, int m)
{
    const int lane = threadIdx.x % LANES_OF_WARP, next = at * LANES_OF_WARP + lane;
    const int place = !fast ? place_left(gone, at, m) : next < m ? next : -1;
    const unsigned all = __ballot_sync(~0u, place >= 0);
    round->place[lane] = place;
    if (place >= 0) {
        round->box[lane] = corners_at(boxes, place);
        round->label[lane] = boxes->label[place];
    }
    if (lane == 0) {
        round->all = all;
        round->open = fast && all != 0 ? all & ~gone[at] : all;
    }
    __syncwarp(); // all lanes have read `gone`
    if (!fast && place >= 0)
        atomicOr(&gone[place / LANES_OF_WARP], 1u << place % LANES_OF_WARP);
}

// Returns true if box k of a round suppresses b, the box in place j. Both have the same label.
static __device__ inline bool round_hits(const struct keep_round *round, int k,
                                         const struct detect *d, struct keep_rule rule,
                                         const struct detect_boxes *boxes,
                                         const struct detect_corners *b, int j)
{
    if (rule.rotated)
        return quotient_called(d, boxes, round->place[k], j) > rule.overlap;
    const struct detect_corners a = round->box[k];
    const float shared = intersection_of(&a, b, rule.one);
    return shared > 0 && shared / (a.area + b->area - shared) > rule.overlap;
}

// Called by all warps: each takes some boxes of a round; its lanes compare them with earlier ones.
static __device__ inline void round_compare(struct keep_round *round, const struct detect *d,
                                            struct keep_rule rule, const struct detect_boxes *boxes)
{
    const int lane = threadIdx.x % LANES_OF_WARP, n = __popc(round->all);
    for (int i = threadIdx.x / LANES_OF_WARP; i < n; i += FINISH_WARPS) {
        const struct detect_corners box = round->box[i];
        const bool hit = lane < i && round->label[lane] == box.label &&
                         round_hits(round, lane, d, rule, boxes, &box, round->place[i]);
        const unsigned bits = __ballot_sync(~0u, hit);
        if (lane == 0)
            round->before[i] = bits;
    }
}

// Called by whole warps: returns the kept boxes of a round as bits. A box is kept once all that
// might suppress it are gone, and gone once a kept one suppresses it; each step decides at least
// the first undecided box. `fast`: a box is kept if none suppresses it.
static __device__ inline unsigned round_decide(const struct keep_round *round, bool fast)
{
    const int lane = threadIdx.x % LANES_OF_WARP;
    const unsigned before = round->all >> lane & 1 ? round->before[lane] : 0;
    unsigned kept = 0, open = round->open;
    if (fast)
        return __ballot_sync(~0u, (open >> lane & 1) && before == 0);
    while (open != 0) {
        kept |= __ballot_sync(~0u, (open >> lane & 1) && (before & (open | kept)) == 0);
        open &= ~(kept | __ballot_sync(~0u, (before & kept) != 0));
    }
    return kept;
}

// Suppresses boxes from word `at` on, by the boxes of a round whose bits are set in `by`.
static __device__ inline void round_suppress(const struct keep_round *round, unsigned by,
                                             uint32_t *gone, const struct detect *d,
                                             struct keep_rule rule,
                                             const struct detect_boxes *boxes, int at, int m)
{
    const int lane = threadIdx.x % LANES_OF_WARP;
    for (at += threadIdx.x / LANES_OF_WARP; at * LANES_OF_WARP < m; at += FINISH_WARPS) {
        const int j = at * LANES_OF_WARP + lane;
        const uint32_t old = gone[at];
        bool hit = false;
        __syncwarp(); // before lane 0 writes it
        if (old == ~0u)
            continue;
        if (!(old >> lane & 1)) {
            const struct detect_corners box = corners_at(boxes, j);
            unsigned same = 0;
#pragma unroll
            for (int k = 0; k < LANES_OF_WARP; k++)
                same |= (round->label[k] == box.label ? 1u : 0u) << k;
            for (same &= by; same != 0 && !hit; same &= same - 1)
                hit = round_hits(round, __ffs((int)same) - 1, d, rule, boxes, &box, j);
        }
        const unsigned bits = __ballot_sync(~0u, hit);
        if (lane == 0)
            gone[at] = old | bits;
    }
}

// Writes the kept places, in rounds of LANES_OF_WARP boxes, and returns their number. Called by all
// threads, with `gone` ready.
static __device__ inline int keep(uint32_t *gone, const struct detect *d, struct detect_picture *p,
                                  int m)
{
    __shared__ struct keep_round round;
    const unsigned lane = threadIdx.x % LANES_OF_WARP;
    const bool fast = d->params.suppression == DETECT_FAST;
    const bool all = d->params.suppression == DETECT_KEEP;
    const struct keep_rule rule = {(float)d->params.offset, d->overlap, d->params.rotated};
    const int max_det = d->params.max_det;
    int count = 0;
    for (int at = 0; count < max_det; at += fast) {
        if (threadIdx.x < LANES_OF_WARP)
            round_take(&round, gone, &p->boxes, fast, at, m);
        __syncthreads();
        if (round.all == 0)
            break;
        at = round.place[0] / LANES_OF_WARP;
        if (!all)
            round_compare(&round, d, rule, &p->boxes);
        __syncthreads();
        unsigned kept = all ? round.all : round_decide(&round, fast);
        const int rank = count + __popc(kept & ((1u << lane) - 1));
        kept = __ballot_sync(~0u, (kept >> lane & 1) && rank < max_det);
        if (threadIdx.x < LANES_OF_WARP && (kept >> lane & 1))
            p->kept[rank] = round.place[lane];
        count += __popc(kept);
        if (!all && count < max_det)
            round_suppress(&round, fast ? round.all : kept, gone, d, rule, &p->boxes, at + fast, m);
        __syncthreads();
    }
    __syncthreads();
    return count;
}

static __device__ inline int suppress_softly(const struct detect *d, struct detect_picture *p,
                                             int m)
{
    __shared__ unsigned long long best_key;
    const struct detect_boxes *b = &p->boxes;
    int count = 0;
    for (; count < d->params.max_det; count++) {
        if (threadIdx.x == 0)
            best_key = ~0ull;
        __syncthreads();
        unsigned long long mine = ~0ull;
        for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
            const unsigned long long key = (unsigned long long)score_order(p->scores[i]) << 32 | i;
            if (b->label[i] != LABEL_GONE && key < mine)
                mine = key;
        }
        if (mine != ~0ull)
            atomicMin(&best_key, mine);
        __syncthreads();
        const unsigned long long key = best_key;
        if (key == ~0ull)
            break;
        const int best = (int)(uint32_t)key, label = b->label[best];
        for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
            if (i == best || b->label[i] != label)
                continue;
            const float overlap =
                best < i ? quotient_called(d, b, best, i) : quotient_called(d, b, i, best);
            if (overlap > d->overlap)
                p->scores[i] *= 1 - overlap;
            if (overlap > d->overlap && !(p->scores[i] > d->params.soft_floor))
                b->label[i] = LABEL_GONE;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            p->kept[count] = best;
            b->label[best] = LABEL_GONE;
        }
    }
    __syncthreads();
    return count;
}

// --- the second kernel

// Stores 32 bytes with two stores: the result may be behind a bus.
static __device__ inline void words_store(void *to, const void *from)
{
    uint4 words[2];
    memcpy(words, from, sizeof words);
    ((uint4 *)to)[0] = words[0];
    ((uint4 *)to)[1] = words[1];
}

// Writes a picture's result and resets its counters for the next batch.
static __device__ inline void result_write(const struct detect_batch *batch, int picture,
                                           struct detect_picture *p, int count)
{
    const struct detect *d = batch->detect;
    const struct detect_input *in = &batch->in[picture];
    const bool softly = d->params.suppression == DETECT_SOFT;
    struct detect_result *result =
        (struct detect_result *)(batch->results + (size_t)picture * batch->result_bytes);
    for (int i = threadIdx.x; i < count; i += FINISH_THREADS) {
        float corners[8];
        const uint64_t key = p->sorted[p->kept[i]];
        const float score = softly ? p->scores[p->kept[i]] : key_score(key);
        const struct detection found = detection_of(d, in, key, score, corners);
        words_store(detect_found(result) + i, &found);
        if (d->params.quads)
            words_store(detect_quads(d, result) + 8 * (size_t)i, corners);
    }
    for (int i = threadIdx.x; i < count * d->extra; i += FINISH_THREADS)
        extra_write(d, in, result, i / d->extra, key_anchor(p->sorted[p->kept[i / d->extra]]),
                    i % d->extra);
    if (threadIdx.x == 0) {
        const uint32_t candidates = p->counts[COUNT_CANDIDATES];
        struct detect_result summary;
        summary.count = count;
        summary.flags = candidates > (uint32_t)batch->layout.cut ? DETECT_CUT : 0;
        summary.candidates = candidates;
        summary.dropped = p->counts[COUNT_DROPPED];
        *result = summary;
        for (int i = 0; i < COUNTS; i++)
            p->counts[i] = 0;
    }
}

// A block's shared memory for a picture with few candidates.
struct few {
    uint64_t keys[DETECT_FEW];
    float x1[DETECT_FEW], y1[DETECT_FEW], x2[DETECT_FEW], y2[DETECT_FEW], area[DETECT_FEW];
    int32_t label[DETECT_FEW], kept[DETECT_FEW];
};

static __device__ inline void picture_move(struct detect_picture *p, struct few *few)
{
    p->sorted = few->keys;
    p->boxes.x1 = few->x1;
    p->boxes.y1 = few->y1;
    p->boxes.x2 = few->x2;
    p->boxes.y2 = few->y2;
    p->boxes.area = few->area;
    p->boxes.label = few->label;
    p->kept = few->kept;
}

static __global__ void __launch_bounds__(FINISH_THREADS, FINISH_BLOCKS)
    detect_finish(const __grid_constant__ struct detect_batch batch)
{
    __shared__ struct few few;
    __shared__ struct meeting meet;
    __shared__ uint32_t gone[GONE_WORDS];
    const struct detect *d = batch.detect;
    const struct detect_input *in = &batch.in[blockIdx.x];
    const bool softly = d->params.suppression == DETECT_SOFT;
    struct detect_picture p = picture_at(&batch, blockIdx.x);
    previous_kernel_wait();
    const uint32_t n = p.counts[COUNT_CANDIDATES], cut = batch.layout.cut;
    const int m = (int)(n < cut ? n : cut);
    if (m <= DETECT_FEW)
        picture_move(&p, &few);
    keys_sort(p.sorted, p.keys, n, m, &meet);
    for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
        if (!boxes_set(&p.boxes, i, d, in, p.sorted[i]))
            atomicAdd(&p.counts[COUNT_DROPPED], 1u);
        if (softly)
            p.scores[i] = key_score(p.sorted[i]);
    }
    __syncthreads();
    int count;
    if (softly) {
        count = suppress_softly(d, &p, m);
    } else {
        gone_init(gone, &p.boxes, m);
        count = keep(gone, d, &p, m);
    }
    result_write(&batch, blockIdx.x, &p, count);
}

#endif
