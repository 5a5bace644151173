// Reads a candidate's score, class, box and extra columns from the tensors of a head.
#ifndef FRAMED_KERNELS_DETECT_HEAD_H
#define FRAMED_KERNELS_DETECT_HEAD_H

#include <math.h>

#include "kernels/detect_number.h"

static inline FRAMED_HD float value_of(const struct detect *d, const struct detect_input *in,
                                       uint32_t anchor, int column)
{
    const size_t i = (size_t)anchor * d->anchor_step + (size_t)column * d->column_step;
    return element_at(in->tensor[DETECT_BOXES], &d->params.format[DETECT_BOXES], i);
}

// --- scores

// Terms shared by all scores of an anchor.
struct score_terms {
    float objectness; // 1 where the head has none
    float largest, sum;
};

static inline FRAMED_HD float logit_of(const struct detect *d, const struct detect_input *in,
                                       uint32_t anchor, int label)
{
    const int t = d->score_tensor;
    const size_t i =
        (size_t)anchor * d->score_step + d->score_column + (size_t)label * d->score_next;
    return element_at(in->tensor[t], &d->params.format[t], i);
}

// The sum has sixteen parts. Part i sums classes i, i + 16, ...; then it adds parts i + 8, i + 4, i
// + 2 and i + 1. Registers of any width can follow this order.
static inline FRAMED_HD void softmax_terms(struct score_terms *terms, const struct detect *d,
                                           const struct detect_input *in, uint32_t anchor)
{
    float part[16] = {0};
    terms->largest = -INFINITY;
    for (int c = 0; c < d->scores; c++) {
        const float logit = logit_of(d, in, anchor, c);
        terms->largest = logit > terms->largest ? logit : terms->largest;
    }
    for (int c = 0; c < d->scores; c++)
        part[c & 15] += exp_steps(logit_of(d, in, anchor, c) - terms->largest);
    for (int n = 8; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            part[i] += part[i + n];
    terms->sum = part[0];
}

static inline FRAMED_HD struct score_terms
score_terms_of(const struct detect *d, const struct detect_input *in, uint32_t anchor)
{
    struct score_terms terms = {1, 0, 1};
    if (d->objectness) {
        terms.objectness = value_of(d, in, anchor, 4);
        if (d->params.activation == DETECT_SIGMOID)
            terms.objectness = sigmoid_steps(terms.objectness);
    }
    if (d->params.activation == DETECT_SOFTMAX)
        softmax_terms(&terms, d, in, anchor);
    return terms;
}

static inline FRAMED_HD float score_of(const struct detect *d, const struct detect_input *in,
                                       uint32_t anchor, int label, const struct score_terms *terms)
{
    const float logit = logit_of(d, in, anchor, label);
    float score = logit;
    if (d->params.activation == DETECT_SIGMOID)
        score = sigmoid_steps(logit);
    else if (d->params.activation == DETECT_SOFTMAX)
        score = exp_steps(logit - terms->largest) / terms->sum;
    return d->objectness ? terms->objectness * score : score;
}

// Returns the class that a head outputs; -1 if it is invalid. `label_tensor` is 0 or more.
static inline FRAMED_HD int label_of(const struct detect *d, const struct detect_input *in,
                                     uint32_t anchor)
{
    const int t = d->label_tensor;
    const size_t i = (size_t)anchor * d->label_step + d->label_column;
    const float label = element_at(in->tensor[t], &d->params.format[t], i);
    if (!(label >= 0 && label < (float)d->params.classes) || label != (float)(int)label)
        return -1;
    return (int)label;
}

// Number of valid rows; some heads output a count.
static inline FRAMED_HD uint32_t rows_of(const struct detect *d, const struct detect_input *in)
{
    if (d->params.head != DETECT_EFFICIENTNMS && d->params.head != DETECT_TFLITE)
        return (uint32_t)d->params.anchors;
    const float rows = element_at(in->tensor[DETECT_COUNT], &d->params.format[DETECT_COUNT], 0);
    if (!(rows > 0))
        return 0;
    return rows < (float)d->params.anchors ? (uint32_t)rows : (uint32_t)d->params.anchors;
}

// --- boxes

// In the network's input. Centre and sides are set for rotated boxes, else 0.
struct detect_box {
    float x1, y1, x2, y2; // the corners; of rotated boxes the hull's
    float x, y, width, height, angle;
};

// Returns the stride of an anchor's cell; 0 if the strides have no such anchor.
static inline FRAMED_HD float cell_of(const struct detect *d, uint32_t anchor, float *ret_x,
                                      float *ret_y)
{
    for (int i = 0; i < DETECT_STRIDES_MAX && d->params.strides[i] > 0; i++) {
        const uint32_t stride = (uint32_t)d->params.strides[i];
        const uint32_t across = (uint32_t)d->params.width / stride;
        const uint32_t cells = across * ((uint32_t)d->params.height / stride);
        if (anchor < cells) {
            *ret_x = (float)(anchor % across);
            *ret_y = (float)(anchor / across);
            return (float)stride;
        }
        anchor -= cells;
    }
    *ret_x = *ret_y = 0;
    return 0;
}

static inline FRAMED_HD bool has_corners(const struct detect *d)
{
    return d->params.head == DETECT_EFFICIENTNMS || d->params.head == DETECT_TFLITE ||
           (d->params.head == DETECT_END2END && !d->params.rotated);
}

// The four corners in the network's input: upright boxes clockwise from the top left; rotated
// boxes, before rotation, bottom right, top right, top left, bottom left. Binary64 up to the last
// step.
static inline FRAMED_HD void box_corners(const struct detect_box *box, bool rotated, float q[8])
{
    if (!rotated) {
        q[0] = q[6] = box->x1;
        q[1] = q[3] = box->y1;
        q[2] = q[4] = box->x2;
        q[5] = q[7] = box->y2;
        return;
    }
    double c, s;
    sincos_steps(box->angle, &s, &c);
    const double ax = box->width * 0.5 * c, ay = box->width * 0.5 * s;
    const double bx = box->height * -0.5 * s, by = box->height * 0.5 * c;
    q[0] = (float)(box->x + ax + bx);
    q[1] = (float)(box->y + ay + by);
    q[2] = (float)(box->x + ax - bx);
    q[3] = (float)(box->y + ay - by);
    q[4] = (float)(box->x - ax - bx);
    q[5] = (float)(box->y - ay - by);
    q[6] = (float)(box->x - ax + bx);
    q[7] = (float)(box->y - ay + by);
}

static inline FRAMED_HD void hull_of(const float q[8], float *x1, float *y1, float *x2, float *y2)
{
    *x1 = *x2 = q[0];
    *y1 = *y2 = q[1];
    for (int i = 2; i < 8; i += 2) {
        *x1 = q[i] < *x1 ? q[i] : *x1;
        *x2 = q[i] > *x2 ? q[i] : *x2;
        *y1 = q[i + 1] < *y1 ? q[i + 1] : *y1;
        *y2 = q[i + 1] > *y2 ? q[i + 1] : *y2;
    }
}

// Reads the first four columns: all loads are issued before the first value is used, since a GPU
// waits at each use.
static inline FRAMED_HD void box_values(const struct detect *d, const struct detect_input *in,
                                        uint32_t anchor, float v[4])
{
    const struct detect_format *format = &d->params.format[DETECT_BOXES];
    const void *data = in->tensor[DETECT_BOXES];
    const size_t at = (size_t)anchor * d->anchor_step, step = d->column_step;
    uint64_t loaded[4];
    if (format->dtype == DETECT_F32)
        for (int i = 0; i < 4; i++)
            loaded[i] = ((const uint32_t *)data)[at + i * step];
    else if (format->dtype == DETECT_F16 || format->dtype == DETECT_BF16)
        for (int i = 0; i < 4; i++)
            loaded[i] = ((const uint16_t *)data)[at + i * step];
    else
        for (int i = 0; i < 4; i++)
            loaded[i] = ((const uint8_t *)data)[at + i * step];
    for (int i = 0; i < 4; i++)
        v[i] = element_at(&loaded[i], format, 0);
}

// Returns false for a box that is not finite or an angle beyond ANGLE_MOST.
static inline FRAMED_HD bool box_of(const struct detect *d, const struct detect_input *in,
                                    uint32_t anchor, struct detect_box *box)
{
    const struct detect_box none = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    float v[4];
    box_values(d, in, anchor, v);
    *box = none;
    if (d->params.head == DETECT_YOLOX && d->params.strides[0] > 0) {
        float column, row;
        const float stride = cell_of(d, anchor, &column, &row);
        v[0] = (v[0] + column) * stride;
        v[1] = (v[1] + row) * stride;
        v[2] = exp_steps(v[2]) * stride;
        v[3] = exp_steps(v[3]) * stride;
    }
    if (d->params.rotated) {
        float q[8];
        box->x = v[0];
        box->y = v[1];
        box->width = v[2];
        box->height = v[3];
        box->angle = value_of(d, in, anchor, d->extra_column + d->extra);
        if (!(box->angle >= -ANGLE_MOST && box->angle <= ANGLE_MOST))
            return false;
        box_corners(box, true, q);
        hull_of(q, &box->x1, &box->y1, &box->x2, &box->y2);
    } else if (has_corners(d)) {
        const bool swapped = d->params.head == DETECT_TFLITE;
        box->x1 = v[swapped];
        box->y1 = v[!swapped];
        box->x2 = v[2 + swapped];
        box->y2 = v[3 - swapped];
    } else {
        box->x1 = v[0] - v[2] * 0.5f;
        box->y1 = v[1] - v[3] * 0.5f;
        box->x2 = v[0] + v[2] * 0.5f;
        box->y2 = v[1] + v[3] * 0.5f;
    }
    if (d->params.normalised) {
        box->x1 *= (float)d->params.width;
        box->y1 *= (float)d->params.height;
        box->x2 *= (float)d->params.width;
        box->y2 *= (float)d->params.height;
    }
    return is_finite(box->x1) && is_finite(box->y1) && is_finite(box->x2) && is_finite(box->y2) &&
           is_finite(box->width) && is_finite(box->height);
}

// --- mapping to source pixels

// The matrix maps pixel centres; the point is in edge coordinates.
static inline FRAMED_HD void point_map(const double m[6], float x, float y, float *ret_x,
                                       float *ret_y)
{
    const double px = (double)x - 0.5, py = (double)y - 0.5;
    *ret_x = (float)(m[0] * px + m[1] * py + m[2] + 0.5);
    *ret_y = (float)(m[3] * px + m[4] * py + m[5] + 0.5);
}

static inline FRAMED_HD void corners_map(const double m[6], const float from[8], float to[8])
{
    for (int i = 0; i < 8; i += 2)
        point_map(m, from[i], from[i + 1], &to[i], &to[i + 1]);
}

// True if the box's size in the source is within the limits.
static inline FRAMED_HD bool size_is_wanted(const struct detect *d, const struct detect_input *in,
                                            const struct detect_box *box)
{
    const struct detect_params *p = &d->params;
    float q[8], x1, y1, x2, y2;
    if (!d->limited)
        return true;
    box_corners(box, p->rotated, q);
    corners_map(in->dst_to_src, q, q);
    hull_of(q, &x1, &y1, &x2, &y2);
    const float width = x2 - x1, height = y2 - y1;
    return width >= p->width_min && height >= p->height_min &&
           (p->width_max == 0 || width <= p->width_max) &&
           (p->height_max == 0 || height <= p->height_max);
}

static inline FRAMED_HD float clipped(float x, int32_t most)
{
    return x < 0 ? 0 : x > (float)most ? (float)most : x;
}

// Direction of the box's first axis in the source.
static inline FRAMED_HD float angle_map(const double m[6], float angle)
{
    double c, s;
    sincos_steps(angle, &s, &c);
    return (float)atan2_steps(m[3] * c + m[4] * s, m[0] * c + m[1] * s);
}

// Returns a candidate's detection, and its corners in the source.
static inline FRAMED_HD struct detection detection_of(const struct detect *d,
                                                      const struct detect_input *in, uint64_t key,
                                                      float score, float q[8])
{
    struct detection found;
    struct detect_box box;
    box_of(d, in, key_anchor(key), &box);
    box_corners(&box, d->params.rotated, q);
    corners_map(in->dst_to_src, q, q);
    hull_of(q, &found.x1, &found.y1, &found.x2, &found.y2);
    if (d->params.clip) {
        found.x1 = clipped(found.x1, in->width);
        found.y1 = clipped(found.y1, in->height);
        found.x2 = clipped(found.x2, in->width);
        found.y2 = clipped(found.y2, in->height);
    }
    found.score = score;
    found.label = key_label(key);
    found.anchor = key_anchor(key);
    found.angle = d->params.rotated ? angle_map(in->dst_to_src, box.angle) : 0;
    return found;
}

// Writes extra column j of detection i (of `anchor`); both x and y of a keypoint at its x.
static inline FRAMED_HD void extra_write(const struct detect *d, const struct detect_input *in,
                                         struct detect_result *result, uint32_t i, uint32_t anchor,
                                         int j)
{
    const struct detect_params *p = &d->params;
    const bool of_point = j < p->keypoints * p->keypoint_columns;
    const int part = of_point ? j % p->keypoint_columns : 2;
    float *to = detect_extras(d, result) + (size_t)i * d->extra + j;
    float x = value_of(d, in, anchor, d->extra_column + j);
    if (part == 0) {
        float y = value_of(d, in, anchor, d->extra_column + j + 1);
        if (p->normalised) {
            x *= (float)p->width;
            y *= (float)p->height;
        }
        point_map(in->dst_to_src, x, y, &x, &y);
        to[1] = nan_without_payload(y);
    }
    if (part != 1)
        to[0] = nan_without_payload(x);
}

#endif
