// Reading the configuration again while framed runs: all of the new one takes the place of what it
// changes, or nothing of it does. What may block (the file, groups, NVDEC) is done as work; then
// the loop thread plans and commits in one go.
#ifndef FRAMED_DAEMON_SUPERVISOR_RELOAD_H
#define FRAMED_DAEMON_SUPERVISOR_RELOAD_H

#include "daemon/base/work.h"
#include "daemon/supervisor/reconfigure.h"

// One reload that somebody has asked for.
struct reload_request {
    // Loop thread, once; the request is the asker's again. `rc` 0: the cameras and outputs that
    // changed are on their way out, and those that take their place have their addresses already;
    // what did not change has noticed nothing. Else nothing has changed, and every reason is a line
    // in `errors`: -EINVAL: the file's mistakes, or what this machine or process does not have for
    // it; -ESHUTDOWN: framed stops; other negative errno.
    void (*done)(struct reload_request *, int rc, const struct reload_result *, const char *errors);
    struct reload_request *next;
};

struct reload {
    const char *file;             // standard input ("-"), pipes and NULL cannot be read again
    const struct config *running; // that framed was started with
    struct cameras *cameras;
    struct work_queue *work;
    // Of what else reads the configuration: `prepare` as service_prepare, `commit` puts it in
    // place.
    int (*prepare)(void *opaque, const struct config *, const char *file, FILE *errors);
    void (*commit)(void *opaque);
    void (*began)(void *opaque); // before the file is read, and:
    void (*ended)(void *opaque, int rc);
    void *opaque;
    // The account of all reloads:
    uint64_t applied, refused; // times
    int64_t loaded_ns;         // CLOCK_REALTIME: when what runs was read
    int64_t tried_ns;          // likewise: of the last reload; 0: there was none
    char error[256];           // the first reason that refused it; "" where it was applied
    char done[160];            // what it came to where it was applied (reload_text)
    bool is_applied;           // the last one; also before the first
    // Private: the first request is under way, and its work has the last six.
    bool closed;
    struct reload_request *first, **last;
    struct work read;
    struct config *config;
    FILE *errors;
    char *text;
    size_t text_size;
    int rc;       // of reading the file, and if it is 0:
    int mistakes; // that are in `errors` already
};

// Loop thread. Its public members are set, and the private ones zero.
void reload_open(struct reload *);
// Reads the configuration once those who came before have got theirs. Loop thread.
void reload_start(struct reload *, struct reload_request *);
// From now on reloads are refused, and the one under way will be. Loop thread.
void reload_close(struct reload *);

// Whether `path`, absolute and without links, is the file that is read; else a line in `errors`
// names both. Any thread; may block.
bool reload_is_of(const struct reload *, const char *path, FILE *errors);
// "3 cameras kept, 1 camera changed, 1 output of those kept added"; returns `to`.
char *reload_text(const struct reload_result *, char *to, size_t size);

#endif
