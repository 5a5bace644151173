// Detection: checks of a descriptor, layout of memory, the reference, and the merge of lists.
#include "kernels/detect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/detect_overlap.h"

// --- heads

enum { ALIGN = 64 };

// Properties of each head: columns before the first score, kinds of boxes and classes.
static const struct head {
    int first;       // column of the first score
    bool objectness, // in the column before the first score
        one_tensor,  // rows or planes of columns
        listed,      // one score, and an explicit class
        finished,    // without duplicates
        normalised;
} heads[DETECT_HEADS] = {
    [DETECT_YOLOV8] = {.first = 4, .one_tensor = true},
    [DETECT_YOLOV5] = {.first = 5, .one_tensor = true, .objectness = true},
    [DETECT_YOLOX] = {.first = 5, .one_tensor = true, .objectness = true},
    [DETECT_END2END] = {.first = 4, .one_tensor = true, .listed = true, .finished = true},
    [DETECT_DETR] = {.finished = true, .normalised = true},
    [DETECT_EFFICIENTNMS] = {.listed = true, .finished = true},
    [DETECT_TFLITE] = {.listed = true, .finished = true, .normalised = true},
};

struct detect_params detect_defaults(enum detect_head head)
{
    struct detect_params params = {
        .bytes = sizeof params,
        .head = head,
        .conf = 0.25f,
        .iou = 0.45,
        .candidates = DETECT_CANDIDATES,
        .max_det = 300,
        .soft_floor = 0.001f,
        .activation = head == DETECT_DETR ? DETECT_SIGMOID : DETECT_PLAIN,
        .suppression = heads[head].finished ? DETECT_KEEP : DETECT_GREEDY,
        .normalised = heads[head].normalised,
    };
    for (int i = 0; i < DETECT_TENSORS; i++)
        params.format[i].scale = 1;
    if (head == DETECT_EFFICIENTNMS)
        params.format[DETECT_LABELS].dtype = params.format[DETECT_COUNT].dtype = DETECT_S32;
    return params;
}

// --- checks: return NULL or the mistake

static bool is_within(int64_t x, int64_t least, int64_t most)
{
    return x >= least && x <= most;
}

static const char *sizes_mistake(const struct detect_params *p)
{
    if (!is_within(p->width, 1, 1 << 16) || !is_within(p->height, 1, 1 << 16))
        return "width and height: 1 to 65536 pixels each";
    if (!is_within(p->anchors, 1, DETECT_ANCHORS_MAX))
        return "anchors: 1 to 1048576";
    if (!is_within(p->classes, 1, DETECT_CLASSES_MAX))
        return "classes: 1 to 4096";
    if (p->keypoints ? !is_within(p->keypoints, 1, DETECT_EXTRA_MAX) ||
                           !is_within(p->keypoint_columns, 2, DETECT_EXTRA_MAX)
                     : p->keypoint_columns != 0)
        return "keypoints: 0, or each of 2 columns or more";
    if (!is_within(p->coefficients, 0, DETECT_EXTRA_MAX) ||
        (int64_t)p->keypoints * p->keypoint_columns + p->coefficients > DETECT_EXTRA_MAX)
        return "extra columns: at most 1024";
    if (!is_within(p->candidates, 0, DETECT_ANCHORS_MAX) ||
        !is_within(p->max_det, 0, DETECT_MAX_DET))
        return "candidates: at most 1048576; max_det: at most 65536";
    if (!is_within((int64_t)p->anchors * (p->multi_label ? p->classes : 1), 1, 1 << 28))
        return "multi_label: at most 268435456 anchors times classes";
    return NULL;
}

