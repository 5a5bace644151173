// Prints values of the configuration as YAML, which config_load reads as the same values unless
// secrets are hidden.
#ifndef FRAMED_CONFIG_VALUE_PRINT_H
#define FRAMED_CONFIG_VALUE_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "config/types.h"

// Returns true if the member holds a value; one without a default may hold none.
bool value_is_set(const struct config_row *, const void *object);
// SECRETS_HIDDEN: *** for the values of secret rows, and URLs as config_url_shown writes them.
enum secrets { SECRETS_HIDDEN, SECRETS_SHOWN };
// Prints a text in quotes. Does not change a dollar sign.
void value_print_text(FILE *, const char *text);
// Prints the member, which must be set, without the key.
void value_print(FILE *, const struct config_row *, const void *object, enum secrets);

#endif
