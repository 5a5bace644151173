// Reading the configuration again while framed runs: all of the new one takes the place of what it
// changes, or nothing of it does.
#ifndef FRAMED_DAEMON_SUPERVISOR_RELOAD_H
#define FRAMED_DAEMON_SUPERVISOR_RELOAD_H

#include "daemon/supervisor/reconfigure.h"

struct reload {
    const char *file;             // standard input ("-"), pipes and NULL cannot be read again
    const struct config *running; // that framed was started with
    struct cameras *cameras;
    // Of what else reads the configuration: `prepare` as service_prepare, `commit` puts it in
    // place.
    int (*prepare)(void *opaque, const struct config *, const char *file, FILE *errors);
    void (*commit)(void *opaque);
    void *opaque;
    uint64_t applied, refused; // times
    int64_t loaded_ns;         // CLOCK_REALTIME: when what runs was read
    int64_t tried_ns;          // likewise: of the last reload; 0: there was none
    char error[256];           // the first reason that refused it; "" where it was applied
    bool is_applied;           // the last one; also before the first
};

// Loop thread. Returns 0: the cameras and outputs that changed are on their way out, and those that
// take their place have their addresses already; what did not change has noticed nothing. Else
// nothing has changed, and every reason is a line in `errors`: -EINVAL: the file's mistakes, or
// what this box or process does not have for it; other negative errno.
int reload_run(struct reload *, FILE *errors, struct reload_result *);
// Whether `path`, absolute and without links, is the file that is read; else a line in `errors`
// names both.
bool reload_is_of(const struct reload *, const char *path, FILE *errors);
// "3 cameras kept, 1 camera changed, 1 output of those kept added"; returns `to`.
char *reload_text(const struct reload_result *, char *to, size_t size);

#endif
