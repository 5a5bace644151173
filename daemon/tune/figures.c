#include "daemon/tune/figures.h"

#include <math.h>
#include <stddef.h>

#include "daemon/bench/sample.h"

// A difference counts where it is larger than `part` of the holder's and than `least`.
struct criterion {
    size_t offset; // of the figure
    bool more;     // is better
    double part, least;
};

enum { CRITERIA = 4 };
static const double HOPELESS = 3; // times a difference that counts, and the spread

static const struct criterion criteria[][CRITERIA] = {
    [OBJECTIVE_RATE] = {{offsetof(struct figures, lost), false, 0, 0.001},
                        {offsetof(struct figures, rate), true, 0.02, 0},
                        {offsetof(struct figures, cores), false, 0.05, 0.02},
                        {offsetof(struct figures, resident), false, 0.1, 0}},
    [OBJECTIVE_LIVE] = {{offsetof(struct figures, lost), false, 0, 0.001},
                        {offsetof(struct figures, cores), false, 0.05, 0.02},
                        {offsetof(struct figures, p99_ms), false, 0.2, 1},
                        {offsetof(struct figures, resident), false, 0.1, 0}},
};

void trials_add(struct trials *trials, const struct figures *figures)
{
    if (trials->n < TRIALS_MAX)
        trials->list[trials->n++] = *figures;
}

static double figure(const struct figures *figures, size_t offset)
{
    return *(const double *)(const void *)((const char *)figures + offset);
}

// Sorted, so that the spread can be taken of them.
static double median(const struct trials *trials, size_t offset, double sorted[TRIALS_MAX])
{
    for (int i = 0; i < trials->n; i++)
        sorted[i] = figure(&trials->list[i], offset);
    return sample_median(sorted, (size_t)trials->n);
}

// From the least to the most, less one at either end where there are six and more: one trial that
// something disturbed is to be outvoted.
static double spread(const double sorted[], int n)
{
    const int left_out = n / 6;
    return n < 2 ? 0 : sorted[n - 1 - left_out] - sorted[left_out];
}

struct figures trials_median(const struct trials *trials)
{
    double sorted[TRIALS_MAX];
    return (struct figures){
        .lost = median(trials, offsetof(struct figures, lost), sorted),
        .rate = median(trials, offsetof(struct figures, rate), sorted),
        .cores = median(trials, offsetof(struct figures, cores), sorted),
        .p99_ms = median(trials, offsetof(struct figures, p99_ms), sorted),
        .resident = median(trials, offsetof(struct figures, resident), sorted),
    };
}

double trials_noise(const struct trials *trials, enum objective objective)
{
    double sorted[TRIALS_MAX];
    const double held = median(trials, criteria[objective][1].offset, sorted);
    return held > 0 ? spread(sorted, trials->n) / held : 0;
}

// How much better the challenger is, with what of it counts and what is noise.
struct difference {
    double gain, counts, noise;
};

static struct difference difference(const struct trials *challenger, const struct trials *holder,
                                    const struct criterion *criterion)
{
    double ours[TRIALS_MAX], theirs[TRIALS_MAX];
    const double value = median(challenger, criterion->offset, ours);
    const double held = median(holder, criterion->offset, theirs);
    return (struct difference){
        .gain = criterion->more ? value - held : held - value,
        .counts = fmax(criterion->part * held, criterion->least),
        .noise = fmax(spread(ours, challenger->n), spread(theirs, holder->n)),
    };
}

enum verdict trials_judge(const struct trials *challenger, const struct trials *holder,
                          enum objective objective, bool last)
{
    for (int i = 0; i < CRITERIA; i++) {
        const struct difference d = difference(challenger, holder, &criteria[objective][i]);
        if (fabs(d.gain) <= d.counts)
            continue;
        if (fabs(d.gain) > d.noise)
            return d.gain > 0 ? VERDICT_BETTER : VERDICT_WORSE;
        if (!last)
            return VERDICT_OPEN;
    }
    return VERDICT_SAME;
}

bool trials_hopeless(const struct figures *figures, const struct trials *holder,
                     enum objective objective)
{
    const struct trials one = {.list = {*figures}, .n = 1};
    for (int i = 0; i < CRITERIA; i++) {
        const struct difference d = difference(&one, holder, &criteria[objective][i]);
        if (d.gain < -HOPELESS * fmax(d.counts, d.noise))
            return true;
        if (fabs(d.gain) > d.counts) // better, or not clear: what follows does not matter yet
            return false;
    }
    return false;
}