static const char *head_mistake(const struct detect_params *p)
{
    const struct head *head = &heads[p->head];
    const bool extra = p->keypoints > 0 || p->coefficients > 0 || p->rotated;
    if (!head->one_tensor && (p->planes || extra))
        return "planes and extra columns: only of heads of one tensor";
    if (head->listed && (p->multi_label || p->activation != DETECT_PLAIN))
        return "multi_label and activations: not of a head with a class of its own";
    if (p->activation == DETECT_SOFTMAX && p->head != DETECT_DETR)
        return "softmax: only of detr";
    if (p->rotated && (p->normalised || p->offset))
        return "rotated boxes: neither normalised nor with an offset";
    int64_t cells = 0;
    for (int i = 0; i < DETECT_STRIDES_MAX && p->strides[i] != 0; i++) {
        if (p->head != DETECT_YOLOX || p->strides[i] < 0)
            return "strides: above 0, and only of yolox";
        cells += (int64_t)(p->width / p->strides[i]) * (p->height / p->strides[i]);
    }
    if (p->strides[0] && (cells != p->anchors || p->normalised))
        return "strides: as many cells as anchors, and boxes that are not normalised";
    return NULL;
}

static const char *format_mistake(const struct detect_params *p)
{
    const struct head *head = &heads[p->head];
    for (int i = 0; i < DETECT_TENSORS; i++) {
        const struct detect_format *f = &p->format[i];
        const bool whole = head->listed && !head->one_tensor && i >= DETECT_LABELS;
        if ((int)f->dtype < 0 || f->dtype >= (whole ? DETECT_DTYPES : DETECT_S32))
            return "dtype: f32, f16, bf16, s8 or u8; of classes and counts also s32 or s64";
        if ((f->dtype == DETECT_S8 || f->dtype == DETECT_U8) &&
            !(f->scale > 0 && is_finite(f->scale) && is_within(f->zero, -255, 255)))
            return "s8 and u8: a scale above 0, and a zero from -255 to 255";
    }
    return NULL;
}

static const char *threshold_mistake(const struct detect_params *p)
{
    for (int i = 0; i < (p->class_conf ? p->classes : 1); i++)
        if (!is_finite(p->class_conf ? p->class_conf[i] : p->conf))
            return "conf: a finite number";
    if (!(p->iou >= 0 && p->iou <= 1) || !is_finite(p->soft_floor))
        return "iou: 0 to 1; soft_floor: a finite number";
    if (!is_within(p->offset, 0, 1))
        return "offset: 0 or 1";
    const float sizes[] = {p->width_min, p->width_max, p->height_min, p->height_max};
    for (int i = 0; i < 4; i++)
        if (!(sizes[i] >= 0 && is_finite(sizes[i])))
            return "sizes of boxes: 0 or more, finite";
    if ((int)p->suppression < 0 || p->suppression > DETECT_KEEP || (int)p->activation < 0 ||
        p->activation > DETECT_SOFTMAX)
        return "suppression or activation: none of those that there are";
    return NULL;
}

static const char *mistake_of(const struct detect_params *p)
{
    if ((int)p->head < 0 || p->head >= DETECT_HEADS)
        return "head: none of those that there are";
    const char *why = sizes_mistake(p);
    why = why ? why : head_mistake(p);
    why = why ? why : format_mistake(p);
    return why ? why : threshold_mistake(p);
}

// --- values derived from a descriptor

static void columns_init(struct detect *d)
{
    const struct detect_params *p = &d->params;
    const struct head *head = &heads[p->head];
    d->objectness = head->objectness;
    d->extra = p->keypoints * p->keypoint_columns + p->coefficients;
    d->scores = head->listed ? 1 : p->classes + (p->activation == DETECT_SOFTMAX);
    d->extra_column = head->first + d->scores + head->listed;
    d->columns = head->one_tensor ? d->extra_column + d->extra + p->rotated : 4;
    d->anchor_step = p->planes ? 1 : d->columns;
    d->column_step = p->planes ? p->anchors : 1;
    d->label_tensor = -1;
    if (head->one_tensor) {
        d->score_tensor = DETECT_BOXES;
        d->score_column = head->first * d->column_step;
        d->score_step = d->label_step = d->anchor_step;
        d->score_next = d->column_step;
        d->label_column = (head->first + 1) * d->column_step;
    } else {
        d->score_tensor = DETECT_SCORES;
        d->score_step = d->scores;
        d->score_next = d->label_step = 1;
    }
    if (head->listed)
        d->label_tensor = head->one_tensor ? DETECT_BOXES : DETECT_LABELS;
}

