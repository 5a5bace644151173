// A change of one camera that outlasts framed: cameras and pauses made by the API are in drop-in
// files of their own (config/load.h), and files written by people are not touched.
//
//     FILE.d/api-NAME.yaml      the camera
//     FILE.d/paused-NAME.yaml   its pause, wherever the camera is defined
//
// A camera that a cluster assigns to this node, or takes from it, is such a change too, but nothing
// is written: its file FILE.d/cluster-NAME.yaml exists in messages only, and its text is kept in
// memory (struct assigned).
//
// Each file is replaced or removed in one step, so that a framed killed at any moment leaves the
// state before or after the change. The new text is first written to the disk under another name
// (edit_write), and takes its place (edit_commit) once the running daemon is sure to apply it.
#ifndef FRAMED_DAEMON_SUPERVISOR_EDIT_H
#define FRAMED_DAEMON_SUPERVISOR_EDIT_H

#include <stdatomic.h>
#include <stdio.h>

#include "config/config.h"
#include "config/load.h"

enum edit_kind {
    EDIT_PUT,
    EDIT_DELETE,
    EDIT_PAUSE,
    EDIT_RESUME,
    EDIT_ASSIGN, // in memory, like:
    EDIT_UNASSIGN,
};

enum {
    EDIT_FILES = 2,        // of one change, at most
    EDIT_LINES_BEFORE = 2, // in the file of a camera, before its keys
};

struct edit {
    enum edit_kind kind;
    char camera[24];
    // Set by the caller for EDIT_ASSIGN, as in struct camera_config.
    uint32_t generation;
    const _Atomic int64_t *fence_ns;
    // Private.
    char *folder, *text;
    struct file_change change[EDIT_FILES];
    char *path[EDIT_FILES], *draft[EDIT_FILES];
    int n;
};

// Returns the rule that `camera` breaks as a name, as a sentence's end; NULL: none.
const char *edit_name_wrong(const char *camera);
// `file` is the configuration's. `text` is copied. EDIT_PUT: a JSON object with the camera's keys;
// EDIT_ASSIGN: the text of a configuration with that camera. Returns 0 or -ENOMEM.
int edit_open(struct edit **ret, enum edit_kind, const char *camera, const char *file,
              const char *text);
void edit_close(struct edit *); // accepts NULL
// Returns the file of the change; NULL once EDIT_ASSIGN was made.
const char *edit_path(const struct edit *);
// True if nothing of the change is written to the disk.
bool edit_is_in_memory(const struct edit *);
// "put", "removed", "paused", "resumed", "assigned by the cluster" or "given up to the cluster".
const char *edit_done_text(const struct edit *);

// Removes drafts that a killed framed has left beside that configuration. Only at the start.
void edit_clean(const char *file);

// Checks the change against the running configuration. Returns 0; -EALREADY: nothing to do;
// -ENOENT: no such camera; -EEXIST: the camera is defined, or paused, in another file; -ENOMEM. The
// first three come with a sentence in `why`.
int edit_check(struct edit *, const struct config *running, char *why, size_t size);

// Writes and syncs the drafts; makes the folder if it is missing. Returns 0, or a negative errno
// with a sentence in `why` and the drafts removed. Any thread; blocks.
int edit_write(const struct edit *, char *why, size_t size);
// Moves the drafts to their places. Returns 0, or a negative errno with a sentence in `why`.
int edit_commit(const struct edit *, char *why, size_t size);
void edit_abandon(const struct edit *); // removes the drafts
// Call after edit_commit; returns once the change is on the disk. Any thread; blocks.
void edit_sync(const struct edit *);

// --- assigned cameras
// The cameras that a cluster has assigned to this node. Their texts are only in memory, each like a
// drop-in file, and every reload reads them with the files. Loop thread, except for
// assigned_changes and assigned_mark while a reload reads.

struct assigned_camera {
    char camera[24];
    char *path, *text;
    uint32_t generation;
    const _Atomic int64_t *fence_ns; // outlives the camera
};

// Empty when zeroed.
struct assigned {
    struct assigned_camera *list;
    int n;
};

// Gives the changes to read the files with: those edits, and the cameras without an edit. The
// caller frees the list; edits and cameras keep the texts. Returns 0 or -ENOMEM.
int assigned_changes(const struct assigned *, struct edit *const edits[], int n_edits,
                     struct file_changes *ret);
// Marks the configuration's cameras that a cluster has assigned, by those changes. Returns the
// number of edits whose text lacks their camera, each with a line in `errors`.
int assigned_mark(const struct assigned *, struct edit *const edits[], int n_edits, struct config *,
                  FILE *errors);
// Makes room for the additions of these edits, so that assigned_commit cannot fail. 0 or -ENOMEM.
int assigned_prepare(struct assigned *, int n_edits);
// Call once the edits' configuration runs. An edit's text is moved, not copied.
void assigned_commit(struct assigned *, struct edit *const edits[], int n_edits);
void assigned_free(struct assigned *);

#endif
