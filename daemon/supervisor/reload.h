// Reading the configuration again while framed runs: all of the new one takes the place of what it
// changes, or nothing of it does. What may block (the file, groups, NVDEC) is done as work; then
// the loop thread plans and commits in one go.
#ifndef FRAMED_DAEMON_SUPERVISOR_RELOAD_H
#define FRAMED_DAEMON_SUPERVISOR_RELOAD_H

#include "daemon/base/work.h"
#include "daemon/supervisor/assigned.h"
#include "daemon/supervisor/reconfigure.h"

enum { RELOAD_EDITS_MAX = 64 }; // that share one reload

// One reload that somebody has asked for, or one change of a camera, which is a reload with that
// camera's files as they will be.
struct reload_request {
    struct edit *edit; // the asker's; NULL: the configuration as it is
    // Loop thread, once; the request is the asker's again. `rc` 0: the cameras and outputs that
    // changed are on their way out, and those that take their place have their addresses already;
    // what did not change has noticed nothing. Else nothing has changed, and every reason is a line
    // in `errors`: -EINVAL: the files' mistakes, or what this machine or process does not have for
    // them; -ESHUTDOWN: framed stops; other negative errno: of an edit as edit_check and edit_write
    // say, where -EALREADY has one line that is no reason. An edit is on the disk where `rc` is 0.
    void (*done)(struct reload_request *, int rc, const struct reload_result *, const char *errors);
    struct reload_request *next;
};

struct reload {
    const char *file;             // standard input ("-"), pipes and NULL cannot be read again
    const struct config *started; // that framed was started with
    struct cameras *cameras;
    struct work_queue *work;
    // Of what else reads the configuration: `prepare` as service_prepare; then one of both:
    // `commit` puts it in place, `abandon` drops it.
    int (*prepare)(void *opaque, const struct config *, const char *file, FILE *errors);
    void (*commit)(void *opaque);
    void (*abandon)(void *opaque);
    // Before the files are read, and behind all of it. `whole`: it was no edit.
    void (*began)(void *opaque, bool whole);
    void (*ended)(void *opaque, bool whole, int rc);
    void (*edited)(void *opaque, const struct edit *); // it is made, and on the disk
    void *opaque;
    // The account of all reloads, without edits:
    uint64_t applied, refused; // times
    int64_t loaded_ns;         // CLOCK_REALTIME: when what runs was read
    int64_t tried_ns;          // likewise: of the last reload; 0: there was none
    char error[256];           // the first reason that refused it; "" where it was applied
    char done[160];            // what it came to where it was applied (reload_text)
    bool is_applied;           // the last one; also before the first
    // Private: the first `n` requests are under way, one or only edits.
    bool closed;
    bool busy; // a batch is under way, or its requests are being answered, who may ask for more
    struct reload_request *first, **last;
    struct edit *edits[RELOAD_EDITS_MAX];
    int n, most;           // edits that share the next reload
    struct config *loaded; // that runs; NULL: the one that framed was started with
    struct assigned assigned;
    // Of the work that is under way:
    struct work read, sync;
    struct config *config;
    FILE *errors;
    char *text;
    size_t text_size;
    int rc;       // of reading the files, and if it is 0:
    int mistakes; // that are in `errors` already
    struct reload_result result;
};

// Loop thread. Its public members are set, and the private ones zero.
void reload_open(struct reload *);
// Logs each key and value of the configuration that framed no longer has, once.
void reload_warn_of_gone(const struct config *);
// Whether there is a file, which alone can be read again and has a folder for edits.
bool reload_has_file(const struct reload *);
// Reads the configuration once those who came before have got theirs. Loop thread.
void reload_start(struct reload *, struct reload_request *);
// From now on reloads are refused, and the one under way will be. Loop thread.
void reload_close(struct reload *);
void reload_free(struct reload *); // after the loop

// The configuration that runs, until the next reload. Loop thread.
const struct config *reload_config(const struct reload *);

// Whether `path`, absolute and without links, is the file that is read; else a line in `errors`
// names both. Any thread; may block.
bool reload_is_of(const struct reload *, const char *path, FILE *errors);
// "3 cameras kept, 1 camera changed, 1 output of those kept added"; returns `to`.
char *reload_text(const struct reload_result *, char *to, size_t size);

#endif
