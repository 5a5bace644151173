// The cameras that a cluster has assigned to this node. Their texts are only in memory, each like a
// drop-in file, and every reload reads them with the files. Loop thread, except for
// assigned_changes and assigned_mark while a reload reads.
#ifndef FRAMED_DAEMON_SUPERVISOR_ASSIGNED_H
#define FRAMED_DAEMON_SUPERVISOR_ASSIGNED_H

#include <stdio.h>

#include "daemon/supervisor/edit.h"

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
