// The dull way: all combinations of a few values of each setting. What a search is held against.
#include <errno.h>
#include <string.h>

#include "daemon/tune/search.h"

enum { FINALISTS = 3, FEW = 3 };

// Combinations by their first trial, the best first.
struct ranking {
    struct pick pick[FINALISTS];
    struct trials trials[FINALISTS];
    int n;
};

static void rank(struct ranking *ranking, const struct pick *pick, const struct trials *trials,
                 enum objective objective)
{
    int at = ranking->n;
    while (at > 0 &&
           trials_judge(trials, &ranking->trials[at - 1], objective, true) == VERDICT_BETTER)
        at--;
    if (at == FINALISTS)
        return;
    for (int i = ranking->n < FINALISTS ? ranking->n : FINALISTS - 1; i > at; i--) {
        ranking->pick[i] = ranking->pick[i - 1];
        ranking->trials[i] = ranking->trials[i - 1];
    }
    ranking->pick[at] = *pick;
    ranking->trials[at] = *trials;
    ranking->n += ranking->n < FINALISTS;
}

static bool is_on_grid(const struct search_options *options, int setting, int value)
{
    const int n = options->setting[setting].n;
    return value == options->start.value[setting] || value == 0 || value == n - 1 ||
           (n > FEW && value == n / 2);
}

// The next combination that is on the grid; of a setting that does not matter beside the others
// only the start's. False: there are no more.
static bool advance(const struct search_options *options, struct pick *pick)
{
    for (int i = options->n - 1; i >= 0; i--) {
        do
            pick->value[i]++;
        while (pick->value[i] < options->setting[i].n && !is_on_grid(options, i, pick->value[i]));
        if (pick->value[i] < options->setting[i].n)
            return true;
        pick->value[i] = 0;
    }
    return false;
}

static bool counts(const struct search_options *options, const struct pick *pick)
{
    for (int i = 0; i < options->n; i++)
        if (pick->value[i] != options->start.value[i] &&
            !options->matters(options->opaque, pick, i))
            return false;
    return true;
}

static int run_finals(const struct search_options *options, struct ranking *ranking,
                      struct pick *ret)
{
    int best = 0, rc = 0;
    for (int i = 1; rc == 0 && i < ranking->n; i++) {
        enum verdict verdict;
        rc = search_duel(options, &ranking->pick[i], &ranking->pick[best], &ranking->trials[i],
                         &ranking->trials[best], &verdict);
        if (rc == 0 && verdict == VERDICT_BETTER)
            best = i;
    }
    if (ranking->n > 0)
        *ret = ranking->pick[best];
    return rc;
}

int search_grid(const struct search_options *options, struct pick *ret, int *tried)
{
    struct ranking ranking = {.n = 0};
    struct pick pick = {{0}};
    int rc = 0;
    *tried = 0;
    *ret = options->start;
    do {
        struct trials one = {.n = 1};
        if (!counts(options, &pick))
            continue;
        rc = options->trial(options->opaque, &pick, &one.list[0]);
        if (rc == 0)
            rank(&ranking, &pick, &one, options->objective);
        ++*tried;
    } while ((rc == 0 || rc == -ENOEXEC) && advance(options, &pick));
    return rc == 0 || rc == -ENOEXEC ? run_finals(options, &ranking, ret) : rc;
}
