// Random detector outputs for tests of every version: each head, memory order, dtype and rule, with
// ties, NaN, infinities, no candidates, and only candidates.
#ifndef FRAMED_TESTS_KERNELS_DETECT_CASES_H
#define FRAMED_TESTS_KERNELS_DETECT_CASES_H

#include <math.h>

#include "kernels/detect_number.h"
#include "tests/kernels/random.h"

enum { CASE_TENSOR_MAX = 1 << 20, CASE_LABELS_MAX = 160 }; // bytes; classes

struct detect_case {
    struct detect detect;
    struct detect_input input;     // tensors: the starts of `data`, or their later copies
    uint8_t *data[DETECT_TENSORS]; // CASE_TENSOR_MAX bytes each
    size_t bytes[DETECT_TENSORS];  // 0: the head has no such tensor
    float class_conf[CASE_LABELS_MAX];
    uint8_t class_list[CASE_LABELS_MAX];
};

static inline float random_float(struct random *random, float least, float most)
{
    return least + (most - least) * (float)(random_next(random) >> 40) * 0x1p-24f;
}

static inline bool one_in(struct random *random, int n)
{
    return random_in(random, 1, n) == 1;
}

// Converts to binary16 by truncation, for values that need no rounding.
static inline uint16_t half_cut_off(float x)
{
    const uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000;
    const int exponent = (int)(bits >> 23 & 255) - 112;
    if ((bits & 0x7f800000) == 0x7f800000)
        return (uint16_t)(sign | 0x7c00 | (x != x ? 1 : 0));
    if (exponent <= 0) // subnormal: whole steps
        return (uint16_t)(sign | (uint32_t)(fabsf(x) * 0x1p24f));
    return (uint16_t)(sign | (exponent > 30 ? 0x7bff : ((bits & 0x7fffffff) - (112u << 23)) >> 13));
}

static inline void element_put(uint8_t *data, const struct detect_format *format, size_t i, float x)
{
    const float steps = fminf(fmaxf(x / format->scale + (float)format->zero, -128), 255);
    switch (format->dtype) {
    case DETECT_F32:
        ((float *)data)[i] = x;
        break;
    case DETECT_F16:
        ((uint16_t *)data)[i] = half_cut_off(x);
        break;
    case DETECT_BF16:
        ((uint16_t *)data)[i] = (uint16_t)(bits_of_float(x) >> 16);
        break;
    case DETECT_S8:
        ((int8_t *)data)[i] = (int8_t)fminf(steps, 127);
        break;
    case DETECT_U8:
        data[i] = (uint8_t)fmaxf(steps, 0);
        break;
    case DETECT_S32:
        ((int32_t *)data)[i] = isfinite(x) ? (int32_t)x : -1;
        break;
    default:
        ((int64_t *)data)[i] = isfinite(x) ? (int64_t)x : INT64_MIN;
        break;
    }
}

// --- the descriptor

static inline void case_rules(struct detect_case *c, struct detect_params *p, struct random *random)
{
    const bool logits = p->activation != DETECT_PLAIN;
    p->conf = one_in(random, 8) ? -1 : random_float(random, 0, logits ? 0.6f : 0.9f);
    if (one_in(random, 4))
        p->conf = (float)random_in(random, 0, 16) / 16; // may equal scores exactly
    if (one_in(random, 4)) {
        for (int i = 0; i < p->classes; i++)
            c->class_conf[i] = random_float(random, 0, 1);
        p->class_conf = c->class_conf;
    }
    if (one_in(random, 4)) {
        for (int i = 0; i < p->classes; i++)
            c->class_list[i] = !one_in(random, 3);
        p->class_list = c->class_list;
    }
    p->candidates = one_in(random, 3) ? random_in(random, 1, 60) : 8192;
    p->max_det = one_in(random, 3) ? random_in(random, 1, 20) : 300;
    if (one_in(random, 5)) {
        p->width_min = random_float(random, 0, 40);
        p->height_max = random_float(random, 40, 400);
    }
    p->suppression =
        one_in(random, 2) ? DETECT_GREEDY : (enum detect_suppression)random_in(random, 0, 3);
    p->iou =
        one_in(random, 4) ? random_in(random, 0, 8) / 8.0 : random_in(random, 0, 1000) / 1000.0;
    p->soft_floor = one_in(random, 2) ? p->conf : 0.001f;
    p->agnostic = one_in(random, 4);
    p->compat_ultralytics = one_in(random, 4);
    p->offset = !p->rotated && one_in(random, 6);
    p->clip = one_in(random, 2);
    p->quads = one_in(random, 3);
}

