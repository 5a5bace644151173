// What a search came to, as a piece of configuration with what was measured in comments, and as
// JSON.
#ifndef FRAMED_DAEMON_TUNE_FRAGMENT_H
#define FRAMED_DAEMON_TUNE_FRAGMENT_H

#include <stdio.h>

#include "daemon/base/fingerprint.h"
#include "daemon/tune/settings.h"

// Of --grid: the best of all combinations, in turns with what the file has.
struct comparison {
    int tried; // combinations; 0: there was no grid, but a search
    struct pick best;
    struct trials of_best;
};

struct finding {
    const struct settings *settings;
    const struct search_result *result;
    struct comparison grid;
    char fingerprint[FINGERPRINT_TEXT];
    char file[200], load[200]; // the configuration, and what it ran on: "2 cameras, their clip ..."
    enum objective objective;
    double seconds; // of a trial
    int trials;
};

enum { FRAGMENT_EDITS = SEARCH_SETTINGS_MAX + 1, FRAGMENT_COMMENT = 200 };

struct fragment { // the keys to set, the fingerprint among them
    struct edit edits[FRAGMENT_EDITS];
    char comments[FRAGMENT_EDITS][FRAGMENT_COMMENT];
    int n;
};

// *ret points into the finding and into itself.
void fragment_make(struct fragment *ret, const struct finding *);
int fragment_print_yaml(FILE *, const struct finding *); // 0, or as edit_keys
void fragment_print_json(FILE *, const struct finding *);

#endif
