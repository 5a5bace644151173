// The mistakes found in one configuration, to be printed in the order of their places.
#ifndef FRAMED_CONFIG_MISTAKES_H
#define FRAMED_CONFIG_MISTAKES_H

#include <stdio.h>

enum {
    MISTAKES_MAX = 1000, // later ones are only counted
    KEY_MAX = 256,       // bytes of a dotted key
};

struct place { // where in the configuration something stands; line and column count from 1
    int line, column;
    int file; // of `struct config_files`
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
    int file; // that is being read
};

// Notes a mistake. `key` is dotted and may be a user's text. Values that were looked up are shown
// as references.
__attribute__((format(printf, 4, 5))) void mistake(struct mistakes *, struct place, const char *key,
                                                   const char *format, ...);
// Prints one that is found later as mistakes_print does, with values as above.
void mistake_print(FILE *, const struct config_files *, struct place, const char *key,
                   const char *why);
// One line each, "BEFOREfile:line:column: key: what is wrong".
void mistakes_print(struct mistakes *, const char *before, const struct config_files *, FILE *);
void mistakes_free(struct mistakes *);

int config_files_add(struct config_files *, const char *path); // a copy of it; 0 or -ENOMEM
// The path of the file that something stands in.
const char *config_files_path(const struct config_files *, struct place);
void config_files_free(struct config_files *); // empties it

#endif
