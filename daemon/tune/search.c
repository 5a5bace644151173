#include "daemon/tune/search.h"

#include <errno.h>
#include <string.h>

enum {
    ROUNDS_MAX = 3,
    BASELINE = 3,   // trials of the start
    PAIRS_FEW = 3,  // trials of each side of a duel before it is judged...
    PAIRS_MANY = 5, // ...where the outcome is to last...
    PAIRS_MAX = 7,  // ...and when it is over
    FALLING = 2,    // values of a series, each worse than the one before, after which it is left
};

struct search {
    const struct search_options *options;
    struct search_result *result;
    struct trials held;                                  // of the choice so far
    int version;                                         // of the choice so far
    int lost_to[SEARCH_SETTINGS_MAX][SEARCH_VALUES_MAX]; // the version that a value lost to
};

static bool same(const struct search_options *options, const struct pick *a, const struct pick *b)
{
    return memcmp(a->value, b->value, (size_t)options->n * sizeof a->value[0]) == 0;
}

static int try(const struct search_options *options, const struct pick *pick, struct trials *trials)
{
    struct figures figures;
    int rc = options->trial(options->opaque, pick, &figures);
    if (rc == 0)
        trials_add(trials, &figures);
    return rc;
}

static int duel(const struct search_options *options, const struct pick *challenger,
                const struct pick *holder, struct trials *of_challenger, struct trials *of_holder,
                int pairs, enum verdict *ret)
{
    int rc = 0;
    *ret = VERDICT_OPEN;
    for (int i = 0; rc == 0 && *ret == VERDICT_OPEN && i < PAIRS_MAX; i++) {
        // The one and the other goes first: what drifts meanwhile favours neither.
        const bool holder_first = i % 2 == 0;
        if (!holder_first && of_challenger->n <= i)
            rc = try(options, challenger, of_challenger);
        if (rc == 0 && of_holder->n <= i)
            rc = try(options, holder, of_holder);
        if (rc == 0 && holder_first && of_challenger->n <= i)
            rc = try(options, challenger, of_challenger);
        if (rc == 0 && i + 1 >= pairs)
            *ret = trials_judge(of_challenger, of_holder, options->objective, i + 1 == PAIRS_MAX);
    }
    return rc;
}

int search_duel(const struct search_options *options, const struct pick *challenger,
                const struct pick *holder, struct trials *of_challenger, struct trials *of_holder,
                enum verdict *ret)
{
    return duel(options, challenger, holder, of_challenger, of_holder, PAIRS_MANY, ret);
}

// --- one value

static void take(struct search *search, int setting, int value, const struct trials *with,
                 const struct trials *without)
{
    struct search_result *result = search->result;
    result->without_value[setting] = result->pick.value[setting];
    result->with[setting] = trials_median(with);
    result->without[setting] = trials_median(without);
    result->pick.value[setting] = value;
    search->held = *with;
    search->version++;
}

// By chance a few trials lie apart now and then: who wins does so again, in trials of its own.
static int win_twice(const struct search_options *options, const struct pick *challenger,
                     const struct pick *holder, struct trials *with, struct trials *without,
                     enum verdict *ret)
{
    int rc = duel(options, challenger, holder, with, without, PAIRS_FEW, ret);
    if (rc < 0 || *ret != VERDICT_BETTER)
        return rc;
    *with = *without = (struct trials){.n = 0};
    return search_duel(options, challenger, holder, with, without, ret);
}

// *rate: of the first trial, for the series; 0: it did not run.
static int challenge(struct search *search, int setting, int value, enum verdict *verdict,
                     double *rate)
{
    const struct search_options *options = search->options;
    struct pick challenger = search->result->pick;
    struct trials with = {.n = 0}, without = {.n = 0};
    challenger.value[setting] = value;
    *verdict = VERDICT_WORSE;
    *rate = 0;
    int rc = try(options, &challenger, &with);
    if (rc == 0) {
        *rate = with.list[0].rate;
        if (!trials_hopeless(&with.list[0], &search->held, options->objective))
            rc = win_twice(options, &challenger, &search->result->pick, &with, &without, verdict);
    }
    if (rc == 0 && *verdict == VERDICT_BETTER)
        take(search, setting, value, &with, &without);
    else
        search->lost_to[setting][value] = search->version;
    return rc == -ENOEXEC ? 0 : rc;
}

// --- one setting, and all

static bool is_to_be_tried(const struct search *search, int setting, int value)
{
    return value != search->result->pick.value[setting] &&
           search->lost_to[setting][value] != search->version;
}

static int try_setting(struct search *search, int setting)
{
    const struct search_setting *own = &search->options->setting[setting];
    int rc = 0, falling = 0;
    double last = 0;
    for (int value = 0; rc == 0 && value < own->n && falling < FALLING; value++) {
        enum verdict verdict;
        double rate;
        if (!is_to_be_tried(search, setting, value))
            continue;
        rc = challenge(search, setting, value, &verdict, &rate);
        if (own->series)
            falling = verdict == VERDICT_WORSE && rate < last ? falling + 1 : 0;
        last = rate;
    }
    return rc;
}

static int run_round(struct search *search)
{
    const struct search_options *options = search->options;
    int rc = 0;
    for (int i = 0; rc == 0 && i < options->n; i++)
        if (options->matters(options->opaque, &search->result->pick, i))
            rc = try_setting(search, i);
    return rc;
}

// What won step by step, in trials some time apart, is only kept if it wins as a whole.
static int confirm(struct search *search)
{
    const struct search_options *options = search->options;
    struct search_result *result = search->result;
    struct trials before = {.n = 0};
    enum verdict verdict;
    if (same(options, &result->pick, &options->start))
        return 0;
    result->after = (struct trials){.n = 0};
    int rc =
        search_duel(options, &result->pick, &options->start, &result->after, &before, &verdict);
    result->before = before;
    if (rc == 0 && verdict != VERDICT_BETTER) {
        result->pick = options->start;
        result->after = before;
    }
    return rc;
}

int search_run(const struct search_options *options, struct search_result *ret)
{
    struct search search = {.options = options, .result = ret, .version = 1};
    int rc = 0;
    *ret = (struct search_result){.pick = options->start};
    for (int i = 0; rc == 0 && i < BASELINE; i++)
        rc = try(options, &options->start, &search.held);
    ret->before = ret->after = search.held;
    for (int round = 0, version = 0; rc == 0 && round < ROUNDS_MAX && version != search.version;
         round++) {
        version = search.version;
        rc = run_round(&search);
    }
    return rc == 0 ? confirm(&search) : rc;
}
