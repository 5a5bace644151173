// Loads a configuration file, and prints all of its mistakes in one go.
#ifndef FRAMED_CONFIG_LOAD_H
#define FRAMED_CONFIG_LOAD_H

#include <stdio.h>

#include "config/config.h"

struct file_changes;
struct mistakes;
struct unit;

// Notes mistakes of a configuration on this machine or in this process, beyond its text. If the
// text has mistakes, members may be empty or hold a default: see object_is_known.
typedef void config_judge(struct mistakes *, const struct config *);

struct config_load_options {
    // The running configuration: a changed key that needs a restart is a mistake. NULL: none
    // runs.
    const struct config *running;
    config_judge *judge; // or NULL
    // The unit whose credentials count as set, though only the service can read them. A key with
    // such a credential is unknown: it keeps its default, or has an x in its text. NULL: none.
    struct unit *unit;
    // Reads this key of the root alone, with all below it, and ignores mistakes elsewhere and
    // drop-in files. NULL: reads all.
    const char *only;
    // Only checks: each reference counts as set, nothing is looked up, and paths in values are not
    // opened.
    bool closed;
    // Keeps literal secrets for expand_hide.
    bool literals;
    // New contents of files, used instead of those on disk. NULL: none.
    const struct file_changes *changes;
    // Gets a line for each use of a key that is gone (config/schema.h). NULL: not printed.
    FILE *warnings;
};

// Reads the file at `path` ("-" is standard input) and its drop-in files (config/drop_ins.h), and
// prints each mistake to `errors` as one line "file:line:column: key: what is wrong (what is
// allowed)". Returns 0 with *ret for config_free; the number of mistakes; or a negative errno, also
// printed, if the file cannot be read. Cameras may be missing only with `http_write` or a cluster.
int config_load(struct config **ret, const char *path, FILE *errors);
int config_load_with(struct config **ret, const char *path, const struct config_load_options *,
                     FILE *errors);
// Same from memory, without drop-in files; `name` stands for the file in messages.
int config_load_text(struct config **ret, const char *text, size_t length, const char *name,
                     FILE *errors);
// Same with `closed`.
int config_load_closed(struct config **ret, const char *text, const char *name, FILE *errors);
void config_free(struct config *); // accepts NULL

#endif
