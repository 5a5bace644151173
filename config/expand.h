// Expands ${NAME}, ${NAME:-default}, ${NAME:?message} and $$ in the text of a scalar. The value of
// NAME is the content of the file $CREDENTIALS_DIRECTORY/NAME, or else the environment variable,
// without one newline (LF or CR LF) at its end. As in a shell, ':' treats an empty value as unset.
#ifndef FRAMED_CONFIG_EXPAND_H
#define FRAMED_CONFIG_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Names of the credentials that systemd passes to the service of a configuration; only the service
// can read their values. The names come from the unit's files and drop-ins, which needs neither
// root nor a running systemd.
struct unit;

// Opens the unit of the configuration at `path`: framed.yaml belongs to framed.service, NAME.yaml
// to framed@NAME.service. Searches systemd's folders, or those of SYSTEMD_UNIT_PATH. A unit that is
// not installed has no credentials. Returns 0 or -ENOMEM.
int unit_open(struct unit **ret, const char *path);
// Prints one line with the names of the used credentials, or nothing if none was used.
void unit_print_used(const struct unit *, FILE *);
void unit_close(struct unit *); // accepts NULL

enum { EXPANDED_MAX = 4096 }; // bytes of one value, expanded

enum references {
    REFERENCES_LOOKED_UP,
    REFERENCES_OPAQUE,  // each counts as set, but nothing is looked up
    REFERENCES_REFUSED, // each is a mistake
};

struct expand_options {
    enum references references;
    struct unit *unit; // its credentials count as set although this process cannot read them; or
                       // NULL
    bool secret;       // keep the values for expand_hide
};

struct expanded {
    char *text;   // freed by secret_free
    bool any;     // it contains a reference
    bool unknown; // has an x for each value that only the unit has, or that is not looked up
};

// Returns 0; -EINVAL with the reason in `why`, which never contains a looked-up value; or -ENOMEM.
int expand_for(struct expanded *ret, const char *text, const struct expand_options *, char *why,
               size_t size);
// Same as expand_for, with values of this process alone; the caller frees *ret.
int expand(char **ret, const char *text, char *why, size_t size);
// Expands without looking anything up: each reference becomes its default, or nothing.
int expand_own(char **ret, const char *text);
// Copies `text` with *** for each default or message in its references. The caller frees the copy;
// NULL: no memory.
char *expand_without_defaults(const char *text);

void secret_free(char *text); // wipes and frees it; accepts NULL

// Each keeps a secret, or those of a URL, that is literal in a file, for expand_hide with
// `literals`. Returns 0 or -ENOMEM.
int expand_keep_literal(const char *secret);
int expand_keep_literal_url(const char *url);
// Copies `from`, cut to `size` bytes, with ${NAME} for each kept value of at least 4 bytes and,
// with `literals`, *** for each literal secret. If the last 8 bytes or more of a line begin such a
// value, they count as the value. Returns `to`. Any thread.
char *expand_hide(char *to, size_t size, const char *from, bool literals);

#endif
