// Detection in registers of any width: the candidates of dense heads, and suppression.
#ifndef FRAMED_KERNELS_CPU_DETECT_LANES_H
#define FRAMED_KERNELS_CPU_DETECT_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__aarch64__)
#include "kernels/cpu/vector_neon.h"
#else
#include "kernels/cpu/vector_x86.h"
#endif
#include "kernels/detect_overlap.h"

// --- kernels/detect_number.h in lanes: elements and activations, with the same bits

// Elements i to i + FLOATS - 1 of a tensor; `dtype` is a constant.
static inline FRAMED_HD vec_f32 elements_load(enum detect_dtype dtype, const void *data,
                                              const struct detect_format *format, size_t i)
{
    if (dtype == DETECT_F32)
        return load_f32((const float *)data + i);
    if (dtype == DETECT_F16)
        return load_half((const uint16_t *)data + i);
    if (dtype == DETECT_BF16)
        return (vec_f32)(words_widened((const uint16_t *)data + i) << 16);
    vec_s32 whole = levels_widened((const uint8_t *)data + i);
    if (dtype == DETECT_S8)
        whole = (whole ^ 128) - 128;
    return __builtin_convertvector(whole - format->zero, vec_f32) * format->scale;
}

static inline FRAMED_HD vec_f32 exp_lanes(vec_f32 x)
{
    const vec_s32 zero = x < EXP_LEAST;
    x = min_f32(all_f32(EXP_MOST), x);
    const vec_f32 shifted = x * EXP_LOG2E + EXP_ROUND, n = shifted - EXP_ROUND;
    const vec_f32 r = (x - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
    vec_f32 p = r * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    p = (p * (r * r) + r) + 1;
    const vec_u32 power = ((vec_u32)shifted + 126) << 23;
    const vec_f32 e = p * (vec_f32)(power & 0x7f800000) * 2;
    return (vec_f32)((vec_s32)e & ~zero);
}

static inline FRAMED_HD vec_f32 sigmoid_lanes(vec_f32 x)
{
    return 1 / (1 + exp_lanes(-x));
}

// --- sort by digits from the lowest up. Each pass is stable; a pass is skipped if its digit is the
// same in all keys.

enum {
    SORT_FEW = 24,
    SORT_BITS = 11,
    SORT_BINS = 1 << SORT_BITS,
    SORT_DIGITS = 6, // of 64 bits; the last three are the score's
};

static inline void sort_few(uint64_t *keys, int n)
{
    for (int i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        int at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

// Lowest bit of digit i: 0, 11, 22, 32, 43, 54.
static inline int sort_shift(int i)
{
    return i < 3 ? i * SORT_BITS : 32 + (i - 3) * SORT_BITS;
}

static inline unsigned sort_digit(uint64_t key, int i)
{
    return (key >> sort_shift(i)) & (i == 2 ? SORT_BINS / 2 - 1 : SORT_BINS - 1);
}

// `in_order`: keys of equal scores are already in order. Returns the array with the sorted keys:
// `keys`, or `spare`, which has the same size.
static inline uint64_t *sort_keys(uint64_t *keys, uint64_t *spare, int n, bool in_order)
{
    if (n <= SORT_FEW) {
        sort_few(keys, n);
        return keys;
    }
    for (int i = in_order ? 3 : 0; i < SORT_DIGITS; i++) {
        uint32_t place[SORT_BINS] = {0}, sum = 0;
        for (int k = 0; k < n; k++)
            place[sort_digit(keys[k], i)]++;
        if (place[sort_digit(keys[0], i)] == (uint32_t)n)
            continue;
        for (int bin = 0; bin < SORT_BINS; bin++) {
            const uint32_t count = place[bin];
            place[bin] = sum;
            sum += count;
        }
        for (int k = 0; k < n; k++)
            spare[place[sort_digit(keys[k], i)]++] = keys[k];
        uint64_t *const sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

// --- scores

// Scores of FLOATS classes of an anchor, or of one class of FLOATS anchors.
struct score_source {
    const void *data;
    struct detect_format format;
    bool sigmoid, product;
};

static inline FRAMED_HD vec_f32 scores_load(enum detect_dtype dtype, bool plain,
                                            const struct score_source *from, size_t i,
                                            vec_f32 objectness)
{
    vec_f32 scores = elements_load(dtype, from->data, &from->format, i);
    if (!plain && from->sigmoid)
        scores = sigmoid_lanes(scores);
    return !plain && from->product ? objectness * scores : scores;
}

// The best score of each lane, and its class.
struct best_lanes {
    vec_f32 score;
    vec_s32 label;
};

static inline FRAMED_HD void best_take(struct best_lanes *best, vec_f32 scores, vec_s32 labels)
{
    best->label = select_s32(scores > best->score, labels, best->label);
    best->score = max_f32(scores, best->score);
}

// --- planes: lanes are anchors

// Adds the best scores that are candidates.
static inline FRAMED_HD int best_add(const struct detect *d, const struct best_lanes *best,
                                     uint32_t anchor, uint64_t *keys, int n)
{
    unsigned bits = lanes_bits(best->score > all_f32(d->conf_least));
    for (; bits; bits &= bits - 1) {
        const int i = __builtin_ctz(bits);
        if (best->score[i] > d->conf[best->label[i]])
            keys[n++] = key_of(best->score[i], anchor + (uint32_t)i, (uint32_t)best->label[i]);
    }
    return n;
}

static inline FRAMED_HD int planes_best(const struct detect *d, enum detect_dtype dtype, bool plain,
                                        const struct score_source *from,
                                        const struct score_source *objects, uint64_t *keys,
                                        uint32_t *ret_end)
{
    enum { RUN = 4 }; // registers of anchors at a time: whole cache lines of each plane
    const size_t next = (size_t)d->score_next;
    const uint32_t anchors = (uint32_t)d->params.anchors, step = RUN * FLOATS;
    uint32_t anchor = 0;
    int n = 0;
    for (; anchor + step <= anchors; anchor += step) {
        struct best_lanes best[RUN];
        vec_f32 objectness[RUN];
        size_t i = (size_t)d->score_column + anchor;
        for (int k = 0; k < RUN; k++) {
            best[k] = (struct best_lanes){all_f32(-INFINITY), all_s32(0)};
            objectness[k] =
                plain || !from->product
                    ? all_f32(1)
                    : scores_load(dtype, plain, objects, i - next + k * FLOATS, all_f32(1));
        }
        for (int c = 0; c < d->params.classes; c++, i += next)
            for (int k = 0; k < RUN; k++)
                best_take(&best[k], scores_load(dtype, plain, from, i + k * FLOATS, objectness[k]),
                          all_s32(c));
        for (int k = 0; k < RUN; k++)
            n = best_add(d, &best[k], anchor + (uint32_t)k * FLOATS, keys, n);
    }
    *ret_end = anchor;
    return n;
}

static inline FRAMED_HD int planes_all(const struct detect *d, enum detect_dtype dtype, bool plain,
                                       const struct score_source *from,
                                       const struct score_source *objects, uint64_t *keys,
                                       uint32_t *ret_end)
{
    const size_t next = (size_t)d->score_next;
    const uint32_t anchors = (uint32_t)d->params.anchors / FLOATS * FLOATS;
    int n = 0;
    for (int c = 0; c < d->params.classes; c++) {
        const vec_f32 conf = all_f32(d->conf[c]);
        for (uint32_t anchor = 0; anchor < anchors; anchor += FLOATS) {
            const size_t i = (size_t)d->score_column + anchor;
            const vec_f32 objectness =
                plain || !from->product ? all_f32(1)
                                        : scores_load(dtype, plain, objects, i - next, all_f32(1));
            const vec_f32 scores =
                scores_load(dtype, plain, from, i + (size_t)c * next, objectness);
            unsigned bits = lanes_bits(scores > conf);
            for (; bits; bits &= bits - 1) {
                const int k = __builtin_ctz(bits);
                keys[n++] = key_of(scores[k], anchor + (uint32_t)k, (uint32_t)c);
            }
        }
    }
    *ret_end = anchors;
    return n;
}

// --- rows: lanes are classes, at least FLOATS of them; the last ones overlap those before

static inline FRAMED_HD int row_best_add(const struct detect *d, const struct best_lanes *best,
                                         uint32_t anchor, uint64_t *keys, int n)
{
    if (!lanes_bits(best->score > all_f32(d->conf_least)))
        return n;
    float score = best->score[0];
    int32_t label = best->label[0];
    for (int i = 1; i < FLOATS; i++)
        if (best->score[i] > score || (best->score[i] == score && best->label[i] < label)) {
            score = best->score[i];
            label = best->label[i];
        }
    if (score > d->conf[label])
        keys[n++] = key_of(score, anchor, (uint32_t)label);
    return n;
}

// Factor of the scores: the element before the classes, which begin at element i.
static inline FRAMED_HD vec_f32 objectness_lanes(bool plain, const struct score_source *from,
                                                 const struct score_source *objects, size_t i)
{
    if (plain || !from->product)
        return all_f32(1);
    const vec_f32 objectness = all_f32(element_at(objects->data, &objects->format, i - 1));
    return from->sigmoid ? sigmoid_lanes(objectness) : objectness;
}

static inline FRAMED_HD int rows_best(const struct detect *d, enum detect_dtype dtype, bool plain,
                                      const struct score_source *from,
                                      const struct score_source *objects, uint64_t *keys)
{
    vec_s32 lane = all_s32(0);
    for (int i = 0; i < FLOATS; i++)
        lane[i] = i;
    const int classes = d->params.classes;
    int n = 0;
    for (uint32_t anchor = 0; anchor < (uint32_t)d->params.anchors; anchor++) {
        const size_t i = (size_t)anchor * (size_t)d->score_step + (size_t)d->score_column;
        struct best_lanes best = {all_f32(-INFINITY), all_s32(0)};
        const vec_f32 objectness = objectness_lanes(plain, from, objects, i);
        for (int c = 0; c < classes; c += FLOATS) {
            const int first = c + FLOATS <= classes ? c : classes - FLOATS;
            best_take(&best, scores_load(dtype, plain, from, i + (size_t)first, objectness),
                      lane + first);
        }
        n = row_best_add(d, &best, anchor, keys, n);
    }
    return n;
}

static inline FRAMED_HD int rows_all(const struct detect *d, enum detect_dtype dtype, bool plain,
                                     const struct score_source *from,
                                     const struct score_source *objects, uint64_t *keys)
{
    const int classes = d->params.classes;
    int n = 0;
    for (uint32_t anchor = 0; anchor < (uint32_t)d->params.anchors; anchor++) {
        const size_t i = (size_t)anchor * (size_t)d->score_step + (size_t)d->score_column;
        const vec_f32 objectness = objectness_lanes(plain, from, objects, i);
        for (int c = 0; c < classes; c += FLOATS) {
            const int first = c + FLOATS <= classes ? c : classes - FLOATS;
            const vec_f32 scores = scores_load(dtype, plain, from, i + (size_t)first, objectness);
            unsigned bits = lanes_bits(scores > load_f32(&d->conf[first])) >> (c - first)
                                                                                  << (c - first);
            for (; bits; bits &= bits - 1) {
                const int k = __builtin_ctz(bits);
                keys[n++] = key_of(scores[k], anchor, (uint32_t)(first + k));
            }
        }
    }
    return n;
}

// --- all candidates

static inline FRAMED_HD int dense_candidates(const struct detect *d, enum detect_dtype dtype,
                                             bool plain, const struct score_source *from,
                                             const struct score_source *objects, uint64_t *keys,
                                             uint32_t *ret_end)
{
    *ret_end = (uint32_t)d->params.anchors;
    if (d->params.planes)
        return d->params.multi_label ? planes_all(d, dtype, plain, from, objects, keys, ret_end)
                                     : planes_best(d, dtype, plain, from, objects, keys, ret_end);
    return d->params.multi_label ? rows_all(d, dtype, plain, from, objects, keys)
                                 : rows_best(d, dtype, plain, from, objects, keys);
}

static inline int lanes_candidates(const struct detect *d, const struct detect_input *in,
                                   uint64_t *keys, uint32_t *dropped)
{
    const int t = d->score_tensor;
    const struct score_source from = {in->tensor[t], d->params.format[t],
                                      d->params.activation == DETECT_SIGMOID, d->objectness};
    const struct score_source objects = {in->tensor[t], d->params.format[t], from.sigmoid, false};
    const bool plain = !from.sigmoid && !from.product;
    uint32_t end = 0;
    int n = 0;
    if (d->label_tensor >= 0 || d->params.activation == DETECT_SOFTMAX ||
        (!d->params.planes && d->params.classes < FLOATS))
        return detect_candidates(d, in, 0, rows_of(d, in), keys, dropped);
    switch (from.format.dtype) {
#define CASE(dtype)                                                                                \
    case dtype:                                                                                    \
        n = plain ? dense_candidates(d, dtype, true, &from, &objects, keys, &end)                  \
                  : dense_candidates(d, dtype, false, &from, &objects, keys, &end);                \
        break;
        CASE(DETECT_F32)
        CASE(DETECT_F16)
        CASE(DETECT_BF16)
        CASE(DETECT_S8)
        CASE(DETECT_U8)
#undef CASE
    default:
        break;
    }
    return n + detect_candidates(d, in, end, (uint32_t)d->params.anchors, keys + n, dropped);
}

// --- suppression

// Box i suppresses: sets the bits of boxes that overlap it more than allowed. Bits up to i may be
// set arbitrarily.
static inline FRAMED_HD void row_suppress(const struct detect *d, const struct detect_boxes *b,
                                          int i, int n, uint64_t *gone)
{
    const vec_f32 x1 = all_f32(b->x1[i]), y1 = all_f32(b->y1[i]), x2 = all_f32(b->x2[i]);
    const vec_f32 y2 = all_f32(b->y2[i]), area = all_f32(b->area[i]), zero = all_f32(0);
    const vec_f32 one = all_f32((float)d->params.offset), overlap = all_f32(d->overlap);
    const vec_s32 label = all_s32(b->label[i]);
    for (int at = i / BOX_GROUP * BOX_GROUP; at < n; at += BOX_GROUP) {
        uint64_t bits = 0;
        if (gone[at / BOX_GROUP] == UINT64_MAX)
            continue;
        for (int j = at; j < at + BOX_GROUP; j += FLOATS) {
            const vec_s32 same = (vec_s32)load_u8(b->label + j) == label;
            if (!lanes_bits(same))
                continue;
            const vec_f32 width =
                min_f32(x2, load_f32(b->x2 + j)) - max_f32(x1, load_f32(b->x1 + j)) + one;
            const vec_f32 height =
                min_f32(y2, load_f32(b->y2 + j)) - max_f32(y1, load_f32(b->y1 + j)) + one;
            const vec_s32 touch = same & (width > zero) & (height > zero);
            unsigned above = lanes_bits(touch);
            if (above && !d->params.rotated) {
                const vec_f32 shared = width * height;
                const vec_f32 quotient = shared / (area + load_f32(b->area + j) - shared);
                above = lanes_bits(touch & (quotient > overlap));
            }
            bits |= (uint64_t)above << (j - at);
        }
        for (uint64_t left = d->params.rotated ? bits & ~gone[at / BOX_GROUP] : 0; left;
             left &= left - 1) { // boxes whose hulls touch
            const int j = __builtin_ctzll(left);
            if (at + j > i && !suppresses(d, b, i, at + j))
                bits &= ~(UINT64_C(1) << j);
        }
        gone[at / BOX_GROUP] |= bits;
    }
}

static inline int lanes_suppress(const struct detect *d, const struct detect_workspace *w, int n)
{
    const int padded = (n + BOX_GROUP - 1) / BOX_GROUP * BOX_GROUP;
    const bool none = d->params.suppression == DETECT_KEEP;
    const bool fast = d->params.suppression == DETECT_FAST;
    int count = 0;
    for (int i = n; i < padded; i++) {
        w->boxes.x1[i] = w->boxes.y1[i] = w->boxes.x2[i] = w->boxes.y2[i] = w->boxes.area[i] = 0;
        w->boxes.label[i] = LABEL_GONE;
    }
    memset(w->gone, 0, (size_t)padded / 8);
    for (int i = 0; i < n && count < d->params.max_det; i++) {
        const bool gone = w->gone[i / BOX_GROUP] >> i % BOX_GROUP & 1;
        if (w->boxes.label[i] == LABEL_GONE)
            continue;
        if (!gone)
            w->kept[count++] = i;
        if (!none && (fast || !gone))
            row_suppress(d, &w->boxes, i, n, w->gone);
    }
    return count;
}

// --- all of it

static inline void lanes_detect(const struct detect *d, const struct detect_input *in,
                                struct detect_result *result, void *workspace)
{
    const struct detect_workspace w = detect_workspace_at(d, workspace);
    *result = (struct detect_result){0};
    int n = lanes_candidates(d, in, w.keys, &result->dropped);
    const bool in_order = !(d->params.planes && d->params.multi_label);
    const uint64_t *keys = sort_keys(w.keys, w.spare, n, in_order);
    result->candidates = (uint32_t)n;
    if (n > d->params.candidates) {
        result->flags |= DETECT_CUT;
        n = d->params.candidates;
    }
    for (int i = 0; i < n; i++) {
        result->dropped += !boxes_set(&w.boxes, i, d, in, keys[i]);
        w.scores[i] = key_score(keys[i]);
    }
    const bool softly = d->params.suppression == DETECT_SOFT;
    result->count = (uint32_t)(softly ? detect_suppress_softly(d, &w.boxes, n, w.kept, w.scores)
                                      : lanes_suppress(d, &w, n));
    detect_write(d, in, result, keys, &w);
}

#endif
