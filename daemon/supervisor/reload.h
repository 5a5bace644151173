// Reads the configuration again while framed runs, and applies all of it or nothing. Blocking steps
// (the file, groups, NVDEC) run as work; then the loop thread plans and commits in one go.
#ifndef FRAMED_DAEMON_SUPERVISOR_RELOAD_H
#define FRAMED_DAEMON_SUPERVISOR_RELOAD_H

#include "daemon/base/loop.h"
#include "daemon/supervisor/cameras.h"
#include "daemon/supervisor/edit.h"

// --- peak memory
// A configuration together with cameras and outputs that still exist when it takes their place: all
// need room at once.

struct peak_memory {
    struct config config;          // shares data with the configurations it is made from
    struct output_config *outputs; // CAMERA_OUTPUTS_MAX per camera
};

// Makes room for `more` cameras than `config` has. Returns 0 or -ENOMEM.
int peak_memory_open(struct peak_memory *, const struct config *, int more);
void peak_memory_close(struct peak_memory *);
void peak_memory_add_camera(struct peak_memory *, const struct camera *);

// --- applying a configuration
// Applies a new configuration to cameras: builds the changed cameras and outputs beside the running
// ones, prepares their sinks, then puts all of it in place at once, or drops it without a trace.
// Loop thread, which does nothing else in between.

struct reconfigure;

// Numbers of cameras and outputs by outcome.
struct reload_result {
    int kept, added, removed, changed;                   // cameras
    int outputs_added, outputs_removed, outputs_changed; // of kept cameras
};

// Builds everything; groups must have been looked up. Returns 0; -EINVAL: something is not
// available, with a line per reason in `errors`, which already has `mistakes` of them; or -ENOMEM.
// `file` names the configuration there.
int reconfigure_open(struct reconfigure **ret, struct cameras *, const struct config *,
                     const char *file, int mistakes, FILE *errors);
// Puts it in place; cannot fail. Afterwards the configuration is not needed any more.
void reconfigure_apply(struct reconfigure *, struct reload_result *);
void reconfigure_close(struct reconfigure *); // drops it unless applied; accepts NULL

// --- reloads

enum { RELOAD_EDITS_MAX = 64 }; // in one reload

// A requested reload, or a change of one camera: a reload with that camera's future files.
struct reload_request {
    struct edit *edit; // the caller's; NULL: a plain reload
    // Loop thread, once; the request is the caller's again. `rc` 0: changed cameras and outputs are
    // ending, their successors already have their addresses, the unchanged ones have noticed
    // nothing, and an edit is on the disk. Else nothing has changed, and `errors` has a line per
    // reason. -EINVAL: mistakes in the files, or something that this machine or process lacks for
    // them; -ESHUTDOWN: framed stops; another negative errno: of an edit, as edit_check and
    // edit_write, where -EALREADY has one line that is no reason.
    void (*done)(struct reload_request *, int rc, const struct reload_result *, const char *errors);
    struct reload_request *next;
};

struct reload {
    const char *file;             // standard input ("-"), pipes and NULL cannot be read again
    const struct config *started; // framed was started with it
    struct cameras *cameras;
    struct work_queue *work;
    // Other users of the configuration. `prepare` as service_prepare; then either `commit` puts it
    // in place, or `abandon` drops it.
    int (*prepare)(void *opaque, const struct config *, const char *file, FILE *errors);
    void (*commit)(void *opaque);
    void (*abandon)(void *opaque);
    // Called before the files are read, and after everything. `whole`: not an edit.
    void (*began)(void *opaque, bool whole);
    void (*ended)(void *opaque, bool whole, int rc);
    void (*edited)(void *opaque, const struct edit *); // it is applied, and on the disk
    void *opaque;
    // The account of all reloads, without edits:
    uint64_t applied, refused; // times
    int64_t loaded_ns;         // CLOCK_REALTIME: when the running configuration was read
    int64_t tried_ns;          // CLOCK_REALTIME: last reload; 0: none
    char error[256];           // the first reason for a refusal; "": applied
    char done[160];            // the result, if applied (reload_text)
    bool is_applied;           // the last one was; also true before the first
    // Private: the first `n` requests are in progress, one or only edits.
    bool closed;
    bool busy; // requests are in progress, or being answered, which may add more
    struct reload_request *first, **last;
    struct edit *edits[RELOAD_EDITS_MAX];
    int n, most;           // in this reload; edits that may share the next one
    struct config *loaded; // the running one; NULL: `started`
    struct assigned assigned;
    // The work in progress:
    struct work read, sync;
    struct config *config;
    FILE *errors;
    char *text;
    size_t text_size;
    int rc;       // of reading the files; if it is 0:
    int mistakes; // already in `errors`
    struct reload_result result;
};

// Loop thread. The public members must be set, and the private ones zero.
void reload_open(struct reload *);
// Logs each key and value of the configuration that framed no longer supports, once.
void reload_warn_of_gone(const struct config *);
// True if there is a file: only a file can be read again, and has a folder for edits.
bool reload_has_file(const struct reload *);
// Reads the configuration once earlier requests are done. Loop thread.
void reload_start(struct reload *, struct reload_request *);
// Refuses reloads from now on, also the one in progress. Loop thread.
void reload_close(struct reload *);
void reload_free(struct reload *); // after the loop

// Returns the running configuration, valid until the next reload. Loop thread.
const struct config *reload_config(const struct reload *);

// True if `path`, absolute and without links, is the configuration's file; else a line in `errors`
// names both. Any thread; may block.
bool reload_is_of(const struct reload *, const char *path, FILE *errors);
// "3 cameras kept, 1 camera changed, 1 output of those kept added"; returns `to`.
char *reload_text(const struct reload_result *, char *to, size_t size);

#endif
