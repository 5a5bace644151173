// The mistakes found in one configuration, to be printed in the order of their places.
#ifndef FRAMED_CONFIG_MISTAKES_H
#define FRAMED_CONFIG_MISTAKES_H

#include <stdio.h>

enum {
    MISTAKES_MAX = 1000, // later ones are only counted
    KEY_MAX = 256,       // bytes of a dotted key
};

struct place { // where in the configuration file something stands; line and column count from 1
    int line, column;
};

struct mistake {
    struct place at;
    int order;
    char *text;
};

struct mistakes {
    struct mistake list[MISTAKES_MAX];
    int n, total;
};

// Notes a mistake. `key` is dotted and may be a user's text; the message must not contain a secret.
__attribute__((format(printf, 4, 5))) void mistake(struct mistakes *, struct place, const char *key,
                                                   const char *format, ...);
// A user's text in a form that a message may show: short, printable, without passwords. Returns
// `to`.
char *shown(const char *raw, char *to, size_t size);
void mistakes_print(struct mistakes *, const char *file, FILE *);
void mistakes_free(struct mistakes *);

#endif
