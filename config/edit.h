// Sets keys in the text of a configuration and keeps every other byte of it, comments too.
#ifndef FRAMED_CONFIG_EDIT_H
#define FRAMED_CONFIG_EDIT_H

#include <stddef.h>

struct edit {
    const char *key;     // dotted, from the top: "cpu.workers", "defaults.slots"
    const char *value;   // of a scalar, unquoted
    const char *comment; // behind the line, where one is added; NULL: none
};

// A good configuration with the n keys set, in the order of `edits`: a key that is there gets the
// value, another is added to its section, at the end of a block or at the start of what stands in
// braces. *ret is for the caller to free. -EINVAL where that could change more than the keys: `why`
// says so in a sentence that begins with line:column; -ENOMEM.
int edit_keys(char **ret, size_t *ret_length, const char *text, size_t length,
              const struct edit edits[], int n, char *why, size_t size);

// The value of a key as it stands in the text, for the caller to free; *ret is NULL where there is
// none. -EINVAL: it is no scalar, or an alias repeats it; -ENOMEM.
int edit_find(char **ret, const char *text, size_t length, const char *key, char *why, size_t size);

#endif