// The next binary32 below a finite x. nextafterf would require linking libm.
static float float_below(float x)
{
    const uint32_t bits = bits_of_float(x);
    if (x == 0)
        return float_of_bits(0x80000001u);
    return float_of_bits(x > 0 ? bits - 1 : bits + 1);
}

// The largest binary32 q0 <= x: for every binary32 q, q > q0 if and only if q > x.
static float floor_float(double x)
{
    const float nearest = (float)x;
    return (double)nearest > x ? float_below(nearest) : nearest;
}

static void thresholds_init(struct detect *d, const struct detect_params *p)
{
    d->overlap = floor_float(p->iou);
    d->conf_least = NAN; // above which no score is
    for (int i = 0; i < p->classes; i++) {
        float conf = p->class_conf ? p->class_conf[i] : p->conf;
        if (p->head == DETECT_YOLOX) // >= x is > the number before x
            conf = float_below(conf);
        d->conf[i] = p->class_list && !p->class_list[i] ? NAN : conf;
        if (!isnan(d->conf[i]) && !(d->conf_least <= conf))
            d->conf_least = conf;
    }
}

int detect_init(struct detect *detect, const struct detect_params *params, const char **ret_why)
{
    struct detect_params p = {0};
    const char *why = "bytes: those of a struct detect_params";
    if (params->bytes == sizeof p) {
        p = *params;
        why = mistake_of(&p);
    }
    if (ret_why)
        *ret_why = why;
    if (why)
        return -EINVAL;
    p.candidates = p.candidates ? p.candidates : DETECT_CANDIDATES;
    p.max_det = p.max_det ? p.max_det : 300;
    memset(detect, 0, sizeof *detect);
    detect->params = p;
    columns_init(detect);
    thresholds_init(detect, &p);
    detect->params.class_conf = NULL;
    detect->params.class_list = NULL;
    detect->limited = p.width_min > 0 || p.height_min > 0 || p.width_max > 0 || p.height_max > 0;
    detect->capacity = p.anchors * (p.multi_label ? p.classes : 1);
    if (detect->params.candidates > detect->capacity)
        detect->params.candidates = detect->capacity;
    return 0;
}

// --- memory

size_t detect_dtype_bytes(enum detect_dtype dtype)
{
    static const size_t bytes[DETECT_DTYPES] = {
        [DETECT_F32] = 4, [DETECT_F16] = 2, [DETECT_BF16] = 2, [DETECT_S8] = 1,
        [DETECT_U8] = 1,  [DETECT_S32] = 4, [DETECT_S64] = 8,
    };
    return bytes[dtype];
}

size_t detect_tensor_bytes(const struct detect *d, int tensor)
{
    const struct head *head = &heads[d->params.head];
    const size_t anchors = (size_t)d->params.anchors;
    const size_t elements[DETECT_TENSORS] = {
        anchors * (size_t)d->columns,
        head->one_tensor ? 0 : anchors * (size_t)d->scores,
        head->listed && !head->one_tensor ? anchors : 0,
        head->listed && !head->one_tensor,
    };
    return elements[tensor] * detect_dtype_bytes(d->params.format[tensor].dtype);
}

