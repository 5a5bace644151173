// Expands ${NAME}, ${NAME:-default}, ${NAME:?message} and $$ in the text of a scalar. The value of
// NAME is the content of the file $CREDENTIALS_DIRECTORY/NAME without one newline at its end, or
// else the environment variable. As in a shell, ':' treats an empty value as unset.
#ifndef FRAMED_CONFIG_EXPAND_H
#define FRAMED_CONFIG_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "config/unit.h"

enum { TEXT_MAX = 4096 }; // bytes of one value, expanded

// 0, and the caller frees *ret; -EINVAL with the reason in `why`, which never contains a value that
// was looked up; -ENOMEM.
int expand(char **ret, const char *text, char *why, size_t size);
// The same, but the credentials of `unit` (NULL: none) count as set although this process cannot
// read them: each becomes an x, and *unknown is set.
int expand_for(char **ret, const char *text, struct unit *unit, bool *unknown, char *why,
               size_t size);
// The text as the file itself gives it: each reference becomes its default, or nothing.
int expand_own(char **ret, const char *text);

#endif
