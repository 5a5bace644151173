// Mistakes found in one configuration, printed in the order of their places.
#ifndef FRAMED_CONFIG_MISTAKES_H
#define FRAMED_CONFIG_MISTAKES_H

#include <stdio.h>

enum {
    MISTAKES_MAX = 1000, // later ones are only counted
    KEY_MAX = 256,       // bytes of a dotted key
};

struct place { // a place in the configuration; line and column count from 1
    int line, column;
    int file; // index in struct config_files
};

// The files of a configuration: 0 is the file itself, its drop-ins follow. Owns the paths.
struct config_files {
    char **path;
    int n;
};

struct mistake {
    struct place at;
    int order;
    char *text;
};

struct mistakes {
    struct mistake list[MISTAKES_MAX];
    int n, total;
    int file; // the file being read
};

// Notes a mistake. `key` is dotted and may be a user's text. Looked-up values are shown as
// references.
__attribute__((format(printf, 4, 5))) void mistake(struct mistakes *, struct place, const char *key,
                                                   const char *format, ...);
// Prints a mistake found later, like mistakes_print, with values as above.
void mistake_print(FILE *, const struct config_files *, struct place, const char *key,
                   const char *why);
// Prints one line per mistake, "BEFOREfile:line:column: key: what is wrong".
void mistakes_print(struct mistakes *, const char *before, const struct config_files *, FILE *);
void mistakes_free(struct mistakes *);

int config_files_add(struct config_files *, const char *path); // copies it; 0 or -ENOMEM
// Returns the path of the place's file.
const char *config_files_path(const struct config_files *, struct place);
void config_files_free(struct config_files *); // empties it

#endif
