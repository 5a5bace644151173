// Looks for the values of some settings with which trials come out best: one setting after another,
// from the first on, each value against the best so far, until a round changes nothing. Ties leave
// what is. Pure but for the trials, which the caller runs.
#ifndef FRAMED_DAEMON_TUNE_SEARCH_H
#define FRAMED_DAEMON_TUNE_SEARCH_H

#include "daemon/tune/figures.h"

enum { SEARCH_SETTINGS_MAX = 8, SEARCH_VALUES_MAX = 12 };

// The number of each setting's value.
struct pick {
    int value[SEARCH_SETTINGS_MAX];
};

struct search_setting {
    int n;       // of its values
    bool series; // they rise: once it gets worse and worse the rest is left out
};

// 0; -EINTR, or other negative errno that ends the search; -ENOEXEC: with this choice nothing runs.
typedef int search_trial(void *opaque, const struct pick *, struct figures *ret);

struct search_options {
    struct search_setting setting[SEARCH_SETTINGS_MAX];
    int n;
    struct pick start;
    enum objective objective;
    search_trial *trial;
    // Whether another value of that setting could matter, with the others as they are.
    bool (*matters)(void *opaque, const struct pick *, int setting);
    void *opaque;
};

struct search_result {
    struct pick pick;
    struct trials before, after; // of the start, and of the choice
    // Of each setting that has another value than at the start, in the duel that it won last.
    struct figures with[SEARCH_SETTINGS_MAX], without[SEARCH_SETTINGS_MAX];
    int without_value[SEARCH_SETTINGS_MAX]; // what it had before that duel
};

// 0, or the trial's error; the start must run. The choice has won over the start once more at the
// end, or it is the start.
int search_run(const struct search_options *, struct search_result *ret);

// Trials of two choices in turns until the verdict is clear, or none is to be had. Adds to both.
int search_duel(const struct search_options *, const struct pick *challenger,
                const struct pick *holder, struct trials *of_challenger, struct trials *of_holder,
                enum verdict *ret);

// Each combination of the first and last value of every setting, the middle one of many and the
// start's, once, and the best few again. 0, or the trial's error; *tried: how many combinations
// there were.
int search_grid(const struct search_options *, struct pick *ret, int *tried);

#endif
