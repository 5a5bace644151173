// Values of the configuration as YAML: what config_load reads as the same, but for secrets that are
// hidden, of which *** is all that is printed.
#ifndef FRAMED_CONFIG_VALUE_PRINT_H
#define FRAMED_CONFIG_VALUE_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "config/types.h"

// Whether the member holds a value; one without a default may hold none.
bool value_is_set(const struct config_row *, const void *object);
enum secrets { SECRETS_HIDDEN, SECRETS_SHOWN };
// Prints the member, which is set, without the key.
void value_print(FILE *, const struct config_row *, const void *object, enum secrets);

#endif
