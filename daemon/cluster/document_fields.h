// Fields of the JSON documents in etcd (documents.h, plan.h). A missing field is empty or 0. False:
// the field is there and invalid.
#ifndef FRAMED_DAEMON_CLUSTER_DOCUMENT_FIELDS_H
#define FRAMED_DAEMON_CLUSTER_DOCUMENT_FIELDS_H

#include <jansson.h>

#include "daemon/cluster/plan.h"

// Opens a document, an object of this schema. Returns 0 with *ret for json_decref; -EBADMSG;
// -EPROTONOSUPPORT: a newer schema; or -ENOMEM.
int document_open(json_t **ret, const char *json, size_t length);
// One line of text for people, of at most `size` - 1 bytes.
bool document_text(const json_t *, const char *key, char *to, size_t size);
// Name of a camera or a node; `required`: must not be missing.
bool document_name(const json_t *, const char *key, bool required, char to[PLAN_NAME_SIZE]);
bool is_document_name(const char *name);
bool document_integer(const json_t *, const char *key, int64_t max, int64_t *to); // 0 to `max`
bool document_number(const json_t *, const char *key, double *to);                // 0 or more
bool document_bool(const json_t *, const char *key, bool *to);
bool document_labels(const json_t *, const char *key, struct plan_labels *to);
// Returns the list of that name, empty if it is missing; NULL: it is not a list.
const json_t *document_list(const json_t *, const char *key, size_t *n);

json_t *document_of_labels(const struct plan_labels *); // accepts NULL; NULL: no memory
// Prints and releases the document. Returns NULL for NULL, or without memory.
char *document_print(json_t *);

#endif
