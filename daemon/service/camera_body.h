// A camera's keys from an HTTP client: a JSON object, which a drop-in file stores as YAML.
#ifndef FRAMED_DAEMON_SERVICE_CAMERA_BODY_H
#define FRAMED_DAEMON_SERVICE_CAMERA_BODY_H

#include <stdbool.h>
#include <stddef.h>

// Converts the object to YAML 1.1 with the same lines, for secret_free (config/expand.h). Dollar
// signs are literal unless `expands`: then texts may contain references. A zero byte must follow
// the body. Returns 0; -EINVAL: no JSON, or no object, with a sentence in `why`; -ENOMEM.
int camera_body_yaml(char **ret, const char *body, size_t length, bool expands, char *why,
                     size_t size);

#endif
