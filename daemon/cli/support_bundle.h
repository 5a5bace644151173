// A folder of texts, packed into a .tar.gz.
#ifndef FRAMED_DAEMON_CLI_SUPPORT_BUNDLE_H
#define FRAMED_DAEMON_CLI_SUPPORT_BUNDLE_H

#include "daemon/base/log.h"

struct support_bundle {
    struct secrets **secrets; // of each camera
    int n_secrets;
    char folder[64]; // only for the user; removed at the end
    char name[160];  // of the folder in the archive
};

// Returns 0 or a negative errno.
int support_bundle_open(struct support_bundle *, const char *name);
// Makes support_bundle_put hide the cameras' secrets, in all forms. Returns 0 or -ENOMEM.
int support_bundle_learn(struct support_bundle *, const struct config *);
// Adds a text, without secrets of configurations read by this process. Returns 0 or a negative
// errno.
int support_bundle_put(const struct support_bundle *, const char *file, const char *text);
// Adds the output of a command line, or the reason for none: 16 MiB and 15 s at most.
int support_bundle_run(const struct support_bundle *, const char *file, const char *command);
// Packs it; "-": to standard output. Returns 0 or a negative errno.
int support_bundle_pack(const struct support_bundle *, const char *path);
void support_bundle_close(struct support_bundle *);

#endif
