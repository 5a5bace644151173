// Which keys are tried on this box, and the values of each. Pure but for settings_look.
#ifndef FRAMED_DAEMON_TUNE_SETTINGS_H
#define FRAMED_DAEMON_TUNE_SETTINGS_H

#include "config/config.h"
#include "config/edit.h"
#include "daemon/tune/search.h"

// What a box has.
struct facilities {
    int processors; // that this process may use
    bool nvdec;
    char device[400]; // what the cuda backend says of its GPU; "": there is none
};

enum { SETTING_VALUE = 16 }; // bytes

struct setting {
    const char *key; // as struct edit's
    char value[SEARCH_VALUES_MAX][SETTING_VALUE];
    int n;
    int start; // the value that the file has, or else the default
    bool series;
};

struct settings {
    struct facilities facilities;
    struct setting list[SEARCH_SETTINGS_MAX];
    int n;
};

void settings_look(struct facilities *ret, const struct config *);
// The keys that could make a difference for the configuration of that text, those first from which
// most is to be expected. A key whose value is looked up (${NAME}) is left as it is. 0; or as
// edit_keys, also where a key could not be edited later.
int settings_find(struct settings *ret, const struct facilities *, const char *text, size_t length,
                  char *why, size_t size);
// Whether another value of setting i could matter with the others as they are.
bool settings_matter(const struct settings *, const struct pick *, int i);
// The keys that have another value than in the text; returns their number.
int settings_edits(const struct settings *, const struct pick *,
                   struct edit ret[SEARCH_SETTINGS_MAX]);

#endif