static inline void case_formats(struct detect_params *p, struct random *random)
{
    const bool whole = p->head == DETECT_EFFICIENTNMS || p->head == DETECT_TFLITE;
    for (int i = 0; i < DETECT_TENSORS; i++) {
        const bool number = whole && i >= DETECT_LABELS;
        struct detect_format *f = &p->format[i];
        f->dtype = (enum detect_dtype)random_in(random, 0, number ? DETECT_S64 : DETECT_U8);
        f->zero = f->dtype == DETECT_S8 ? random_in(random, -128, 20) : random_in(random, 0, 20);
        f->scale = number ? 1 : p->activation != DETECT_PLAIN ? 0.1f : 1.0f / 128;
        if (number)
            f->zero = 0;
        if (p->head <= DETECT_END2END && !p->normalised)
            f->scale *= 128; // boxes share the tensor
    }
}

static inline void case_shape(struct detect_params *p, struct random *random)
{
    p->width = 32 * random_in(random, 1, 20);
    p->height = 32 * random_in(random, 1, 20);
    p->anchors = one_in(random, 30) ? random_in(random, 200, 1400) : random_in(random, 1, 150);
    p->classes = one_in(random, 3) ? random_in(random, 1, 3) : random_in(random, 1, 100);
    if (p->anchors > 150)
        p->classes = random_in(random, 1, 20);
    const bool one_tensor = p->head <= DETECT_END2END;
    p->planes = one_tensor && one_in(random, 2);
    p->rotated = one_tensor && one_in(random, 5);
    p->normalised = !p->rotated && one_in(random, p->head >= DETECT_DETR ? 2 : 5);
    if (one_tensor && one_in(random, 4)) {
        p->keypoints = random_in(random, 1, 5);
        p->keypoint_columns = random_in(random, 2, 3);
    }
    if (one_tensor && one_in(random, 4))
        p->coefficients = random_in(random, 1, 8);
    if (p->head == DETECT_YOLOX && !p->normalised && one_in(random, 2)) {
        p->width = 32 * random_in(random, 1, 5);
        p->height = 32 * random_in(random, 1, 5);
        for (int i = 0; i < 3; i++)
            p->strides[i] = 8 << i;
        p->anchors = p->width * p->height / 1024 * (16 + 4 + 1);
    }
    const bool listed = p->head == DETECT_END2END || p->head > DETECT_DETR;
    if (!listed && one_in(random, 3))
        p->activation = p->head == DETECT_DETR ? (enum detect_activation)random_in(random, 0, 2)
                                               : DETECT_SIGMOID;
    p->multi_label = !listed && one_in(random, 3);
}

// --- the tensors

// Half of the boxes are near the previous one, so that they overlap.
struct case_box {
    float x, y, width, height;
};

static inline struct case_box case_box_next(const struct detect_case *c, struct case_box before,
                                            struct random *random)
{
    const struct detect_params *p = &c->detect.params;
    if (one_in(random, 2) && before.width > 0) {
        before.x += (float)random_in(random, -3, 3);
        before.y += (float)random_in(random, -3, 3);
        return before;
    }
    return (struct case_box){random_float(random, 0, (float)p->width),
                             random_float(random, 0, (float)p->height),
                             (float)random_in(random, 1, 64), (float)random_in(random, 1, 64)};
}

static inline void case_box_put(struct detect_case *c, size_t anchor, struct case_box b)
{
    const struct detect *d = &c->detect;
    const struct detect_params *p = &d->params;
    float v[4] = {b.x, b.y, b.width, b.height};
    if (p->head == DETECT_EFFICIENTNMS || (p->head == DETECT_END2END && !p->rotated)) {
        v[2] = b.x + b.width;
        v[3] = b.y + b.height;
    } else if (p->head == DETECT_TFLITE) {
        v[0] = b.y;
        v[1] = b.x;
        v[2] = b.y + b.height;
        v[3] = b.x + b.width;
    } else if (p->strides[0]) {
        v[0] = v[1] = 0.25f * (float)((int)b.x % 4);
        v[2] = logf(b.width / 8);
        v[3] = logf(b.height / 8);
    }
    for (int i = 0; i < 4; i++) {
        const float side = (float)((i & 1) != (p->head == DETECT_TFLITE) ? p->height : p->width);
        const size_t at = anchor * (size_t)d->anchor_step + (size_t)i * (size_t)d->column_step;
        element_put(c->data[DETECT_BOXES], &p->format[DETECT_BOXES], at,
                    p->normalised ? v[i] / side : v[i]);
    }
}

