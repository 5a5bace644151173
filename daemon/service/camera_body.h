// A camera's keys as HTTP clients send them: a JSON object, which stands in a drop-in file as YAML.
#ifndef FRAMED_DAEMON_SERVICE_CAMERA_BODY_H
#define FRAMED_DAEMON_SERVICE_CAMERA_BODY_H

#include <stdbool.h>
#include <stddef.h>

// The object as YAML 1.1 has it, with the same lines, for secret_free (config/expand.h). Dollar
// signs stand for themselves unless `expands`: then texts may have references. A zero byte follows
// the body. 0; -EINVAL: it is no JSON, or no object, with a sentence in `why`; -ENOMEM.
int camera_body_yaml(char **ret, const char *body, size_t length, bool expands, char *why,
                     size_t size);

#endif
