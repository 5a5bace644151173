// Fields of the JSON documents in etcd (documents.h, plan.h). A missing field is empty or 0; false:
// the field is there and is nonsense.
#ifndef FRAMED_DAEMON_CLUSTER_DOCUMENT_FIELDS_H
#define FRAMED_DAEMON_CLUSTER_DOCUMENT_FIELDS_H

#include <jansson.h>

#include "daemon/cluster/plan.h"

// A document: an object of this schema. 0 with *ret for json_decref; -EBADMSG, -EPROTONOSUPPORT (a
// newer schema), -ENOMEM.
int document_open(json_t **ret, const char *json, size_t length);
// One line of text for people, of at most `size` - 1 bytes.
bool document_text(const json_t *, const char *key, char *to, size_t size);
// Of a camera or a node; `required`: it must be there.
bool document_name(const json_t *, const char *key, bool required, char to[PLAN_NAME_SIZE]);
bool is_document_name(const char *name);
bool document_integer(const json_t *, const char *key, int64_t max, int64_t *to); // from 0 on
bool document_number(const json_t *, const char *key, double *to);                // from 0 on
bool document_bool(const json_t *, const char *key, bool *to);
bool document_labels(const json_t *, const char *key, struct plan_labels *to);
// The list of that name, empty where it is missing; NULL: it is no list.
const json_t *document_list(const json_t *, const char *key, size_t *n);

json_t *document_of_labels(const struct plan_labels *); // accepts NULL; NULL: no memory
// Prints and releases the document, which may be NULL: then, or without memory, NULL.
char *document_print(json_t *);

#endif
