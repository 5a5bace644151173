// Detection in plain loops, the reference: every other version gives its bytes.
#include <math.h>
#include <stdlib.h>

#include "kernels/detect_reference.h"

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
static int suppress(const struct detect *d, const struct detect_boxes *boxes, int n, int32_t *kept)
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
                                      : suppress(d, &w.boxes, n, w.kept));
    detect_write(d, in, result, w.keys, &w);
}
