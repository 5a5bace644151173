#include "daemon/codec/picture_filter.h"

#include <string.h>

// Timestamps are rounded, and a keyframe may be somewhat late before it counts as missing.
static const double TOLERANCE = 1.02, OVERDUE = 1.25;

void picture_filter_begin(struct picture_filter *filter)
{
    filter->keyframes_only = filter->unfit = filter->unwanted = false;
    filter->keys = 0;
}

static void note_keyframe(struct picture_filter *filter, int64_t time_ns)
{
    memmove(filter->key_ns + 1, filter->key_ns, KEY_DISTANCES * sizeof filter->key_ns[0]);
    filter->key_ns[0] = time_ns;
    filter->keys += filter->keys <= KEY_DISTANCES;
}

// Returns true if keyframes come as often as pictures are needed.
static bool keyframes_suffice(const struct picture_filter *filter)
{
    if (filter->fps <= 0 || filter->unfit || filter->keys <= KEY_DISTANCES)
        return false;
    for (int i = 0; i < KEY_DISTANCES; i++) {
        const double distance_s = (double)(filter->key_ns[i] - filter->key_ns[i + 1]) / 1e9;
        if (distance_s <= 0 || distance_s * filter->fps > TOLERANCE)
            return false;
    }
    return true;
}

static enum filter_verdict filter_auto(struct picture_filter *filter, bool keyframe,
                                       int64_t time_ns)
{
    if (keyframe) {
        note_keyframe(filter, time_ns);
        filter->keyframes_only = keyframes_suffice(filter);
        return FILTER_DECODE;
    }
    if (!filter->keyframes_only)
        return FILTER_DECODE;
    const double since_s = (double)(time_ns - filter->key_ns[0]) / 1e9;
    const bool wakes = !keyframes_suffice(filter) || since_s * filter->fps > OVERDUE;
    return wakes ? FILTER_WAKE : FILTER_SKIP;
}

enum filter_verdict picture_filter_packet(struct picture_filter *filter, bool keyframe,
                                          bool disposable, int64_t time_ns)
{
    // Pictures resume at a keyframe: others would refer to skipped ones.
    if (keyframe)
        filter->unwanted = filter->fps < 0;
    else if (filter->unwanted)
        return FILTER_SKIP;
    switch (filter->pictures) {
    case PICTURES_AUTO:
        return filter_auto(filter, keyframe, time_ns);
    case PICTURES_REFERENCE:
        return disposable && !keyframe ? FILTER_SKIP : FILTER_DECODE;
    case PICTURES_KEYFRAMES:
        return keyframe ? FILTER_DECODE : FILTER_SKIP;
    case PICTURES_ALL:
        break;
    }
    return FILTER_DECODE;
}

// The distances so far no longer hold: measures new ones.
void picture_filter_wake(struct picture_filter *filter)
{
    filter->keyframes_only = false;
    filter->keys = filter->keys > 0;
}

enum decoded_pictures picture_filter_now(const struct picture_filter *filter)
{
    if (filter->unwanted)
        return PICTURES_KEYFRAMES;
    if (filter->pictures == PICTURES_AUTO)
        return filter->keyframes_only ? PICTURES_KEYFRAMES : PICTURES_ALL;
    return filter->pictures;
}
