// The text of a configuration as people may see it who must not learn its secrets.
#ifndef FRAMED_CONFIG_REDACT_H
#define FRAMED_CONFIG_REDACT_H

#include <stddef.h>

// A copy with *** in place of users and passwords of URLs, in comments too, and of the values of
// keys whose names say that they are secrets, but for those that are ${NAME} alone. It has as many
// lines, whether the text is YAML or not; bytes that are zero become '?'. In doubt more is hidden.
// The caller frees it. NULL: no memory.
char *config_text_redacted(const char *text, size_t length);

#endif
