// Expands ${NAME}, ${NAME:-default}, ${NAME:?message} and $$ in the text of a scalar. The value of
// NAME is the content of the file $CREDENTIALS_DIRECTORY/NAME, or else the environment variable,
// without one newline (LF or CR LF) at its end. As in a shell, ':' treats an empty value as unset.
#ifndef FRAMED_CONFIG_EXPAND_H
#define FRAMED_CONFIG_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "config/unit.h"

enum { EXPANDED_MAX = 4096 }; // bytes of one value, expanded

enum references {
    REFERENCES_LOOKED_UP,
    REFERENCES_OPAQUE,  // each counts as set, but nothing is looked up
    REFERENCES_REFUSED, // each is a mistake
};

struct expand_options {
    enum references references;
    struct unit *unit; // whose credentials count as set although this process cannot read them; or
                       // NULL
    bool secret;       // keep the values for expand_hide
};

struct expanded {
    char *text;   // for secret_free
    bool any;     // it contains a reference
    bool unknown; // with an x in place of each value that only the unit, or nobody here, knows
};

// 0; -EINVAL with the reason in `why`, which never contains a value that was looked up; -ENOMEM.
int expand_for(struct expanded *ret, const char *text, const struct expand_options *, char *why,
               size_t size);
// The same with values of this process alone; the caller frees *ret.
int expand(char **ret, const char *text, char *why, size_t size);
// The text as the file itself gives it: each reference becomes its default, or nothing.
int expand_own(char **ret, const char *text);
// Copies `text` with *** for each default or message of its references. The caller frees it; NULL:
// no memory.
char *expand_without_defaults(const char *text);

void secret_free(char *text); // wipes and frees it; accepts NULL

// Each keeps a secret, or those of a URL, that stands in a file itself, for expand_hide with
// `literals`. 0 or -ENOMEM.
int expand_keep_literal(const char *secret);
int expand_keep_literal_url(const char *url);
// Copies `from` with ${NAME} in place of each kept value of at least 4 bytes, and *** in place of
// each literal secret if these are hidden too, cut to `size` bytes. The last 8 bytes or more of a
// line that begin such a value are taken for it. Returns `to`. Any thread.
char *expand_hide(char *to, size_t size, const char *from, bool literals);

#endif