size_t detect_result_bytes(const struct detect *d)
{
    const size_t floats = (size_t)(d->params.quads ? 8 : 0) + (size_t)d->extra;
    const size_t bytes =
        sizeof(struct detect_result) +
        (size_t)d->params.max_det * (sizeof(struct detection) + floats * sizeof(float));
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void *workspace_take(struct detect_workspace *w, void *base, size_t bytes)
{
    void *part = base ? (uint8_t *)base + w->bytes : NULL;
    w->bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return part;
}

struct detect_workspace detect_workspace_at(const struct detect *d, void *base)
{
    struct detect_workspace w = {0};
    const size_t boxes = ((size_t)d->params.candidates + BOX_GROUP - 1) / BOX_GROUP * BOX_GROUP;
    float **const floats[] = {&w.boxes.x1, &w.boxes.y1,   &w.boxes.x2,
                              &w.boxes.y2, &w.boxes.area, &w.scores};
    w.keys = workspace_take(&w, base, (size_t)d->capacity * sizeof *w.keys);
    w.spare = workspace_take(&w, base, (size_t)d->capacity * sizeof *w.spare);
    for (int i = 0; i < 6; i++)
        *floats[i] = workspace_take(&w, base, boxes * sizeof(float));
    w.boxes.label = workspace_take(&w, base, boxes * sizeof *w.boxes.label);
    w.boxes.quad = workspace_take(&w, base, d->params.rotated ? boxes * sizeof *w.boxes.quad : 0);
    w.kept = workspace_take(&w, base, (size_t)d->params.max_det * sizeof *w.kept);
    w.gone = workspace_take(&w, base, boxes / 8);
    return w;
}

size_t detect_workspace_bytes(const struct detect *d)
{
    return detect_workspace_at(d, NULL).bytes;
}

// --- plain loops, the reference: every other version gives its bytes

int detect_candidates(const struct detect *d, const struct detect_input *in, uint32_t first,
                      uint32_t end, uint64_t *keys, uint32_t *dropped)
{
    int n = 0;
    for (uint32_t anchor = first; anchor < end; anchor++) {
        const struct score_terms terms = score_terms_of(d, in, anchor);
        float best = -INFINITY;
        int best_label = 0;
        if (d->label_tensor >= 0) {
            best = score_of(d, in, anchor, 0, &terms);
            best_label = label_of(d, in, anchor);
            if (best_label < 0) {
                *dropped += best > d->conf_least;
                continue;
            }
        }
        for (int label = 0; d->label_tensor < 0 && label < d->params.classes; label++) {
            const float score = score_of(d, in, anchor, label, &terms);
            if (d->params.multi_label && score > d->conf[label])
                keys[n++] = key_of(score, anchor, (uint32_t)label);
            if (score > best) {
                best = score;
                best_label = label;
            }
        }
        if (!d->params.multi_label && best > d->conf[best_label])
            keys[n++] = key_of(best, anchor, (uint32_t)best_label);
    }
    return n;
}

static int keys_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Goes through candidates in order: the remaining ones are kept, and suppress others.
static int boxes_suppress(const struct detect *d, const struct detect_boxes *boxes, int n,
                          int32_t *kept)
{
    int count = 0;
    for (int i = 0; i < n && count < d->params.max_det; i++) {
        bool gone = boxes->label[i] == LABEL_GONE;
        if (d->params.suppression == DETECT_GREEDY)
            for (int k = 0; k < count && !gone; k++)
                gone = suppresses(d, boxes, kept[k], i);
        if (d->params.suppression == DETECT_FAST)
            for (int j = 0; j < i && !gone; j++)
                gone = suppresses(d, boxes, j, i);
        if (!gone)
            kept[count++] = i;
    }
    return count;
}

// Keeps the largest remaining score, the first on a tie, and reduces overlapping boxes' scores.
int detect_suppress_softly(const struct detect *d, const struct detect_boxes *boxes, int n,
                           int32_t *kept, float *scores)
{
    int count = 0;
    while (count < d->params.max_det) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (boxes->label[i] != LABEL_GONE && (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            break;
        kept[count++] = best;
        for (int i = 0; i < n; i++) {
            if (i == best || boxes->label[i] != boxes->label[best])
                continue;
            const float overlap =
                best < i ? quotient_of(d, boxes, best, i) : quotient_of(d, boxes, i, best);
            if (overlap > d->overlap)
                scores[i] *= 1 - overlap;
            if (overlap > d->overlap && !(scores[i] > d->params.soft_floor))
                boxes->label[i] = LABEL_GONE;
        }
        boxes->label[best] = LABEL_GONE;
    }
    return count;
}

void detect_write(const struct detect *d, const struct detect_input *in,
                  struct detect_result *result, const uint64_t *keys,
                  const struct detect_workspace *w)
{
    for (uint32_t i = 0; i < result->count; i++) {
        const uint64_t key = keys[w->kept[i]];
        float corners[8];
        detect_found(result)[i] = detection_of(d, in, key, w->scores[w->kept[i]], corners);
        if (d->params.quads)
            memcpy(detect_quads(d, result) + 8 * (size_t)i, corners, sizeof corners);
        for (int j = 0; j < d->extra; j++)
            extra_write(d, in, result, i, key_anchor(key), j);
    }
}

void detect_reference(const struct detect *d, const struct detect_input *in,
                      struct detect_result *result, void *workspace)
{
    const struct detect_workspace w = detect_workspace_at(d, workspace);
    *result = (struct detect_result){0};
    int n = detect_candidates(d, in, 0, rows_of(d, in), w.keys, &result->dropped);
    qsort(w.keys, (size_t)n, sizeof w.keys[0], keys_compare);
    result->candidates = (uint32_t)n;
    if (n > d->params.candidates) {
        result->flags |= DETECT_CUT;
        n = d->params.candidates;
    }
    for (int i = 0; i < n; i++) {
        result->dropped += !boxes_set(&w.boxes, i, d, in, w.keys[i]);
        w.scores[i] = key_score(w.keys[i]);
    }
    const bool softly = d->params.suppression == DETECT_SOFT;
    result->count = (uint32_t)(softly ? detect_suppress_softly(d, &w.boxes, n, w.kept, w.scores)
                                      : boxes_suppress(d, &w.boxes, n, w.kept));
    detect_write(d, in, result, w.keys, &w);
}

// --- merge. Hundreds of boxes: plain loops suffice.

size_t detect_merge_bytes(int n)
{
    return (size_t)n * (sizeof(uint64_t) + sizeof(int32_t));
}

// Sorts the valid boxes of the list, best first. Returns their number.
static int detections_sort(uint64_t *keys, const struct detection from[], int n)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        const struct detection *box = &from[i];
        if (box->score == box->score && is_finite(box->x1) && is_finite(box->y1) &&
            is_finite(box->x2) && is_finite(box->y2))
            keys[left++] = (uint64_t)score_order(box->score) << KEY_SCORE_SHIFT | (uint32_t)i;
    }
    qsort(keys, (size_t)left, sizeof keys[0], keys_compare);
    return left;
}

