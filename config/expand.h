// ${NAME}, ${NAME:-default}, ${NAME:?message} and $$ in the text of a scalar. NAME is the file
// $CREDENTIALS_DIRECTORY/NAME, less one newline at its end, else the environment variable. As in a
// shell, ':' also counts an empty value as unset.
#ifndef FRAMED_CONFIG_EXPAND_H
#define FRAMED_CONFIG_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "config/unit.h"

enum { TEXT_MAX = 4096 }; // bytes of one value, expanded

// On 0 *ret is the text, for the caller to free. -EINVAL: what is wrong is in `why`, without any
// value that was looked up; -ENOMEM.
int expand(char **ret, const char *text, char *why, size_t size);
// The same where the credentials of `unit` (NULL: none) are set, though nobody here knows them:
// then *unknown is set, and an x stands for each.
int expand_for(char **ret, const char *text, struct unit *unit, bool *unknown, char *why,
               size_t size);
// What the text holds by itself: without what its references stand for, but with their defaults.
int expand_own(char **ret, const char *text);

#endif
