// Parses the YAML document of a configuration: a single one, in UTF-8, with limited nesting and
// aliases, so that walking it is harmless.
#ifndef FRAMED_CONFIG_DOCUMENT_H
#define FRAMED_CONFIG_DOCUMENT_H

#include <stdbool.h>
#include <yaml.h>

#include "config/mistakes.h"

// Returns 0, and the caller calls yaml_document_delete; -EINVAL with the mistake noted; or -ENOMEM.
int document_parse(yaml_document_t *ret, const char *text, size_t length, struct mistakes *);
struct place document_place(yaml_mark_t);

#endif
