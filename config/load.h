// Loads a configuration file: every mistake in it is found and printed in one go.
#ifndef FRAMED_CONFIG_LOAD_H
#define FRAMED_CONFIG_LOAD_H

#include <stdio.h>

#include "config/config.h"

struct file_changes;
struct mistakes;
struct unit;

// Notes what is wrong with a configuration on this machine or in this process, beyond its text.
// Where the text has mistakes, members may be empty or hold a default: object_is_known tells.
typedef void config_judge(struct mistakes *, const struct config *);

struct config_load_options {
    // The configuration that the daemon runs with: a key that differs and needs a restart is a
    // mistake. NULL: none runs.
    const struct config *running;
    config_judge *judge; // or NULL
    // The unit whose credentials count as set, though only the service can read them. A key that
    // holds one counts as not known: it keeps its default, or has an x in its text. NULL: none.
    struct unit *unit;
    // Only this key of the root is read, with all below it; mistakes elsewhere, and drop-in files,
    // do not count. NULL: all.
    const char *only;
    // Only to be checked: each reference counts as set, nothing is looked up, and no path that a
    // value names is looked at.
    bool closed;
    // Keep literal secrets for expand_hide.
    bool literals;
    // What files of the configuration are to hold in place of what they do. NULL: nothing.
    const struct file_changes *changes;
    // Gets a line for each use of a key that is gone (config/gone.h). NULL: nobody asks.
    FILE *warnings;
};

// Reads the file at `path` ("-" is standard input) and its drop-in files (config/drop_ins.h), and
// prints every mistake to `errors` as one line "file:line:column: key: what is wrong (what is
// allowed)". Returns 0 with *ret for config_free; or the number of mistakes; or negative errno,
// also printed, if the file cannot be read. Only with `http_write`
// or a cluster there may be no camera yet.
int config_load(struct config **ret, const char *path, FILE *errors);
int config_load_with(struct config **ret, const char *path, const struct config_load_options *,
                     FILE *errors);
// The same from memory, without drop-in files; `name` stands for the file in messages.
int config_load_text(struct config **ret, const char *text, size_t length, const char *name,
                     FILE *errors);
// The same with `closed`.
int config_load_closed(struct config **ret, const char *text, const char *name, FILE *errors);
void config_free(struct config *); // accepts NULL

#endif