static inline float case_score(const struct detect_params *p, struct random *random, bool few)
{
    const bool logits = p->activation != DETECT_PLAIN;
    const float score = few ? (float)random_in(random, 0, 16) / 16 : random_float(random, 0, 1);
    if (one_in(random, 200)) {
        static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 0x1p-140f, 3e38f};
        return odd[random_in(random, 0, 5)];
    }
    return logits ? 16 * score - 8 : score;
}

static inline void case_scores_put(struct detect_case *c, size_t anchor, bool few,
                                   struct random *random)
{
    const struct detect *d = &c->detect;
    const struct detect_params *p = &d->params;
    const int t = d->score_tensor;
    const size_t first = anchor * (size_t)d->score_step + (size_t)d->score_column;
    for (int i = d->objectness ? -1 : 0; i < d->scores; i++)
        element_put(c->data[t], &p->format[t], first + (size_t)i * (size_t)d->score_next,
                    case_score(p, random, few));
    if (d->label_tensor >= 0) {
        const size_t at = anchor * (size_t)d->label_step + (size_t)d->label_column;
        const float label = one_in(random, 20) ? random_float(random, -2, (float)p->classes + 1)
                                               : (float)random_in(random, 0, p->classes - 1);
        element_put(c->data[d->label_tensor], &p->format[d->label_tensor], at, label);
    }
}

static inline void case_fill(struct detect_case *c, struct random *random)
{
    const struct detect *d = &c->detect;
    const struct detect_params *p = &d->params;
    const bool few = one_in(random, 2), odd = one_in(random, 3);
    struct case_box box = {0, 0, 0, 0};
    for (size_t anchor = 0; anchor < (size_t)p->anchors; anchor++) {
        box = case_box_next(c, box, random);
        case_box_put(c, anchor, box);
        case_scores_put(c, anchor, few, random);
        for (int j = 0; j < d->extra + p->rotated; j++) {
            const size_t at = anchor * (size_t)d->anchor_step +
                              (size_t)(d->extra_column + j) * (size_t)d->column_step;
            element_put(c->data[0], &p->format[0], at, random_float(random, -4, 4));
        }
    }
    for (int i = 0; odd && i < 8; i++) { // anywhere in the boxes' tensor
        static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-42f};
        const size_t elements = (size_t)p->anchors * (size_t)d->columns;
        element_put(c->data[0], &p->format[0], random_next(random) % elements,
                    values[random_in(random, 0, 5)]);
    }
    if (c->bytes[DETECT_COUNT])
        element_put(c->data[DETECT_COUNT], &p->format[DETECT_COUNT], 0,
                    (float)random_in(random, -1, p->anchors + 3));
}

static inline void case_map(struct detect_case *c, struct random *random)
{
    c->input.width = random_in(random, 16, 4000);
    c->input.height = random_in(random, 16, 4000);
    const double s = (double)c->input.width / c->detect.params.width;
    const double upright[6] = {s, 0, 0.5 * s - 0.5 - random_in(random, 0, 40), 0, s, 0.5 * s - 0.5};
    memcpy(c->input.dst_to_src, upright, sizeof upright);
    if (one_in(random, 4))
        for (int i = 0; i < 6; i++)
            c->input.dst_to_src[i] = random_float(random, -3, 3);
}

// Returns false and sets `why` if detect_init refuses the parameters.
static inline bool case_init(struct detect_case *c, struct random *random, const char **why)
{
    struct detect_params p =
        detect_defaults((enum detect_head)random_in(random, 0, DETECT_HEADS - 1));
    case_shape(&p, random);
    case_formats(&p, random);
    case_rules(c, &p, random);
    if (detect_init(&c->detect, &p, why))
        return false;
    for (int i = 0; i < DETECT_TENSORS; i++)
        c->bytes[i] = detect_tensor_bytes(&c->detect, i);
    case_fill(c, random);
    case_map(c, random);
    return true;
}

#endif
