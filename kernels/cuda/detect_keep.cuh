// Decides in one block which boxes of a picture are kept.
#ifndef FRAMED_KERNELS_CUDA_DETECT_KEEP_CUH
#define FRAMED_KERNELS_CUDA_DETECT_KEEP_CUH

#include "kernels/cuda/detect_sort.cuh"

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

#endif
