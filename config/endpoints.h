// URLs of a cluster's etcd: http://HOST:PORT or https://HOST:PORT, each once, all of one scheme.
#ifndef FRAMED_CONFIG_ENDPOINTS_H
#define FRAMED_CONFIG_ENDPOINTS_H

#include "config/types.h"

// Returns NULL with *ret set, or the mistake, which quotes nothing.
const char *endpoints_parse(struct endpoints *ret, const char *const text[], int n);
bool endpoints_have_tls(const struct endpoints *);

#endif