static float detection_area(const struct detection *box)
{
    return (box->x2 - box->x1) * (box->y2 - box->y1);
}

static bool detections_overlap(const struct detection *a, const struct detection *b,
                               const struct detect_merge *merge)
{
    const float width = (a->x2 < b->x2 ? a->x2 : b->x2) - (a->x1 > b->x1 ? a->x1 : b->x1);
    const float height = (a->y2 < b->y2 ? a->y2 : b->y2) - (a->y1 > b->y1 ? a->y1 : b->y1);
    const float shared = (width > 0 ? width : 0) * (height > 0 ? height : 0);
    const float one = detection_area(a), other = detection_area(b);
    const float smaller = one < other ? one : other;
    const float quotient = shared / (merge->metric == DETECT_IOS ? smaller : one + other - shared);
    return (merge->agnostic || a->label == b->label) && (double)quotient > merge->threshold;
}

static void detection_absorb(struct detection *box, const struct detection *other)
{
    box->x1 = other->x1 < box->x1 ? other->x1 : box->x1;
    box->y1 = other->y1 < box->y1 ? other->y1 : box->y1;
    box->x2 = other->x2 > box->x2 ? other->x2 : box->x2;
    box->y2 = other->y2 > box->y2 ? other->y2 : box->y2;
}

int detect_merge(struct detection to[], int32_t ret_source[], const struct detection from[], int n,
                 const struct detect_merge *merge, void *workspace)
{
    uint64_t *keys = workspace;
    int32_t *source = ret_source ? ret_source : (int32_t *)(keys + n);
    int count = 0;
    if (!(merge->threshold >= 0 && merge->threshold <= 1) || n < 0 || merge->max_det < 0)
        return -EINVAL;
    const int left = detections_sort(keys, from, n);
    for (int i = 0; i < left; i++) {
        const int at = (int)(uint32_t)keys[i];
        int k = 0;
        while (k < count && !detections_overlap(&from[source[k]], &from[at], merge))
            k++;
        if (k < count && merge->absorb)
            detection_absorb(&to[k], &from[at]);
        if (k == count && (merge->max_det == 0 || count < merge->max_det)) {
            to[count] = from[at];
            source[count++] = at;
        }
    }
    return count;
}
