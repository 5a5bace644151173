// A folder of texts without secrets, packed into a .tar.gz.
#ifndef FRAMED_DAEMON_CLI_SUPPORT_BUNDLE_H
#define FRAMED_DAEMON_CLI_SUPPORT_BUNDLE_H

#include "daemon/cli/support_secrets.h"

struct support_bundle {
    const struct support_secrets *secrets; // taken out of all that is put in
    char folder[64];                       // for the user alone; removed at the end
    char name[160];                        // of the folder in the archive
};

// 0 or negative errno.
int support_bundle_open(struct support_bundle *, const struct support_secrets *, const char *name);
// 0 or negative errno.
int support_bundle_put(const struct support_bundle *, const char *file, const char *text);
// Puts in what a command line prints, or why there is nothing: 16 MiB and 15 s at most.
int support_bundle_run(const struct support_bundle *, const char *file, const char *command);
// Packs it, "-": to standard output. 0 or negative errno.
int support_bundle_pack(const struct support_bundle *, const char *path);
void support_bundle_close(struct support_bundle *);

#endif
