// A folder of texts, packed into a .tar.gz.
#ifndef FRAMED_DAEMON_CLI_SUPPORT_BUNDLE_H
#define FRAMED_DAEMON_CLI_SUPPORT_BUNDLE_H

#include "daemon/base/secrets.h"

struct support_bundle {
    struct secrets **secrets; // of each camera
    int n_secrets;
    char folder[64]; // for the user alone; removed at the end
    char name[160];  // of the folder in the archive
};

// 0 or negative errno.
int support_bundle_open(struct support_bundle *, const char *name);
// Makes support_bundle_put hide the secrets of the cameras, in all their forms. 0 or -ENOMEM.
int support_bundle_learn(struct support_bundle *, const struct config *);
// Adds the text, without the secrets of configurations that this process has read. 0 or negative
// errno.
int support_bundle_put(const struct support_bundle *, const char *file, const char *text);
// Puts in what a command line prints, or why there is nothing: 16 MiB and 15 s at most.
int support_bundle_run(const struct support_bundle *, const char *file, const char *command);
// Packs it, "-": to standard output. 0 or negative errno.
int support_bundle_pack(const struct support_bundle *, const char *path);
void support_bundle_close(struct support_bundle *);

#endif
