#include "daemon/rtsp/picture_end.h"

#include <string.h>

static const int64_t MS = 1000000;
static const int64_t FIRST_WAIT_NS = 10 * MS; // after a marker, in the first pictures
static const int64_t SILENCE_MIN_NS = 5 * MS;

enum {
    FIRST_PICTURES = 2, // before these, a marker ends a picture only after FIRST_WAIT_NS
    JUDGED = 16,        // pictures that decide on "marker" and "none"
    UNMARKED_OF_JUDGED = 8,
    STEADY = 30,        // pictures with the same number of markers
    GAPS_LEFT_OUT = 3,  // longest gaps of 64 that count as stalls of the network
    SILENCE_OF_GAP = 4, // usual gaps in the silence that ends a picture
};

const char *picture_end_name(enum picture_end end)
{
    static const char *const names[] = {"learning", "marker", "per slice", "none"};
    return names[end];
}

static void judge_markers(struct picture_end_verdict *verdict)
{
    const uint64_t last = (UINT64_C(1) << JUDGED) - 1;
    if (verdict->early)
        verdict->end = PICTURE_END_PER_SLICE;
    else if (__builtin_popcountll(verdict->unmarked & last) >= UNMARKED_OF_JUDGED)
        verdict->end = PICTURE_END_NONE;
    else if (verdict->pictures >= JUDGED && !(verdict->unmarked & last))
        verdict->end = PICTURE_END_MARKER;
    else
        verdict->end = PICTURE_END_LEARNING;
}

// Returns the longest gap of the last pictures, apart from the GAPS_LEFT_OUT longest.
static int64_t usual_gap(const struct picture_end_verdict *verdict)
{
    int64_t longest[GAPS_LEFT_OUT + 1] = {0};
    const int left_out = verdict->pictures < PICTURE_END_HISTORY ? 0 : GAPS_LEFT_OUT;
    for (int i = 0; i < verdict->pictures; i++) {
        int64_t gap = verdict->gap_ns[i];
        for (int k = 0; k <= left_out; k++)
            if (gap > longest[k]) {
                const int64_t shorter = longest[k];
                longest[k] = gap;
                gap = shorter;
            }
    }
    return longest[left_out];
}

void picture_end_learn(struct picture_end_verdict *verdict, const struct picture_end_signs *signs)
{
    if (signs->damaged)
        return;
    verdict->unmarked = verdict->unmarked << 1 | signs->unmarked;
    verdict->early = verdict->early << 1 | signs->early;
    verdict->steady = signs->markers == verdict->markers ? verdict->steady + 1 : 1;
    if (verdict->steady > PICTURE_END_HISTORY)
        verdict->steady = PICTURE_END_HISTORY;
    verdict->markers = signs->markers;
    if (verdict->pictures < PICTURE_END_HISTORY)
        verdict->pictures++;
    verdict->gap_ns[verdict->next_gap] = signs->gap_ns;
    verdict->next_gap = (verdict->next_gap + 1) % PICTURE_END_HISTORY;
    verdict->usual_gap_ns = usual_gap(verdict);
    if (verdict->split_ns > SILENCE_MIN_NS)
        verdict->split_ns -= (verdict->split_ns - SILENCE_MIN_NS) / PICTURE_END_HISTORY;
    if (signs->interval_ns > 0 && verdict->interval_ns == 0)
        verdict->interval_ns = signs->interval_ns;
    else if (signs->interval_ns > 0)
        verdict->interval_ns += (signs->interval_ns - verdict->interval_ns) / 8;
    judge_markers(verdict);
}

// Returns at most half an interval, so that a picture never waits for the next one.
static int64_t bounded_silence_ns(const struct picture_end_verdict *verdict,
                                  const struct picture_end_signs *signs)
{
    int64_t gap = verdict->usual_gap_ns, half = verdict->interval_ns / 2;
    if (verdict->pictures < FIRST_PICTURES && signs->gap_ns > gap)
        gap = signs->gap_ns;
    int64_t silence = verdict->pictures < FIRST_PICTURES ? FIRST_WAIT_NS : SILENCE_MIN_NS;
    if (silence < SILENCE_OF_GAP * gap)
        silence = SILENCE_OF_GAP * gap;
    if (silence < verdict->split_ns)
        silence = verdict->split_ns;
    return half > 0 && silence > half ? half : silence;
}

void picture_end_went_on(struct picture_end_verdict *verdict, bool marked, bool silent)
{
    if (marked) {
        verdict->early |= 1;
        verdict->steady = 0;
    }
    if (silent)
        verdict->split_ns = 2 * bounded_silence_ns(verdict, &(struct picture_end_signs){0});
    judge_markers(verdict);
}

// Returns true if the last pictures, at most STEADY, all had the same number of markers.
static bool is_steady(const struct picture_end_verdict *verdict)
{
    const int needed = verdict->pictures < STEADY ? verdict->pictures : STEADY;
    return needed > 0 && verdict->steady >= needed;
}

bool picture_end_at_marker(const struct picture_end_verdict *verdict,
                           const struct picture_end_signs *signs)
{
    if (verdict->early || signs->early)
        return is_steady(verdict) && signs->markers == verdict->markers;
    return verdict->pictures >= FIRST_PICTURES;
}

int64_t picture_end_silence_ns(const struct picture_end_verdict *verdict,
                               const struct picture_end_signs *signs, bool marked)
{
    if (verdict->early || signs->early) {
        const bool will_end = is_steady(verdict) && signs->markers < verdict->markers;
        return will_end && !signs->damaged ? INT64_MAX : bounded_silence_ns(verdict, signs);
    }
    if (verdict->end == PICTURE_END_NONE)
        return bounded_silence_ns(verdict, signs);
    return marked ? FIRST_WAIT_NS : INT64_MAX;
}
