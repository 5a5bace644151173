// Loads a configuration file with its drop-in files, and prints all of their mistakes in one go.
//
// Drop-in files of FILE.yaml are the files in the folder FILE.d beside it whose names end in .yaml
// and do not begin with a dot, in the order of their names' bytes.
#ifndef FRAMED_CONFIG_LOAD_H
#define FRAMED_CONFIG_LOAD_H

#include <stdio.h>

#include "config/config.h"

struct unit;

#define FILE_STDIN "-"

// Returns the name of the file at `path` for messages.
const char *file_name(const char *path);
// Returns "/etc/framed/framed.d" for "/etc/framed/framed.yaml", to be freed. NULL: no memory.
char *drop_ins_folder(const char *file);

// A proposed change to a file of the configuration.
struct file_change {
    const char *path;
    const char *text; // new content; NULL: the file is removed
    // The camera that a cluster has assigned with this text. The text may contain nothing else, and
    // no references. NULL: the text is the user's.
    const char *assigned;
};

struct file_changes {
    const struct file_change *list;
    int n;
};

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

// Reads the file at `path` ("-" is standard input) and its drop-in files, and prints each mistake
// to `errors` as one line "file:line:column: key: what is wrong (what is allowed)". Returns 0 with
// *ret for config_free; the number of mistakes; or a negative errno, also printed, if the file
// cannot be read. Cameras may be missing only with `http_write` or a cluster.
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
