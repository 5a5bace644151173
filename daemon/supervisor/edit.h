// A change of one camera that outlasts framed: what the API puts, removes or pauses stands in
// drop-in files of its own (config/drop_ins.h), and the files that people write are not touched.
//
//     FILE.d/api-NAME.yaml      the camera
//     FILE.d/paused-NAME.yaml   its pause, wherever the camera stands
//
// A camera that a cluster gives to this box, or takes from it, is such a change, too, but nothing
// of it is written: its file FILE.d/cluster-NAME.yaml exists for messages alone, and its text is
// kept in memory (supervisor/assigned.h).
//
// Each file is replaced or removed in one step, so that a framed that is killed at any moment
// leaves the state before the change or that behind it: the new text is first written to the disk
// under another name (edit_write), and takes its place (edit_commit) once the running daemon is
// sure to take it over.
#ifndef FRAMED_DAEMON_SUPERVISOR_EDIT_H
#define FRAMED_DAEMON_SUPERVISOR_EDIT_H

#include <stdatomic.h>

#include "config/config.h"
#include "config/drop_ins.h"

enum edit_kind {
    EDIT_PUT,
    EDIT_DELETE,
    EDIT_PAUSE,
    EDIT_RESUME,
    EDIT_ASSIGN, // in memory, as is:
    EDIT_UNASSIGN,
};

enum {
    EDIT_FILES = 2,        // that a change may be of
    EDIT_LINES_BEFORE = 2, // of the file of a camera, before what was put
};

struct edit {
    enum edit_kind kind;
    char camera[24];
    // The caller's, of EDIT_ASSIGN: as of struct camera_config.
    uint32_t generation;
    const _Atomic int64_t *fence_ns;
    // Private.
    char *folder, *text;
    struct file_change change[EDIT_FILES];
    char *path[EDIT_FILES], *draft[EDIT_FILES];
    int n;
};

// What `camera` may not have for its name, as a sentence's end; NULL: nothing.
const char *edit_name_wrong(const char *camera);
// `file` is the configuration's. `text`, copied: of EDIT_PUT, a JSON object with the camera's keys;
// of EDIT_ASSIGN, the text of a configuration with that camera. 0 or -ENOMEM.
int edit_open(struct edit **ret, enum edit_kind, const char *camera, const char *file,
              const char *text);
void edit_close(struct edit *); // accepts NULL
// The file that the change is about; NULL once EDIT_ASSIGN was made.
const char *edit_path(const struct edit *);
// Whether nothing of it is written to the disk.
bool edit_is_in_memory(const struct edit *);
// "put", "removed", "paused", "resumed", "assigned by the cluster" or "given up to the cluster".
const char *edit_done_text(const struct edit *);

// Removes the drafts that a framed which was killed has left beside that configuration. At the
// start alone.
void edit_clean(const char *file);

// Whether it can be made beside what runs: 0; -EALREADY: nothing is to be done; -ENOENT: there is
// no such camera; -EEXIST: it stands, or is paused, in another file; -ENOMEM. Of the first three
// `why` is a sentence.
int edit_check(struct edit *, const struct config *running, char *why, size_t size);

// Writes the drafts and syncs them; makes the folder where it is missing. 0; negative errno with a
// sentence in `why`, and the drafts are gone. Any thread; blocks.
int edit_write(const struct edit *, char *why, size_t size);
// Puts the drafts in their places. 0, or negative errno with a sentence in `why`.
int edit_commit(const struct edit *, char *why, size_t size);
void edit_abandon(const struct edit *); // removes the drafts
// After edit_commit: the change is on the disk when this returns. Any thread; blocks.
void edit_sync(const struct edit *);

#endif
